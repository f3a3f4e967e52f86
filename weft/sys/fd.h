// SPDX-License-Identifier: MIT
#pragma once

#include <utility>

#include "weft/base/result.h"

namespace weft::sys {

// Fd: the one owner of a file descriptor.
// Affinity: a move-only value. Cost: an int; destruction closes.
class Fd {
 public:
  Fd() noexcept = default;
  explicit Fd(int fd) noexcept : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(other.release()) {}
  Fd& operator=(Fd&& other) noexcept {
    if (this != &other) {
      close();
      fd_ = other.release();
    }
    return *this;
  }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  ~Fd() { close(); }

  [[nodiscard]] int fd() const noexcept { return fd_; }  // -1: none
  [[nodiscard]] bool valid() const noexcept { return fd_ >= 0; }
  void close() noexcept;  // idempotent
  [[nodiscard]] int release() noexcept { return std::exchange(fd_, -1); }
  // Another descriptor of the same file. resource_exhausted: the process has no descriptor left.
  [[nodiscard]] Result<Fd> duplicate() const noexcept;

 private:
  int fd_ = -1;
};

}  // namespace weft::sys
