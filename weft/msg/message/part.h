// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <new>
#include <type_traits>
#include <vector>

#include "weft/base/bytes.h"
#include "weft/base/error.h"
#include "weft/base/filter.h"
#include "weft/base/time.h"
#include "weft/mem/buffer.h"
#include "weft/msg/message/message.h"

namespace weft::msg {

// Cell: one message part, or one subscription, in a pipe's ring. Trivially copyable; a cell that holds a buffer owns
// one reference. Up to kInlineMax payload bytes lie inside, so that small messages need no pooled buffer.
struct Cell {
  static constexpr std::size_t kInlineMax = 112;
  enum class Kind : std::uint8_t { small, large, subscribe, cancel };
  struct Large {
    mem::Buffer* buffer;
    const std::uint8_t* data;
    std::size_t size;
  };

  Kind kind;
  bool more;
  bool topic_is_large;  // subscribe and cancel: which member of `body` holds the topic
  std::uint8_t size;
  FilterKind filter_kind;  // subscribe and cancel
  union {
    std::uint8_t small[kInlineMax];
    Large large;
  } body;

  [[nodiscard]] bool is_large() const noexcept { return kind == Kind::large || topic_is_large; }
  [[nodiscard]] bool is_message() const noexcept { return kind <= Kind::large; }
  [[nodiscard]] Bytes bytes() const noexcept {
    return is_large() ? Bytes(body.large.data, body.large.size) : Bytes(body.small, size);
  }
  void release() noexcept {
    if (is_large()) {
      body.large.buffer->release();
    }
  }
  // Copies only the bytes in use, and up to 15 more.
  void copy_to(Cell& target) const noexcept {
    target.kind = kind;
    target.more = more;
    target.topic_is_large = topic_is_large;
    target.size = size;
    if (is_large()) {
      target.body.large = body.large;
    } else {
      constexpr std::size_t kStep = 16;
      static_assert(kInlineMax % kStep == 0);
      for (std::size_t at = 0; at < size; at += kStep) {
        std::memcpy(target.body.small + at, body.small + at, kStep);
      }
    }
  }
};
static_assert(sizeof(Cell) <= 128 && std::is_trivially_copyable_v<Cell>);

// The longest time for which a call keeps its baton to spin for the peer while large parts move.
inline constexpr Duration kAwaitLongest = std::chrono::milliseconds(20);

// Outbound: one part that a caller sends: plain bytes, or a message whose buffer may be taken over.
struct Outbound {
  Bytes bytes;
  Message* message = nullptr;  // null: the bytes must be copied
  bool more = false;
  bool waits = false;  // the call may wait; SocketCore::send() sets it
  // The call's deadline. Instant::min(): by the option send_timeout; the first wait sets it.
  Instant deadline = Instant::min();
  bool keep = false;     // PUB, XPUB: would_block instead of dropping the message for a full peer, as xpub_no_drop
  bool relayed = false;  // a proxy passes it on: the bounds of its sender and of its receiver are enough

  [[nodiscard]] bool external() const noexcept { return message != nullptr && message->external(); }
};

// Fills `cell` from `part`; takes over the message's buffer if it is external, or for more than kInlineMax bytes. False
// when memory ran out: the part is unchanged.
[[nodiscard]] inline bool make_cell(Cell& cell, Outbound& part) noexcept {
  cell.more = part.more;
  cell.topic_is_large = false;
  if (part.bytes.size() <= Cell::kInlineMax && !part.external()) [[likely]] {
    cell.kind = Cell::Kind::small;
    cell.size = static_cast<std::uint8_t>(part.bytes.size());
    // If GCC infers that a size is small but not its value, it copies by `rep movs`: 13 ns for 64 bytes, memcpy 3.
    std::size_t size = part.bytes.size();
    asm("" : "+r"(size));
    copy_bytes(cell.body.small, part.bytes.first(size));
    return true;
  }
  mem::Buffer* buffer = part.message != nullptr ? part.message->release_buffer() : nullptr;
  const std::uint8_t* data = part.bytes.data();
  if (buffer == nullptr) {
    buffer = mem::Buffer::make(part.bytes.size());
    if (buffer == nullptr) {
      return false;
    }
    copy_bytes(buffer->data(), part.bytes);
    data = buffer->data();
  }
  cell.kind = Cell::Kind::large;
  cell.body.large = {buffer, data, part.bytes.size()};
  return true;
}

// Whether `cells` takes one more without memory; gets the memory.
[[nodiscard]] inline bool make_room(std::vector<Cell>& cells) noexcept {
  if (cells.size() < cells.capacity()) {
    return true;
  }
  try {
    cells.reserve(std::max<std::size_t>(4, 2 * cells.size()));
  } catch (const std::bad_alloc&) {
    return false;
  }
  return true;
}

// Appends `part`, as make_cell(). False when memory ran out: nothing changed.
[[nodiscard]] inline bool append_cell(std::vector<Cell>& cells, Outbound& part) noexcept {
  Cell cell;
  if (!make_room(cells) || !make_cell(cell, part)) {
    return false;
  }
  cells.push_back(cell);
  return true;
}
// Undoes append_cell(): the part has its buffer again.
inline void take_cell_back(std::vector<Cell>& cells, Outbound& part) noexcept {
  const Cell& cell = cells.back();
  if (cell.is_large() && part.message != nullptr) {
    part.message->assign(cell.body.large.buffer, part.bytes);
  } else if (cell.is_large()) {
    cell.body.large.buffer->release();
  }
  cells.pop_back();
}

// Offered: a pipe's answer to a message that was offered to it. Converts to true if the pipe took it; otherwise nothing
// changed.
class Offered {
 public:
  enum Answer : std::uint8_t { taken, full, no_memory };
  constexpr Offered(Answer answer) noexcept : answer_(answer) {}  // NOLINT(google-explicit-constructor)
  [[nodiscard]] constexpr explicit operator bool() const noexcept { return answer_ == taken; }
  [[nodiscard]] constexpr bool lacks_memory() const noexcept { return answer_ == no_memory; }

 private:
  Answer answer_;
};

// The errors for a call that found no memory.
inline constexpr Error kNoMemoryToSend(Errc::resource_exhausted, "no memory for a message");
inline constexpr Error kNoMemoryToReceive(Errc::resource_exhausted, "no memory for a received message");

// FrameView: a received part that has not been taken yet. Valid until the caller pops or unpeeks the pipe.
struct FrameView {
  Bytes bytes;
  bool more = false;
  mem::Buffer* slice_of = nullptr;  // shareable: taking adds a reference
  Cell* cell = nullptr;             // a cell whose buffer may be taken over
  Message::Origin origin{};         // the sender
};

// Inbound: the target of a received part: a Message, or the caller's bytes, which take as much as fits.
struct Inbound {
  Message* message = nullptr;
  MutableBytes target;

  std::size_t size = 0;  // of the part, also when `target` was smaller
  bool more = false;

  // False when memory ran out: the part stays in the pipe.
  [[nodiscard]] bool take(FrameView& view) noexcept {
    size = view.bytes.size();
    more = view.more;
    if (message == nullptr) {
      copy_bytes(target.data(), view.bytes.first(size < target.size() ? size : target.size()));
      return true;
    }
    if (!take_into_message(view)) {
      return false;
    }
    message->set_origin(view.origin);
    return true;
  }

 private:
  // Smaller slices are copied, so that a small message never pins a large block.
  static constexpr std::size_t kSliceMin = 4096;

  bool take_into_message(FrameView& view) noexcept {
    if (view.cell != nullptr && view.cell->kind == Cell::Kind::large) {
      message->assign(view.cell->body.large.buffer, view.bytes);
      view.cell->kind = Cell::Kind::small;  // the message has its reference now
      view.cell->size = 0;
      message->set_more(view.more);
      return true;
    }
    if (view.slice_of != nullptr && view.bytes.size() >= kSliceMin) {
      view.slice_of->add_reference();
      message->assign(view.slice_of, view.bytes);
      message->set_more(view.more);
      return true;
    }
    if (!message->assign_copy(view.bytes)) {
      return false;
    }
    message->set_more(view.more);
    return true;
  }
};

}  // namespace weft::msg
