// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "weft/base/bytes.h"
#include "weft/base/result.h"
#include "weft/base/time.h"
#include "weft/net/admit/admission.h"
#include "weft/net/stream/byte_stream.h"
#include "weft/rt/core/core.h"
#include "weft/rt/loop/loop.h"
#include "weft/rt/loop/turn_job.h"
#include "weft/rt/task/async_event.h"
#include "weft/serve/frame/frame_codec.h"
#include "weft/serve/frame/frame_kind.h"
#include "weft/serve/frame/shared_frame.h"
#include "weft/serve/metrics/counters.h"
#include "weft/serve/session/groups.h"
#include "weft/serve/session/log.h"
#include "weft/serve/session/partial_input.h"
#include "weft/serve/session/rate_pause.h"
#include "weft/serve/session/session_clock.h"
#include "weft/serve/session/session_id.h"
#include "weft/serve/session/session_limits.h"
#include "weft/serve/session/session_record.h"
#include "weft/serve/session/session_state.h"
#include "weft/serve/session/session_task.h"
#include "weft/serve/session/write_queue.h"
#include "weft/serve/session/write_room.h"

namespace weft::serve {

class Shard;
struct ServiceSlot;

// Session: one connection, on one core, from accept to on_close(). Services get SessionOf<Codec>, which adds
// send().
// Owner: its core's shard. A reference is valid inside the service's callbacks and between them, until
// on_close() returns. A caller that needs the session later keeps its id.
// Affinity: its core's thread. The calls that return a Result return invalid_state in any other thread; post_to() of
// the server runs a function in this one. Every call is allowed in every callback. No call runs a callback; the session
// runs callbacks later in the turn.
// Cost: at most 4 KB of memory while nothing is queued or half received. Frames are decoded where they were
// read. All frames sent during a read event, or during a turn, are written with one system call.
// Invariants:
//   (1) Frames that send() took leave whole and in that order, unless the session ends by another call than
//       close(). A frame with a key leaves in the place of an older one, see SessionOf::send_state().
//   (2) on_close() is called once for each on_open(), as the last call.
//   (3) A read event does bounded work: one read of at most 2 * kReadMax bytes. The rest waits until the
//       other sessions of the core had their turn.
//   (4) A peer can make the session hold its write budget and one frame, one half-received frame, and one
//       frame for each running handler; not more. Each half-received frame has a deadline.
//   (5) The coroutines of a session end before the session. Until then its id and its place stay taken;
//       on_close() comes after them.
//   (6) With TLS the service gets a session after the handshake. A failed handshake causes no call of the
//       service.
//
// Coroutines. A handler of frames may be a coroutine (service.h, dispatcher.h). With handlers_max = 1, the default, the
// handlers of a session do not interleave: the session decodes the next frame after the last handler has ended, so that
// replies leave in the order of the requests. With a larger handlers_max, that many handlers run at a time, and each
// answers as soon as it is ready. The peer then matches replies to requests by their contents.
// While handlers_max handlers run, the session does not read (counted, handler_pauses), which slows the peer down. The
// frames that handlers keep count as memory of the server. A running handler counts as an owed reply, see
// begin_reply(). spawn() adds coroutines that accompany the session and owe no reply.
// When the session is closed, for any reason, it cancels its coroutines: their awaits end with `cancelled`,
// is_open() is false and send() returns `closed`. The session waits for coroutines that continue
// nevertheless. A frame that is refused closes the session after the replies to the frames before it, see refuse().
class Session : private rt::Watcher, private rt::TurnJob {
 public:
  static constexpr std::size_t kReadMax = 64 * 1024;         // bytes for each read event
  static constexpr std::size_t kDiscardMax = 1024 * 1024;    // bytes that the session discards after close()
  static constexpr std::size_t kThroughMin = 16 * 1024;      // a body of this size is written without a copy
  static constexpr std::size_t kHandshakeBytes = 48 * 1024;  // memory that a handshake of TLS counts

  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  [[nodiscard]] SessionId id() const noexcept { return id_; }
  [[nodiscard]] bool is_open() const noexcept { return state_ <= State::drained; }  // neither closed nor ended
  [[nodiscard]] std::size_t queued() const noexcept { return writes_.size(); }      // bytes
  [[nodiscard]] std::string peer_address() const { return stream_->peer_address(); }
  [[nodiscard]] const net::ByteStream& stream() const noexcept { return *stream_; }  // for net::tls_info()
  [[nodiscard]] const SessionCounts& counts() const noexcept {
    return record_.counts;
  }  // up to the last read and write
  [[nodiscard]] SessionGlance glance() const noexcept;
  [[nodiscard]] Shard& shard() const noexcept { return shard_; }
  [[nodiscard]] const void* codec_tag() const noexcept;
  // The reason that will count the end; it is final in on_close().
  [[nodiscard]] CloseReason reason() const noexcept { return record_.reason; }
  [[nodiscard]] const ServiceSlot& slot() const noexcept { return slot_; }
  // Whether received bytes wait to be decoded: of a half-received frame, or after the frame of a running handler.
  [[nodiscard]] bool has_input() const noexcept { return !input_.empty(); }
  // The service's own data of this session: `session.make_state<Player>(name)`, later `session.state<Player>()`. The
  // session destroys it after on_close() and after its coroutines. Replaces the earlier one. Errors: resource_exhausted
  // (no memory); invalid_state (another thread). state() is null if there is none, or one of another type.
  template <typename T, typename... Arguments>
  Result<T*> make_state(Arguments&&... arguments) {
    if (!is_here()) {
      return used_elsewhere();
    }
    T* const made = state_of_service_.make<T>(std::forward<Arguments>(arguments)...);
    return made != nullptr ? Result<T*>(made) : Result<T*>(Error(Errc::resource_exhausted, "no memory for a state"));
  }
  template <typename T>
  [[nodiscard]] T* state() const noexcept {
    return state_of_service_.get<T>();
  }
  // Instead, a pointer of the service's own, which frees its target in on_close().
  void set_context(void* context) noexcept { state_of_service_.set(context); }
  [[nodiscard]] void* context() const noexcept { return state_of_service_.pointer(); }

  // Queues bytes that already are encoded frames, as one unit: dropped whole or not at all. Errors: closed (the session
  // is not open); resource_exhausted (the policy refuses the frame, or the memory budget is spent).
  Result<void> send_bytes(Bytes bytes) { return send_parts({bytes, Bytes(), Bytes()}); }
  // Writes bytes of a file to the peer without a copy (sendfile), if nothing is queued. Returns the number of bytes
  // that the kernel took, at most `size`; 0 if the caller must wait for written(). Waits for the disk. Errors:
  // not_supported (the stream or the file does not take such a write); invalid_state (the file ends before `offset`, or
  // another thread calls); closed; those of the system that a read of the file has: then the session is unchanged.
  Result<std::size_t> write_file(int file, std::uint64_t offset, std::size_t size);
  // Queues a frame that was encoded once for many sessions. Fails with invalid_argument if another codec encoded it.
  Result<void> send_shared(const SharedFrame& frame);

  // Whether send() takes a frame without the policy of SlowConsumer. A service without coroutines sends while this is
  // true, and continues in on_writable() (service.h).
  [[nodiscard]] bool has_room() const noexcept { return writes_.size() < queue_limits_.take; }
  // Whether a task's wait would end at once: there is room, and no other one waits.
  [[nodiscard]] bool takes_at_once() const noexcept;
  [[nodiscard]] bool takes_frames() const noexcept { return queue_limits_.take != 0; }  // now or later: it is open
  // `co_await session.writable(deadline)` -> Result<void>: ends at once while there is room and no other task waits for
  // it, otherwise when half of write_budget is written, first come, first served. The next send() of the task before
  // its next await is taken then, whatever the policy. SessionOf::send_wait() also sends the frame, in that order.
  // A task of the session gets `cancelled` when the session closes, or `closed` after a write failed. Another task of
  // this core gets `closed`, and the session may be gone then. Errors: see RoomWait.
  [[nodiscard]] WritableWait writable(Instant deadline = kNever) noexcept { return {*this, deadline}; }
  // send_shared() when there is room, as send_wait(). Result<void>.
  [[nodiscard]] SharedSendWait send_shared_wait(const SharedFrame& frame, Instant deadline = kNever) noexcept {
    return {*this, frame, deadline};
  }

  // Writes all queued bytes and ends the stream. When the peer's system has all of them, waits up to 1 s for the peer's
  // end, then ends the session; all that within close_timeout. The session discards frames that arrive in this time.
  // Idempotent.
  void close() noexcept {
    close_for(CloseReason::service, Error(Errc::closed, "this end closed the connection: close() was called"));
  }
  // Ends the session at the end of this turn. The session drops queued frames and counts them. Idempotent.
  void abort() noexcept {
    end(CloseReason::service, Error(Errc::closed, "this end aborted the connection: abort() was called"));
  }
  void abort(CloseReason reason, Error why) noexcept { end(reason, why); }
  void close(CloseReason reason, Error why) noexcept { close_for(reason, why); }
  // Refuses a frame of the peer, as a session does by itself if its codec refuses one: the session handles no further
  // frame, and closes after the owed replies. The reason of that end is refused_frame, also if the peer or a time-out
  // comes before it. Idempotent.
  void refuse(const Error& why) noexcept;
  // While on, a refused frame closes the session only frame_timeout later, or when it is off: for a service whose
  // program has not answered the frames before it.
  void hold_refusal(bool on) noexcept;
  // Ends the stream to the peer after all queued bytes. The session still reads the peer's frames. send() fails with
  // `closed`.
  void end_writing() noexcept;

  // For a body without any other end than that of the stream to the peer. From begin_last_body() on the connection is
  // reset, whatever ends the session, until end_last_body() was called and all queued bytes are written: the peer
  // cannot take a part for the whole.
  void begin_last_body() noexcept { writing_.last_body = LastBody::open; }
  void end_last_body() noexcept { writing_.last_body = LastBody::whole; }

  // Passes the connection to another codec and its service. At the end of the turn in which all queued bytes are
  // written, this session ends with on_close(ok), and a session of `next` begins with on_open(). The new session has
  // the id, the place and the counts of this one, and gets the bytes after the last handled frame. Until then this
  // session handles no frame, and send() fails with `closed`. `next` outlives the sessions. Errors: closed;
  // invalid_state (coroutines of this session run, a reply is owed, or the function was called before).
  Result<void> switch_to(const ServiceSlot& next);
  // Moves the connection to another core: so the players of one match share a core. The session reads no more, and
  // still takes frames to send. As soon as its handlers and coroutines have ended, it owes no reply, and all queued
  // bytes are written, it ends here with on_close(ok). The service of that core gets on_open() of a session with
  // another id, with the codec, the counts, the state() and the unread bytes of this one: the service there loses no
  // frame of the peer, gets none twice, and each in its order. That session is in no group. A second call in the
  // meantime replaces nothing. Success, without an effect, if the session is on that core.
  // The session stays here, and reads on, if the other core or this one begins to drain first, or if end_writing(),
  // close() or the peer ends the session first (counted, moves_refused).
  // Errors: closed (the session is not open, or the server drains); invalid_argument (there is no such core);
  // invalid_state (it moves or switches already, or its stream to the peer has an end); not_supported (its codec does
  // not move, see MovesBetweenCores, or a client owns the session); resource_exhausted.
  Result<void> move_to(unsigned core);

  // A paused session reads no byte and handles no frame, which slows the peer down. Each pause needs one resume; the
  // session reads again after the last one.
  void pause_reading() noexcept { ++pauses_; }
  void resume_reading() noexcept;
  // Announces a later reply. When the server drains, the session closes only if it owes no reply. With a codec without
  // request numbers the session handles no further frame until then, see ReplyOrder. Each begin has one end.
  void begin_reply() noexcept;
  void end_reply() noexcept;

  // While on, the end of the peer's stream cancels no handler of the session, with any SessionLimits::peer_left: for a
  // reply that has begun.
  void keep_reply(bool on) noexcept { reading_.keeps_reply = on; }

  // Runs the coroutine until it first waits; from then on the session owns it. The coroutine may refer to the session
  // and its service. An exception from it ends the session. Errors: closed (the session is not open);
  // resource_exhausted (tasks_max run, counted by tasks_refused, or no memory); invalid_argument (the task was moved
  // from). A refused coroutine does not run.
  Result<void> spawn(rt::Task<void> task);
  // For dispatchers: starts the coroutine that handles a frame, see start_with_frame(). Errors: closed;
  // resource_exhausted (handlers_max handlers run, counted by tasks_refused, or the memory budget is spent).
  // `reads_on`: the session reads on beside it, since the service pauses the session itself.
  Result<void> start_handler(SessionTask::Ptr task, bool reads_on = false);
  [[nodiscard]] bool has_tasks() const noexcept;
  // For a coroutine of the session that sends much: `co_await session.written().wait()` ends when bytes were written to
  // the peer, so that queued() may be less. Requires has_tasks().
  [[nodiscard]] rt::AsyncEvent& written() noexcept;
  // For dispatchers: logs the exception of a handler, and passes it to on_exception (ServerOptions).
  void note_exception(const std::exception_ptr& thrown) const noexcept;
  // For dispatchers: the id of the frame that is handled from now on, see StallWatch.
  void note_handler(std::uint32_t id) noexcept { activity().set_detail(id); }

  // Joins the group. Idempotent. A session that ends leaves every group. Errors: resource_exhausted (the session is in
  // groups_max groups, or no memory); closed.
  Result<void> join(GroupId group);
  void leave(GroupId group) noexcept;

 protected:
  using Parts = std::array<Bytes, 3>;

  Session(Shard& shard, const ServiceSlot& slot) noexcept;
  virtual ~Session() = default;  // requires clean_up()

  [[nodiscard]] Result<void> send_parts(const Parts& parts, FrameKind kind = FrameKind::event);
  // Puts the frame into the place of the queued one with its key, or at the end. `shared` holds the only part; null:
  // the queue copies the parts.
  [[nodiscard]] Result<void> send_keyed(const Parts& parts, FrameKey key, mem::Buffer* shared = nullptr);
  // Returns the place for a frame of up to `size` bytes, for SessionOf::send(). Returns null if the caller must use
  // send_parts().
  [[nodiscard]] std::uint8_t* place_for(std::size_t size) noexcept {
    const bool fits = is_here() && writes_.size() < queue_limits_.take && size < kThroughMin;
    return fits ? writes_.room(size) : nullptr;
  }
  void commit(std::size_t size) noexcept {
    writes_.commit(size);
    ++uncounted_.out;
    if (!writing_.flush_due) {
      flush_soon();
    }
  }

  [[nodiscard]] rt::Activity& activity() noexcept { return activity_; }
  // Whether this is the session's thread. Costs a load of the thread's and a comparison.
  [[nodiscard]] bool is_here() const noexcept { return rt::Core::current() == core_; }

 private:
  friend class Shard;
  friend class GroupTable;
  friend class RoomWait;
  template <typename Codec, typename Service>
  friend struct ServiceCalls;

  using State = SessionState;

  // Bounds of queued().
  struct QueueLimits {
    std::size_t take;  // send() takes frames while fewer bytes are queued; 0 if not open
    std::size_t read;  // the session reads frames while fewer bytes are queued
  };
  [[nodiscard]] static QueueLimits queue_limits(const SessionLimits& limits) noexcept;
  // Frames that the counters do not yet include.
  struct FrameCounts {
    std::uint32_t in = 0;
    std::uint32_t out = 0;
  };

  // --- from the shard ---
  [[nodiscard]] Result<void> start(std::unique_ptr<net::ByteStream> stream, SessionId id, net::Admission::Lease lease,
                                   Instant accepted);
  void handle_turn() noexcept;   // the work put off until the end of the turn; may destroy the session
  void read_in_line() noexcept;  // the same, from the line of reads
  void drain() noexcept;         // reads once more; the session is drained when it owes no reply
  void drain_again() noexcept;   // for a drained session that owes a reply nevertheless
  // Whether the session was closed and has written all bytes: it waits for the peer's end, or for its coroutines.
  [[nodiscard]] bool delivered_all() const noexcept {
    return state_ == State::ended || (state_ == State::closing && all_written());
  }
  void close_drained() noexcept;
  void clean_up() noexcept;  // after on_close()
  void begin() noexcept;     // on_open()
  void end_handshake() noexcept;

  // --- another codec (session_switch.cc) ---
  [[nodiscard]] bool may_switch() const noexcept {
    return record_.successor != nullptr && is_open() && all_written() && !has_tasks();
  }
  [[nodiscard]] SessionRest give_up() noexcept;
  void take_over(SessionRest rest) noexcept;
  [[nodiscard]] Result<void> watch_again() noexcept;

  // --- another core (session_switch.cc) ---
  [[nodiscard]] bool may_move() const noexcept {
    return writing_.move_granted && state_ == State::open && all_written() && !has_tasks() && replies_ == 0 &&
           !reading_.refused && writing_.end == WriteEnd::none && writing_.last_body == LastBody::none;
  }
  [[nodiscard]] bool answer_move(SessionMove& move, bool granted) noexcept;
  void drop_move() noexcept;  // the session does not move, and reads on if it is open

  // --- reading (session_read.cc) ---
  void handle_event(const sys::PollEvent& event) override;
  void note_peer_end(bool failed) noexcept;
  [[nodiscard]] bool reads_now() noexcept;
  void read_later() noexcept;
  void read_some();
  [[nodiscard]] bool read_stream_state() noexcept;
  void continue_reading();
  void handle_bytes(std::size_t into_kept, Bytes fresh);
  void decode(Bytes fresh);
  [[nodiscard]] bool decode_kept(Bytes& fresh);
  [[nodiscard]] bool decode_frames(Bytes input, DecodeResult& result);
  [[nodiscard]] bool keep(Bytes bytes);
  void time_frame() noexcept;
  static void evict(void* self) noexcept;  // for InputMemory
  void handle_end();
  void discard_input() noexcept;
  void note_frame() noexcept {
    ++uncounted_.in;
    if (rated_) [[unlikely]] {
      spend_token();
    }
  }
  void spend_token() noexcept;
  void read_again() noexcept;
  [[nodiscard]] bool wants_frames() const noexcept {
    return state_ <= State::draining && pauses_ == 0 && writes_.size() < queue_limits_.read;
  }

  // --- writing (session_write.cc) ---
  [[nodiscard]] Error used_elsewhere() const noexcept;
  [[nodiscard]] Result<void> make_room(std::size_t size, FrameKind kind);
  [[nodiscard]] Result<void> write_through(const Parts& parts, std::size_t size, FrameKind kind,
                                           const FrameKey* key = nullptr);
  void flush_soon() noexcept;
  void flush() noexcept;
  [[nodiscard]] bool gather_and_write() noexcept;
  [[nodiscard]] bool write_out(std::span<const Bytes> from) noexcept;
  void watch_writable(bool on) noexcept;
  [[nodiscard]] bool note_written(const sys::IoResult& result, std::size_t asked) noexcept;
  void fail_writing(const sys::IoResult& result) noexcept;
  void resume_throttled() noexcept;
  [[nodiscard]] Error refuse_closed() noexcept;
  [[nodiscard]] Error refuse_for_memory() noexcept;
  void drop_queue() noexcept;  // drops and counts the frames that an ended session did not write
  [[nodiscard]] bool all_written() const noexcept { return writes_.empty() && !writing_.unsent; }

  // --- room in the queue (write_room.cc) ---
  [[nodiscard]] Result<bool> room_now() noexcept;
  void begin_wait(RoomWait& wait) noexcept;
  void serve_waits() noexcept;
  void flush_for_send() noexcept;
  void end_grant(bool unused) noexcept;
  void take_no_more() noexcept;
  void note_writable() noexcept;
  void tell_writable() noexcept;
  [[nodiscard]] std::uint64_t bytes_taken() const noexcept { return record_.counts.bytes_out + writes_.size(); }

  // --- coroutines (session_spawn.cc) ---
  [[nodiscard]] Result<void> make_tasks() noexcept;
  void handle_task_end(SessionTask::Kind kind, std::size_t room_size) noexcept;
  void cancel_tasks() noexcept;
  void release_all_but_tasks() noexcept;
  void drop_tasks() noexcept;

  // --- ending ---
  void close_for(CloseReason reason, Error why) noexcept;
  void close_refused() noexcept;
  [[nodiscard]] CloseCause cause_of(CloseReason reason, const Error& why) const noexcept;
  bool say_farewell(CloseReason reason) noexcept;
  void end(CloseReason reason, Error why) noexcept;
  void end_after_throw() noexcept;  // inside a catch block
  void fail(const sys::IoResult& result) noexcept;
  void settle() noexcept;  // closes or ends the session if no reply, frame or byte is outstanding
  [[nodiscard]] bool settle_open() noexcept;
  void handle_leaving() noexcept;
  void leave_drain() noexcept;
  void note_owed(CloseReason reason) noexcept;
  void finish_writing() noexcept;
  void list() noexcept;  // the shard then calls handle_turn() at the end of the turn
  void arm_timer() noexcept;
  void check_time() noexcept;
  void note_acknowledged() noexcept;

  static constexpr Duration kLinger = std::chrono::seconds(1);  // for the peer's end, once its system has all
  static constexpr std::size_t kUnlimited = ~std::size_t{0};

  // Members that every frame touches.
  WriteQueue writes_;
  QueueLimits queue_limits_;
  const rt::Core* const core_;
  rt::Activity& activity_;  // of the core
  std::uint32_t pauses_ = 0;
  FrameCounts uncounted_;
  State state_ = State::open;
  bool rated_;  // message_rate limits the session
  WriteState writing_;

  // Members that every event touches.
  ReadState reading_{*this};
  std::uint32_t replies_ = 0;
  Shard& shard_;
  const ServiceSlot& slot_;
  std::unique_ptr<net::ByteStream> stream_;
  PartialInput input_;
  SessionClock clock_;

  SessionId id_;
  rt::Loop::WatchId watch_ = 0;
  ServiceData state_of_service_;
  SessionMove* move_ = nullptr;  // null: the session stays
  SessionRecord record_;
  TaskSet* tasks_ = nullptr;
  std::vector<GroupMembership> groups_;
  net::Admission::Lease lease_;
  RatePause rate_;
};

}  // namespace weft::serve
