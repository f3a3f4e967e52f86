// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <utility>

#include "weft/base/bytes.h"
#include "weft/mem/pool.h"

namespace weft::serve {

// OwnedBytes: bytes in a pooled block of their own, aligned for any type. A move-only value. Affinity: a value;
// it may move to another thread. Cost: assign() copies once; small blocks need no malloc in steady state.
class OwnedBytes {
 public:
  OwnedBytes() noexcept {}  // NOLINT(modernize-use-equals-default): not an aggregate, see rt/task/task.h
  OwnedBytes(OwnedBytes&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  OwnedBytes& operator=(OwnedBytes&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~OwnedBytes() { mem::pool_deallocate(data_); }

  // Returns false, and changes nothing, if there is no memory.
  [[nodiscard]] bool assign(Bytes bytes) noexcept {
    OwnedBytes fresh;
    if (!bytes.empty()) {
      fresh.data_ = static_cast<std::uint8_t*>(mem::pool_allocate(bytes.size()));
      if (fresh.data_ == nullptr) {
        return false;
      }
      fresh.size_ = bytes.size();
      copy_bytes(fresh.data_, bytes);
    }
    *this = std::move(fresh);
    return true;
  }

  // The same for bytes in several parts.
  [[nodiscard]] bool assign_parts(std::initializer_list<Bytes> parts) noexcept {
    OwnedBytes fresh;
    std::size_t size = 0;
    for (const Bytes part : parts) {
      size += part.size();
    }
    if (size != 0) {
      fresh.data_ = static_cast<std::uint8_t*>(mem::pool_allocate(size));
      if (fresh.data_ == nullptr) {
        return false;
      }
      for (const Bytes part : parts) {
        copy_bytes(fresh.data_ + fresh.size_, part);
        fresh.size_ += part.size();
      }
    }
    *this = std::move(fresh);
    return true;
  }

  [[nodiscard]] Bytes bytes() const noexcept { return {data_, size_}; }

 private:
  std::uint8_t* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace weft::serve
