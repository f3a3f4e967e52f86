// SPDX-License-Identifier: MIT
// Cells over a server of NATS: a publisher and a subscriber, or an asker and a service, with connections of their own;
// or the publisher of a kept stream. All are in this process, so its processor time is that of the clients, with all
// threads of their library.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "bench/topics/libnats.h"
#include "bench/topics/nats_pair.h"
#include "bench/topics/runs.h"
#include "bench/topics/stamp.h"
#include "bench/workload.h"
#include "weft/msg/context.h"
#include "weft/sys/clock.h"
#include "weft/topic/topics.h"

namespace bench {
namespace {

constexpr std::chrono::seconds kReady(20);
constexpr std::uint64_t kAhead = 10'000;  // messages: the publisher's lead, the same for every engine
constexpr std::uint64_t kStep = 1'000;    // after so many the subscriber lets the publisher go on

// TopicsPair: handles of two Contexts, so that messages cross the server.
class TopicsPair final : public NatsPair {
 public:
  TopicsPair(const std::string& url, Arrived arrived) : arrived_(std::move(arrived)) {
    weft::TopicsOptions options;
    options.fleet = url;
    near_.emplace(must(weft::Topics::open(near_context_, options), "open"));
    far_.emplace(must(weft::Topics::open(far_context_, options), "open"));
    subscription_.emplace(must(far_->subscribe(kFlow), "subscribe"));
    service_.emplace(must(
        far_->serve(kAnswer, {}, [](const weft::TopicMessage& asked) { return weft::Message::copy_of(asked.body()); }),
        "serve"));
    publisher_.emplace(must(near_->publisher(kFlow, {.when_full = weft::WhenFull::wait}), "publisher"));
    must(publisher_->wait_subscribers(1, weft::sys::now() + kReady), "wait for the subscriber");
    must(far_->sync(weft::sys::now() + kReady), "sync");
    reader_ = std::thread([this] {
      for (auto message = subscription_->next(); message; message = subscription_->next()) {
        if (message->missed() != 0) {
          fail("a message was missed");
        }
        arrived_(message->body());
      }
    });
  }
  ~TopicsPair() override {
    far_->close();
    reader_.join();
  }
  TopicsPair(const TopicsPair&) = delete;
  TopicsPair& operator=(const TopicsPair&) = delete;

  void publish(weft::Bytes body) override { must(publisher_->publish(body), "publish"); }
  std::size_t request(weft::Bytes body) override {
    return must(near_->request(kAnswer, body, weft::sys::now() + kReady), "request").body().size();
  }

 private:
  const Arrived arrived_;
  weft::Context near_context_;
  weft::Context far_context_;
  std::optional<weft::Topics> near_;
  std::optional<weft::Topics> far_;
  std::optional<weft::Subscription> subscription_;
  std::optional<weft::Service> service_;
  std::optional<weft::Publisher> publisher_;
  std::thread reader_;
};

class TopicsStream final : public NatsStream {
 public:
  explicit TopicsStream(const std::string& url)
      : topics_(must(weft::Topics::open(context_, options_of(url)), "open")),
        stream_(
            must(topics_.stream(
                     {.name = kName, .topics = {kFlow}, .survives = weft::Survives::process, .bytes_max = kBytesMax}),
                 "stream")) {}

  void publish(weft::Bytes body) override {
    if (unanswered_.size() == kInFlight) {
      take();
    }
    unanswered_.push_back(must(stream_.publish_later(kFlow, body), "publish"));
  }
  void wait_answers() override {
    while (!unanswered_.empty()) {
      take();
    }
  }
  std::uint64_t last() override { return must(stream_.info(), "info").next - 1; }

 private:
  static weft::TopicsOptions options_of(const std::string& url) {
    weft::TopicsOptions options;
    options.fleet = url;
    return options;
  }
  void take() {
    const weft::Published published = must(unanswered_.front().wait(), "an acknowledgement");
    unanswered_.pop_front();
    if (published.duplicate || published.sequence <= last_) {
      fail("an acknowledged message is a duplicate, or out of order");
    }
    last_ = published.sequence;
  }

  weft::Context context_;
  weft::Topics topics_;
  weft::Stream stream_;
  std::deque<weft::PendingPublish> unanswered_;
  std::uint64_t last_ = 0;
};

std::unique_ptr<NatsStream> make_stream(const std::string& engine, const std::string& url) {
  if (engine == "topics") {
    return std::make_unique<TopicsStream>(url);
  }
  if (engine == "libnats" || engine == "libnats_id") {
    return make_libnats_stream(url, engine == "libnats_id");
  }
  fail("no engine '" + engine + "' that keeps on NATS");
}

std::unique_ptr<NatsPair> make_pair(const std::string& engine, const std::string& url, NatsPair::Arrived arrived) {
  if (engine == "topics") {
    return std::make_unique<TopicsPair>(url, std::move(arrived));
  }
  if (engine == "libnats" || engine == "libnats_asap") {
    return make_libnats(url, engine == "libnats_asap", std::move(arrived));
  }
  fail("no engine '" + engine + "' on NATS");
}

}  // namespace

void run_fleet(const std::string& cell, const std::string& engine, const std::string& url) {
  Stamp sent(size_in(cell));
  Stamp taken(size_in(cell));
  std::atomic<std::uint64_t> arrived = 0;
  std::uint64_t expected = 0;
  std::uint64_t run = 0;
  const auto pair = make_pair(engine, url, [&](weft::Bytes body) {
    taken.read(body);
    const std::uint64_t count = arrived.load(std::memory_order_relaxed) + 1;
    arrived.store(count, std::memory_order_release);
    if (count % kStep == 0 || count == expected) {
      arrived.notify_all();
    }
  });
  const auto wait_for = [&](std::uint64_t count) {
    for (std::uint64_t seen = arrived.load(std::memory_order_acquire); seen < count;
         seen = arrived.load(std::memory_order_acquire)) {
      arrived.wait(seen, std::memory_order_acquire);
    }
  };
  serve_runs(pair->version(), [&](std::uint64_t count, bool /*verify*/) {
    ++run;
    sent.begin(run);
    taken.begin(run);
    expected = count;
    arrived.store(0, std::memory_order_release);
    const std::uint64_t start = now_ns();
    for (std::uint64_t i = 0; i < count; ++i) {
      if (i % kStep == 0 && i > kAhead) {
        wait_for(i - kAhead);
      }
      pair->publish(sent.write());
    }
    wait_for(count);
    taken.check(count);
    return RunResult{count, 1, static_cast<double>(now_ns() - start) / 1e9};
  });
}

void run_fleet_kept(const std::string& cell, const std::string& engine, const std::string& url) {
  Stamp sent(size_in(cell));
  std::uint64_t run = 0;
  const auto stream = make_stream(engine, url);
  serve_runs(stream->version(), [&](std::uint64_t count, bool /*verify*/) {
    const std::uint64_t before = stream->last();
    sent.begin(++run);
    const std::uint64_t start = now_ns();
    for (std::uint64_t i = 0; i < count; ++i) {
      stream->publish(sent.write());
    }
    stream->wait_answers();
    const double seconds = static_cast<double>(now_ns() - start) / 1e9;
    if (stream->last() != before + count) {
      fail("another number of messages was kept than acknowledged");
    }
    return RunResult{count, 1, seconds};
  });
}

void run_fleet_request(const std::string& cell, const std::string& engine, const std::string& url) {
  const std::vector<std::uint8_t> body(size_in(cell), 0x5a);
  const auto pair = make_pair(engine, url, [](weft::Bytes) { fail("a message that nobody published"); });
  std::vector<std::uint64_t> times;
  const auto repeat = [&](std::uint64_t count, bool /*verify*/) {
    times.clear();
    const std::uint64_t start = now_ns();
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint64_t before = now_ns();
      if (pair->request(body) != body.size()) {
        fail("a reply of another size");
      }
      times.push_back(now_ns() - before);
    }
    return RunResult{count, 1, static_cast<double>(now_ns() - start) / 1e9};
  };
  serve_runs(pair->version(), repeat, nullptr, [&](Json& record) {
    const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
    std::nth_element(times.begin(), middle, times.end());
    record["p50_ns"] = *middle;
  });
}

}  // namespace bench
