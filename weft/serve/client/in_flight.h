// SPDX-License-Identifier: MIT
#pragma once

#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "weft/base/bytes.h"
#include "weft/base/result.h"
#include "weft/base/time.h"
#include "weft/rt/loop/task_runner.h"
#include "weft/serve/client/correlation.h"
#include "weft/serve/client/owned_bytes.h"
#include "weft/sync/counter.h"
#include "weft/sync/counter_block.h"

namespace weft::serve {

// clang-format off
#define WEFT_REQUEST_COUNTERS(ROW)                                                                                \
  ROW(sent, counter, "requests_sent_total", "", "", "requests",                                                   \
      "Requests that were sent.", "serve/client/client_link.h")                                                   \
  ROW(refused, counter, "requests_refused_total", "", "", "requests",                                             \
      "Requests that were not sent, for want of a connection or of room.", "serve/client/client_link.h")          \
  ROW(answered, counter, "requests_ended_total", "outcome", "answered", "requests",                               \
      "Requests that were sent and ended: the response came.", "serve/client/in_flight.cc")                       \
  ROW(timed_out, counter, "requests_ended_total", "outcome", "timed out", "requests",                             \
      "Requests that were sent and ended: the deadline passed first.", "serve/client/in_flight.cc")               \
  ROW(cancelled, counter, "requests_ended_total", "outcome", "cancelled", "requests",                             \
      "Requests that were sent and ended: their task was cancelled.", "serve/client/in_flight.cc")                \
  ROW(lost, counter, "requests_ended_total", "outcome", "lost", "requests",                                       \
      "Requests that were sent and ended: the connection ended, or the client closed, first.",                    \
      "serve/client/in_flight.cc")                                                                                \
  ROW(late, counter, "responses_late_total", "", "", "responses",                                                 \
      "Responses that were dropped because their requests had been given up.", "serve/client/in_flight.cc")       \
  ROW(pushes, counter, "pushes_total", "", "", "frames",                                                          \
      "Frames that answer no request.", "serve/client/client_link.h")
// clang-format on

// What became of requests. Each request that was sent is in one of `answered`, `timed_out`, `cancelled` and `lost` in
// the end; each response in one of `answered` and `late`, or it is a push.
template <typename Number>
struct RequestNumbers {
  WEFT_COUNTER_BLOCK(WEFT_REQUEST_COUNTERS)
};
using RequestCounts = RequestNumbers<sync::Counter>;  // the core counts, any thread reads

// InFlight: the requests of one connection that wait for their responses.
// Owner: a client. Affinity: one thread. Cost: 40 bytes for each that is in flight, memory that grows to the peak; for
// keys a hash look-up. Invariants:
//   (1) Every Waiter is told once: response, deadline, cancellation, or fail_all().
//   (2) A request that is given up keeps its place where places count, until its response came, so that the next one's
//   response is not taken for it; that one is late.
//   (3) There are at most `max`, those that were given up and keep a place included.
class InFlight {
 public:
  static constexpr std::uint32_t kMax = std::uint32_t{1} << 20;

  // Waiter: a coroutine and its request: add() it, send the request, and co_await it at once, in the same turn.
  // Owner: the coroutine's frame. What it gives: nothing; then result() says.
  class Waiter : private rt::Wait {
   public:
    explicit Waiter(Instant deadline) noexcept : Wait(give_up), deadline_(deadline) {}
    Waiter(const Waiter&) = delete;
    Waiter& operator=(const Waiter&) = delete;

    [[nodiscard]] bool await_ready() const noexcept { return told_; }
    template <rt::detail::TaskPromise Promise>
    bool await_suspend(std::coroutine_handle<Promise> coroutine) noexcept {
      return suspend(coroutine.promise().scope(), coroutine);
    }
    void await_resume() const noexcept {}

    // Copies the body, and the coroutine goes on in the next turn.
    void answer(Bytes body) noexcept;
    [[nodiscard]] const Result<void>& result() const noexcept { return result_; }
    [[nodiscard]] OwnedBytes& body() noexcept { return body_; }

   private:
    friend class InFlight;
    static void give_up(rt::Wait& self) noexcept;
    bool suspend(rt::CancelScope& scope, std::coroutine_handle<> coroutine) noexcept;
    void handle_deadline() noexcept;
    void tell(const Result<void>& result) noexcept;

    InFlight* in_ = nullptr;  // null: told
    std::uint32_t slot_ = 0;
    bool told_ = false;
    Instant deadline_;
    rt::TimerId timer_;
    rt::TimerWheel* wheel_ = nullptr;
    Result<void> result_;
    OwnedBytes body_;
  };

  InFlight(Matching matching, std::uint32_t max, RequestCounts& counts) noexcept;
  InFlight(const InFlight&) = delete;
  InFlight& operator=(const InFlight&) = delete;
  ~InFlight() = default;  // requires that nobody waits: fail_all()

  // Gives the token, which is not 0. resource_exhausted: there are `max`, or memory ran out.
  Result<std::uint32_t> add(Waiter& waiter, std::uint32_t key);
  // The last one that was added was not sent after all.
  void take_back(Waiter& waiter) noexcept;

  // Whose response came, with that key or token. It is not in flight any more.
  struct Match {
    Waiter* waiter = nullptr;  // null: it was given up, or there is none
    bool known = false;        // it answers a request
  };
  [[nodiscard]] Match match(std::uint32_t key_or_token) noexcept;

  void fail_all(const Error& why) noexcept;  // and forgets those that were given up

  [[nodiscard]] std::size_t size() const noexcept { return size_; }        // places
  [[nodiscard]] std::size_t waiting() const noexcept { return waiting_; }  // waiters
  // Those that were given up and whose response may come yet, and whether one was given up before that instant.
  [[nodiscard]] std::size_t owed() const noexcept { return size_ - waiting_; }
  [[nodiscard]] bool owed_since(Instant instant) const noexcept;
  [[nodiscard]] bool full() const noexcept { return size_ >= max_; }

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  struct Place {
    Waiter* waiter = nullptr;
    std::uint32_t key = 0;
    std::uint32_t next = kNone;  // behind it in its lane, or among the free ones
    std::uint32_t generation = 1;
    Instant given_up{};  // without a waiter: when
    bool used = false;
  };
  struct Lane {  // first in, first out
    std::uint32_t head = kNone;
    std::uint32_t tail = kNone;
  };
  using Lanes = std::unordered_map<std::uint32_t, Lane>;

  Result<std::uint32_t> take_place();
  void free_place(std::uint32_t slot) noexcept;
  Result<void> enter_lane(std::uint32_t slot, std::uint32_t key);
  void push(Lane& lane, std::uint32_t slot) noexcept;
  [[nodiscard]] Match match_lane(std::uint32_t key) noexcept;
  [[nodiscard]] Match match_token(std::uint32_t token) noexcept;
  [[nodiscard]] Waiter* detach(std::uint32_t slot) noexcept;
  void abandon(Waiter& waiter) noexcept;
  void forget_lanes() noexcept;
  [[nodiscard]] std::uint32_t token_of(std::uint32_t slot) const noexcept {
    return places_[slot].generation << slot_bits_ | slot;
  }

  const Matching matching_;
  const std::uint32_t max_;
  const unsigned slot_bits_;
  RequestCounts& counts_;
  std::vector<Place> places_;
  Lane free_;  // used again in that order, so that a token comes back after four billion
  Lane all_;   // Matching::in_order
  Lanes lanes_;
  Lanes::node_type spare_;  // of a lane that ran empty: the next one needs no memory
  std::size_t size_ = 0;
  std::size_t waiting_ = 0;
};

}  // namespace weft::serve
