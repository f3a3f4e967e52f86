// SPDX-License-Identifier: MIT
#include <cstring>
#include <string>

#include "bench/topics/engines.h"
#include "bench/topics/redis_link.h"

namespace bench {
namespace {

constexpr const char* kChannel = "bench.flow";
constexpr std::size_t kBatch = std::size_t{16} << 10U;  // of the publisher's write; larger ones were not faster
constexpr std::uint64_t kUnansweredMax = 20'000;  // publishes: the publisher is at most so far ahead of the server

class RedisPublisher final : public End {
 public:
  RedisPublisher(const std::string& path, std::size_t size)
      : link_(path), head_(RedisLink::head_of({"PUBLISH", kChannel}, size)) {}

  void send(const void* data, std::size_t size) override {
    link_.add(head_, data, size);
    ++unanswered_;
    if (link_.batched() >= kBatch) {
      write();
      take_answers(unanswered_ > kUnansweredMax ? kUnansweredMax / 2 : unanswered_);
    }
  }
  std::size_t receive(void* /*target*/, std::size_t /*capacity*/) override { fail("a publisher does not receive"); }
  void flush() override {
    write();
    take_answers(0);
  }

 private:
  void write() {
    link_.write();
    link_.read_some(false);
  }
  // Takes the replies that have arrived, and waits until at most `most` are left.
  void take_answers(std::uint64_t most) {
    while (unanswered_ > most || (unanswered_ > 0 && link_.readable())) {
      (void)link_.element();
      --unanswered_;
    }
  }

  RedisLink link_;
  const std::string head_;
  std::uint64_t unanswered_ = 0;
};

class RedisSubscriber final : public End {
 public:
  explicit RedisSubscriber(const std::string& path) : link_(path) {
    link_.add_raw(RedisLink::encode({"SUBSCRIBE", kChannel}));
    link_.write();
    for (int i = 0; i < 4; ++i) {  // *3, "subscribe", the channel, how many
      (void)link_.element();
    }
  }
  void send(const void* /*data*/, std::size_t /*size*/) override { fail("a subscriber does not publish"); }
  std::size_t receive(void* target, std::size_t capacity) override {
    for (int i = 0; i < 3; ++i) {  // *3, "message", the channel
      (void)link_.element();
    }
    const std::string_view body = link_.element();
    if (body.size() > capacity) {
      fail("a message is too large");
    }
    std::memcpy(target, body.data(), body.size());
    return body.size();
  }

 private:
  RedisLink link_;
};

class RedisEngine final : public Engine {
 public:
  explicit RedisEngine(std::string path) : path_(std::move(path)) {}
  [[nodiscard]] std::string version() const override {
    RedisLink link(path_);
    link.add_raw(RedisLink::encode({"INFO", "server"}));
    link.write();
    const std::string info(link.element());
    const std::size_t at = info.find("redis_version:") + 14;
    return "Redis " + info.substr(at, info.find('\r', at) - at);
  }
  [[nodiscard]] std::string path() const override { return ""; }
  Ends bind(const Cell& cell, Addresses& /*addresses*/) override {
    Ends ends;
    ends.push_back(std::make_unique<RedisPublisher>(path_, cell.size));
    return ends;
  }
  Ends connect(const Cell& cell, const Addresses& /*addresses*/) override {
    Ends ends;
    for (int i = 0; i < cell.times; ++i) {
      ends.push_back(std::make_unique<RedisSubscriber>(path_));
    }
    return ends;
  }

 private:
  const std::string path_;
};

}  // namespace

std::unique_ptr<Engine> make_redis(const std::string& path) { return std::make_unique<RedisEngine>(path); }

}  // namespace bench
