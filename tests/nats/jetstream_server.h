// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/nats_server.h"
#include "weft/nats/jetstream/publish.h"
#include "weft/nats/jetstream/stream.h"

// For tests: servers with JetStream, and requests to them.
namespace weft::nats::jetstream {

using rt::Task;
using test::in_long;
using test::NatsServer;
using test::Watch;

template <typename Value>
Reply<Value> read_of(const Result<Reply<Value>>& reply) {
  if (reply) {
    return *reply;
  }
  ADD_FAILURE() << reply.error().message();
  Reply<Value> none;
  none.failure.code = 1;
  return none;
}

// Sends a request and reads its answer.
template <typename Value>
Task<Reply<Value>> ask(Client* client, Result<ApiRequest> request, Result<Reply<Value>> (*read)(std::string_view)) {
  if (!request) {
    co_return read_of<Value>(request.error());
  }
  const auto answer = co_await client->request(request->subject, as_bytes(request->body), in_long());
  if (!answer) {
    co_return read_of<Value>(answer.error());
  }
  co_return read_of(read(as_text(answer->body())));
}

inline Task<Reply<PublishAck>> publish(Client* client, std::string subject, std::string body,
                                       PublishHeaders asked = {}) {
  Headers headers;
  EXPECT_TRUE(asked.add_to(headers));
  const auto answer = co_await client->request(subject, as_bytes(body), in_long(), headers.block());
  if (!answer) {
    co_return read_of<PublishAck>(answer.error());
  }
  co_return read_of(read_publish_ack(as_text(answer->body())));
}

// The parameter: the age and the configuration of the server.
class NatsJetStreamTest : public test::NatsTest, public testing::WithParamInterface<std::string> {
 public:
  using NatsTest::open;
  [[nodiscard]] const NatsServer& server() const { return *server_; }

 protected:
  void SetUp() override {
    const bool current = GetParam() != "debian";
    if (current ? test::current_server().empty() : std::string(WEFT_NATS_SERVER).empty()) {
      GTEST_SKIP() << (current ? "there is no current nats-server" : "there is no nats-server");
    }
    start_runtime();
    if (IsSkipped()) {
      return;
    }
    store_ = sys::make_private_directory().value();
    std::string config = "jetstream { store_dir: \"" + store_ + "\" }\n";
    if (GetParam() == "long_current") {  // the other form of reply subjects
      config += "feature_flags { js_ack_fc_v2: true }\n";
    }
    server_ = std::make_unique<NatsServer>(config, std::vector<std::string>(),
                                           current ? test::current_server() : WEFT_NATS_SERVER);
  }
  void TearDown() override {
    NatsTest::TearDown();
    server_.reset();
    if (!store_.empty()) {
      std::filesystem::remove_all(store_);
    }
  }

 private:
  std::string store_;
  std::unique_ptr<NatsServer> server_;
};

inline StreamConfig stream_of(const char* name, const char* subject) {
  StreamConfig config;
  config.name = name;
  config.subjects.emplace_back(subject);
  return config;
}

// A client, and a new stream.
inline Task<std::unique_ptr<Client>> open_with_stream(NatsJetStreamTest* self, StreamConfig config) {
  auto client = self->open(self->server());
  const auto connected = co_await client->connected(in_long());
  EXPECT_TRUE(connected);
  const auto created = co_await ask(client.get(), create_stream(config), read_stream_info);
  EXPECT_TRUE(created.ok()) << created.failure.description;
  EXPECT_EQ(created.value.config.subjects, config.subjects);
  EXPECT_TRUE(created.value.config.others.empty());
  co_return client;
}

}  // namespace weft::nats::jetstream
