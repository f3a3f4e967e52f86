// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "weft/base/bytes.h"

namespace weft::topic {

// Outbox: operations of a gate, one after the other in one block of bytes.
// Owner: a gate, which guards it. Affinity: one thread at a time. Cost: a copy of the bytes; no allocation once the
// block has grown. append() throws std::bad_alloc, and then nothing changed.
class Outbox {
 public:
  enum class Kind : std::uint32_t { publish, want, unwant, ask, answer };
  struct Operation {
    Kind kind = Kind::publish;
    std::string_view subject{};  // want, unwant: the text of the filter
    std::string_view reply{};    // want, unwant: the kind of the filter, as one byte
    Bytes headers{};
    Bytes body{};
  };

  void append(const Operation& operation) {
    const Head head{operation.kind, size_of(operation.subject), size_of(operation.reply),
                    static_cast<std::uint32_t>(operation.headers.size()),
                    static_cast<std::uint32_t>(operation.body.size())};
    bytes_.reserve(grown(bytes_.size() + sizeof head + head.size()));
    const auto* const start = reinterpret_cast<const std::uint8_t*>(&head);
    bytes_.insert(bytes_.end(), start, start + sizeof head);
    for (const Bytes part :
         {as_bytes(operation.subject), as_bytes(operation.reply), operation.headers, operation.body}) {
      bytes_.insert(bytes_.end(), part.begin(), part.end());
    }
    ++count_;
  }
  // The oldest operation, which pop() takes away. Requires !empty().
  [[nodiscard]] Operation front() const noexcept {
    Head head;
    std::memcpy(&head, bytes_.data() + read_, sizeof head);
    const std::uint8_t* at = bytes_.data() + read_ + sizeof head;
    const auto take = [&at](std::size_t size) {
      const Bytes part(at, size);
      at += size;
      return part;
    };
    Operation operation;
    operation.kind = head.kind;
    operation.subject = as_text(take(head.subject));
    operation.reply = as_text(take(head.reply));
    operation.headers = take(head.headers);
    operation.body = take(head.body);
    return operation;
  }
  void pop() noexcept {
    Head head;
    std::memcpy(&head, bytes_.data() + read_, sizeof head);
    read_ += sizeof head + head.size();
    --count_;
    if (count_ == 0) {
      read_ = 0;
      bytes_.clear();
      if (bytes_.capacity() > kCapacityKept) {
        bytes_.shrink_to_fit();
      }
    }
  }
  [[nodiscard]] bool empty() const noexcept { return count_ == 0; }
  [[nodiscard]] std::size_t count() const noexcept { return count_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_.size() - read_; }
  void swap(Outbox& other) noexcept {
    bytes_.swap(other.bytes_);
    std::swap(read_, other.read_);
    std::swap(count_, other.count_);
  }

 private:
  static constexpr std::size_t kCapacityKept = std::size_t{1} << 20;
  struct Head {
    Kind kind = Kind::publish;
    std::uint32_t subject = 0;
    std::uint32_t reply = 0;
    std::uint32_t headers = 0;
    std::uint32_t body = 0;
    [[nodiscard]] std::size_t size() const noexcept { return std::size_t{subject} + reply + headers + body; }
  };
  [[nodiscard]] static std::uint32_t size_of(std::string_view text) noexcept {
    return static_cast<std::uint32_t>(text.size());
  }
  [[nodiscard]] std::size_t grown(std::size_t needed) const noexcept {
    return needed <= bytes_.capacity() ? needed : (needed < 2 * bytes_.capacity() ? 2 * bytes_.capacity() : needed);
  }

  std::vector<std::uint8_t> bytes_;
  std::size_t read_ = 0;
  std::size_t count_ = 0;
};

}  // namespace weft::topic
