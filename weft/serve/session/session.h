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

// What becomes of a frame for a session that has `write_budget` bytes queued already.
enum class SlowConsumer : std::uint8_t {
  disconnect,   // the session ends. Before that, at half the budget, its own requests are no longer read
  drop_newest,  // the frame is refused: send() says resource_exhausted
  drop_oldest,  // the oldest frames make room
  conflate,     // every queued frame goes; the newest one stays
};

// Bounds of a session. A negative duration: none.
struct SessionLimits {
  std::size_t write_budget = 1024 * 1024;  // bytes; a frame is taken while fewer are queued, however large it is
  SlowConsumer slow_consumer = SlowConsumer::disconnect;
  Duration handshake_timeout = std::chrono::seconds(10);  // until the first whole frame came, TLS included. Without
                                                          // one, for clients that only listen, TLS alone has 10 s
  Duration idle_timeout = std::chrono::minutes(5);        // neither did a byte come, nor could one be sent
  Duration close_timeout = std::chrono::seconds(5);       // of what is queued when the session is closed
  RateLimit message_rate{};                               // frames of one session; what comes faster is read later
  std::size_t groups_max = 64;                            // that it is in at a time
  std::uint32_t handlers_max = 1;                         // coroutines that handle its frames at a time; at least 1
  std::size_t tasks_max = 8;                              // other coroutines, by spawn(); more are refused
};

// Session: one connection, on one core, from accept to on_close(). Services get SessionOf<Codec>, which adds send().
// Owner: its core. It is valid in the callbacks of its service and between them, until on_close() returned; who wants
// to find it later keeps its id. Affinity: its core's thread. Every call is allowed in every callback; none calls back:
// what it leads to happens later in the turn. Cost: at most 4 KB of memory while nothing is queued or half received.
// Frames are decoded where they were read; what is sent during a read event, or during a turn, goes out in one system
// call. Invariants:
//   (1) What send() took goes out in that order, whole, unless the session ends by something else than close().
//   (2) on_close() is called once for each on_open(), and nothing after it.
//   (3) A read event does bounded work: one read of at most 2 * kReadMax bytes. What is left waits until the other
//   sessions
//       of the core had their turn.
//   (4) What a peer can make it hold is bounded: its write budget and one frame, one frame that is half received, and
//       a frame for each handler that runs.
//   (5) Coroutines of a session end before it: it is there, with its id and its place, until they have, and on_close()
//       comes after them.
//   (6) With TLS its service hears of it when the handshake is over, and never of one that came to nothing.
//
// Coroutines. A handler of frames may be one (service.h, dispatcher.h). With handlers_max = 1, the default, those of a
// session do not interleave: the next frame is not looked at before the handler of the last one has ended, so that
// replies leave in the order of the requests. With more, so many run at a time and each answers when it is ready: then
// the peer tells replies apart by what is in them. While handlers_max run, the session is not read (counted,
// handler_pauses), and its peer is slowed down; the frames that handlers keep count as memory of the server. A handler
// that runs counts as a reply that is owed, see begin_reply(). spawn() adds coroutines that accompany the session and
// owe nothing. When the session is closed, by whatever reason, its coroutines are cancelled: what they await ends with
// `cancelled`, is_open() is false and send() says `closed`. Who goes on all the same is waited for.
class Session : private rt::Watcher, private rt::TurnJob {
 public:
  static constexpr std::size_t kReadMax = 64 * 1024;       // bytes for each read event
  static constexpr std::size_t kDiscardMax = 1024 * 1024;  // bytes that a peer may send after close()
  static constexpr std::size_t kThroughMin = 16 * 1024;    // a body that is written from where it lies, not copied

  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  [[nodiscard]] SessionId id() const noexcept { return id_; }
  [[nodiscard]] bool is_open() const noexcept { return state_ == State::open; }  // neither closed nor ended
  [[nodiscard]] std::size_t queued() const noexcept { return writes_.size(); }   // bytes
  [[nodiscard]] std::string peer_address() const { return stream_->peer_address(); }
  [[nodiscard]] const net::Stream& stream() const noexcept { return *stream_; }   // for net::tls_info()
  [[nodiscard]] const SessionCounts& counts() const noexcept { return counts_; }  // up to the last read and write
  [[nodiscard]] Shard& shard() const noexcept { return shard_; }
  // Under which count its end is; the last word is in on_close().
  [[nodiscard]] CloseReason reason() const noexcept { return reason_; }
  // Whatever the service wants to find again; it frees it in on_close().
  void set_context(void* context) noexcept { context_ = context; }
  [[nodiscard]] void* context() const noexcept { return context_; }

  // Bytes that are frames already, as one: dropped whole or not at all. closed: the session is not open;
  // resource_exhausted: the policy refuses it, or the memory budget is spent.
  Result<void> send_bytes(Bytes bytes) { return send_parts({bytes, Bytes(), Bytes()}); }
  // Encoded once for many. invalid_argument: it is in another codec's format.
  Result<void> send_shared(const SharedFrame& frame);

  // Delivers what is queued, tells the peer, waits a little for its end, then ends; all that within close_timeout.
  // Frames that come meanwhile are not looked at. Idempotent.
  void close() noexcept { close_for(CloseReason::service, Error(Errc::closed, "the service closed the session")); }
  // Ends it at the end of this turn; what is queued is lost, and counted. Idempotent.
  void abort() noexcept { end(CloseReason::service, Error(Errc::closed, "the service aborted the session")); }
  void abort(CloseReason reason, Error why) noexcept { end(reason, why); }
  // Behind what is queued the peer reads the end of the stream; its frames are still read. send() says closed.
  void end_writing() noexcept;

  // While paused no frame is read and no byte, so that the peer is slowed down. A call each way; the last resume
  // counts.
  void pause_reading() noexcept { ++pauses_; }
  void resume_reading() noexcept;
  // A reply that comes later: a peer that ends its stream, and a server that drains, wait with closing until there is
  // none left. Each begin has one end.
  void begin_reply() noexcept { ++replies_; }
  void end_reply() noexcept;

  // Runs the coroutine until it first waits; then it is the session's. It may refer to the session and its service.
  // What it throws ends the session. closed: the session is not open; resource_exhausted: there are tasks_max (counted,
  // tasks_refused), or no memory; invalid_argument: the task was moved from. One that is refused does not run.
  Result<void> spawn(rt::Task<void> task);
  // For dispatchers: the coroutine of a frame, see start_with_frame(). Errors as spawn().
  Result<void> start_handler(SessionTask::Ptr task);
  [[nodiscard]] bool has_tasks() const noexcept;

  // resource_exhausted: groups_max; closed. Idempotent. It leaves every group when it ends.
  Result<void> join(GroupId group);
  void leave(GroupId group) noexcept;

 protected:
  using Parts = std::array<Bytes, 3>;

  Session(Shard& shard, const ServiceSlot& slot) noexcept;
  ~Session() = default;  // requires clean_up()

  [[nodiscard]] Result<void> send_parts(const Parts& parts);
  // Where to write a frame of up to `size` bytes, for send_in_place(); null: send_parts() knows what to do.
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
  void handle_turn() noexcept;  // what was put off until the end of the turn; may destroy it
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
  void settle() noexcept;  // ends what waits for the last reply or byte
  void finish_writing() noexcept;
  void list() noexcept;  // for handle_turn()
  void arm_timer() noexcept;
  void check_time() noexcept;
  [[nodiscard]] Instant next_deadline() const noexcept;
  [[nodiscard]] Instant handshake_deadline() const noexcept;

  static constexpr Duration kLinger = std::chrono::seconds(1);  // for the peer's end, when all is delivered
  static constexpr Duration kTlsHandshake = std::chrono::seconds(10);
  static constexpr std::size_t kUnlimited = ~std::size_t{0};

  // What every frame touches.
  WriteQueue writes_;
  std::size_t take_limit_;  // frames are taken while fewer bytes are queued; 0: not open
  std::size_t throttle_;    // frames are read while fewer bytes are queued
  std::uint32_t pauses_ = 0;
  std::uint32_t frames_in_ = 0;  // not counted yet, as the next
  std::uint32_t frames_out_ = 0;
  State state_ = State::open;
  bool flush_due_ = false;  // somebody will flush: the read event at hand, or the end of the turn

  CloseReason reason_ = CloseReason::service;
  bool begun_ = false;    // on_open() was called
  bool blocked_ = false;  // the kernel took no more
  bool unsent_ = false;   // the stream holds some of what it took
  bool watches_writable_ = false;
  bool readable_ = false;   // there may be more to read, and no event will say so
  bool throttled_ = false;  // reading stopped because of what is queued
  bool go_on_ = false;      // reading goes on at the end of the turn
  bool heard_frame_ = false;
  bool end_seen_ = false;      // an event said that the peer ended or failed: the next reads will tell
  bool peer_ended_ = false;    // a read told
  bool end_handled_ = false;   // and the frames before it were handled
  bool write_ending_ = false;  // end_writing()
  bool write_ended_ = false;
  bool draining_ = false;
  bool rated_;
  bool handlers_pause_ = false;  // handlers_max run

  Shard& shard_;
  const ServiceSlot& slot_;
  std::unique_ptr<net::Stream> stream_;
  SessionId id_;
  rt::Loop::WatchId watch_ = 0;
  void* context_ = nullptr;

  mem::Buffer* kept_ = nullptr;  // received, and not decoded: less than a frame, or what came while it was paused
  std::size_t kept_begin_ = 0;
  std::size_t kept_end_ = 0;
  std::size_t least_ = 0;  // bytes that must be there before it is worth decoding
  std::size_t discarded_ = 0;
  std::string peer_;  // for the log, which wants it when the socket knows no longer
  std::uint32_t replies_ = 0;
  std::uint32_t handlers_ = 0;  // of its tasks
  TaskSet* tasks_ = nullptr;

  Error why_;
  Instant accepted_{};
  Instant last_active_{};
  SessionCounts counts_;  // beside last_active_: reads and writes touch both
  Instant close_deadline_ = kNever;
  rt::TimerId timer_;
  Instant timer_due_ = kNever;
  std::vector<GroupMembership> groups_;
  Admission::Lease lease_;
  TokenBucket tokens_;
  rt::TimerId token_timer_;
};

}  // namespace weft::serve
