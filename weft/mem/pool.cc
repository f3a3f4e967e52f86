// SPDX-License-Identifier: MIT
#include "weft/mem/pool.h"

#include <algorithm>
#include <cstdlib>
#include <new>
#include <type_traits>

#include "weft/base/assert.h"
#include "weft/base/injected_delay.h"
#include "weft/mem/orphan_list.h"
#include "weft/mem/poison.h"
#include "weft/sync/lock.h"
#include "weft/sys/fork.h"

namespace weft::mem {

namespace {

// Pools without a thread. The list exists before any constructor runs and is never destroyed: buffers may
// outlive every static destructor.
using Orphans = BasicOrphanList<Pool, sync::StdMutex>;
static_assert(std::is_trivially_destructible_v<Orphans>);
constinit Orphans orphans;

// A forked child would wait for ever for a lock that another thread of its parent held.
void hold_orphans_during_forks() noexcept {
  [[maybe_unused]] static const bool registered =
      sys::at_fork([]() WEFT_NOT_CHECKED { orphans.mutex().lock(); },  // until the next function
                   []() WEFT_NOT_CHECKED { orphans.mutex().unlock(); });
}

thread_local Pool* tls_pool = nullptr;
thread_local bool tls_ended = false;

}  // namespace

struct PoolHolder {
  ~PoolHolder() {
    if (Pool* pool = tls_pool; pool != nullptr) {
      pool->end_thread();
      orphans.push(*pool);
    }
    tls_pool = nullptr;
    tls_ended = true;
  }
  // A write to it creates the thread's copy, so that its destructor will run.
  volatile bool armed = false;
};

namespace {
thread_local PoolHolder tls_holder;
}  // namespace

Pool* Pool::mine() noexcept { return tls_pool != nullptr ? tls_pool : find_mine(); }

// Rare steps are functions of their own here: the compiler saves registers for a function's longest path.
Pool* Pool::find_mine() noexcept {
  if (tls_ended) {
    return nullptr;
  }
  tls_holder.armed = true;
  hold_orphans_during_forks();
  if (Pool* const pool = orphans.pop(); pool != nullptr) {
    tls_pool = pool;
    pool->begin_thread();
    return pool;
  }
  tls_pool = new (std::nothrow) Pool;
  return tls_pool;
}

Buffer* Pool::take(std::size_t size) noexcept {
  injected_delay();
  const std::uint32_t index = class_of(size);
  FreeList& list = free_[index];
  if (list.count == 0) [[unlikely]] {
    return take_returned(index);
  }
  Buffer* const buffer = list.buffers[--list.count];
  unpoison(buffer->data(), buffer->capacity_);
  return buffer;
}

// Returns a buffer that came back from another thread, or a new one.
Buffer* Pool::take_returned(std::uint32_t index) noexcept {
  collect_returned();
  if (free_[index].count != 0) {
    return take(class_size(index));
  }
  // Aligned to lines of its own: the count of one buffer does not share a line with the bytes of another.
  void* memory = std::aligned_alloc(sizeof(Buffer), sizeof(Buffer) + class_size(index));
  if (memory == nullptr) {
    return nullptr;
  }
  FreeList& list = free_[index];
  if (++list.made > list.room) {
    make_room(list, class_size(index));
  }
  return ::new (memory) Buffer(this, index, class_size(index));
}

// Without memory the list keeps its room, and buffers beyond that go back to malloc.
void Pool::make_room(FreeList& list, std::size_t size) noexcept {
  const std::size_t most = std::max(kKeptMin, kKeptBytes / size);
  if (list.room >= most) {
    return;
  }
  const std::size_t room = std::min(most, std::max<std::size_t>(16, 2 * list.room));
  if (auto* const buffers = static_cast<Buffer**>(std::realloc(list.buffers, room * sizeof(Buffer*)))) {
    list.buffers = buffers;
    list.room = room;
  }
}

void Pool::free_to_system(FreeList& list, Buffer* buffer) noexcept {
  --list.made;
  std::free(buffer);
}

void Pool::put(Buffer* buffer) noexcept {
  FreeList& list = free_[buffer->size_class_];
  if (list.count == list.room) [[unlikely]] {
    free_to_system(list, buffer);
    return;
  }
  poison(buffer->data(), buffer->capacity_);
  list.buffers[list.count++] = buffer;
}

void Pool::send(Buffer* buffer) noexcept {
  if (outgoing_owner_ != buffer->owner_) {
    flush();
    outgoing_owner_ = buffer->owner_;
  }
  poison(buffer->data(), buffer->capacity_);
  outgoing_[outgoing_count_++] = buffer;
  outgoing_bytes_ += sizeof(Buffer) + buffer->capacity_;
  if (outgoing_count_ == kParcelMax || outgoing_bytes_ >= kOutgoingBytes) {
    flush();
  }
}

void Pool::flush() noexcept {
  if (outgoing_count_ != 0) {
    outgoing_owner_->give_back(outgoing_.data(), outgoing_count_, outgoing_bytes_);
    outgoing_count_ = outgoing_bytes_ = 0;
  }
}

void Pool::give_back(Buffer* const* buffers, std::size_t count, std::size_t bytes) noexcept {
  // Writes the parcel into the buffer that was freed last, which is the one in this thread's cache.
  std::uint8_t* const place = buffers[count - 1]->data();
  unpoison(place, sizeof(Parcel));
  auto* const parcel = ::new (place) Parcel;
  parcel->count = static_cast<std::uint32_t>(count - 1);
  parcel->bytes = static_cast<std::uint32_t>(bytes);
  std::copy_n(buffers, count - 1, parcel->others.begin());
  if (!returned_.try_push(parcel, parcel, bytes)) [[unlikely]] {
    std::for_each(buffers, buffers + count, [](Buffer* buffer) { std::free(buffer); });
  }
}

void Pool::collect_returned() noexcept {
  Parcel* parcel = returned_.take_all();
  if (parcel == nullptr) {
    return;
  }
  std::size_t bytes = 0;
  while (parcel != nullptr) {
    bytes += parcel->bytes;
    Parcel* const next = parcel->next;
    for (std::size_t i = 0; i < parcel->count; ++i) {
      put(parcel->others[i]);
    }
    put(Buffer::of(parcel));
    parcel = next;
  }
  returned_.settle(bytes);
}

// A buffer that is on its way into the returned stack meanwhile rests there until the next new thread takes the pool.
void Pool::end_thread() noexcept {
  flush();
  returned_.set_bytes_max(kEndedBytes);
  collect_returned();
  for (std::uint32_t index = 0; index < kClasses; ++index) {
    FreeList& list = free_[index];
    for (const std::size_t kept = kEndedBytes / class_size(index); list.count > kept;) {
      free_to_system(list, list.buffers[--list.count]);
    }
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

Buffer* Buffer::enlarge(Buffer* buffer, std::size_t size) noexcept {
  WEFT_DCHECK(buffer->sole_owner() && buffer->owner_ == nullptr && buffer->external_.free_bytes == nullptr);
  if (size > SIZE_MAX - sizeof(Buffer)) {
    return nullptr;
  }
  void* memory = std::realloc(static_cast<void*>(buffer), sizeof(Buffer) + size);
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
      try {
        external_.free_bytes(external_.data, external_.hint);
      } catch (...) {  // NOLINT(bugprone-empty-catch): dropped, as buffer.h says
      }
    }
    std::free(this);
    return;
  }
  revive();
  Pool* pool = Pool::mine();
  if (pool == owner_) {
    pool->put(this);
  } else if (pool != nullptr) {
    pool->send(this);
  } else {
    Buffer* const self = this;
    owner_->give_back(&self, 1, sizeof(Buffer) + capacity_);
  }
}

}  // namespace weft::mem
