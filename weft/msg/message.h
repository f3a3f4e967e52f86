// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "weft/base/bytes.h"
#include "weft/base/result.h"
#include "weft/mem/buffer.h"

namespace weft {

// Message: one part of a message: its bytes, and whether more parts follow.
// Owner: a move-only value. Affinity: one thread at a time; it may move between threads.
// Cost: up to kInlineMax bytes live inside; larger ones hold a reference to a pooled buffer, or to a slice of the block
// they were read into. Moving copies 64 bytes.
class Message {
 public:
  static constexpr std::size_t kInlineMax = 48;

  Message() noexcept : kind_(Kind::small), size_(0), more_(false), storage_{} {}
  // Copies. resource_exhausted when memory ran out.
  [[nodiscard]] static Result<Message> copy_of(Bytes bytes);
  [[nodiscard]] static Result<Message> copy_of(std::string_view text) { return copy_of(as_bytes(text)); }
  // Uninitialised, to be filled through mutable_bytes().
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
    return kind_ == Kind::small ? Bytes(storage_.small, size_) : Bytes(storage_.large.data, storage_.large.size);
  }
  [[nodiscard]] std::string_view text() const noexcept { return as_text(bytes()); }
  [[nodiscard]] std::size_t size() const noexcept { return kind_ == Kind::small ? size_ : storage_.large.size; }
  [[nodiscard]] bool empty() const noexcept { return size() == 0; }

  // Writable only while nobody else can see the bytes; null otherwise (a slice of a shared block).
  [[nodiscard]] MutableBytes mutable_bytes() noexcept;

  // Another handle on the same bytes: small ones are copied, large ones shared.
  [[nodiscard]] Message share() const noexcept;

  [[nodiscard]] bool shared() const noexcept { return kind_ == Kind::large && !storage_.large.buffer->sole_owner(); }

  [[nodiscard]] bool more() const noexcept { return more_; }
  void set_more(bool more) noexcept { more_ = more; }

  // What is known of the peer that sent a received message: "Socket-Type", "Identity" (or "Routing-Id"),
  // "Peer-Address", "User-Id", and whatever else the peer or an authenticator said. Zero-terminated; null: nothing by
  // that name, or the message did not come over a connection. Valid as long as the connection, and a while longer
  // (peer_properties.h).
  [[nodiscard]] const char* peer_property(std::string_view name) const noexcept;

  // For whoever keeps messages in foreign memory: a number that stays with the object, whatever moves in or out of it.
  [[nodiscard]] std::uint32_t mark() const noexcept { return mark_; }
  void set_mark(std::uint32_t mark) noexcept { mark_ = mark; }

  void set_peer(std::uint64_t peer) noexcept { peer_ = peer; }

  // For the layers below the API: the buffer reference moves in or out.
  void assign(mem::Buffer* buffer, Bytes bytes) noexcept;  // adopts one reference
  [[nodiscard]] mem::Buffer* release_buffer() noexcept;    // null when small; the message is empty afterwards
  bool assign_copy(Bytes bytes) noexcept;                  // false when memory ran out; then empty

 private:
  enum class Kind : std::uint8_t { small, large };
  struct Large {
    const std::uint8_t* data;
    std::size_t size;
    mem::Buffer* buffer;
  };

  void reset() noexcept {
    if (kind_ == Kind::large) {
      storage_.large.buffer->release();
    }
    kind_ = Kind::small;
    size_ = 0;
  }
  void take(Message& other) noexcept {
    kind_ = other.kind_;
    size_ = other.size_;
    more_ = other.more_;
    storage_ = other.storage_;
    peer_ = other.peer_;
    other.kind_ = Kind::small;
    other.size_ = 0;
  }

  Kind kind_;
  std::uint8_t size_;
  bool more_;
  std::uint32_t mark_ = 0;
  union {
    std::uint8_t small[kInlineMax];
    Large large;
  } storage_;
  std::uint64_t peer_ = 0;  // msg::PeerId
};
static_assert(sizeof(Message) <= 64);

}  // namespace weft
