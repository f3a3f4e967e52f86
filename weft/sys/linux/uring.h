// SPDX-License-Identifier: MIT
#pragma once

#if __has_include(<linux/io_uring.h>)
#include <linux/io_uring.h>
#endif

#if defined(IORING_SETUP_DEFER_TASKRUN)  // headers of Linux 6.1: see docs/design/0007-io-uring.md
#define WEFT_HAVE_URING

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "weft/base/result.h"
#include "weft/base/time.h"
#include "weft/sys/fd.h"

namespace weft::sys {

// The three system calls of io_uring, each with the kernel's convention: -1 and errno. Tests refuse some of
// them, as kernels and sandboxes do.
struct UringCalls {
  int (*setup)(unsigned entries, io_uring_params* params);
  int (*enter)(int fd, unsigned submit, unsigned least, unsigned flags, const void* argument, std::size_t size);
  int (*configure)(int fd, unsigned operation, void* argument, unsigned count);  // io_uring_register

  static const UringCalls kSystem;
};

// Uring: one ring of io_uring, mapped into the process. Entries go in, completions come out.
// Owner: a poller. Affinity: any thread makes it. The thread that calls enable() is the only user from then
// on (the kernel refuses others). That thread destroys the ring, or any thread after that thread has ended.
// Cost: one system call per enter(), however many entries and completions it moves; 84 KB of memory by
// default. The kernel keeps the completions that find no room, at most one per request.
// Words shared with the kernel: the kernel stores the submission head and the completion tail with release,
// and this class loads them with acquire. This class stores the other two with release, and the kernel loads
// them with acquire. No second thread of the process shares these words, so no model test and no sanitizer
// sees the pairs.
class Uring {
 public:
  struct Shape {
    unsigned submissions = 256;
    unsigned completions = 4096;
  };
  enum class Entered : std::uint8_t {
    done,         // also after the timeout
    interrupted,  // by a signal
    lost,         // the kernel had no memory for a completion, and dropped it
  };

  // Errors: no io_uring in the kernel, a forbidden call, an old kernel, no memory. The error's text says
  // which.
  [[nodiscard]] static Result<Uring> make(Shape shape, const UringCalls& calls) noexcept;
  Uring(Uring&& other) noexcept = default;
  Uring& operator=(Uring&&) = delete;
  ~Uring();

  [[nodiscard]] Result<void> enable() noexcept;

  // An entry to fill, all zero. Returns null if there is no room before the next enter().
  [[nodiscard]] io_uring_sqe* next() noexcept;
  // Whether there is nothing to submit, and the kernel has nothing to finish in an enter().
  [[nodiscard]] bool quiet() const noexcept {
    return tail_ == load(submitted_) && (load(flags_) & (IORING_SQ_CQ_OVERFLOW | IORING_SQ_TASKRUN)) == 0;
  }
  // Whether the kernel has completions to finish in an enter(). Since Linux 6.13 one enter() finishes about
  // 20.
  [[nodiscard]] bool unfinished() const noexcept { return (load(flags_) & IORING_SQ_TASKRUN) != 0; }
  // Submits, finishes completions, and waits for `least` of them. Negative timeout: for ever.
  [[nodiscard]] Result<Entered> enter(unsigned least, Duration timeout) noexcept;

  // The oldest completion, or null.
  [[nodiscard]] const io_uring_cqe* front() const noexcept {
    return head_ == load(completed_) ? nullptr : &completions_[head_ & completion_mask_];
  }
  void pop() noexcept { std::atomic_ref(*taken_).store(++head_, std::memory_order_release); }

 private:
  struct Unmap {
    std::size_t size;
    void operator()(std::uint8_t* begin) const noexcept;
  };
  using Mapping = std::unique_ptr<std::uint8_t, Unmap>;

  Uring(Fd fd, const UringCalls& calls) noexcept : fd_(std::move(fd)), calls_(calls) {}
  [[nodiscard]] Result<void> map(const io_uring_params& params) noexcept;
  [[nodiscard]] Result<Mapping> map_part(std::size_t size, std::uint64_t offset) const noexcept;
  [[nodiscard]] Result<void> try_calls() const noexcept;
  static std::uint32_t load(std::uint32_t* shared) noexcept {
    return std::atomic_ref(*shared).load(std::memory_order_acquire);
  }

  Fd fd_;
  UringCalls calls_;
  Mapping rings_;
  Mapping entries_memory_;
  io_uring_sqe* entries_ = nullptr;
  const io_uring_cqe* completions_ = nullptr;
  std::uint32_t* submitted_ = nullptr;  // head of the submissions
  std::uint32_t* pushed_ = nullptr;     // tail of the submissions
  std::uint32_t* flags_ = nullptr;
  std::uint32_t* taken_ = nullptr;      // head of the completions
  std::uint32_t* completed_ = nullptr;  // tail of the completions
  std::uint32_t entry_count_ = 0;
  std::uint32_t completion_mask_ = 0;
  std::uint32_t tail_ = 0;
  std::uint32_t head_ = 0;
  int enter_fd_ = -1;             // the ring's number in enter()
  unsigned enter_flags_ = 0;      // the kind of enter_fd_
  std::uintptr_t registrar_ = 0;  // the thread in whose table enter_fd_ is, or 0
};

}  // namespace weft::sys

#endif
