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
      "Requests that were not sent, for lack of a connection or of room.", "serve/client/client_link.h")          \
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
  ROW(error_frames, counter, "responses_error_total", "", "", "responses",                                        \
      "Responses that were error frames; they are answers, too.", "serve/client/client_link.h")                   \
  ROW(pushes, counter, "pushes_total", "", "", "frames",                                                          \
      "Frames that answer no request.", "serve/client/client_link.h")                                             \
  ROW(pushes_dropped, counter, "pushes_dropped_total", "", "", "frames",                                          \
      "Frames that answer no request, and were dropped for lack of a function of on_push().",                     \
      "serve/client/client_link.h")
// clang-format on

// RequestNumbers: the outcomes of requests. In the end each sent request is in one of `answered`, `timed_out`,
// `cancelled` and `lost`. Each response is in one of `answered` and `late`, or it is a push.
template <typename Number>
struct RequestNumbers {
  WEFT_COUNTER_BLOCK(WEFT_REQUEST_COUNTERS)
};
using RequestCounts = RequestNumbers<sync::Counter>;  // the core counts, any thread reads

// InFlight: the requests of one connection that wait for their responses.
// Owner: a client. Affinity: one thread.
// Cost: 40 bytes for each request in flight, in memory that grows to the peak; with keys, a hash look-up.
// Invariants:
//   1. Every Waiter is resumed once: by its response, deadline, cancellation, or fail_all().
//   2. Where order counts, a request that is given up keeps its place until its response came. That response
//      is counted as late, and is not taken for the next request's.
//   3. At most `max` places are used, including those of requests that were given up.
class InFlight {
 public:
  static constexpr std::uint32_t kMax = std::uint32_t{1} << 20;

  // Waiter: a coroutine and its request. add() it, send the request, and co_await it at once, in the same turn. After
  // the await, result() has the outcome of the request. Owner: the coroutine's frame.
  class Waiter : private rt::Wait {
   public:
    explicit Waiter(Instant deadline) noexcept : Wait(give_up), deadline_(deadline) {}
    Waiter(const Waiter&) = delete;
    Waiter& operator=(const Waiter&) = delete;

    [[nodiscard]] bool await_ready() const noexcept { return ended_; }
    template <rt::detail::TaskPromise Promise>
    bool await_suspend(std::coroutine_handle<Promise> coroutine) {
      return suspend(coroutine.promise().scope(), coroutine);
    }
    void await_resume() const noexcept {}
    // Instead of add(), in a scope that is cancelled: returns whether the coroutine waits for the next turn. Throws
    // CancelIgnored.
    [[nodiscard]] bool defer(rt::CancelScope& scope, std::coroutine_handle<> coroutine) {
      return !Wait::begin(scope, coroutine) && Wait::deferred();
    }

    // Copies the body and resumes the coroutine in the next turn. Any other end leaves an error with the fate
    // outcome_unknown: the request was sent.
    void answer(Bytes body) noexcept;
    [[nodiscard]] const Result<void>& result() const noexcept { return result_; }
    [[nodiscard]] OwnedBytes& body() noexcept { return body_; }
    // Whether it ended by its deadline or its cancellation, while the peer may still work on the request.
    [[nodiscard]] bool given_up() const noexcept { return given_up_; }

   private:
    friend class InFlight;
    static void give_up(rt::Wait& self) noexcept;
    bool suspend(rt::CancelScope& scope, std::coroutine_handle<> coroutine);
    void handle_deadline() noexcept;
    void end(const Result<void>& result) noexcept;

    InFlight* in_ = nullptr;  // null: the result is known
    std::uint32_t slot_ = 0;
    bool ended_ = false;
    bool given_up_ = false;
    Instant deadline_;
    rt::TimerId timer_;
    rt::TimerWheel* wheel_ = nullptr;
    Result<void> result_;
    OwnedBytes body_;
  };

  InFlight(Matching matching, std::uint32_t max, RequestCounts& counts) noexcept;
  InFlight(const InFlight&) = delete;
  InFlight& operator=(const InFlight&) = delete;
  ~InFlight() = default;  // requires fail_all(): no request waits

  // Returns the number, which is not 0. resource_exhausted: `max` places are used, or no memory.
  Result<std::uint32_t> add(Waiter& waiter, std::uint32_t key);
  // Removes the request that was added last: it could not be sent.
  void take_back(Waiter& waiter) noexcept;

  // The result of match(): the request of a response, by key or number. The request is not in flight any more.
  struct Match {
    Waiter* waiter = nullptr;  // null: the request was given up, or there is none
    bool known = false;        // the frame answers a request
  };
  [[nodiscard]] Match match(std::uint32_t key_or_number) noexcept;

  void fail_all(const Error& why) noexcept;  // also forgets the requests that were given up

  [[nodiscard]] std::size_t size() const noexcept { return size_; }        // used places
  [[nodiscard]] std::size_t waiting() const noexcept { return waiting_; }  // requests that wait
  // The number of requests that were given up and whose responses may still come; whether one was given up
  // before the instant.
  [[nodiscard]] std::size_t owed() const noexcept { return size_ - waiting_; }
  [[nodiscard]] bool owed_since(Instant instant) const noexcept;
  [[nodiscard]] bool full() const noexcept { return size_ >= max_; }
  [[nodiscard]] std::size_t room() const noexcept { return max_ - size_; }  // places that are not used

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  struct Place {
    Waiter* waiter = nullptr;
    std::uint32_t key = 0;
    std::uint32_t next = kNone;  // the next place in its lane, or among the free ones
    std::uint32_t generation = 1;
    Instant given_up{};  // the time at which its request was given up
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
  [[nodiscard]] Match match_number(std::uint32_t number) noexcept;
  [[nodiscard]] Waiter* detach(std::uint32_t slot) noexcept;
  void abandon(Waiter& waiter, Instant now) noexcept;
  void forget_lanes() noexcept;
  [[nodiscard]] std::uint32_t number_of(std::uint32_t slot) const noexcept {
    return places_[slot].generation << slot_bits_ | slot;
  }

  const Matching matching_;
  const std::uint32_t max_;
  const unsigned slot_bits_;
  RequestCounts& counts_;
  std::vector<Place> places_;
  Lane free_;  // reused first in, first out, so that a number comes back after four billion
  Lane all_;   // Matching::in_order
  Lanes lanes_;
  Lanes::node_type spare_;  // the map node of an emptied lane: the next lane needs no memory
  std::size_t size_ = 0;
  std::size_t waiting_ = 0;
};

}  // namespace weft::serve
