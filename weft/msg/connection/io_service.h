// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "weft/base/list.h"
#include "weft/msg/connection/socket_share.h"
#include "weft/net/admit/handshake_turns.h"
#include "weft/net/admit/read_turns.h"
#include "weft/rt/loop/loop.h"
#include "weft/sync/call_list.h"
#include "weft/sync/condition.h"
#include "weft/sync/lock.h"

namespace weft::msg {

class Connection;
class Link;

// Errand: a function that the I/O thread runs while the caller waits.
// Owner: the caller's stack. Cost: no allocation; two wake-ups.
struct Errand {
  void (*function)(void* context);
  void* context;
  sync::CallList<Errand*>::Entry entry{};
  sync::StdMutex mutex{};
  sync::Condition ended{};
  bool done WEFT_GUARDED_BY(mutex) = false;
};

// TimerRetry: a link that found no memory for a timer.
// Owner: the link. Affinity: the I/O thread.
struct TimerRetry : ListHook {
  explicit TimerRetry(Link& owner) noexcept : link(owner) {}
  Link& link;
};

// IoService: the guarantee of progress. Its thread connects and shakes hands, keeps time, reads for sockets whose
// threads are elsewhere, and flushes the batches that senders left.
// Owner: the context. Affinity: arm(), request() and run() any thread; the rest its own thread.
// Invariants:
//   1. An armed connection has its flush turn when the nap ends, or at once after a rest, until it has nothing left.
//   2. With no connection armed or left to the application, and no timer, the thread sleeps without a time-out.
//   3. No turn costs more for connections that are neither armed nor have events. The check whether the application
//      still reads costs one load for each socket, not for each connection.
//   4. The reads of a turn have a bound of time, whatever the number of peers that flood: see net::ReadTurns. Steps of
//      handshakes do not wait for them.
class IoService final : private rt::TurnHook {
 public:
  static Result<std::unique_ptr<IoService>> make(const sys::ThreadOptions& thread_options);
  ~IoService();

  [[nodiscard]] rt::Loop& loop() noexcept { return *loop_; }

  // With the connection's write baton; once until disarm(), or until its flush turn ends the arming.
  void arm(Connection& connection) noexcept;
  // Calls Link::handle_requests() soon. Requests that wait at the same time are handled in the order of the bits.
  enum Request : unsigned {
    resolved = 1,
    read = 2,
    read_held = 4,  // the bytes that the kernel holds, before a close
    peer_time = 8,
    write_layer = 16,  // bytes that the stream's layer holds
    take_down = 32,
    close_when_sent = 64,
    close = 128,
    marks = 256,        // the marks have changed
    drop_unread = 512,  // the peer does not read our subscriptions
    read_left_over = 1024,
  };
  void request(std::shared_ptr<Connection> connection, unsigned requests) noexcept;
  // Runs `task` on the I/O thread, and waits until it has run. `task` does not throw.
  template <typename Task>
  void run(Task task) noexcept {
    if (loop_->on_loop_thread()) {
      task();
      return;
    }
    Errand errand{[](void* context) { (*static_cast<Task*>(context))(); }, &task};
    run_errand(errand);
  }

  // I/O thread.
  [[nodiscard]] net::ReadTurns<Link>& reads() noexcept { return reads_; }
  [[nodiscard]] Turn turn() const noexcept { return Turn::share_of(reads_); }
  // A step of a handshake waits for the next turn.
  [[nodiscard]] bool defers_handshake() noexcept { return handshakes_.defers(loop_->now()); }
  // Room for one more connection in the list of the armed ones, until remove_link(). Throws std::bad_alloc.
  void add_link();
  void remove_link() noexcept { --links_; }
  // Calls Link::retry_timers() within kRetryEvery.
  void retry_timers(TimerRetry& retry) noexcept {
    retry.unhook();
    starved_.push_back(retry);
  }
  void disarm(Connection& connection) noexcept;  // the link has taken the write baton; or the connection ends
  // Returns true if threads of the application receive, so they read the connection. The link calls leave_to_app()
  // then.
  [[nodiscard]] static bool app_reads(SocketShare& share) noexcept;
  void leave_to_app(Link& link, SocketShare& share) noexcept;
  static void take_back(Link& link, SocketShare& share) noexcept;  // idempotent

 private:
  static constexpr Duration kNap = std::chrono::microseconds(100);
  static constexpr Duration kNapLongest = std::chrono::microseconds(250);  // while senders flush their own batches
  static constexpr std::uint32_t kCheckApartUs = 3;  // while a sender sends, it appends in between
  static constexpr Duration kRetryEvery = std::chrono::milliseconds(10);
  static constexpr Duration kCheckEvery = std::chrono::milliseconds(10);
  static constexpr std::uint32_t kIdleChecks = 10;   // without a read: the thread that waits has nothing to read
  static constexpr std::size_t kTakesPerTurn = 256;  // connections taken back from the application in one turn

  explicit IoService(std::unique_ptr<rt::Loop> loop) noexcept : loop_(std::move(loop)) {}
  Instant handle_turn(Instant now) override;
  [[nodiscard]] bool has_work() const noexcept override {
    return incoming_.load(std::memory_order_relaxed) != nullptr || !requests_.empty() || !errands_.empty();
  }
  [[nodiscard]] bool may_sleep() noexcept override { return requests_.empty() && errands_.empty(); }
  void run_errand(Errand& errand) noexcept;
  void retry_starved() noexcept;
  void collect_armed() noexcept;
  void drop_armed(std::size_t place) noexcept;
  void run_flushes(bool only_bursts);
  void flush_bursts();
  void check_readers() noexcept;
  void take_back_some() noexcept;

  std::unique_ptr<rt::Loop> loop_;
  std::atomic<Connection*> incoming_{nullptr};  // armed, newest first
  sync::CallList<std::shared_ptr<Connection>> requests_;
  sync::CallList<Errand*> errands_;
  std::size_t links_ = 0;
  List<TimerRetry> starved_;
  std::vector<Connection*> armed_;  // each has its place
  List<AppReaders> readers_;        // checked every kCheckEvery
  List<AppReaders> idle_readers_;   // the I/O thread takes their links back
  Duration nap_ = kNap;
  Instant next_flush_ = kNever;
  bool flushes_more_ = false;  // in the next turn, without a nap
  Instant next_check_ = kNever;
  net::HandshakeTurns handshakes_;
  net::ReadTurns<Link> reads_;
};

}  // namespace weft::msg
