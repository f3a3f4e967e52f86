// SPDX-License-Identifier: MIT
#include <chrono>
#include <cstring>
#include <optional>

#include "bench/topics/engines.h"
#include "bench/topics/runs.h"
#include "weft/msg/context.h"
#include "weft/sys/clock.h"
#include "weft/topic/topics.h"

namespace bench {
namespace {

constexpr std::chrono::seconds kReady(20);

// TopicsEnd: a handle with a publisher, a subscription, or both.
class TopicsEnd final : public End {
 public:
  TopicsEnd(weft::Context& context, const weft::TopicsOptions& options, const char* to, const char* from,
            std::size_t subscribers)
      : topics_(must(weft::Topics::open(context, options), "open")), subscribers_(subscribers) {
    if (from != nullptr) {
      subscription_.emplace(must(topics_.subscribe(from), "subscribe"));
    }
    if (to != nullptr) {
      publisher_.emplace(must(topics_.publisher(to, {.when_full = weft::WhenFull::wait}), "publisher"));
    }
  }

  void send(const void* data, std::size_t size) override {
    if (!ready_) [[unlikely]] {
      must(publisher_->wait_subscribers(subscribers_, weft::sys::now() + kReady), "wait for the subscribers");
      ready_ = true;
    }
    if (!publisher_->publish(weft::Bytes(static_cast<const std::uint8_t*>(data), size))) [[unlikely]] {
      fail("a publish was refused");
    }
  }
  std::size_t receive(void* target, std::size_t capacity) override {
    const weft::Result<weft::TopicMessage> message = subscription_->next();
    if (!message || message->body().size() > capacity || message->missed() != 0) [[unlikely]] {
      fail(message ? "a message was missed, or is too large" : message.error().message());
    }
    std::memcpy(target, message->body().data(), message->body().size());
    return message->body().size();
  }

 private:
  weft::Topics topics_;
  std::optional<weft::Publisher> publisher_;
  std::optional<weft::Subscription> subscription_;
  const std::size_t subscribers_;
  bool ready_ = false;
};

class TopicsEngine final : public Engine {
 public:
  explicit TopicsEngine(const std::string& directory) {
    options_.fleet = "local:bench";
    options_.runtime_directory = directory;
    options_.hosts = false;
    // A queue that takes a whole repetition: the lead of a publisher waits there, and nothing is dropped.
    options_.queue_messages_max = std::size_t{1} << 27U;
    options_.queue_bytes_max = std::size_t{1} << 36U;
  }
  [[nodiscard]] std::string version() const override { return "weft::topics"; }
  [[nodiscard]] std::string path() const override { return ""; }

  Ends bind(const Cell& cell, Addresses& /*addresses*/) override {
    Ends ends;
    const bool trips = cell.pattern == Pattern::round_trip;
    ends.push_back(std::make_unique<TopicsEnd>(open(), options_, trips ? kAnswer : kFlow, trips ? kFlow : nullptr,
                                               static_cast<std::size_t>(trips ? 1 : cell.times)));
    return ends;
  }
  Ends connect(const Cell& cell, const Addresses& /*addresses*/) override {
    Ends ends;
    const bool trips = cell.pattern == Pattern::round_trip;
    for (int i = 0; i < cell.times; ++i) {
      ends.push_back(
          std::make_unique<TopicsEnd>(open(), options_, trips ? kFlow : nullptr, trips ? kAnswer : kFlow, 1));
    }
    return ends;
  }

 private:
  weft::Context& open() {
    if (!context_) {
      context_.emplace();  // after the fork
    }
    return *context_;
  }

  weft::TopicsOptions options_;
  std::optional<weft::Context> context_;
};

}  // namespace

std::unique_ptr<Engine> make_topics(const std::string& directory) { return std::make_unique<TopicsEngine>(directory); }

}  // namespace bench
