// SPDX-License-Identifier: MIT
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <type_traits>
#include <utility>

namespace weft {

struct Deleter {
  template <typename T>
  static void dispose(T* object) noexcept {
    delete object;
  }
};

// Counted: the reference count of an object that one thread uses. The last reference deletes the object.
// Use: `class Session : public Counted<Session>`. The object is born with one reference, which
// IntrusivePtr::adopt() takes over. An object that threads share derives from sync::AtomicCounted. An object
// that does not come from `new` derives from Counted<T, Disposer>; Disposer::dispose(T*) gives it back.
// Owner: its references. Affinity: one thread. Cost: 4 bytes; a copy is one addition. At most 2^32 - 1
// references.
template <typename T, typename Disposer = Deleter>
class Counted {
 public:
  void add_reference() const noexcept { ++references_; }
  void release() const noexcept {
    if (--references_ == 0) {
      Disposer::dispose(const_cast<T*>(static_cast<const T*>(this)));
    }
  }
  [[nodiscard]] bool sole_owner() const noexcept { return references_ == 1; }

 protected:
  Counted() noexcept = default;
  Counted(const Counted& /*other*/) noexcept {}  // a copy has references of its own
  Counted& operator=(const Counted& /*other*/) noexcept { return *this; }
  ~Counted() = default;

 private:
  mutable std::uint32_t references_ = 1;
};

// IntrusivePtr: a reference to an object that counts its references itself. The object needs add_reference()
// and release(); the last release() disposes of it. The pointer has the size of one plain pointer and
// allocates nothing.
// Affinity: one thread uses a pointer at a time. The object's count decides whether two pointers to one
// object may be on different threads. Cost: a copy counts, a move does not.
// Invariant: a pointer that is not null holds one reference.
template <typename T>
class IntrusivePtr {
 public:
  using element_type = T;

  constexpr IntrusivePtr() noexcept = default;
  constexpr IntrusivePtr(std::nullptr_t) noexcept {}  // NOLINT(google-explicit-constructor)
  // Takes over a reference that the caller already holds: that of a new object, or one that detach()
  // returned.
  [[nodiscard]] static IntrusivePtr adopt(T* object) noexcept { return IntrusivePtr(object); }
  // Adds a reference.
  [[nodiscard]] static IntrusivePtr retain(T* object) noexcept {
    if (object != nullptr) {
      object->add_reference();
    }
    return IntrusivePtr(object);
  }

  IntrusivePtr(const IntrusivePtr& other) noexcept : IntrusivePtr(retain(other.object_)) {}
  IntrusivePtr(IntrusivePtr&& other) noexcept : object_(other.detach()) {}
  template <typename U>
    requires std::is_convertible_v<U*, T*>
  IntrusivePtr(const IntrusivePtr<U>& other) noexcept  // NOLINT(google-explicit-constructor): as a pointer does
      : IntrusivePtr(retain(other.get())) {}
  template <typename U>
    requires std::is_convertible_v<U*, T*>
  IntrusivePtr(IntrusivePtr<U>&& other) noexcept : object_(other.detach()) {}  // NOLINT(google-explicit-constructor)
  IntrusivePtr& operator=(IntrusivePtr other) noexcept {
    swap(other);
    return *this;
  }
  ~IntrusivePtr() {
    if (object_ != nullptr) {
      object_->release();
    }
  }

  // Returns the reference to the caller, who must release() it or adopt() it.
  [[nodiscard]] T* detach() noexcept { return std::exchange(object_, nullptr); }
  void reset() noexcept { IntrusivePtr().swap(*this); }
  void swap(IntrusivePtr& other) noexcept { std::swap(object_, other.object_); }
  friend void swap(IntrusivePtr& a, IntrusivePtr& b) noexcept { a.swap(b); }

  [[nodiscard]] T* get() const noexcept { return object_; }
  [[nodiscard]] T& operator*() const noexcept { return *object_; }
  [[nodiscard]] T* operator->() const noexcept { return object_; }
  explicit operator bool() const noexcept { return object_ != nullptr; }

  template <typename U>
  friend bool operator==(const IntrusivePtr& a, const IntrusivePtr<U>& b) noexcept {
    return a.get() == b.get();
  }
  friend bool operator==(const IntrusivePtr& a, const T* b) noexcept { return a.get() == b; }
  friend bool operator==(const IntrusivePtr& a, std::nullptr_t) noexcept { return a.get() == nullptr; }
  friend auto operator<=>(const IntrusivePtr& a, const IntrusivePtr& b) noexcept {
    return std::compare_three_way()(a.get(), b.get());
  }

 private:
  explicit IntrusivePtr(T* object) noexcept : object_(object) {}

  T* object_ = nullptr;
};

// A new object and the first reference to it.
template <typename T, typename... Arguments>
[[nodiscard]] IntrusivePtr<T> make_intrusive(Arguments&&... arguments) {
  return IntrusivePtr<T>::adopt(new T(std::forward<Arguments>(arguments)...));
}

}  // namespace weft

template <typename T>
struct std::hash<weft::IntrusivePtr<T>> {
  std::size_t operator()(const weft::IntrusivePtr<T>& pointer) const noexcept { return std::hash<T*>()(pointer.get()); }
};
