// SPDX-License-Identifier: MIT
#include "weft/msg/message.h"

#include "weft/msg/peer_properties.h"

namespace weft {

bool Message::assign_copy(Bytes bytes) noexcept {
  if (bytes.size() <= kInlineMax) {
    reset();
    copy_bytes(storage_.small, bytes);
    size_ = static_cast<std::uint8_t>(bytes.size());
    return true;
  }
  mem::Buffer* buffer = mem::Buffer::make(bytes.size());
  if (buffer == nullptr) {
    reset();
    return false;
  }
  copy_bytes(buffer->data(), bytes);
  assign(buffer, Bytes(buffer->data(), bytes.size()));
  return true;
}

Result<Message> Message::copy_of(Bytes bytes) {
  Message message;
  if (!message.assign_copy(bytes)) {
    return Error(Errc::resource_exhausted, "no memory for a message");
  }
  return message;
}

Result<Message> Message::with_size(std::size_t size) {
  Message message;
  if (size <= kInlineMax) {
    message.size_ = static_cast<std::uint8_t>(size);
    return message;
  }
  mem::Buffer* buffer = mem::Buffer::make(size);
  if (buffer == nullptr) {
    return Error(Errc::resource_exhausted, "no memory for a message");
  }
  message.assign(buffer, Bytes(buffer->data(), size));
  return message;
}

MutableBytes Message::mutable_bytes() noexcept {
  if (kind_ == Kind::small) {
    return {storage_.small, size_};
  }
  if (!storage_.large.buffer->sole_owner()) {
    return {};
  }
  return {const_cast<std::uint8_t*>(storage_.large.data), storage_.large.size};  // nobody else looks at them
}

Message Message::share() const noexcept {
  Message copy;
  copy.kind_ = kind_;
  copy.size_ = size_;
  copy.more_ = more_;
  copy.storage_ = storage_;
  copy.peer_ = peer_;
  if (kind_ == Kind::large) {
    storage_.large.buffer->add_reference();
  }
  return copy;
}

const char* Message::peer_property(std::string_view name) const noexcept { return msg::peer_property(peer_, name); }

void Message::assign(mem::Buffer* buffer, Bytes bytes) noexcept {
  reset();
  kind_ = Kind::large;
  storage_.large = {bytes.data(), bytes.size(), buffer};
}

mem::Buffer* Message::release_buffer() noexcept {
  if (kind_ == Kind::small) {
    return nullptr;
  }
  mem::Buffer* buffer = storage_.large.buffer;
  kind_ = Kind::small;
  size_ = 0;
  return buffer;
}

}  // namespace weft
