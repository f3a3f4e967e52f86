// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>

#include "capi/last_error.h"
#include "weft/sync/lock.h"
#include "weft/sys/fork.h"

namespace weft::capi {

// HandleStore: allocates the handles behind the opaque pointers of the C interface. A handle has `tag`, which
// is kTag while the handle is live, and `next_free`.
// Owner: the program; the store is never destroyed. Affinity: any thread. Cost: a lock; memory for the most
// handles that were ever live.
// Invariants:
//   (1) Handles are reused, never freed: a call with a closed handle returns an errno and never reads freed memory.
//   (2) All handles stay reachable from the store, so a leak checker does not report a handle that its program lost.
template <typename Handle>
class HandleStore {
 public:
  static HandleStore& instance() {
    alignas(HandleStore) static std::byte place[sizeof(HandleStore)];
    static HandleStore* const store = [] {
      auto* const made = ::new (static_cast<void*>(place)) HandleStore;  // outlives every static destructor
      // A forked child may make and close handles: the lock is free there.
      (void)sys::at_fork([]() WEFT_NOT_CHECKED { instance().mutex_.lock(); },  // until the next function
                         []() WEFT_NOT_CHECKED { instance().mutex_.unlock(); });
      return made;
    }();
    return *store;
  }
  // Returns null if there is no memory. The handle is live when the caller has set its tag.
  [[nodiscard]] Handle* take() {
    const weft::sync::LockGuard lock(mutex_);
    if (Handle* handle = free_; handle != nullptr) {
      free_ = handle->next_free;
      return handle;
    }
    Made* const made = new (std::nothrow) Made;
    if (made == nullptr) {
      return nullptr;
    }
    made->next = made_;
    made_ = made;
    return &made->handle;
  }
  void put(Handle* handle) noexcept {
    const weft::sync::LockGuard lock(mutex_);
    handle->next_free = free_;
    free_ = handle;
  }

 private:
  struct Made {
    Handle handle;
    Made* next = nullptr;
  };

  weft::sync::StdMutex mutex_;
  Handle* free_ WEFT_GUARDED_BY(mutex_) = nullptr;
  Made* made_ WEFT_GUARDED_BY(mutex_) = nullptr;
};

// Returns null, with errno set to `code`, if the pointer is not a live handle.
template <typename Handle>
[[nodiscard]] Handle* live_handle(void* pointer, int code) noexcept {
  auto* handle = static_cast<Handle*>(pointer);
  // Acquire: pairs with the release that made the handle live.
  if (handle == nullptr || handle->tag.load(std::memory_order_acquire) != Handle::kTag) {
    (void)fail(code);
    return nullptr;
  }
  return handle;
}

// Simple handles: a tag and a value. make() does not reset the value of a reused handle; the caller does.
template <typename Value, std::uint32_t kTagValue>
struct ValueHandle {
  static constexpr std::uint32_t kTag = kTagValue;
  std::atomic<std::uint32_t> tag{0};
  Value value{};
  ValueHandle* next_free = nullptr;

  // Returns null, with errno ENOMEM, if there is no memory.
  [[nodiscard]] static ValueHandle* make() {
    ValueHandle* handle = HandleStore<ValueHandle>::instance().take();
    if (handle == nullptr) {
      (void)fail(ENOMEM);
      return nullptr;
    }
    handle->tag.store(kTag, std::memory_order_release);  // pairs with live_handle()
    return handle;
  }
  [[nodiscard]] static ValueHandle* of(void* pointer) noexcept { return live_handle<ValueHandle>(pointer, EFAULT); }
  void retire() noexcept {
    // Acquire and release: pair with make() and live_handle(). If two threads retire a handle, only one puts it back.
    if (tag.exchange(0, std::memory_order_acq_rel) == kTag) {
      HandleStore<ValueHandle>::instance().put(this);
    }
  }
};

}  // namespace weft::capi
