// SPDX-License-Identifier: MIT
#pragma once

#include <concepts>
#include <cstddef>
#include <cstring>
#include <exception>
#include <functional>
#include <new>
#include <type_traits>
#include <utility>

#include "weft/base/assert.h"
#include "weft/mem/buffer.h"

namespace weft::rt {

// Job: a closure to call once, without arguments and result. Move-only.
// Owner: a value.
// Affinity: one thread at a time.
// Cost: 56 bytes. A closure of up to kInlineMax bytes that moves without throwing is inside the Job: making, moving and
// calling the Job allocates nothing. A larger closure is in a mem::Buffer, so that one thread can make it and another
// destroy it without a malloc. A closure that is over-aligned, or larger than Buffer::kPooledMax, is on the heap.
// Invariants:
//   1. The closure is destroyed once, whether it was called or not.
//   2. Moving a Job never throws.
//   3. A Job whose closure found no memory is empty: the caller checks for that before it passes the Job on.
class Job {
 public:
  static constexpr std::size_t kInlineMax = 48;

  Job() noexcept = default;
  template <typename F>
    requires(!std::same_as<std::decay_t<F>, Job> && std::invocable<std::decay_t<F>&>)
  Job(F&& function) noexcept(  // NOLINT(google-explicit-constructor)
      std::is_nothrow_constructible_v<std::decay_t<F>, F>) {
    using Closure = std::decay_t<F>;
    if constexpr (kFits<Closure>) {
      ::new (static_cast<void*>(storage_)) Closure(std::forward<F>(function));
      kind_ = &kInline<Closure>;
    } else {
      make_outside<Closure>(std::forward<F>(function));
    }
  }
  Job(Job&& other) noexcept { take(other); }
  Job& operator=(Job&& other) noexcept {
    if (this != &other) {
      reset();
      take(other);
    }
    return *this;
  }
  ~Job() { reset(); }

  explicit operator bool() const noexcept { return kind_ != nullptr; }
  // Requires a closure. The call passes the closure's exception on. The closure is destroyed with the Job, not here.
  void operator()() { kind_->run(storage_); }
  void reset() noexcept {
    if (kind_ != nullptr && kind_->destroy != nullptr) {
      kind_->destroy(storage_);
    }
    kind_ = nullptr;
  }

 private:
  struct Kind {
    void (*run)(void* storage);
    void (*move)(void* to, void* from) noexcept;  // null: copy the bytes
    void (*destroy)(void* storage) noexcept;      // null: trivial
  };

  template <typename Closure>
  static constexpr bool kFits = sizeof(Closure) <= kInlineMax && alignof(Closure) <= alignof(void*) &&
                                std::is_nothrow_move_constructible_v<Closure>;
  template <typename Closure>
  static constexpr bool kPooled =
      sizeof(Closure) <= mem::Buffer::kPooledMax && alignof(Closure) <= alignof(std::max_align_t);

  // A closure type declares MovesAsBytes if copying its bytes and forgetting the old object moves it.
  template <typename Closure>
  static constexpr bool kMovesAsBytes =
      std::is_trivially_copyable_v<Closure> || requires { typename Closure::MovesAsBytes; };

  template <typename Closure>
  static Closure* at(void* storage) noexcept {
    return std::launder(static_cast<Closure*>(storage));
  }

  template <typename Closure>
  static constexpr Kind kInline = {
      [](void* storage) { static_cast<void>((*at<Closure>(storage))()); },
      kMovesAsBytes<Closure> ? nullptr
                                            : +[](void* to, void* from) noexcept {
                                                ::new (to) Closure(std::move(*at<Closure>(from)));
                                                at<Closure>(from)->~Closure();
                                              },
      std::is_trivially_destructible_v<Closure> ? nullptr
                                                : +[](void* storage) noexcept { at<Closure>(storage)->~Closure(); },
  };

  // The storage holds a pointer: to the Buffer with the closure, or to the closure.
  template <typename Closure>
  static Closure* outside(void* storage) noexcept {
    if constexpr (kPooled<Closure>) {
      return at<Closure>((*static_cast<mem::Buffer**>(storage))->data());
    } else {
      return *static_cast<Closure**>(storage);
    }
  }
  template <typename Closure>
  static constexpr Kind kOutside = {
      [](void* storage) { static_cast<void>((*outside<Closure>(storage))()); },
      nullptr,
      [](void* storage) noexcept {
        if constexpr (kPooled<Closure>) {
          outside<Closure>(storage)->~Closure();
          (*static_cast<mem::Buffer**>(storage))->release();
        } else {
          delete outside<Closure>(storage);
        }
      },
  };

  template <typename Closure, typename F>
  void make_outside(F&& function) {
    if constexpr (kPooled<Closure>) {
      mem::Buffer* buffer = mem::Buffer::make(sizeof(Closure));
      if (buffer == nullptr) {
        return;
      }
      const Returner returner{buffer};
      ::new (static_cast<void*>(buffer->data())) Closure(std::forward<F>(function));
      ::new (static_cast<void*>(storage_)) mem::Buffer*(std::exchange(returner.buffer, nullptr));
    } else {
      auto* closure = new (std::nothrow) Closure(std::forward<F>(function));
      if (closure == nullptr) {
        return;
      }
      ::new (static_cast<void*>(storage_)) Closure*(closure);
    }
    kind_ = &kOutside<Closure>;
  }
  struct Returner {  // releases the buffer if the closure's constructor throws
    mutable mem::Buffer* buffer;
    ~Returner() {
      if (buffer != nullptr) {
        buffer->release();
      }
    }
  };

  void take(Job& other) noexcept {
    kind_ = std::exchange(other.kind_, nullptr);
    if (kind_ == nullptr || kind_->move == nullptr) [[likely]] {
      std::memcpy(storage_, other.storage_, kInlineMax);
    } else {
      kind_->move(storage_, other.storage_);
    }
  }

  const Kind* kind_ = nullptr;
  alignas(void*) std::byte storage_[kInlineMax];
};
static_assert(sizeof(Job) == 56);

// ExceptionHandler: receives the exception of a job, in the thread that ran the job. The handler of an executor or a
// runtime must be safe to call from several threads. An exception of the handler itself is dropped.
using ExceptionHandler = std::function<void(std::exception_ptr)>;

namespace detail {
// In a catch block.
inline void handle_exception(const ExceptionHandler& handler) noexcept {
  try {
    if (handler) {
      handler(std::current_exception());
    }
  } catch (...) {  // NOLINT(bugprone-empty-catch): dropped; the caller counts the job's own exception
  }
}
}  // namespace detail

}  // namespace weft::rt
