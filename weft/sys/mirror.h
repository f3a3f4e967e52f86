// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "weft/base/result.h"
#include "weft/sys/fork.h"

namespace weft::sys {

// Mirror: memory that is mapped twice, back to back: byte i and byte i + size() are the same one, for i <
// size().
// Owner: a move-only value; destruction unmaps. Affinity: the program decides which thread may use the bytes.
// A forked child does not have the bytes: touching them ends it, and destruction there does nothing.
// Cost: make() is eight system calls; no descriptor stays open.
class Mirror {
 public:
  // `size` is rounded up to whole pages; the bytes are zero. invalid_argument: zero, or more than can be
  // addressed twice. resource_exhausted and others: the system refuses memfd_create or mmap.
  [[nodiscard]] static Result<Mirror> make(std::size_t size) noexcept;

  Mirror() noexcept = default;
  Mirror(Mirror&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)), birth_(other.birth_) {}
  Mirror& operator=(Mirror&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(birth_, other.birth_);
    return *this;
  }
  Mirror(const Mirror&) = delete;
  Mirror& operator=(const Mirror&) = delete;
  ~Mirror();

  [[nodiscard]] std::uint8_t* data() const noexcept { return data_; }  // null: no memory
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

 private:
  Mirror(std::uint8_t* data, std::size_t size) noexcept : data_(data), size_(size) {}

  std::uint8_t* data_ = nullptr;
  std::size_t size_ = 0;
  Birth birth_;  // of the process that has the bytes
};

}  // namespace weft::sys
