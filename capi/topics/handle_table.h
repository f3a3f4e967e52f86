// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "weft/base/result.h"
#include "weft/sync/lock.h"
#include "weft/sys/fork.h"

namespace weft::capi::topics {

enum class Kind : std::uint8_t {
  topics,
  publisher,
  subscription,
  service,
  stream,
  reader,
  consumer,
  key_value,
  watch,
  names,
  pending,
  calls,
};

// Object: the object of a handle. Owner: its slot of the table. Affinity: any thread.
class Object {
 public:
  explicit Object(Kind kind) noexcept : kind_(kind) {}
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;
  virtual ~Object() = default;
  // Ends the calls that wait for the object. Called once, by the thread that closes the handle.
  virtual void close() noexcept {}

  [[nodiscard]] Kind kind() const noexcept { return kind_; }
  [[nodiscard]] bool of_this_process() const noexcept { return !birth_.elsewhere(); }

 private:
  const Kind kind_;
  const sys::Birth birth_;
};

// HandleTable: the objects of the handles. A handle is the number of a slot and the slot's generation in the form of a
// pointer, so any value that a program passes is a live handle or an error.
// Owner: the process; the table is never destroyed. Affinity: any thread.
// Cost: pin() and unpin() are one read-modify-write each. Memory: 24 bytes for the most handles that were ever open.
// Invariants:
//   1. An object lives while its slot is open or pinned. The last unpin() after close() deletes it.
//   2. A slot has another generation for each object: a closed handle stays closed.
class HandleTable {
 public:
  [[nodiscard]] static HandleTable& instance() noexcept;

  // Returns the handle of the object. Errors: resource_exhausted (1,048,576 handles, or memory); then the object is
  // deleted.
  [[nodiscard]] Result<void*> open(std::unique_ptr<Object> object) noexcept;
  // Returns the object of an open handle, and keeps it until unpin(). Errors: closed; invalid_argument (null, never a
  // handle, or of another kind); invalid_state (of a parent process).
  [[nodiscard]] Result<Object*> pin(const void* handle, Kind kind) noexcept;
  void unpin(const void* handle) noexcept;
  // Closes the handle and its object. Errors: those of pin().
  [[nodiscard]] Result<void> close(void* handle, Kind kind) noexcept;

 private:
  static constexpr std::size_t kChunkSlots = 1024;
  static constexpr std::size_t kChunks = 1024;
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  // A state: the generation in the upper half, whether the slot is open, and the number of pins.
  static constexpr std::uint64_t kGeneration = std::uint64_t{1} << 32U;
  static constexpr std::uint64_t kOpen = std::uint64_t{1} << 31U;
  static constexpr std::uint64_t kPins = kOpen - 1;

  struct Slot {
    std::atomic<std::uint64_t> state{kGeneration};
    Object* object = nullptr;
    std::uint32_t next_free = kNone;
  };

  [[nodiscard]] Slot* slot_of(const void* handle) const noexcept;  // null: there is none
  void release(Slot& slot, std::uint32_t index) noexcept;
  void recycle(Slot& slot, std::uint32_t index) noexcept;
  [[nodiscard]] Result<std::uint32_t> take_slot() noexcept WEFT_REQUIRES(mutex_);

  sync::StdMutex mutex_;
  std::atomic<Slot*> chunks_[kChunks]{};
  std::uint32_t slots_ WEFT_GUARDED_BY(mutex_) = 0;
  std::uint32_t free_ WEFT_GUARDED_BY(mutex_) = kNone;
};

// Pinned: the object of a handle during one call. Affinity: one thread.
template <typename T>
class Pinned {
 public:
  Pinned(const void* handle, T* object) noexcept : handle_(handle), object_(object) {}
  Pinned(Pinned&& other) noexcept : handle_(other.handle_), object_(std::exchange(other.object_, nullptr)) {}
  Pinned& operator=(Pinned&&) = delete;
  ~Pinned() {
    if (object_ != nullptr) {
      HandleTable::instance().unpin(handle_);
    }
  }
  T* operator->() const noexcept { return object_; }
  T& operator*() const noexcept { return *object_; }

 private:
  const void* handle_;
  T* object_;
};

// The object of a handle of T::kKind. Errors: those of HandleTable::pin().
template <typename T>
[[nodiscard]] Result<Pinned<T>> pin(const void* handle) noexcept {
  const Result<Object*> object = HandleTable::instance().pin(handle, T::kKind);
  return object ? Result<Pinned<T>>(Pinned<T>(handle, static_cast<T*>(*object))) : Result<Pinned<T>>(object.error());
}

// Makes an object and its handle.
template <typename T, typename Handle, typename... Args>
[[nodiscard]] Result<void> open_handle(Handle** handle, Args&&... args) {
  *handle =
      static_cast<Handle*>(WEFT_TRY(HandleTable::instance().open(std::make_unique<T>(std::forward<Args>(args)...))));
  return {};
}

}  // namespace weft::capi::topics
