// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

namespace weft::trace {

// `text`, or its longest beginning of at most `most` bytes that cuts no character of UTF-8.
[[nodiscard]] std::string_view cut_text(std::string_view text, std::size_t most) noexcept;

// Attributes: the names and values of a span, in one block of bytes. A value.
// Affinity: one thread at a time. Cost: one allocation, and a further one when the block grows; set() compares the name
// with each one that is there.
// Invariants:
//   1. A name stands once. set() of a known name replaces its value.
//   2. There are at most kCountMax names, in at most kBytesMax bytes. An attribute beyond that changes nothing.
class Attributes {
 public:
  static constexpr std::size_t kCountMax = 64;
  static constexpr std::size_t kBytesMax = 8 * 1024;  // of all names and values
  static constexpr std::size_t kNameMax = 256;        // bytes; an attribute with a longer name is dropped
  static constexpr std::size_t kTextMax = 1024;       // bytes; a longer value is cut

  enum class Type : std::uint8_t { text, integer, real, boolean };
  // A value. The member of its type is set.
  struct Value {
    Type type = Type::text;
    std::string_view text{};
    std::int64_t integer = 0;  // also of a boolean: 0 or 1
    double real = 0;
  };

  // Returns false if the attribute was dropped: there is no room or memory, or the name is empty or too long.
  bool set(std::string_view name, const Value& value) noexcept;

  [[nodiscard]] std::size_t count() const noexcept { return count_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return packed_.size(); }
  // Calls visit(std::string_view name, const Value&) for each, in the order of the last set().
  template <typename Visit>
  void for_each(Visit&& visit) const {
    for (std::size_t at = 0; at < packed_.size();) {
      const Head head = head_at(at);
      visit(name_at(at, head), value_at(at, head));
      at += size_of(head);
    }
  }

 private:
  // Before the bytes of each name and value.
  struct Head {
    std::uint16_t name_size;
    std::uint16_t value_size;
    Type type;
  };
  [[nodiscard]] static std::size_t size_of(const Head& head) noexcept {
    return sizeof(Head) + head.name_size + head.value_size;
  }
  [[nodiscard]] Head head_at(std::size_t at) const noexcept {
    Head head;
    std::memcpy(&head, packed_.data() + at, sizeof head);
    return head;
  }
  [[nodiscard]] std::string_view name_at(std::size_t at, const Head& head) const noexcept {
    return std::string_view(packed_).substr(at + sizeof(Head), head.name_size);
  }
  [[nodiscard]] Value value_at(std::size_t at, const Head& head) const noexcept;

  std::string packed_;
  std::size_t count_ = 0;
};

}  // namespace weft::trace
