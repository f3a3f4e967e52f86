// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <mutex>
#include <new>

namespace weft::capi {

// HandleStore: where the opaque pointers of the C interface come from. A handle has `tag`, kTag while it is live, and
// `next_free`. Handles are recycled, never freed: using a closed one answers an errno and never reads freed memory. All
// stay reachable from here, so that one that its program lost is not a leak of ours to a leak checker.
// Affinity: any thread.
template <typename Handle>
class HandleStore {
 public:
  static HandleStore& instance() {
    static auto* store = new HandleStore;  // outlives every static destructor
    return *store;
  }
  // Null when memory ran out. Not live before its tag is set.
  [[nodiscard]] Handle* take() {
    const std::lock_guard lock(mutex_);
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
    const std::lock_guard lock(mutex_);
    handle->next_free = free_;
    free_ = handle;
  }

 private:
  struct Made {
    Handle handle;
    Made* next = nullptr;
  };

  std::mutex mutex_;
  Handle* free_ = nullptr;  // guarded by mutex_
  Made* made_ = nullptr;    // guarded by mutex_
};

// Null, and errno set to `code`, for what is not a live handle.
template <typename Handle>
[[nodiscard]] Handle* live_handle(void* pointer, int code) noexcept {
  auto* handle = static_cast<Handle*>(pointer);
  // Acquire: pairs with the release that made the handle live.
  if (handle == nullptr || handle->tag.load(std::memory_order_acquire) != Handle::kTag) {
    errno = code;
    return nullptr;
  }
  return handle;
}

// Simple handles: a tag and a value that is made and ended with it.
template <typename Value, std::uint32_t kTagValue>
struct ValueHandle {
  static constexpr std::uint32_t kTag = kTagValue;
  std::atomic<std::uint32_t> tag{0};
  Value value{};
  ValueHandle* next_free = nullptr;

  // Null, and ENOMEM, when memory ran out.
  [[nodiscard]] static ValueHandle* make() {
    ValueHandle* handle = HandleStore<ValueHandle>::instance().take();
    if (handle == nullptr) {
      errno = ENOMEM;
      return nullptr;
    }
    handle->tag.store(kTag, std::memory_order_release);  // pairs with live_handle()
    return handle;
  }
  [[nodiscard]] static ValueHandle* of(void* pointer) noexcept { return live_handle<ValueHandle>(pointer, EFAULT); }
  void retire() noexcept {
    // Acquire and release: pair with make() and live_handle(). Of two threads that end a handle one does.
    if (tag.exchange(0, std::memory_order_acq_rel) == kTag) {
      HandleStore<ValueHandle>::instance().put(this);
    }
  }
};

}  // namespace weft::capi
