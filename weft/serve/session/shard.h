// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "weft/base/slot_map.h"
#include "weft/rt/core/core.h"
#include "weft/serve/admission/byte_budget.h"
#include "weft/serve/admission/session_count.h"
#include "weft/serve/metrics/counters.h"
#include "weft/serve/session/groups.h"
#include "weft/serve/session/service.h"
#include "weft/serve/session/session.h"

namespace weft::serve {

// Shard: one core's part of a server: its sessions, its groups, the block that they read into.
// Owner: the server; it outlives its sessions. Affinity: its core's thread, but for counters() and epoch().
// Cost: a session is found by its id with three comparisons.
// Invariants: 1. an id finds the session that it was given to, or none. 2. a session is destroyed at the end of a turn,
// with none of its callbacks on the stack, after its coroutines and its on_close().
class Shard {
 public:
  Shard(rt::Core& core, std::uint16_t epoch, ByteBudget& budget, std::size_t core_budget, SessionCount& count,
        CoreCounters& counters, const LogSink& log) noexcept
      : core_(core),
        epoch_(epoch),
        budget_(budget, core_budget),
        count_(count),
        counters_(counters),
        log_(log),
        sessions_(SessionId::kSlots) {}
  Shard(const Shard&) = delete;
  Shard& operator=(const Shard&) = delete;
  ~Shard();

  [[nodiscard]] rt::Core& core() noexcept { return core_; }
  [[nodiscard]] rt::Loop& loop() noexcept { return core_.loop(); }
  [[nodiscard]] std::uint16_t epoch() const noexcept { return epoch_; }
  [[nodiscard]] CoreCounters& counters() noexcept { return counters_; }
  [[nodiscard]] ByteBudget::Share& budget() noexcept { return budget_; }
  [[nodiscard]] GroupTable& groups() noexcept { return groups_; }
  [[nodiscard]] MutableBytes scratch() noexcept;  // empty: no memory

  // Makes a session of a connection, or rejects it: counted, and closed.
  void open(const ServiceSlot& slot, std::unique_ptr<net::Stream> stream, Admission::Lease lease = {});
  // Counts and logs a connection that becomes no session; `peer` as peer_of() gives it.
  void reject(Rejection why, std::string_view peer, const Error& error = {}) noexcept;
  // The address of its other end, if that is going to be logged.
  [[nodiscard]] std::string peer_of(const net::Stream& stream) const {
    return log_ ? stream.peer_address() : std::string();
  }
  [[nodiscard]] Session* find(SessionId id) noexcept;  // null: it ended, or is another core's or server's
  [[nodiscard]] std::size_t size() const noexcept { return sessions_.size(); }
  template <typename Function>
  void for_each(Function&& function) {
    sessions_.for_each([&function](SlotId, Block& block) { function(*block.session); });
  }
  // Sends to the members of a group that are here. Returns to how many.
  std::size_t publish(GroupId group, const SharedFrame& frame);

  // Every session delivers what it owes, then closes. `when_empty` is called once, when there are none, perhaps now.
  void drain(std::function<void()> when_empty);
  void end_all();           // those that are left, at the end of this turn
  void abandon() noexcept;  // those that are left, now: nobody's callback is on the stack

 private:
  friend class Session;
  struct Block {
    Session* session = nullptr;
    alignas(std::max_align_t) std::byte place[kSessionSize];
  };

  void finish(Session& session) noexcept;  // the last of it, once its coroutines have ended
  void report_empty();
  void log_end(const Session& session, std::uint64_t undelivered) const noexcept;

  rt::Core& core_;
  const std::uint16_t epoch_;
  ByteBudget::Share budget_;
  SessionCount& count_;
  CoreCounters& counters_;
  const LogSink& log_;
  SlotMap<Block, SessionId::kGenerationBits> sessions_;
  GroupTable groups_;
  mem::Buffer* scratch_ = nullptr;
  std::function<void()> when_empty_;
  bool draining_ = false;
};

}  // namespace weft::serve
