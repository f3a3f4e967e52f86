// SPDX-License-Identifier: MIT
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "weft/base/result.h"
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
// 3. At most `max_pending` requests wait.
// 4. Destruction drops the waiting requests and joins the workers, after the look-ups under way. shared() is not
//    destroyed: exit() waits for no look-up.
// 5. A forked child has no workers. There shared() is another object, and an inherited one only takes cancel().
class Resolver {
 public:
  using Addresses = std::vector<sys::SocketAddress>;
  using Lookup = std::function<Result<Addresses>(const std::string& host, std::uint16_t port, bool ipv6)>;
  using Callback = std::function<void(Result<Addresses>)>;  // must neither throw nor wait
  using RequestId = std::uint64_t;                          // 0: no request

  static constexpr std::size_t kMaxWorkers = 4;
  static constexpr std::size_t kMaxPending = 1024;

  explicit Resolver(Lookup lookup = &sys::resolve, std::size_t max_pending = kMaxPending);
  Resolver(const Resolver&) = delete;
  Resolver& operator=(const Resolver&) = delete;
  ~Resolver();

  [[nodiscard]] static Resolver& shared();  // one for each process, from the first call on

  // resource_exhausted: max_pending requests wait, or no thread can be started.
  [[nodiscard]] Result<RequestId> submit(std::string host, std::uint16_t port, bool ipv6, Callback callback);
  bool cancel(RequestId id);  // true: the callback has not run and never will

 private:
  struct Request {
    std::string host;
    std::uint16_t port = 0;
    bool ipv6 = false;
    Callback callback;
  };

  void run_worker();
  void serve(RequestId id, std::unique_lock<std::mutex>& lock);
  bool ensure_worker();

  Lookup lookup_;
  std::size_t max_pending_;
  std::mutex mutex_;
  std::condition_variable work_;                     // queue_ or stopping_ changed
  std::condition_variable delivered_;                // delivering_ shrank
  std::unordered_map<RequestId, Request> requests_;  // queued or being looked up; guarded by mutex_, as all below
  std::deque<RequestId> queue_;
  std::unordered_map<RequestId, std::thread::id> delivering_;
  std::vector<std::thread> workers_;
  std::size_t idle_ = 0;
  RequestId last_id_ = 0;
  bool stopping_ = false;
  const sys::Birth birth_;
  const Resolver* inherited_from_ = nullptr;  // shared() of the parent process, so that leak checkers find it
};

}  // namespace weft::net
