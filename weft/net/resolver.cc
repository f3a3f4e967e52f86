// SPDX-License-Identifier: MIT
#include "weft/net/resolver.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <memory>
#include <new>
#include <system_error>
#include <utility>

#include "weft/sys/clock.h"
#include "weft/sys/cpu.h"
#include "weft/sys/signals.h"

namespace weft::net {

Resolver::Resolver(Lookup lookup, std::size_t max_pending, Duration slow)
    : lookup_(std::move(lookup)), max_pending_(max_pending), slow_(slow) {}

Resolver::~Resolver() {
  std::unordered_map<RequestId, Request> dropped;  // callbacks are destroyed after the lock is released
  {
    const sync::LockGuard lock(mutex_);
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
    const sync::LockGuard lock(mutex_);
    Name name(std::move(host), ipv6);
    if (!searches_.contains(name)) {
      if (queue_.size() >= max_pending_) {
        return Error(Errc::resource_exhausted, "too many host names wait to be resolved");
      }
      if (!ensure_worker()) {
        return Error(Errc::resource_exhausted, "no thread to resolve host names on");
      }
    }
    id = enqueue(std::move(name), port, std::move(callback));
  }
  work_.notify_one();
  return id;
}

Resolver::RequestId Resolver::enqueue(Name&& name, std::uint16_t port, Callback&& callback) {
  const auto [search, fresh] = searches_.try_emplace(std::move(name));
  try {
    search->second.waiting.push_back(last_id_ + 1);
    requests_.try_emplace(last_id_ + 1, Request{port, std::move(callback), search});
    if (fresh) {
      search->second.port = port;
      search->second.speed = speed_of(search->first.first);
      queue_.push_back(search);
    }
  } catch (const std::bad_alloc&) {
    requests_.erase(last_id_ + 1);
    if (fresh) {
      searches_.erase(search);
    } else {
      std::erase(search->second.waiting, last_id_ + 1);
    }
    throw;
  }
  return ++last_id_;
}

// Whether a worker will serve one more name.
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
  sync::UniqueLock lock(mutex_);
  const auto request = requests_.extract(id);  // destroyed after the lock is released
  if (!request.empty()) {
    if (!request.mapped().answered) {
      Search& search = request.mapped().search->second;
      std::erase(search.waiting, id);
      if (search.waiting.empty() && !search.running) {
        std::erase(queue_, request.mapped().search);
        searches_.erase(request.mapped().search);
      }
    }
    lock.unlock();
    return true;
  }
  while (!is_delivered(id)) {
    delivered_.wait(lock);
  }
  return false;
}

bool Resolver::is_delivered(RequestId id) const {
  const auto delivery = delivering_.find(id);
  return delivery == delivering_.end() || delivery->second == std::this_thread::get_id();
}

void Resolver::run_worker() {
  sys::name_thread("weft-resolver");
  sync::UniqueLock lock(mutex_);
  for (;;) {
    ++idle_;
    while (!stopping_ && find_runnable() == queue_.end()) {
      work_.wait(lock);
    }
    --idle_;
    if (stopping_) {
      return;
    }
    const auto place = find_runnable();
    const auto search = *place;
    queue_.erase(place);
    serve(search);
  }
}

bool Resolver::may_run(const Search& search) const noexcept {
  switch (search.speed) {
    case Speed::quick: return true;
    case Speed::unknown: return running_ + 1 < kMaxWorkers;
    case Speed::slow: return running_ + 1 < kMaxWorkers && running_slow_ < kMaxSlow;
  }
  return true;
}

std::deque<Resolver::Searches::iterator>::iterator Resolver::find_runnable() {
  return std::find_if(queue_.begin(), queue_.end(), [this](const auto& search) {
    sync::assume_locked(mutex_);
    return may_run(search->second);
  });
}

Resolver::Speed Resolver::speed_of(const std::string& host) const {
  const auto known = known_.find(host);
  return known == known_.end() ? Speed::unknown : known->second;
}

void Resolver::note_speed(const std::string& host, Speed speed) noexcept {
  try {
    if (known_.size() >= kMaxKnown && !known_.contains(host)) {
      known_.clear();
    }
    known_.insert_or_assign(host, speed);
  } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): the name stays unknown
  }
}

// The search stays in searches_ during the look-up, so that requests for the same name find it.
void Resolver::serve(Searches::iterator search) {
  const bool slow = search->second.speed == Speed::slow;
  const std::uint16_t port = search->second.port;
  search->second.running = true;
  ++running_;
  running_slow_ += slow ? 1 : 0;
  mutex_.unlock();
  const Instant begin = sys::now();
  const auto answer = [&]() -> Result<Addresses> {
    try {
      return lookup_(search->first.first, port, search->first.second);  // the name never changes
    } catch (const std::exception&) {
      return Error(Errc::resource_exhausted, "out of memory while resolving a host name");
    }
  }();
  const bool was_slow = sys::now() - begin >= slow_;
  mutex_.lock();
  --running_;
  running_slow_ -= slow ? 1 : 0;
  note_speed(search->first.first, was_slow ? Speed::slow : Speed::quick);
  const auto ended = searches_.extract(search);
  for (const RequestId id : ended.mapped().waiting) {
    if (const auto found = requests_.find(id); found != requests_.end()) {
      found->second.answered = true;
    }
  }
  for (const RequestId id : ended.mapped().waiting) {
    deliver(id, answer, port);
  }
}

// `port`: of the addresses in the answer.
void Resolver::deliver(RequestId id, const Result<Addresses>& answer, std::uint16_t port) {
  const auto found = requests_.find(id);
  if (found == requests_.end()) {
    return;  // cancelled
  }
  Callback callback = std::move(found->second.callback);
  const std::uint16_t own_port = found->second.port;
  requests_.erase(found);
  delivering_.emplace(id, std::this_thread::get_id());
  mutex_.unlock();
  auto own = [&]() -> Result<Addresses> {
    try {
      Result<Addresses> copy = answer;
      for (std::size_t i = 0; copy && own_port != port && i < copy->size(); ++i) {
        (*copy)[i] = (*copy)[i].with_port(own_port);
      }
      return copy;
    } catch (const std::bad_alloc&) {
      return Error(Errc::resource_exhausted, "out of memory while resolving a host name");
    }
  }();
  callback(std::move(own));
  callback = nullptr;  // destroys the captured objects before cancel() returns
  mutex_.lock();
  delivering_.erase(id);
  delivered_.notify_all();
}

}  // namespace weft::net
