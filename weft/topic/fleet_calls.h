// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/base/bytes.h"
#include "weft/base/no_memory.h"
#include "weft/rt/task/task.h"
#include "weft/topic/node/node.h"

// The calls that wait for other handles, for Topics and AsyncTopics. Each is a series of waits: a class with
//   Result<std::optional<FleetWait>> next();        // nullopt after the last wait
//   Result<void> take(const Result<void>& waited);  // an error ends the call
//   Result<T> result();                             // after the last wait
// wait_for_fleet() carries it out in a thread, and run_fleet_call() in a coroutine of the handle's loop.
namespace weft::topic {

using NodePtr = std::shared_ptr<Node>;

// FleetWait: until the function returns true, which is called under the lock of the mesh, after each of its changes.
struct FleetWait {
  Instant deadline = kNever;
  std::function<bool(const MeshState&)> done{};
};

template <typename Call>
[[nodiscard]] auto wait_for_fleet(Node& node, Call& call) -> decltype(call.result()) {
  return or_no_memory([&]() -> decltype(call.result()) {
    for (;;) {
      const std::optional<FleetWait> wait = WEFT_TRY(call.next());
      if (!wait) {
        return call.result();
      }
      WEFT_TRY(call.take(node.wait_mesh(wait->deadline, wait->done)));
    }
  });
}
[[nodiscard]] rt::Task<Result<void>> run_fleet_wait(NodePtr node, FleetWait wait);
template <typename Call>
[[nodiscard]] auto run_fleet_call(NodePtr node, Call* call) -> rt::Task<decltype(call->result())> {
  for (;;) {
    WEFT_CO_TRY(std::optional<FleetWait> wait, or_no_memory([call] { return call->next(); }));
    if (!wait) {
      co_return call->result();
    }
    const Result<void> waited = co_await run_fleet_wait(node, *std::move(wait));
    WEFT_CO_TRY(or_no_memory([&] { return call->take(waited); }));
  }
}

// SubscriberCount: the wait for so many subscribers to the topic of a publisher.
class SubscriberCount {
 public:
  SubscriberCount(Node& node, const PublisherCore& publisher, std::size_t count, Instant deadline) noexcept
      : node_(node), publisher_(publisher), count_(count), deadline_(deadline) {}
  SubscriberCount(const SubscriberCount&) = delete;
  SubscriberCount& operator=(const SubscriberCount&) = delete;
  ~SubscriberCount();

  [[nodiscard]] Result<std::optional<FleetWait>> next();
  [[nodiscard]] Result<void> take(const Result<void>& waited) { return waited; }
  [[nodiscard]] Result<std::size_t> result() const { return ready_; }

 private:
  Node& node_;
  const PublisherCore& publisher_;
  const std::size_t count_;
  const Instant deadline_;
  std::optional<std::uint64_t> probe_;
  std::size_t ready_ = 0;
};

// RequestStart: a request whose service may not be known yet. Its result waits for the reply.
class RequestStart {
 public:
  RequestStart(Node& node, std::string_view topic, Bytes body, std::string_view headers, Instant deadline) noexcept
      : node_(node), topic_(topic), body_(body), headers_(headers), deadline_(deadline) {}

  [[nodiscard]] Result<std::optional<FleetWait>> next();
  [[nodiscard]] Result<void> take(const Result<void>& waited);
  [[nodiscard]] Result<Node::Request> result() { return std::move(*request_); }

 private:
  [[nodiscard]] Result<void> begin();

  Node& node_;
  const std::string_view topic_;
  const Bytes body_;
  const std::string_view headers_;
  const Instant deadline_;
  std::optional<Node::Request> request_;
};

// NodesChange: the wait until the handles with a presence are others than those known.
class NodesChange {
 public:
  NodesChange(Node& node, const std::vector<NodeInfo>& known, Instant deadline) noexcept
      : node_(node), known_(known), deadline_(deadline) {}

  [[nodiscard]] Result<std::optional<FleetWait>> next();
  [[nodiscard]] Result<void> take(const Result<void>& waited);
  [[nodiscard]] Result<std::vector<NodeInfo>> result() { return std::move(now_); }

 private:
  Node& node_;
  const std::vector<NodeInfo>& known_;
  const Instant deadline_;
  Instant expiry_ = kNever;  // of a lease
  bool changed_ = false;
  std::vector<NodeInfo> now_;
};

// TopicClaim: the claim of a topic: first the wait for the owned topics of every handle, then for the decision.
class TopicClaim {
 public:
  TopicClaim(Node& node, std::string_view topic, Instant deadline) noexcept
      : node_(node), topic_(topic), deadline_(deadline) {}

  [[nodiscard]] Result<std::optional<FleetWait>> next();
  [[nodiscard]] Result<void> take(const Result<void>& waited);
  [[nodiscard]] Result<std::uint64_t> result() const { return *epoch_; }

 private:
  Node& node_;
  const std::string_view topic_;
  const Instant deadline_;
  std::optional<std::uint64_t> claim_;  // under way
  std::optional<std::uint64_t> epoch_;  // won
};

}  // namespace weft::topic
