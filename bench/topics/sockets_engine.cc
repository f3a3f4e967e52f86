// SPDX-License-Identifier: MIT
#include <array>
#include <chrono>
#include <optional>
#include <thread>

#include "bench/topics/engines.h"
#include "bench/topics/runs.h"
#include "weft/msg/context.h"
#include "weft/msg/socket/socket_core.h"

namespace bench {
namespace {

constexpr std::chrono::milliseconds kLookEvery(1);

// SocketsEnd: a PUB that binds, a SUB that connects, or both.
class SocketsEnd final : public End {
 public:
  explicit SocketsEnd(bool one_part) : one_part_(one_part) {}

  void publish_to(weft::Context& context, const std::string& path, const char* topic, std::size_t subscribers) {
    pub_ = must(context.socket(weft::SocketType::pub), "PUB");
    must(pub_.set(weft::option::xpub_no_drop, true), "xpub_no_drop");
    must(pub_.set(weft::option::linger, weft::Duration::zero()), "linger");
    must(pub_.bind("ipc://" + path), "bind");
    topic_ = topic;
    subscribers_ = subscribers;
  }
  void subscribe_to(weft::Context& context, const std::string& path, const char* topic) {
    sub_ = must(context.socket(weft::SocketType::sub), "SUB");
    must(sub_.set(weft::option::linger, weft::Duration::zero()), "linger");
    must(sub_.subscribe(one_part_ ? "" : topic), "subscribe");
    must(sub_.connect("ipc://" + path), "connect");
  }

  void send(const void* data, std::size_t size) override {
    if (!ready_) [[unlikely]] {
      wait_for_subscribers();
    }
    const weft::Bytes body(static_cast<const std::uint8_t*>(data), size);
    if ((!one_part_ && !pub_.send(topic_, weft::More::yes)) || !pub_.send(body)) [[unlikely]] {
      fail("a send was refused");
    }
  }
  std::size_t receive(void* target, std::size_t capacity) override {
    std::array<std::uint8_t, 64> topic{};
    if (!one_part_ && !sub_.recv_into(topic)) [[unlikely]] {
      fail("no topic was received");
    }
    const weft::Result<weft::Received> part = sub_.recv_into({static_cast<std::uint8_t*>(target), capacity});
    if (!part || part->truncated || part->more) [[unlikely]] {
      fail("no body was received");
    }
    return part->size;
  }

 private:
  void wait_for_subscribers() {
    while (must(pub_.core()->subscribers(), "subscribers") < subscribers_) {
      std::this_thread::sleep_for(kLookEvery);
    }
    ready_ = true;
  }

  const bool one_part_;
  weft::Socket pub_;
  weft::Socket sub_;
  std::string topic_;
  std::size_t subscribers_ = 0;
  bool ready_ = false;
};

class SocketsEngine final : public Engine {
 public:
  SocketsEngine(std::string directory, bool one_part) : directory_(std::move(directory)), one_part_(one_part) {}
  [[nodiscard]] std::string version() const override { return "weft::Socket"; }
  [[nodiscard]] std::string path() const override { return ""; }

  Ends bind(const Cell& cell, Addresses& /*addresses*/) override {
    const bool trips = cell.pattern == Pattern::round_trip;
    auto end = std::make_unique<SocketsEnd>(one_part_);
    end->publish_to(open(), directory_ + "/bind", trips ? kAnswer : kFlow,
                    static_cast<std::size_t>(trips ? 1 : cell.times));
    if (trips) {
      end->subscribe_to(open(), directory_ + "/connect", kFlow);
    }
    Ends ends;
    ends.push_back(std::move(end));
    return ends;
  }
  Ends connect(const Cell& cell, const Addresses& /*addresses*/) override {
    const bool trips = cell.pattern == Pattern::round_trip;
    Ends ends;
    for (int i = 0; i < cell.times; ++i) {
      auto end = std::make_unique<SocketsEnd>(one_part_);
      if (trips) {
        end->publish_to(open(), directory_ + "/connect", kFlow, 1);
      }
      end->subscribe_to(open(), directory_ + "/bind", trips ? kAnswer : kFlow);
      ends.push_back(std::move(end));
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

  const std::string directory_;
  const bool one_part_;
  std::optional<weft::Context> context_;
};

}  // namespace

std::unique_ptr<Engine> make_sockets(const std::string& directory, bool one_part) {
  return std::make_unique<SocketsEngine>(directory, one_part);
}

}  // namespace bench
