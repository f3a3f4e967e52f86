// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "weft/base/bytes.h"
#include "weft/base/result.h"
#include "weft/base/time.h"
#include "weft/net/stream.h"
#include "weft/rt/loop/loop.h"
#include "weft/rt/loop/turn_job.h"
#include "weft/serve/admission/admission.h"
#include "weft/serve/admission/token_bucket.h"
#include "weft/serve/frame/frame_codec.h"
#include "weft/serve/frame/shared_frame.h"
#include "weft/serve/metrics/counters.h"
#include "weft/serve/session/groups.h"
#include "weft/serve/session/log.h"
#include "weft/serve/session/session_id.h"
#include "weft/serve/session/session_task.h"
#include "weft/serve/session/write_queue.h"

namespace weft::serve {

class Shard;
struct ServiceSlot;

// What a session does with a frame when `write_budget` bytes are queued already.
enum class SlowConsumer : std::uint8_t {
  disconnect,   // the session ends. From half the budget on, it reads no more requests from its peer
  drop_newest,  // send() refuses the frame: resource_exhausted
  drop_oldest,  // the session drops its oldest frames to make room
  conflate,     // the session drops every queued frame and keeps the newest one
};

// Bounds of a session. A negative duration: none.
struct SessionLimits {
  std::size_t write_budget = 1024 * 1024;  // bytes; a frame of any size is taken while fewer are queued
  SlowConsumer slow_consumer = SlowConsumer::disconnect;
  // From accept to the first whole frame, TLS included. Negative, for clients that only listen: TLS alone has 10 s.
  Duration handshake_timeout = std::chrono::seconds(10);
  Duration idle_timeout = std::chrono::minutes(5);   // without a byte received or written
  Duration close_timeout = std::chrono::seconds(5);  // from close() until all that is queued is written
  RateLimit message_rate{};                          // frames of one session; the session reads frames above it later
  std::size_t groups_max = 64;                       // groups that the session is in at a time
  std::uint32_t handlers_max = 1;                    // coroutines that handle its frames at a time; at least 1
  std::size_t tasks_max = 8;                         // other coroutines, from spawn(); the session refuses more
};

// Session: one connection, on one core, from accept to on_close(). Services get SessionOf<Codec>, which adds
// send().
// Owner: its core's shard. A reference is valid inside the service's callbacks and between them, until
// on_close() returns. A caller that needs the session later keeps its id.
// Affinity: its core's thread. Every call is allowed in every callback. No call runs a callback; the session
// runs callbacks later in the turn.
// Cost: at most 4 KB of memory while nothing is queued or half received. Frames are decoded where they were
// read. All frames sent during a read event, or during a turn, are written with one system call.
// Invariants:
//   (1) Frames that send() took leave whole and in that order, unless the session ends by anything but
//       close().
//   (2) on_close() is called once for each on_open(), as the last call.
//   (3) A read event does bounded work: one read of at most 2 * kReadMax bytes. The rest waits until the
//       other sessions of the core had their turn.
//   (4) A peer can make the session hold its write budget and one frame, one half-received frame, and one
//       frame for each running handler; not more.
//   (5) The coroutines of a session end before the session. Until then its id and its place stay taken;
//       on_close() comes after them.
//   (6) With TLS the service hears of a session when the handshake is over. The service never hears of a
//       handshake that failed.
//
// Coroutines. A handler of frames may be a coroutine (service.h, dispatcher.h). With handlers_max = 1, the
// default, the handlers of a session do not interleave: the session decodes the next frame after the last
// handler has ended, so that replies leave in the order of the requests. With a larger handlers_max, that
// many handlers run at a time, and each answers when it is ready. The peer then matches replies to requests
// by their contents.
// While handlers_max handlers run, the session does not read (counted, handler_pauses), which slows the peer
// down. The frames that handlers keep count as memory of the server. A running handler counts as a reply that
// is owed, see begin_reply(). spawn() adds coroutines that accompany the session and owe no reply.
// When the session is closed, for any reason, it cancels its coroutines: their awaits end with `cancelled`,
// is_open() is false and send() returns `closed`. The session waits for coroutines that continue
// nevertheless.
class Session : private rt::Watcher, private rt::TurnJob {
 public:
  static constexpr std::size_t kReadMax = 64 * 1024;       // bytes for each read event
  static constexpr std::size_t kDiscardMax = 1024 * 1024;  // bytes that the session discards after close()
  static constexpr std::size_t kThroughMin = 16 * 1024;    // a body of this size is written uncopied

  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  [[nodiscard]] SessionId id() const noexcept { return id_; }
  [[nodiscard]] bool is_open() const noexcept { return state_ == State::open; }  // neither closed nor ended
  [[nodiscard]] std::size_t queued() const noexcept { return writes_.size(); }   // bytes
  [[nodiscard]] std::string peer_address() const { return stream_->peer_address(); }
  [[nodiscard]] const net::Stream& stream() const noexcept { return *stream_; }   // for net::tls_info()
  [[nodiscard]] const SessionCounts& counts() const noexcept { return counts_; }  // up to the last read and write
  [[nodiscard]] Shard& shard() const noexcept { return shard_; }
  // The reason that the end will be counted under; it is final in on_close().
  [[nodiscard]] CloseReason reason() const noexcept { return reason_; }
  // A pointer of the service's choice. The service frees its target in on_close().
  void set_context(void* context) noexcept { context_ = context; }
  [[nodiscard]] void* context() const noexcept { return context_; }

  // Queues bytes that already are encoded frames, as one unit: dropped whole or not at all. closed: the
  // session is not open; resource_exhausted: the policy refuses the frame, or the memory budget is spent.
  Result<void> send_bytes(Bytes bytes) { return send_parts({bytes, Bytes(), Bytes()}); }
  // Queues a frame that was encoded once for many sessions. invalid_argument: another codec encoded it.
  Result<void> send_shared(const SharedFrame& frame);

  // Writes all that is queued, ends the stream, waits up to 1 s for the peer's end, then ends the session;
  // all that within close_timeout. Frames that arrive meanwhile are discarded. Idempotent.
  void close() noexcept { close_for(CloseReason::service, Error(Errc::closed, "the service closed the session")); }
  // Ends the session at the end of this turn. Queued frames are lost, and counted. Idempotent.
  void abort() noexcept { end(CloseReason::service, Error(Errc::closed, "the service aborted the session")); }
  void abort(CloseReason reason, Error why) noexcept { end(reason, why); }
  // Ends the stream to the peer behind all that is queued. The session still reads the peer's frames. send()
  // returns closed.
  void end_writing() noexcept;

  // While paused, the session reads no byte and handles no frame, which slows the peer down. Each pause needs
  // one resume; the session reads again after the last one.
  void pause_reading() noexcept { ++pauses_; }
  void resume_reading() noexcept;
  // Announces a reply that comes later. When the peer ends its stream, or the server drains, the session
  // closes only when no reply is owed. Each begin has one end.
  void begin_reply() noexcept { ++replies_; }
  void end_reply() noexcept;

  // Runs the coroutine until it first waits; from then on the session owns it. The coroutine may refer to the
  // session and its service. An exception from it ends the session. closed: the session is not open;
  // resource_exhausted: tasks_max run (counted, tasks_refused), or no memory; invalid_argument: the task was
  // moved from. A refused coroutine does not run.
  Result<void> spawn(rt::Task<void> task);
  // For dispatchers: starts the coroutine that handles a frame, see start_with_frame(). Errors as spawn().
  Result<void> start_handler(SessionTask::Ptr task);
  [[nodiscard]] bool has_tasks() const noexcept;

  // resource_exhausted: the session is in groups_max groups, or no memory; closed. Idempotent. A session that
  // ends leaves every group.
  Result<void> join(GroupId group);
  void leave(GroupId group) noexcept;

 protected:
  using Parts = std::array<Bytes, 3>;

  Session(Shard& shard, const ServiceSlot& slot) noexcept;
  ~Session() = default;  // requires clean_up()

  [[nodiscard]] Result<void> send_parts(const Parts& parts);
  // Where to write a frame of up to `size` bytes, for SessionOf::send(). Null: the caller must use
  // send_parts().
  [[nodiscard]] std::uint8_t* place_for(std::size_t size) noexcept {
    return writes_.size() < take_limit_ && size < kThroughMin ? writes_.room(size) : nullptr;
  }
  void commit(std::size_t size) noexcept {
    writes_.commit(size);
    ++frames_out_;
    if (!flush_due_) {
      flush_soon();
    }
  }

 private:
  friend class Shard;
  friend class GroupTable;
  template <typename Codec, typename Service>
  friend struct ServiceCalls;

  enum class State : std::uint8_t { open, closing, ended };

  // --- from the shard ---
  [[nodiscard]] Result<void> start(std::unique_ptr<net::Stream> stream, SessionId id, Admission::Lease lease);
  void handle_turn() noexcept;  // the work put off until the end of the turn; may destroy the session
  void drain() noexcept;        // reads once more, then closes when no reply is owed
  void clean_up() noexcept;     // after on_close()
  void begin() noexcept;        // on_open()

  // --- reading (session_read.cc) ---
  void handle_event(const sys::PollEvent& event) override;
  void read_some();
  [[nodiscard]] bool look_at_stream() noexcept;
  void go_on_reading();
  void handle_bytes(std::size_t into_kept, Bytes fresh);
  void decode(Bytes fresh);
  [[nodiscard]] bool decode_kept(Bytes& fresh);
  [[nodiscard]] bool decode_frames(Bytes input, DecodeResult& result);
  [[nodiscard]] bool keep(Bytes bytes);
  [[nodiscard]] bool make_kept_room(std::size_t must, std::size_t wish);
  void drop_kept() noexcept;
  void handle_end();
  void discard_input() noexcept;
  void note_frame() noexcept {
    ++frames_in_;
    if (rated_) [[unlikely]] {
      spend_token();
    }
  }
  void spend_token() noexcept;
  [[nodiscard]] bool wants_frames() const noexcept {
    return state_ == State::open && pauses_ == 0 && writes_.size() < throttle_;
  }
  [[nodiscard]] Bytes kept() const noexcept {
    return kept_ == nullptr ? Bytes() : Bytes(kept_->data() + kept_begin_, kept_end_ - kept_begin_);
  }

  // --- writing (session_write.cc) ---
  [[nodiscard]] Result<void> make_room(std::size_t size);
  [[nodiscard]] Result<void> write_through(const Parts& parts, std::size_t size);
  void flush_soon() noexcept;
  void flush() noexcept;
  [[nodiscard]] bool gather_and_write() noexcept;
  [[nodiscard]] bool write_out(std::span<const Bytes> from) noexcept;
  void watch_writable(bool on) noexcept;
  [[nodiscard]] bool note_written(const sys::IoResult& result, std::size_t asked) noexcept;
  void resume_throttled() noexcept;
  [[nodiscard]] bool all_written() const noexcept { return writes_.empty() && !unsent_; }

  // --- coroutines (session_spawn.cc) ---
  [[nodiscard]] Result<void> make_tasks() noexcept;
  void handle_task_end(SessionTask::Kind kind, std::size_t room_size) noexcept;
  void cancel_tasks() noexcept;
  void let_go() noexcept;
  void drop_tasks() noexcept;

  // --- ending ---
  void close_for(CloseReason reason, Error why) noexcept;
  void end(CloseReason reason, Error why) noexcept;
  void fail(const sys::IoResult& result) noexcept;
  void settle() noexcept;  // closes or ends the session if no reply, frame or byte is outstanding
  void finish_writing() noexcept;
  void list() noexcept;  // the shard then calls handle_turn() at the end of the turn
  void arm_timer() noexcept;
  void check_time() noexcept;
  [[nodiscard]] Instant next_deadline() const noexcept;
  [[nodiscard]] Instant handshake_deadline() const noexcept;

  static constexpr Duration kLinger = std::chrono::seconds(1);  // for the peer's end, after all is written
  static constexpr Duration kTlsHandshake = std::chrono::seconds(10);
  static constexpr std::size_t kUnlimited = ~std::size_t{0};

  // Members that every frame touches.
  WriteQueue writes_;
  std::size_t take_limit_;  // frames are taken while fewer bytes are queued; 0: not open
  std::size_t throttle_;    // frames are read while fewer bytes are queued
  std::uint32_t pauses_ = 0;
  std::uint32_t frames_in_ = 0;  // frames_in_ and frames_out_: not yet added to the counters
  std::uint32_t frames_out_ = 0;
  State state_ = State::open;
  bool flush_due_ = false;  // the read event at hand, or the end of the turn, will flush

  CloseReason reason_ = CloseReason::service;
  bool begun_ = false;    // on_open() was called
  bool blocked_ = false;  // the kernel took fewer bytes than it was given
  bool unsent_ = false;   // the stream itself still holds bytes that it took
  bool watches_writable_ = false;
  bool readable_ = false;   // unread bytes may be there, and the kernel will report no event for them
  bool throttled_ = false;  // reading stopped because `throttle_` bytes are queued
  bool go_on_ = false;      // reading continues at the end of the turn
  bool heard_frame_ = false;
  bool end_seen_ = false;      // an event reported the peer's end or a failure; the next reads will return it
  bool peer_ended_ = false;    // a read returned the end of the stream
  bool end_handled_ = false;   // the service handled the frames before that end
  bool write_ending_ = false;  // end_writing() was called
  bool write_ended_ = false;
  bool draining_ = false;
  bool rated_;
  bool handlers_pause_ = false;  // reading is paused because handlers_max handlers run

  Shard& shard_;
  const ServiceSlot& slot_;
  std::unique_ptr<net::Stream> stream_;
  SessionId id_;
  rt::Loop::WatchId watch_ = 0;
  void* context_ = nullptr;

  mem::Buffer* kept_ = nullptr;  // received, not decoded: less than a frame, or bytes that came while paused
  std::size_t kept_begin_ = 0;
  std::size_t kept_end_ = 0;
  std::size_t least_ = 0;  // bytes that the codec needs before it decodes again
  std::size_t discarded_ = 0;
  std::string peer_;  // for the log: a closed socket no longer has the address
  std::uint32_t replies_ = 0;
  std::uint32_t handlers_ = 0;  // handlers among the coroutines of tasks_
  TaskSet* tasks_ = nullptr;

  Error why_;
  Instant accepted_{};
  Instant last_active_{};
  SessionCounts counts_;  // beside last_active_: a read and a write touch both
  Instant close_deadline_ = kNever;
  rt::TimerId timer_;
  Instant timer_due_ = kNever;
  std::vector<GroupMembership> groups_;
  Admission::Lease lease_;
  TokenBucket tokens_;
  rt::TimerId token_timer_;
};

}  // namespace weft::serve
