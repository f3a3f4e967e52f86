// SPDX-License-Identifier: MIT
#include "weft/msg/message/message.h"

#include <new>

#include "weft/msg/message/peer_properties.h"

namespace weft {

namespace {

// The head of a group's buffer. The group and a zero byte follow.
struct Tag {
  Message::Origin origin;
  std::size_t size;
};

const Tag& tag_of(mem::Buffer* buffer) noexcept { return *std::launder(reinterpret_cast<const Tag*>(buffer->data())); }
char* text_of(mem::Buffer* buffer) noexcept { return reinterpret_cast<char*>(buffer->data() + sizeof(Tag)); }

// Null when memory ran out.
mem::Buffer* make_group(std::string_view group, Message::Origin origin) noexcept {
  mem::Buffer* buffer = mem::Buffer::make(sizeof(Tag) + group.size() + 1);
  if (buffer != nullptr) {
    ::new (static_cast<void*>(buffer->data())) Tag{origin, group.size()};
    copy_bytes(buffer->data() + sizeof(Tag), as_bytes(group));
    text_of(buffer)[group.size()] = '\0';
  }
  return buffer;
}

}  // namespace

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
  if (!is_large()) {
    return {storage_.small, size_};
  }
  if (!storage_.large.buffer->sole_owner()) {
    return {};
  }
  return {const_cast<std::uint8_t*>(storage_.large.data), storage_.large.size};  // no other handle sees them
}

Message Message::share() const noexcept {
  Message copy;
  copy.kind_ = kind_;
  copy.size_ = size_;
  copy.more_ = more_;
  copy.storage_ = storage_;
  copy.sender_ = sender_;
  if (is_large()) {
    storage_.large.buffer->add_reference();
  }
  if (in_group()) {
    sender_.group->add_reference();
  }
  return copy;
}

const char* Message::peer_property(std::string_view name) const noexcept {
  return msg::peer_property(origin().peer, name);
}

Result<void> Message::set_routing_id(std::uint32_t id) noexcept {
  if (id == 0) {
    return Error(Errc::invalid_argument, "a routing id is not zero");
  }
  if (!in_group()) {
    sender_.origin.routing_id = id;
    return {};
  }
  mem::Buffer* group = make_group(tagged_group(), {tagged_origin().peer, id});  // others may share the old one
  if (group == nullptr) {
    return Error(Errc::resource_exhausted, "no memory for a message");
  }
  adopt_group(group);
  return {};
}

Result<void> Message::check_group(std::string_view group) noexcept {
  if (group.size() > kGroupMax || group.find('\0') != std::string_view::npos) {
    return Error(Errc::invalid_argument, "a group is at most 255 bytes other than zero");
  }
  return {};
}

Result<void> Message::set_group(std::string_view group) noexcept {
  WEFT_TRY(check_group(group));
  if (group.empty()) {
    if (in_group()) {
      drop_group();
    }
    return {};
  }
  mem::Buffer* made = make_group(group, origin());
  if (made == nullptr) {
    return Error(Errc::resource_exhausted, "no memory for a message");
  }
  adopt_group(made);
  return {};
}

void Message::share_sender(const Message& other) noexcept {
  if (other.in_group()) {
    other.sender_.group->add_reference();
    adopt_group(other.sender_.group);
    return;
  }
  if (in_group()) {
    drop_group();
  }
  sender_.origin = other.sender_.origin;
}

void Message::adopt_group(mem::Buffer* group) noexcept {
  if (in_group()) {
    drop_group();
  }
  sender_.group = group;
  kind_ = is_large() ? Kind::large_in_group : Kind::small_in_group;
}

void Message::release_with_group() noexcept {
  drop_group();
  if (is_large()) {
    storage_.large.buffer->release();
  }
}

void Message::drop_group() noexcept {
  mem::Buffer* group = sender_.group;
  sender_.origin = tag_of(group).origin;
  kind_ = is_large() ? Kind::large : Kind::small;
  group->release();
}

std::string_view Message::tagged_group() const noexcept { return {text_of(sender_.group), tag_of(sender_.group).size}; }
Message::Origin Message::tagged_origin() const noexcept { return tag_of(sender_.group).origin; }

void Message::assign(mem::Buffer* buffer, Bytes bytes) noexcept {
  if (kind_ != Kind::small) {
    replace(buffer, bytes);
    return;
  }
  kind_ = Kind::large;
  storage_.large = {bytes.data(), bytes.size(), buffer};
}

void Message::replace(mem::Buffer* buffer, Bytes bytes) noexcept {
  reset();
  kind_ = Kind::large;
  storage_.large = {bytes.data(), bytes.size(), buffer};
}

mem::Buffer* Message::release_buffer() noexcept {
  if (!is_large()) {
    return nullptr;
  }
  if (in_group()) [[unlikely]] {
    drop_group();
  }
  mem::Buffer* buffer = storage_.large.buffer;
  kind_ = Kind::small;
  size_ = 0;
  return buffer;
}

}  // namespace weft
