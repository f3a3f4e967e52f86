// SPDX-License-Identifier: MIT
#include "weft/net/resolver.h"

#include <atomic>
#include <exception>
#include <memory>
#include <system_error>
#include <utility>

#include "weft/sys/cpu.h"
#include "weft/sys/signals.h"

namespace weft::net {

Resolver::Resolver(Lookup lookup, std::size_t max_pending) : lookup_(std::move(lookup)), max_pending_(max_pending) {}

Resolver::~Resolver() {
  std::unordered_map<RequestId, Request> dropped;  // callbacks are destroyed after the lock is released
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    queue_.clear();
    dropped.swap(requests_);
  }
  work_.notify_all();
  for (std::thread& worker : workers_) {
    worker.join();
  }
}

Resolver& Resolver::shared() {
  static std::atomic<Resolver*> current{nullptr};  // no lock: a forked child could inherit a locked one
  Resolver* resolver = current.load(std::memory_order_acquire);
  if (resolver == nullptr || resolver->birth_.elsewhere()) {
    auto made = std::make_unique<Resolver>();
    made->inherited_from_ = resolver;
    // Release: pairs with the acquires of other threads. One of two threads that come here at once finds the other's.
    if (current.compare_exchange_strong(resolver, made.get(), std::memory_order_acq_rel)) {
      resolver = made.release();
    }
  }
  return *resolver;
}

Result<Resolver::RequestId> Resolver::submit(std::string host, std::uint16_t port, bool ipv6, Callback callback) {
  RequestId id = 0;
  {
    const std::lock_guard lock(mutex_);
    if (queue_.size() >= max_pending_) {
      return Error(Errc::resource_exhausted, "too many host names wait to be resolved");
    }
    if (!ensure_worker()) {
      return Error(Errc::resource_exhausted, "no thread to resolve host names on");
    }
    id = ++last_id_;
    requests_.emplace(id, Request{std::move(host), port, ipv6, std::move(callback)});
    queue_.push_back(id);
  }
  work_.notify_one();
  return id;
}

// Whether a worker will serve one more request.
bool Resolver::ensure_worker() {
  if (queue_.size() < idle_ || workers_.size() == kMaxWorkers) {
    return true;
  }
  try {
    const sys::SignalsBlocked blocked;
    workers_.emplace_back([this] { run_worker(); });
  } catch (const std::system_error&) {
    return !workers_.empty();
  }
  return true;
}

bool Resolver::cancel(RequestId id) {
  if (birth_.elsewhere()) {
    return true;  // no worker is here to call back, or to unlock the mutex
  }
  std::unique_lock lock(mutex_);
  const auto request = requests_.extract(id);  // destroyed after the lock is released
  if (!request.empty()) {
    std::erase(queue_, id);
    lock.unlock();
    return true;
  }
  delivered_.wait(lock, [&] {
    const auto delivery = delivering_.find(id);
    return delivery == delivering_.end() || delivery->second == std::this_thread::get_id();
  });
  return false;
}

void Resolver::run_worker() {
  sys::name_thread("weft-resolver");
  std::unique_lock lock(mutex_);
  for (;;) {
    ++idle_;
    work_.wait(lock, [&] { return stopping_ || !queue_.empty(); });
    --idle_;
    if (stopping_) {
      return;
    }
    const RequestId id = queue_.front();
    queue_.pop_front();
    serve(id, lock);
  }
}

// The request stays in requests_ during the look-up, so that cancel() finds it.
void Resolver::serve(RequestId id, std::unique_lock<std::mutex>& lock) {
  const Request& pending = requests_.at(id);
  const std::string host = pending.host;
  const std::uint16_t port = pending.port;
  const bool ipv6 = pending.ipv6;
  lock.unlock();
  auto answer = [&]() -> Result<Addresses> {
    try {
      return lookup_(host, port, ipv6);
    } catch (const std::exception&) {
      return Error(Errc::resource_exhausted, "out of memory while resolving a host name");
    }
  }();
  lock.lock();
  const auto found = requests_.find(id);
  if (found == requests_.end()) {
    return;
  }
  Callback callback = std::move(found->second.callback);
  requests_.erase(found);
  delivering_.emplace(id, std::this_thread::get_id());
  lock.unlock();
  callback(std::move(answer));
  callback = nullptr;  // destroys the captured objects before cancel() returns
  lock.lock();
  delivering_.erase(id);
  delivered_.notify_all();
}

}  // namespace weft::net
