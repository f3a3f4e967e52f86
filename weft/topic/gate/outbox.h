// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/base/bytes.h"

namespace weft::topic {

// Outbox: operations of a gate, one after the other in segments of bytes.
// Owner: a gate, which guards it. Affinity: one thread at a time. Cost: a copy of the bytes; an allocation for each
// segment of 64 KiB, unless a spare one is there, of 1 MiB at most. append() throws std::bad_alloc, and then nothing
// has changed.
// Invariants: each segment except the last one has operations; no operation crosses two segments.
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
    std::uint8_t* at = room_for(sizeof head + head.size());
    std::memcpy(at, &head, sizeof head);
    at += sizeof head;
    for (const Bytes part :
         {as_bytes(operation.subject), as_bytes(operation.reply), operation.headers, operation.body}) {
      at = std::copy(part.begin(), part.end(), at);
    }
    ++count_;
  }
  // The oldest operation, which pop() takes away. Requires !empty().
  [[nodiscard]] Operation front() const noexcept {
    Head head;
    const std::uint8_t* at = segments_.front().front();
    std::memcpy(&head, at, sizeof head);
    at += sizeof head;
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
    Segment& oldest = segments_.front();
    Head head;
    std::memcpy(&head, oldest.front(), sizeof head);
    oldest.read += sizeof head + head.size();
    bytes_ -= sizeof head + head.size();
    --count_;
    if (oldest.read != oldest.used) {
      return;
    }
    if (segments_.size() == 1 && oldest.capacity == kSegment) {
      oldest.read = oldest.used = 0;
      return;
    }
    if (oldest.capacity == kSegment && spares_.size() < spares_.capacity()) {
      spares_.push_back(std::move(oldest.bytes));
    }
    segments_.pop_front();
  }
  [[nodiscard]] bool empty() const noexcept { return count_ == 0; }
  [[nodiscard]] std::size_t count() const noexcept { return count_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  void swap(Outbox& other) noexcept {
    segments_.swap(other.segments_);
    spares_.swap(other.spares_);
    std::swap(bytes_, other.bytes_);
    std::swap(count_, other.count_);
  }

 private:
  static constexpr std::size_t kSegment = std::size_t{64} << 10;
  static constexpr std::size_t kSparesMax = 16;

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

  struct Segment {
    std::unique_ptr<std::uint8_t[]> bytes;
    std::size_t capacity = 0;
    std::size_t used = 0;
    std::size_t read = 0;

    [[nodiscard]] const std::uint8_t* front() const noexcept { return bytes.get() + read; }
  };

  // The place for so many bytes after the others, which count as written.
  [[nodiscard]] std::uint8_t* room_for(std::size_t size) {
    if (segments_.empty() || segments_.back().capacity - segments_.back().used < size) {
      add_segment(size);
    }
    Segment& newest = segments_.back();
    std::uint8_t* const place = newest.bytes.get() + newest.used;
    newest.used += size;
    bytes_ += size;
    return place;
  }
  void add_segment(std::size_t least) {
    spares_.reserve(kSparesMax);
    Segment segment;
    segment.capacity = std::max(least, kSegment);
    if (segment.capacity == kSegment && !spares_.empty()) {
      segment.bytes = std::move(spares_.back());
      spares_.pop_back();
    } else {
      segment.bytes = std::make_unique_for_overwrite<std::uint8_t[]>(segment.capacity);
    }
    if (!segments_.empty() && segments_.back().used == 0) {
      segments_.back() = std::move(segment);
    } else {
      segments_.push_back(std::move(segment));
    }
  }

  std::deque<Segment> segments_;
  std::vector<std::unique_ptr<std::uint8_t[]>> spares_;
  std::size_t bytes_ = 0;
  std::size_t count_ = 0;
};

}  // namespace weft::topic
