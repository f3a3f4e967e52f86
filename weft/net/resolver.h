// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "weft/base/result.h"
#include "weft/base/time.h"
#include "weft/sync/condition.h"
#include "weft/sync/lock.h"
#include "weft/sys/address.h"
#include "weft/sys/fork.h"

namespace weft::net {

// Resolver: host names to addresses, on threads of its own, so that a slow name service stops no other
// thread.
// Owner: the process (shared()) or a test. Affinity: any thread.
// Cost: no thread until the first submit, then at most kMaxWorkers, started only when the others are busy.
// Invariants:
// 1. The callback of an accepted request runs exactly once, on a worker, unless it is cancelled first.
// 2. After cancel() returns, that callback does not run and is not running, unless the callback itself called
//    cancel().
// 3. Requests for the same name share one look-up. The look-up continues if its requests are cancelled, and its answer
//    is for the requests that arrived since then: an owner that gives up and requests the name again waits for the rest
//    of the time only.
// 4. At most `max_pending` names wait for a worker.
// 5. Hanging names do not take the last worker: names whose last look-up was slow have kMaxSlow at once, names without
//    a known speed have all workers except one.
// 6. Destruction drops the waiting requests and joins the workers, after the look-ups under way. shared() is not
//    destroyed: exit() does not wait for a look-up.
// 7. A forked child has no workers. There shared() is another object, and an inherited one only takes cancel().
class Resolver {
 public:
  using Addresses = std::vector<sys::SocketAddress>;
  using Lookup = std::function<Result<Addresses>(const std::string& host, std::uint16_t port, bool ipv6)>;
  using Callback = std::function<void(Result<Addresses>)>;  // must neither throw nor wait
  using RequestId = std::uint64_t;                          // 0: no request

  static constexpr std::size_t kMaxWorkers = 32;
  static constexpr std::size_t kMaxSlow = 16;
  static constexpr std::size_t kMaxPending = 1024;
  static constexpr std::size_t kMaxKnown = 4096;  // names whose speed is kept; then all are forgotten
  static constexpr Duration kSlow = std::chrono::seconds(1);

  // `slow`: a look-up that takes this long makes its name a slow one.
  explicit Resolver(Lookup lookup = &sys::resolve, std::size_t max_pending = kMaxPending, Duration slow = kSlow);
  Resolver(const Resolver&) = delete;
  Resolver& operator=(const Resolver&) = delete;
  ~Resolver();

  [[nodiscard]] static Resolver& shared();  // one for each process, from the first call on

  // Errors: resource_exhausted (max_pending names wait, or the system refuses a thread).
  [[nodiscard]] Result<RequestId> submit(std::string host, std::uint16_t port, bool ipv6, Callback callback);
  bool cancel(RequestId id);  // returns true if the callback has not run and never will

 private:
  using Name = std::pair<std::string, bool>;  // the host; with IPv6
  enum class Speed : std::uint8_t { unknown, quick, slow };
  // One look-up, waiting or under way.
  struct Search {
    std::uint16_t port = 0;  // of the first request; the addresses of the others get their own
    Speed speed = Speed::unknown;
    bool running = false;
    std::vector<RequestId> waiting;
  };
  using Searches = std::map<Name, Search>;
  struct Request {
    std::uint16_t port = 0;
    Callback callback;
    Searches::iterator search;
    bool answered = false;  // `search` has ended
  };

  void run_worker();
  void serve(Searches::iterator search) WEFT_REQUIRES(mutex_);
  void deliver(RequestId id, const Result<Addresses>& answer, std::uint16_t port) WEFT_REQUIRES(mutex_);
  void note_speed(const std::string& host, Speed speed) noexcept WEFT_REQUIRES(mutex_);
  [[nodiscard]] Speed speed_of(const std::string& host) const WEFT_REQUIRES(mutex_);
  [[nodiscard]] bool may_run(const Search& search) const noexcept WEFT_REQUIRES(mutex_);
  [[nodiscard]] bool is_delivered(RequestId id) const WEFT_REQUIRES(mutex_);  // or the caller is the callback
  [[nodiscard]] std::deque<Searches::iterator>::iterator find_runnable() WEFT_REQUIRES(mutex_);
  [[nodiscard]] RequestId enqueue(Name&& name, std::uint16_t port, Callback&& callback) WEFT_REQUIRES(mutex_);
  bool ensure_worker() WEFT_REQUIRES(mutex_);

  Lookup lookup_;
  std::size_t max_pending_;
  const Duration slow_;
  sync::StdMutex mutex_;
  sync::Condition work_;                                                     // queue_ or stopping_ changed
  sync::Condition delivered_;                                                // delivering_ shrank
  std::unordered_map<RequestId, Request> requests_ WEFT_GUARDED_BY(mutex_);  // not answered yet
  Searches searches_ WEFT_GUARDED_BY(mutex_);
  std::deque<Searches::iterator> queue_ WEFT_GUARDED_BY(mutex_);  // those that have not begun
  std::unordered_map<RequestId, std::thread::id> delivering_ WEFT_GUARDED_BY(mutex_);
  std::unordered_map<std::string, Speed> known_ WEFT_GUARDED_BY(mutex_);
  std::vector<std::thread> workers_ WEFT_GUARDED_BY(mutex_);
  std::size_t idle_ WEFT_GUARDED_BY(mutex_) = 0;
  std::size_t running_ WEFT_GUARDED_BY(mutex_) = 0;
  std::size_t running_slow_ WEFT_GUARDED_BY(mutex_) = 0;
  RequestId last_id_ WEFT_GUARDED_BY(mutex_) = 0;
  bool stopping_ WEFT_GUARDED_BY(mutex_) = false;
  const sys::Birth birth_;
  const Resolver* inherited_from_ = nullptr;  // shared() of the parent process, so that leak checkers find it
};

}  // namespace weft::net
