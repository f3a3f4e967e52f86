// SPDX-License-Identifier: MIT
#include "bench/topics/libnats.h"

#include <array>
#include <cstdio>
#include <utility>

#include "bench/topics/runs.h"
#include "bench/workload.h"
#ifdef WEFT_BENCH_LIBNATS
#include <nats/nats.h>
#endif

namespace bench {

#ifdef WEFT_BENCH_LIBNATS

namespace {

constexpr int kPatienceMs = 20'000;

void check(natsStatus status, const char* what) {
  if (status != NATS_OK) {
    fail(std::string(what) + ": " + natsStatus_GetText(status));
  }
}

struct ConnectionEnd {
  void operator()(natsConnection* connection) const { natsConnection_Destroy(connection); }
};
struct SubscriptionEnd {
  void operator()(natsSubscription* subscription) const { natsSubscription_Destroy(subscription); }
};
struct JetStreamEnd {
  void operator()(jsCtx* jetstream) const { jsCtx_Destroy(jetstream); }
};
using Connection = std::unique_ptr<natsConnection, ConnectionEnd>;
using Subscribed = std::unique_ptr<natsSubscription, SubscriptionEnd>;

Connection connect(const std::string& url, bool asap) {
  natsOptions* options = nullptr;
  check(natsOptions_Create(&options), "options");
  check(natsOptions_SetURL(options, url.c_str()), "URL");
  check(natsOptions_SetSendAsap(options, asap), "SendAsap");
  natsConnection* connection = nullptr;
  check(natsConnection_Connect(&connection, options), "connect");
  natsOptions_Destroy(options);
  return Connection(connection);
}

class LibnatsPair final : public NatsPair {
 public:
  LibnatsPair(const std::string& url, bool asap, Arrived arrived)
      : arrived_(std::move(arrived)), near_(connect(url, asap)), far_(connect(url, asap)) {
    subscription_ = subscribe(kFlow, [](natsConnection*, natsSubscription*, natsMsg* message, void* self) {
      static_cast<LibnatsPair*>(self)->arrived_(body_of(message));
      natsMsg_Destroy(message);
    });
    service_ = subscribe(kAnswer, [](natsConnection* connection, natsSubscription*, natsMsg* message, void*) {
      check(natsConnection_Publish(connection, natsMsg_GetReply(message), natsMsg_GetData(message),
                                   natsMsg_GetDataLength(message)),
            "reply");
      natsMsg_Destroy(message);
    });
    check(natsConnection_Flush(far_.get()), "flush");
  }

  void publish(weft::Bytes body) override {
    check(natsConnection_Publish(near_.get(), kFlow, body.data(), static_cast<int>(body.size())), "publish");
  }
  std::size_t request(weft::Bytes body) override {
    natsMsg* reply = nullptr;
    check(natsConnection_Request(&reply, near_.get(), kAnswer, body.data(), static_cast<int>(body.size()), kPatienceMs),
          "request");
    const auto size = static_cast<std::size_t>(natsMsg_GetDataLength(reply));
    natsMsg_Destroy(reply);
    return size;
  }
  [[nodiscard]] std::string version() const override { return std::string("libnats ") + nats_GetVersion(); }

 private:
  static weft::Bytes body_of(natsMsg* message) {
    return {reinterpret_cast<const std::uint8_t*>(natsMsg_GetData(message)),
            static_cast<std::size_t>(natsMsg_GetDataLength(message))};
  }
  Subscribed subscribe(const char* subject, natsMsgHandler handler) {
    natsSubscription* subscription = nullptr;
    check(natsConnection_Subscribe(&subscription, far_.get(), subject, handler, this), "subscribe");
    check(natsSubscription_SetPendingLimits(subscription, -1, -1), "limits");
    return Subscribed(subscription);
  }

  const Arrived arrived_;
  const Connection near_;
  const Connection far_;
  Subscribed subscription_;
  Subscribed service_;
};

// js_PublishAsync() with a handler of errors only, its cheapest form.
class LibnatsStream final : public NatsStream {
 public:
  LibnatsStream(const std::string& url, bool ids) : ids_(ids), connection_(connect(url, false)) {
    jsOptions options;
    check(jsOptions_Init(&options), "options");
    options.PublishAsync.MaxPending = kInFlight;
    options.PublishAsync.StallWait = kPatienceMs;
    options.PublishAsync.ErrHandler = [](jsCtx*, jsPubAckErr* error, void*) {
      fail(std::string("an acknowledgement: ") + error->ErrText);
    };
    jsCtx* jetstream = nullptr;
    check(natsConnection_JetStream(&jetstream, connection_.get(), &options), "JetStream");
    jetstream_.reset(jetstream);
    jsStreamConfig config;
    check(jsStreamConfig_Init(&config), "configuration");
    const char* subject = kFlow;
    config.Name = kName;
    config.Subjects = &subject;
    config.SubjectsLen = 1;
    config.Storage = js_FileStorage;
    config.MaxBytes = static_cast<std::int64_t>(kBytesMax);
    check(js_AddStream(nullptr, jetstream_.get(), &config, nullptr, nullptr), "stream");
  }

  void publish(weft::Bytes body) override {
    jsPubOptions options;
    if (ids_) {
      (void)std::snprintf(id_.data(), id_.size(), "%016llx-%08llx", static_cast<unsigned long long>(now_ns()),
                          static_cast<unsigned long long>(++published_));
      check(jsPubOptions_Init(&options), "options");
      options.MsgId = id_.data();
    }
    check(
        js_PublishAsync(jetstream_.get(), kFlow, body.data(), static_cast<int>(body.size()), ids_ ? &options : nullptr),
        "publish");
  }
  void wait_answers() override {
    jsPubOptions options;
    check(jsPubOptions_Init(&options), "options");
    options.MaxWait = kPatienceMs;
    check(js_PublishAsyncComplete(jetstream_.get(), &options), "acknowledgements");
  }
  std::uint64_t last() override {
    jsStreamInfo* info = nullptr;
    check(js_GetStreamInfo(&info, jetstream_.get(), kName, nullptr, nullptr), "info");
    const std::uint64_t last = info->State.LastSeq;
    jsStreamInfo_Destroy(info);
    return last;
  }
  [[nodiscard]] std::string version() const override { return std::string("libnats ") + nats_GetVersion(); }

 private:
  const bool ids_;
  std::array<char, 32> id_{};
  std::uint64_t published_ = 0;
  const Connection connection_;
  std::unique_ptr<jsCtx, JetStreamEnd> jetstream_;
};

}  // namespace

std::unique_ptr<NatsStream> make_libnats_stream(const std::string& url, bool ids) {
  return std::make_unique<LibnatsStream>(url, ids);
}

std::unique_ptr<NatsPair> make_libnats(const std::string& url, bool asap, NatsPair::Arrived arrived) {
  return std::make_unique<LibnatsPair>(url, asap, std::move(arrived));
}

#else

std::unique_ptr<NatsPair> make_libnats(const std::string& /*url*/, bool /*asap*/, NatsPair::Arrived /*arrived*/) {
  fail("this program was built without libnats");
}
std::unique_ptr<NatsStream> make_libnats_stream(const std::string& /*url*/, bool /*ids*/) {
  fail("this program was built without libnats");
}

#endif

}  // namespace bench
