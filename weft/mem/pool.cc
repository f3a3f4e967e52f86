// SPDX-License-Identifier: MIT
#include "weft/mem/pool.h"

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <new>

namespace weft::mem {

namespace {

// Pools without a thread. Leaked on purpose: buffers may outlive every static destructor.
struct Orphans {
  std::mutex mutex;
  Pool* first = nullptr;
};
Orphans& orphans() {
  static auto* instance = new Orphans;
  return *instance;
}

thread_local Pool* tls_pool = nullptr;
thread_local bool tls_ended = false;

}  // namespace

struct PoolHolder {
  ~PoolHolder() {
    if (Pool* pool = tls_pool; pool != nullptr) {
      pool->flush();
      const std::lock_guard lock(orphans().mutex);
      pool->next_orphan_ = orphans().first;
      orphans().first = pool;
    }
    tls_pool = nullptr;
    tls_ended = true;
  }
  // Written to, so that the thread's copy exists and its destructor will run.
  volatile bool armed = false;
};

namespace {
thread_local PoolHolder tls_holder;
}  // namespace

Pool* Pool::mine() noexcept {
  if (tls_pool != nullptr) [[likely]] {
    return tls_pool;
  }
  if (tls_ended) {
    return nullptr;
  }
  tls_holder.armed = true;
  {
    const std::lock_guard lock(orphans().mutex);
    if (Pool* pool = orphans().first; pool != nullptr) {
      orphans().first = pool->next_orphan_;
      tls_pool = pool;
      return pool;
    }
  }
  tls_pool = new (std::nothrow) Pool;
  return tls_pool;
}

Buffer* Pool::take(std::size_t size) noexcept {
  const std::uint32_t index = class_of(size);
  FreeList& list = free_[index];
  if (list.first == nullptr) {
    collect_returned();
  }
  if (Buffer* buffer = list.first; buffer != nullptr) {
    list.first = buffer->next_;
    --list.count;
    buffer->references_.store(1, std::memory_order_relaxed);
    return buffer;
  }
  void* memory = std::malloc(sizeof(Buffer) + class_size(index));
  return memory == nullptr ? nullptr : ::new (memory) Buffer(this, index, class_size(index));
}

void Pool::put(Buffer* buffer) noexcept {
  FreeList& list = free_[buffer->size_class_];
  if (list.count >= std::max(kKeptMin, kKeptBytes / buffer->capacity_)) {
    std::free(buffer);
    return;
  }
  buffer->next_ = list.first;
  list.first = buffer;
  ++list.count;
}

void Pool::send(Buffer* buffer) noexcept {
  if (outgoing_owner_ != buffer->owner_) {
    flush();
    outgoing_owner_ = buffer->owner_;
  }
  buffer->next_ = outgoing_first_;
  outgoing_first_ = buffer;
  if (outgoing_last_ == nullptr) {
    outgoing_last_ = buffer;
  }
  ++outgoing_count_;
  outgoing_bytes_ += buffer->capacity_;
  if (outgoing_count_ >= kOutgoingCount || outgoing_bytes_ >= kOutgoingBytes) {
    flush();
  }
}

void Pool::flush() noexcept {
  if (outgoing_first_ != nullptr) {
    outgoing_owner_->give_back(outgoing_first_, outgoing_last_);
    outgoing_first_ = outgoing_last_ = nullptr;
    outgoing_count_ = outgoing_bytes_ = 0;
  }
}

void Pool::give_back(Buffer* first, Buffer* last) noexcept {
  last->next_ = returned_.load(std::memory_order_relaxed);
  // Release pairs with the acquire in collect_returned(): the freer's last use of the bytes comes first.
  while (!returned_.compare_exchange_weak(last->next_, first, std::memory_order_release, std::memory_order_relaxed)) {
  }
}

void Pool::collect_returned() noexcept {
  if (returned_.load(std::memory_order_relaxed) == nullptr) {
    return;
  }
  Buffer* buffer = returned_.exchange(nullptr, std::memory_order_acquire);
  while (buffer != nullptr) {
    Buffer* next = buffer->next_;
    put(buffer);
    buffer = next;
  }
}

Buffer* Buffer::make(std::size_t size) noexcept {
  if (size <= kPooledMax) {
    if (Pool* pool = Pool::mine(); pool != nullptr) [[likely]] {
      return pool->take(size);
    }
  }
  if (size > SIZE_MAX - sizeof(Buffer)) {
    return nullptr;
  }
  void* memory = std::malloc(sizeof(Buffer) + size);
  return memory == nullptr ? nullptr : ::new (memory) Buffer(nullptr, 0, size);
}

Buffer* Buffer::make_external(MutableBytes bytes, FreeFunction* free_bytes, void* hint) noexcept {
  void* memory = std::malloc(sizeof(Buffer));
  if (memory == nullptr) {
    return nullptr;
  }
  auto* buffer = ::new (memory) Buffer(nullptr, 0, bytes.size());
  buffer->external_ = {bytes.data(), free_bytes, hint};
  return buffer;
}

void Buffer::recycle() noexcept {
  if (owner_ == nullptr) {
    if (external_.free_bytes != nullptr) {
      external_.free_bytes(external_.data, external_.hint);
    }
    std::free(this);
    return;
  }
  Pool* pool = Pool::mine();
  if (pool == owner_) {
    pool->put(this);
  } else if (pool != nullptr) {
    pool->send(this);
  } else {
    owner_->give_back(this, this);
  }
}

}  // namespace weft::mem
