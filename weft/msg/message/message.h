// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "weft/base/bytes.h"
#include "weft/base/result.h"
#include "weft/mem/buffer.h"

namespace weft {

// Message: one part of a message: its bytes, and whether more parts follow.
// Owner: a move-only value. Affinity: one thread at a time; it may move between threads.
// Cost: up to kInlineMax bytes are inside the object. A larger message holds a reference to a pooled buffer, or to a
// slice of the block into which its bytes were read. A move copies 64 bytes. A group takes a buffer of its own.
class Message {
 public:
  static constexpr std::size_t kInlineMax = 48;
  static constexpr std::size_t kGroupMax = 255;

  Message() noexcept : kind_(Kind::small), size_(0), more_(false), storage_{} {}
  // Copies the text. Throws std::bad_alloc if there is no memory.
  explicit Message(std::string_view text);
  // Copies the bytes. Fails with resource_exhausted if there is no memory.
  [[nodiscard]] static Result<Message> copy_of(Bytes bytes);
  [[nodiscard]] static Result<Message> copy_of(std::string_view text) { return copy_of(as_bytes(text)); }
  // Uninitialised. The caller fills the bytes through mutable_bytes().
  [[nodiscard]] static Result<Message> with_size(std::size_t size);

  Message(Message&& other) noexcept { take(other); }
  Message& operator=(Message&& other) noexcept {
    if (this != &other) {
      reset();
      take(other);
    }
    return *this;
  }
  ~Message() { reset(); }

  [[nodiscard]] Bytes bytes() const noexcept {
    return is_large() ? Bytes(storage_.large.data, storage_.large.size) : Bytes(storage_.small, size_);
  }
  [[nodiscard]] std::string_view text() const noexcept { return as_text(bytes()); }
  [[nodiscard]] std::string to_string() const { return std::string(text()); }
  [[nodiscard]] std::size_t size() const noexcept { return is_large() ? storage_.large.size : size_; }
  [[nodiscard]] bool empty() const noexcept { return size() == 0; }

  // Returns the bytes for writing while no other handle refers to them; otherwise null (a slice of a shared block).
  [[nodiscard]] MutableBytes mutable_bytes() noexcept;

  // Returns another handle on the same bytes. It copies small ones and shares large ones.
  [[nodiscard]] Message share() const noexcept;

  // Whether another handle may refer to the same bytes; always true for constant bytes.
  [[nodiscard]] bool shared() const noexcept {
    return is_large() && (!storage_.large.buffer->sole_owner() || storage_.large.buffer->constant());
  }

  // The bytes belong to the application. A queue passes them on without a copy, so that the application's callback runs
  // after the last handle.
  [[nodiscard]] bool external() const noexcept { return is_large() && storage_.large.buffer->external(); }

  [[nodiscard]] bool more() const noexcept { return more_; }
  void set_more(bool more) noexcept { more_ = more; }

  // Returns a property of the peer that sent a received message: "Socket-Type", "Identity" (or "Routing-Id"),
  // "Peer-Address", "User-Id", and every other one that the peer or an authenticator named. Zero-terminated. Valid as
  // long as this message, the message that this one is moved to, or a copy that was made after the call. Returns null
  // if there is no such property, if the message did not come over a connection, or if there is no memory. Read the
  // first property of a message while its connection lasts or soon after: the process keeps 4 MiB of properties of
  // ended connections (peer_properties.h).
  [[nodiscard]] const char* peer_property(std::string_view name) const noexcept;

  // SERVER and PEER: the number of the peer that the message came from or goes to. Valid while that peer is connected.
  // 0: no peer.
  [[nodiscard]] std::uint32_t routing_id() const noexcept { return origin().routing_id; }
  Result<void> set_routing_id(std::uint32_t id) noexcept;  // errors: invalid_argument (0); resource_exhausted

  // RADIO and DISH: the group of a message: up to kGroupMax bytes, none of them zero; zero-terminated.
  [[nodiscard]] std::string_view group() const noexcept { return tagged() ? tagged_group() : std::string_view(""); }
  // fails with invalid_argument if it cannot be a group
  [[nodiscard]] static Result<void> check_group(std::string_view group) noexcept;
  Result<void> set_group(std::string_view group) noexcept;  // errors: invalid_argument; resource_exhausted

  // For code that keeps messages in foreign memory (the C API): a number that stays with the object. Moving a message
  // in or out does not move the number.
  [[nodiscard]] std::uint32_t mark() const noexcept { return mark_; }
  void set_mark(std::uint32_t mark) noexcept { mark_ = mark; }

  // The sender of a received message.
  struct Origin {
    std::uint32_t peer = 0;  // msg::PeerId
    std::uint32_t routing_id = 0;
  };
  [[nodiscard]] Origin origin() const noexcept { return tagged() ? tagged_origin() : sender_.origin; }

  // For the layers below the API: these functions move a buffer reference in or out.
  void assign(mem::Buffer* buffer, Bytes bytes) noexcept;  // adopts one reference
  [[nodiscard]] mem::Buffer* release_buffer() noexcept;    // null for a small message; the message is empty afterwards
  bool assign_copy(Bytes bytes) noexcept;  // returns false if there is no memory; then the message is empty
  // The three functions above drop the group and the properties. Call these two after one of them:
  void set_origin(Origin origin) noexcept { sender_.origin = origin; }
  void share_sender(const Message& other) noexcept;  // the origin and the group of `other`

 private:
  // The first bit: the bytes are in a buffer. The second bit: there is a tag.
  enum class Kind : std::uint8_t { small, large, small_tagged, large_tagged };
  // The origin, the group, and the peer's properties, of one message and its copies: for messages that need more than
  // the origin.
  struct Tag;
  struct Large {
    const std::uint8_t* data;
    std::size_t size;
    mem::Buffer* buffer;
  };

  [[nodiscard]] bool is_large() const noexcept { return (static_cast<unsigned>(kind_) & 1U) != 0; }
  [[nodiscard]] bool tagged() const noexcept { return (static_cast<unsigned>(kind_) & 2U) != 0; }
  [[nodiscard]] std::string_view tagged_group() const noexcept;
  [[nodiscard]] Origin tagged_origin() const noexcept;
  [[gnu::noinline]] void replace(mem::Buffer* buffer, Bytes bytes) noexcept;  // so that assign() saves no registers
  [[gnu::cold]] void release_with_tag() noexcept;
  void drop_tag() noexcept;                 // requires tagged()
  void adopt_tag(Tag* tag) const noexcept;  // takes over a reference; requires !tagged()
  [[nodiscard]] Result<void> replace_tag(std::string_view group, Origin origin) noexcept;

  void reset() noexcept {
    if (kind_ != Kind::small) {
      if (kind_ == Kind::large) [[likely]] {
        storage_.large.buffer->release();
      } else {
        release_with_tag();
      }
    }
    kind_ = Kind::small;
    size_ = 0;
  }
  void take(Message& other) noexcept {
    kind_ = other.kind_;
    size_ = other.size_;
    more_ = other.more_;
    storage_ = other.storage_;
    sender_ = other.sender_;
    other.kind_ = Kind::small;
    other.size_ = 0;
    other.sender_.origin = {};
  }

  mutable Kind kind_;  // mutable like sender_
  std::uint8_t size_;
  bool more_;
  std::uint32_t mark_ = 0;
  union {
    std::uint8_t small[kInlineMax];
    Large large;
  } storage_;
  union Sender {
    Origin origin;
    Tag* tag;  // valid if tagged()
  };
  mutable Sender sender_{};  // the first peer_property() adds a tag
};
static_assert(sizeof(Message) <= 64);

}  // namespace weft
