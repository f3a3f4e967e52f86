// SPDX-License-Identifier: MIT
#include "weft/trace/attributes.h"

#include <new>

namespace weft::trace {

std::string_view cut_text(std::string_view text, std::size_t most) noexcept {
  if (text.size() <= most) {
    return text;
  }
  std::size_t size = most;
  // A character has at most three bytes after its first one.
  for (int i = 0; i < 3 && size > 0 && (static_cast<unsigned char>(text[size]) & 0xC0U) == 0x80; ++i) {
    --size;
  }
  return text.substr(0, size);
}

bool Attributes::set(std::string_view name, const Value& value) noexcept {
  if (name.empty() || name.size() > kNameMax) {
    return false;
  }
  char number[8];
  std::string_view bytes(number, sizeof number);
  switch (value.type) {
    case Type::text: bytes = cut_text(value.text, kTextMax); break;
    case Type::real: std::memcpy(number, &value.real, sizeof number); break;
    default: std::memcpy(number, &value.integer, sizeof number);
  }
  std::size_t old_at = packed_.size();
  std::size_t old_size = 0;
  for (std::size_t at = 0; at < packed_.size() && old_size == 0;) {
    const Head head = head_at(at);
    if (name_at(at, head) == name) {
      old_at = at;
      old_size = size_of(head);
    }
    at += size_of(head);
  }
  const Head head{static_cast<std::uint16_t>(name.size()), static_cast<std::uint16_t>(bytes.size()), value.type};
  const std::size_t size = packed_.size() - old_size + size_of(head);
  if (size > kBytesMax || (old_size == 0 && count_ == kCountMax)) {
    return false;
  }
  try {
    // Appended before the old one goes: the arguments may lie in it.
    std::string added;
    added.reserve(size_of(head));
    added.append(reinterpret_cast<const char*>(&head), sizeof head).append(name).append(bytes);
    packed_.reserve(packed_.size() + added.size());
    packed_.erase(old_at, old_size);
    packed_.append(added);
  } catch (const std::bad_alloc&) {
    return false;
  }
  count_ += old_size == 0 ? 1 : 0;
  return true;
}

Attributes::Value Attributes::value_at(std::size_t at, const Head& head) const noexcept {
  const std::string_view bytes = std::string_view(packed_).substr(at + sizeof(Head) + head.name_size, head.value_size);
  Value value;
  value.type = head.type;
  switch (head.type) {
    case Type::text: value.text = bytes; break;
    case Type::real: std::memcpy(&value.real, bytes.data(), sizeof value.real); break;
    default: std::memcpy(&value.integer, bytes.data(), sizeof value.integer);
  }
  return value;
}

}  // namespace weft::trace
