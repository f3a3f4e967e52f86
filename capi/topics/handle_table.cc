// SPDX-License-Identifier: MIT
#include "capi/topics/handle_table.h"

#include <new>
#include <utility>

namespace weft::capi::topics {

namespace {

constexpr Error kNotAHandle(Errc::invalid_argument, "the pointer is null, or not a handle of this kind");
constexpr Error kHandleClosed(Errc::closed, "the handle was closed");
constexpr Error kHandleOfParent(Errc::invalid_state, "the handle belongs to the parent process");

static_assert(sizeof(void*) == sizeof(std::uint64_t), "a handle has a generation and a slot");

// The number of a slot begins with 1, so that no handle is null.
void* handle_of(std::uint32_t index, std::uint64_t state) noexcept {
  return reinterpret_cast<void*>((state >> 32U << 32U) | (index + 1));  // NOLINT(performance-no-int-to-ptr)
}
std::uint32_t index_of(const void* handle) noexcept {
  return static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(handle)) - 1;
}
bool same_generation(const void* handle, std::uint64_t state) noexcept {
  return reinterpret_cast<std::uintptr_t>(handle) >> 32U == state >> 32U;
}

}  // namespace

HandleTable& HandleTable::instance() noexcept {
  alignas(HandleTable) static std::byte place[sizeof(HandleTable)];
  static HandleTable* const table = [] {
    auto* const made = ::new (static_cast<void*>(place)) HandleTable;  // outlives every static destructor
    // A child of fork() opens handles of its own: the lock is free there. Without memory for this it may wait for ever.
    (void)sys::at_fork([]() WEFT_NOT_CHECKED { instance().mutex_.lock(); },  // until the next function
                       []() WEFT_NOT_CHECKED { instance().mutex_.unlock(); });
    return made;
  }();
  return *table;
}

HandleTable::Slot* HandleTable::slot_of(const void* handle) const noexcept {
  const std::uint32_t index = index_of(handle);
  if (handle == nullptr || index >= kChunkSlots * kChunks) {
    return nullptr;
  }
  Slot* const chunk = chunks_[index / kChunkSlots].load(std::memory_order_acquire);  // pairs with take_slot()
  return chunk == nullptr ? nullptr : &chunk[index % kChunkSlots];
}

Result<std::uint32_t> HandleTable::take_slot() noexcept {
  if (free_ != kNone) {
    const std::uint32_t index = free_;
    free_ = chunks_[index / kChunkSlots].load(std::memory_order_relaxed)[index % kChunkSlots].next_free;
    return index;
  }
  if (slots_ == kChunkSlots * kChunks) {
    return Error(Errc::resource_exhausted, "1,048,576 handles are open");
  }
  if (slots_ % kChunkSlots == 0) {
    Slot* const chunk = new (std::nothrow) Slot[kChunkSlots];
    if (chunk == nullptr) {
      return Error(Errc::resource_exhausted, "no memory");
    }
    chunks_[slots_ / kChunkSlots].store(chunk, std::memory_order_release);  // pairs with slot_of()
  }
  return slots_++;
}

Result<void*> HandleTable::open(std::unique_ptr<Object> object) noexcept {
  const sync::LockGuard lock(mutex_);
  const std::uint32_t index = WEFT_TRY(take_slot());
  Slot& slot = chunks_[index / kChunkSlots].load(std::memory_order_relaxed)[index % kChunkSlots];
  slot.object = object.release();
  // Release: pairs with pin(), which reads the object.
  const std::uint64_t state = slot.state.fetch_or(kOpen, std::memory_order_release);
  return handle_of(index, state);
}

Result<Object*> HandleTable::pin(const void* handle, Kind kind) noexcept {
  Slot* const slot = slot_of(handle);
  if (slot == nullptr) {
    return kNotAHandle;
  }
  std::uint64_t state = slot->state.load(std::memory_order_relaxed);  // the exchange below orders
  do {
    if (!same_generation(handle, state) || (state & kOpen) == 0) {
      return kHandleClosed;
    }
    // Acquire: pairs with the release of open().
  } while (!slot->state.compare_exchange_weak(state, state + 1, std::memory_order_acquire, std::memory_order_relaxed));
  Object* const object = slot->object;
  const Error error = !object->of_this_process() ? kHandleOfParent : object->kind() != kind ? kNotAHandle : Error();
  if (error != Error()) {
    release(*slot, index_of(handle));
    return error;
  }
  return object;
}

void HandleTable::unpin(const void* handle) noexcept {
  if (Slot* const slot = slot_of(handle); slot != nullptr) {
    release(*slot, index_of(handle));
  }
}

void HandleTable::release(Slot& slot, std::uint32_t index) noexcept {
  // Acquire and release: the thread that deletes the object has the writes of all others that unpinned it.
  const std::uint64_t state = slot.state.fetch_sub(1, std::memory_order_acq_rel);
  if ((state & kPins) == 1 && (state & kOpen) == 0) {
    recycle(slot, index);
  }
}

void HandleTable::recycle(Slot& slot, std::uint32_t index) noexcept {
  delete std::exchange(slot.object, nullptr);
  // Relaxed: no thread has the next handle of the slot before open() makes it.
  slot.state.fetch_add(kGeneration, std::memory_order_relaxed);
  const sync::LockGuard lock(mutex_);
  slot.next_free = free_;
  free_ = index;
}

Result<void> HandleTable::close(void* handle, Kind kind) noexcept {
  Object* const object = WEFT_TRY(pin(handle, kind));
  Slot& slot = *slot_of(handle);
  // Relaxed: only the thread that clears the bit goes on, and its release() below orders.
  const bool first = (slot.state.fetch_and(~kOpen, std::memory_order_relaxed) & kOpen) != 0;
  if (first) {
    object->close();
  }
  release(slot, index_of(handle));
  return first ? Result<void>() : Result<void>(kHandleClosed);
}

}  // namespace weft::capi::topics
