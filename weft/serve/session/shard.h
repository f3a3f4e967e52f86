// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "weft/base/slot_map.h"
#include "weft/net/admit/handshake_turns.h"
#include "weft/net/admit/read_turns.h"
#include "weft/rt/core/core.h"
#include "weft/serve/admission/byte_budget.h"
#include "weft/serve/admission/session_count.h"
#include "weft/serve/metrics/counters.h"
#include "weft/serve/session/groups.h"
#include "weft/serve/session/held_frames.h"
#include "weft/serve/session/input_memory.h"
#include "weft/serve/session/service.h"
#include "weft/serve/session/session.h"

namespace weft::serve {

// Shard: one core's part of a server: its sessions, its groups, the block that they read into.
// Owner: the server; the shard outlives its sessions. Affinity: its core's thread, except counters() and
// epoch().
// Cost: find() compares three numbers.
// Invariants:
//   (1) An id finds the session that it was given to, or none.
//   (2) A session is destroyed at the end of a turn, with none of its callbacks on the stack, after its
//       coroutines and its on_close().
class Shard : public rt::CoreResident {
 public:
  static constexpr std::size_t kInputPart = 2;  // half-received input takes at most this part of the core's budget
  static constexpr Duration kReliefEvery = std::chrono::milliseconds(100);

  Shard(rt::Core& core, std::uint16_t epoch, ByteBudget& budget, std::size_t core_budget, SessionCount& count,
        CoreCounters& counters, const LogSink& log, const HandlerExceptionSink& on_exception = {}) noexcept
      : CoreResident(epoch),
        core_(core),
        epoch_(epoch),
        budget_(budget, core_budget, counters.memory.data()),
        input_memory_(budget_, core_budget / kInputPart, &Session::evict),
        held_frames_(budget_),
        count_(count),
        counters_(counters),
        log_(log),
        on_exception_(on_exception),
        sessions_(SessionId::kSlots) {}
  Shard(const Shard&) = delete;
  Shard& operator=(const Shard&) = delete;
  ~Shard();

  // The shard of that start of a server on the calling core; null if the server has no listener there yet, or has none
  // any longer.
  [[nodiscard]] static Shard* here(std::uint16_t epoch) noexcept {
    const List<rt::CoreResident>& residents = rt::Core::current()->residents();
    rt::CoreResident* resident = residents.first();
    while (resident != nullptr && resident->number != epoch) {
      resident = residents.next(*resident);
    }
    return static_cast<Shard*>(resident);  // only shards have numbers of 16 bits
  }
  // From now on here() finds the shard, and publishers see its groups. Idempotent.
  void move_in(GroupPresence& presence) noexcept {
    if (!hooked()) {
      groups_.announce_to(presence, core_.index());
      core_.residents().push_back(*this);
    }
  }

  [[nodiscard]] rt::Core& core() noexcept { return core_; }
  [[nodiscard]] rt::Loop& loop() noexcept { return core_.loop(); }
  [[nodiscard]] std::uint16_t epoch() const noexcept { return epoch_; }
  [[nodiscard]] CoreCounters& counters() noexcept { return counters_; }
  [[nodiscard]] ByteBudget::Share& budget() noexcept { return budget_; }
  [[nodiscard]] InputMemory& input_memory() noexcept { return input_memory_; }
  [[nodiscard]] HeldFrames& held_frames() noexcept { return held_frames_; }
  [[nodiscard]] GroupTable& groups() noexcept { return groups_; }
  [[nodiscard]] MutableBytes scratch() noexcept;  // empty if there is no memory
  [[nodiscard]] bool defers_handshake() noexcept { return handshakes_.defers(core_.loop().now()); }
  [[nodiscard]] net::ReadTurns<Session>& reads() noexcept { return reads_; }
  // The session reads in the line, at the end of this turn at the earliest.
  void read_in_line(net::ReadTurns<Session>::Place& place) noexcept {
    reads_.wait(place);
    core_.at_turn_end(read_job_);
  }

  // Makes a session of a connection, or rejects the connection: counted, and closed. `accepted`: the time from which
  // the handshake time-out counts; none: now.
  void open(const ServiceSlot& slot, std::unique_ptr<net::ByteStream> stream, net::Admission::Lease lease = {},
            std::optional<Instant> accepted = std::nullopt);
  // Counts and logs a connection that becomes no session; `peer` comes from peer_of().
  void reject(Rejection why, std::string_view peer, const Error& error = {}) noexcept;
  // The address of the stream's other end if a log needs it; otherwise, and without memory, empty.
  [[nodiscard]] std::string peer_of(const net::ByteStream& stream) const noexcept;
  [[nodiscard]] Session* find(SessionId id) noexcept;  // null if it ended, or belongs to another core or server
  [[nodiscard]] Session* find_or_count(SessionId id) noexcept {  // counts an id that finds none
    Session* const session = find(id);
    if (session == nullptr) {
      counters_.stale_ids.add();
    }
    return session;
  }
  [[nodiscard]] std::size_t size() const noexcept { return sessions_.size(); }
  template <typename Function>
  void for_each(Function&& function) {
    sessions_.for_each([&function](SlotId, Block& block) { function(*block.session); });
  }
  // The same for the sessions in `slots` slots, see SlotMap::for_each_in().
  template <typename Function>
  std::uint32_t for_each_in(std::uint32_t first, std::uint32_t slots, Function&& function) {
    return sessions_.for_each_in(first, slots, [&function](SlotId, Block& block) { function(*block.session); });
  }
  // Sends to the group's members on this core. Returns the number of members that took the frame.
  std::size_t publish(GroupId group, const SharedFrame& frame);

  // Called when memory for a frame was refused. At most once in kReliefEvery, ends the session with the most queued
  // bytes of those whose peers do not take them. So peers that read nothing do not keep others from their answers.
  void end_slowest() noexcept;
  // Logs an exception of a service that no session led to, and gives it to on_exception.
  void note_exception(const std::exception_ptr& thrown) const noexcept { tell_exception({}, {}, thrown); }

  // A drain has two phases. drain(): every session handles its received frames, sends the replies that it owes, and
  // then takes frames to send, so that no frame of another session or core is lost. Calls `when_drained` each time that
  // all have done so, perhaps during this call. close_drained(): each session that has done so closes, and the others
  // when they have. Calls `when_empty` once when no session is left, perhaps during this call.
  void drain(std::function<void()> when_drained);
  // Whether no drained session owes a reply again. If one does, `when_drained` is called once more.
  [[nodiscard]] bool still_drained();
  void close_drained(std::function<void()> when_empty);
  [[nodiscard]] bool closes_drained() const noexcept { return closing_; }

  // --- sessions that move to another core (Session::move_to()) ---
  void set_mover(SessionMover& mover) noexcept { mover_ = &mover; }  // null until then: no session moves
  [[nodiscard]] SessionMover* mover() const noexcept { return mover_; }
  // Whether a session may come; false in a drain. arrive() or release() follows. Until then a drain waits.
  [[nodiscard]] bool reserve() noexcept;
  void release() noexcept;
  // Tells the session whether the other core takes it. Returns false if the session does not own the move then.
  [[nodiscard]] bool answer(SessionId session, SessionMove& move, bool granted) noexcept;
  void arrive(const ServiceSlot& slot, SessionRest rest) noexcept;  // requires reserve()

  std::size_t end_all();    // ends all sessions, at the end of this turn; the number of those with something to lose
  void abandon() noexcept;  // ends all sessions, now; requires that no callback is on the stack

 private:
  friend class Session;
  struct Block {
    Session* session = nullptr;
    alignas(std::max_align_t) std::byte place[kSessionSize];
  };

  // Serves the line of reads once in each turn.
  struct ReadJob final : rt::TurnJob {
    explicit ReadJob(Shard& of) noexcept
        : rt::TurnJob([](rt::TurnJob& job) noexcept { static_cast<ReadJob&>(job).shard.serve_reads(); }), shard(of) {}
    Shard& shard;
  };

  void serve_reads() noexcept;
  void finish(Session& session) noexcept;   // destroys it, once its coroutines have ended
  void replace(Session& session) noexcept;  // by a session of its successor
  void depart(Session& session) noexcept;   // to another core; destroys it
  void hold_drain() noexcept { ++undrained_; }
  void release_drain() noexcept;
  void report_empty();
  void log_end(const Session& session) const noexcept;
  void note_exception(const Session& session, const std::exception_ptr& thrown) const noexcept;
  void tell_exception(SessionId id, std::string_view peer, const std::exception_ptr& thrown) const noexcept;
  [[nodiscard]] std::unique_ptr<const std::string> peer_to_log(const net::ByteStream& stream) const noexcept;

  rt::Core& core_;
  const std::uint16_t epoch_;
  ByteBudget::Share budget_;
  InputMemory input_memory_;
  HeldFrames held_frames_;
  SessionCount& count_;
  net::HandshakeTurns handshakes_;
  net::ReadTurns<Session> reads_;
  ReadJob read_job_{*this};
  CoreCounters& counters_;
  const LogSink& log_;
  const HandlerExceptionSink on_exception_;
  SlotMap<Block, SessionId::kGenerationBits> sessions_;
  GroupTable groups_;
  mem::Buffer* scratch_ = nullptr;
  std::function<void()> when_drained_;
  std::function<void()> when_empty_;
  std::size_t undrained_ = 0;  // sessions that a drain waits for
  std::size_t reserved_ = 0;   // sessions that may come from other cores
  SessionMover* mover_ = nullptr;
  Instant relief_due_{};  // when end_slowest() may end the next session
  bool draining_ = false;
  bool closing_ = false;  // drained sessions close
  bool ended_ = false;    // end_all() was called
};

}  // namespace weft::serve
