// SPDX-License-Identifier: MIT
#include "weft/msg/message/message.h"

#include <atomic>
#include <new>

#include "weft/mem/pool.h"
#include "weft/msg/message/peer_properties.h"
#include "weft/sync/atomic_counted.h"

namespace weft {

namespace {
struct TagDisposer {
  template <typename Tag>
  static void dispose(Tag* tag) noexcept {
    tag->~Tag();
    mem::pool_deallocate(tag);
  }
};
}  // namespace

// A pooled block. The group and a zero byte follow. The origin and the group are constant.
struct Message::Tag : sync::AtomicCounted<Message::Tag, TagDisposer> {
  Tag(Origin of, std::string_view group) noexcept : origin(of), group_size(group.size()) {
    copy_bytes(reinterpret_cast<std::uint8_t*>(this + 1), as_bytes(group));
    reinterpret_cast<std::uint8_t*>(this + 1)[group.size()] = 0;
  }
  ~Tag() {
    if (mem::Buffer* const kept = properties.load(std::memory_order_acquire); kept != nullptr) {
      kept->release();
    }
  }
  [[nodiscard]] std::string_view group() const noexcept {
    return {reinterpret_cast<const char*>(this + 1), group_size};
  }
  // Null when memory ran out.
  [[nodiscard]] static Tag* make(Origin origin, std::string_view group) noexcept {
    void* const memory = mem::pool_allocate(sizeof(Tag) + group.size() + 1);
    return memory == nullptr ? nullptr : ::new (memory) Tag(origin, group);
  }

  const Origin origin;
  const std::size_t group_size;
  // A reference, or null. Set once: copies of the message, which other threads may hold, share it. The release in
  // peer_property() pairs with the acquires there and in the destructor.
  std::atomic<mem::Buffer*> properties{nullptr};
};

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

Message::Message(std::string_view text) : Message() {
  if (!assign_copy(as_bytes(text))) {
    throw std::bad_alloc();
  }
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
  if (tagged()) {
    sender_.tag->add_reference();
  }
  return copy;
}

const char* Message::peer_property(std::string_view name) const noexcept {
  mem::Buffer* kept = tagged() ? sender_.tag->properties.load(std::memory_order_acquire) : nullptr;
  if (kept == nullptr) {
    msg::PeerProperties known = msg::properties_of(origin().peer);
    if (known == nullptr) {
      return nullptr;
    }
    if (!tagged()) {
      Tag* const tag = Tag::make(origin(), {});
      if (tag == nullptr) {
        return nullptr;
      }
      adopt_tag(tag);
    }
    if (sender_.tag->properties.compare_exchange_strong(kept, known.get(), std::memory_order_acq_rel)) {
      kept = known.detach();
    }
  }
  return msg::find_property(*kept, name);
}

Result<void> Message::set_routing_id(std::uint32_t id) noexcept {
  if (id == 0) {
    return Error(Errc::invalid_argument, "a routing id is not zero");
  }
  if (!tagged()) {
    sender_.origin.routing_id = id;
    return {};
  }
  return replace_tag(group(), {origin().peer, id});
}

Result<void> Message::check_group(std::string_view group) noexcept {
  if (group.size() > kGroupMax || group.find('\0') != std::string_view::npos) {
    return Error(Errc::invalid_argument, "a group is at most 255 bytes other than zero");
  }
  return {};
}

Result<void> Message::set_group(std::string_view group) noexcept {
  WEFT_TRY(check_group(group));
  return group.empty() && !tagged() ? Result<void>() : replace_tag(group, origin());
}

// The old tag stays as it is: others may share it.
Result<void> Message::replace_tag(std::string_view group, Origin origin) noexcept {
  Tag* const made = Tag::make(origin, group);
  if (made == nullptr) {
    return Error(Errc::resource_exhausted, "no memory for a message");
  }
  if (tagged()) {
    if (mem::Buffer* const kept = sender_.tag->properties.load(std::memory_order_acquire); kept != nullptr) {
      kept->add_reference();
      made->properties.store(kept, std::memory_order_release);
    }
    drop_tag();
  }
  adopt_tag(made);
  return {};
}

void Message::share_sender(const Message& other) noexcept {
  if (tagged()) {
    drop_tag();
  }
  if (other.tagged()) {
    other.sender_.tag->add_reference();
    adopt_tag(other.sender_.tag);
  } else {
    sender_.origin = other.sender_.origin;
  }
}

void Message::adopt_tag(Tag* tag) const noexcept {
  sender_.tag = tag;
  kind_ = is_large() ? Kind::large_tagged : Kind::small_tagged;
}

void Message::release_with_tag() noexcept {
  drop_tag();
  if (is_large()) {
    storage_.large.buffer->release();
  }
}

void Message::drop_tag() noexcept {
  Tag* const tag = sender_.tag;
  sender_.origin = tag->origin;
  kind_ = is_large() ? Kind::large : Kind::small;
  tag->release();
}

std::string_view Message::tagged_group() const noexcept { return sender_.tag->group(); }
Message::Origin Message::tagged_origin() const noexcept { return sender_.tag->origin; }

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
  if (tagged()) [[unlikely]] {
    drop_tag();
  }
  mem::Buffer* buffer = storage_.large.buffer;
  kind_ = Kind::small;
  size_ = 0;
  return buffer;
}

}  // namespace weft
