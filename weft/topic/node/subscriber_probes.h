// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "weft/base/result.h"
#include "weft/base/time.h"
#include "weft/sync/lock.h"
#include "weft/topic/loop/loop_timer.h"
#include "weft/topic/loop/node_loop.h"
#include "weft/topic/mesh/shared_mesh.h"
#include "weft/topic/node/interest.h"
#include "weft/topic/wire/control.h"

namespace weft::topic {

// SubscriberProbes: counts the subscriptions of this handle for its own probes and for those of its peers.
// mesh/readiness.h has the rules.
// Owner: a node. Affinity: any thread, except where a line names the loop. Cost: without probes an atomic load for each
// change of the subscriptions, and a lock.
// Locks: the answers' lock comes before those of the interest and the mesh.
// Invariant: an older count does not overtake a newer one.
class SubscriberProbes {
 public:
  using Send = std::function<Result<void>(const Control&)>;  // errors: resource_exhausted, closed

  SubscriberProbes(NodeLoop& loop, SharedMesh& mesh, InterestTable& interest, Send send)
      : mesh_(mesh), interest_(interest), send_(std::move(send)), repeat_timer_(loop, {&repeat, this}, kFirst, kLast) {}
  SubscriberProbes(const SubscriberProbes&) = delete;
  SubscriberProbes& operator=(const SubscriberProbes&) = delete;
  ~SubscriberProbes() = default;

  // A probe of this handle for the topic, in the wire's form. Errors: those of ReadinessProbes::begin() and of Send.
  [[nodiscard]] Result<std::uint64_t> begin(const std::string& topic, Instant deadline) noexcept;
  void end(std::uint64_t probe) noexcept;
  // The subscriptions of this handle changed. Returns whether a count of its own probes may have. Errors: those of
  // Send; no memory: call it again.
  [[nodiscard]] Result<bool> count_again() noexcept;

  // A peer's probe came. Errors: those of Send, in the rest too.
  [[nodiscard]] Result<void> answer_new(std::uint64_t from, std::uint64_t id);
  [[nodiscard]] Result<void> answer_all();
  // Sends at most `room` counts, and no count that the peers have. Returns how many more would have fitted.
  [[nodiscard]] Result<std::size_t> answer_some(std::size_t room) { return answer(0, 0, room); }

  // A cluster of servers may lose a probe or its answer: its servers meet one after the other, and a route may end. So
  // the probes that stand go out again, each time after twice as long. Loop.
  void repeat_soon() noexcept;
  void stop() noexcept { repeat_timer_.stop(); }  // loop, or after its end

 private:
  static constexpr Duration kFirst = std::chrono::milliseconds(50);
  static constexpr Duration kLast = std::chrono::seconds(1);

  [[nodiscard]] Result<std::size_t> answer(std::uint64_t from, std::uint64_t id, std::size_t room);
  static void repeat(void* self);
  void schedule() noexcept;

  SharedMesh& mesh_;
  InterestTable& interest_;
  const Send send_;
  std::atomic<bool> probed_{false};  // peers have probes
  sync::StdMutex answer_mutex_;      // from a count to its end in the mesh or at the peers
  LoopTimer repeat_timer_;
};

}  // namespace weft::topic
