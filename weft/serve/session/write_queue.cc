// SPDX-License-Identifier: MIT
#include "weft/serve/session/write_queue.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

#include "weft/base/random.h"

namespace weft::serve {

namespace {
constexpr std::size_t kEndSize = sizeof(std::uint32_t);
constexpr std::size_t kAll = ~std::size_t{0};

std::size_t sum_of(std::span<const Bytes> parts) noexcept {
  std::size_t size = 0;
  for (const Bytes part : parts) {
    size += part.size();
  }
  return size;
}

void copy_parts(std::uint8_t* place, std::span<const Bytes> parts) noexcept {
  for (const Bytes part : parts) {
    copy_bytes(place, part);
    place += part.size();
  }
}
}  // namespace

// The segment of a frame with a key.
struct WriteQueue::Keyed : Segment {
  FrameKey key;
  Keyed* chain;  // the next one of its bucket
};

// A hash table in a block of its own. It has at least as many buckets as frames.
struct WriteQueue::Index {
  static constexpr std::size_t kBucketsMin = 8;

  std::size_t buckets;  // a power of two; they follow this struct
  std::size_t frames;

  [[nodiscard]] static Index* make(std::size_t buckets, ByteBudget::Share& budget) noexcept {
    mem::Buffer* const block = mem::Buffer::make(sizeof(Index) + buckets * sizeof(Keyed*));
    if (block == nullptr) {
      return nullptr;
    }
    if (!budget.take(block->capacity(), MemoryOwner::queues)) {
      block->release();
      return nullptr;
    }
    auto* const index = ::new (block->data()) Index{buckets, 0};
    std::uninitialized_fill_n(index->first(), buckets, nullptr);
    return index;
  }
  static void release(Index* index, ByteBudget::Share& budget) noexcept {
    mem::Buffer* const block = mem::Buffer::of(index);
    budget.give_back(block->capacity(), MemoryOwner::queues);
    block->release();
  }

  [[nodiscard]] Keyed** first() noexcept { return reinterpret_cast<Keyed**>(this + 1); }
  // The address is a seed: a peer that chooses keys of a program cannot choose those of one bucket.
  [[nodiscard]] Keyed*& bucket_of(FrameKey key) noexcept {
    const auto seed = reinterpret_cast<std::uintptr_t>(this);
    const std::uint64_t hash = mix_bits(mix_bits(static_cast<std::uint64_t>(key) ^ seed) + seed);
    return first()[hash & (buckets - 1)];
  }
  void add(Keyed& keyed) noexcept {
    Keyed*& bucket = bucket_of(keyed.key);
    keyed.chain = std::exchange(bucket, &keyed);
    ++frames;
  }
  void remove(Keyed& keyed) noexcept {
    Keyed** at = &bucket_of(keyed.key);
    while (*at != &keyed) {
      at = &(*at)->chain;
    }
    *at = keyed.chain;
    --frames;
  }
  void move_to(Index& larger) noexcept {
    for (std::size_t i = 0; i < buckets; ++i) {
      for (Keyed* keyed = first()[i]; keyed != nullptr;) {
        Keyed& moved = *std::exchange(keyed, keyed->chain);
        larger.add(moved);
      }
    }
  }
};

template <typename Kind>
Kind* WriteQueue::make_segment(std::size_t size, ByteBudget::Share& budget) noexcept {
  mem::Buffer* const block = mem::Buffer::make(sizeof(Kind) + size);
  if (block == nullptr) {
    return nullptr;
  }
  if (!budget.take(block->capacity(), MemoryOwner::queues)) {
    block->release();
    return nullptr;
  }
  auto* const segment = ::new (block->data()) Kind{};
  segment->bytes = block->data() + sizeof(Kind);
  return segment;
}

void WriteQueue::link(Segment& segment) noexcept {
  (tail_ == nullptr ? head_ : tail_->next) = &segment;
  tail_ = &segment;
}

std::uint8_t* WriteQueue::reserve(std::size_t size, ByteBudget::Share& budget) noexcept {
  // The first block is small and the next ones double. A connection whose bytes the kernel takes in time needs
  // one block.
  std::size_t block = kBlockMin;
  if (tail_ != nullptr) {
    const bool after_keyed = tail_->ends == nullptr && tail_->shared == nullptr;
    block = after_keyed ? kBlockAfterKeyed : std::clamp<std::size_t>(2 * std::size_t{tail_->end}, kBlockMin, kBlockMax);
  }
  const std::size_t needed = (size + kEndSize - 1) / kEndSize * kEndSize + kEndSize;
  auto* const segment = make_segment<Segment>(std::max(block - sizeof(Segment), needed), budget);
  if (segment == nullptr) {
    return nullptr;
  }
  link(*segment);
  const std::size_t capacity = (mem::Buffer::of(segment)->capacity() - sizeof(Segment)) / kEndSize * kEndSize;
  segment->ends = reinterpret_cast<std::uint32_t*>(segment->bytes + capacity);
  segment->limit = static_cast<std::uint32_t>(capacity);
  return segment->bytes;
}

bool WriteQueue::append_rest(std::span<const Bytes> parts, std::size_t skip, ByteBudget::Share& budget) noexcept {
  const bool begun = skip != 0;
  std::uint8_t* place = reserve(sum_of(parts) - skip, budget);
  if (place == nullptr) {
    return false;
  }
  for (Bytes part : parts) {
    const std::size_t skipped = std::min(skip, part.size());
    skip -= skipped;
    part = part.subspan(skipped);
    copy_bytes(place, part);
    place += part.size();
  }
  commit(static_cast<std::size_t>(place - tail_->bytes));
  tail_->begun = begun;
  return true;
}

bool WriteQueue::append_shared(HeldFrames& frames, mem::Buffer* buffer, Bytes frame,
                               ByteBudget::Share& budget) noexcept {
  HeldFrames::Held* const held = frames.hold(buffer);
  if (held == nullptr) {
    return false;
  }
  auto* const segment = make_segment<Segment>(0, budget);
  if (segment == nullptr) {
    HeldFrames::release(held);
    return false;
  }
  link(*segment);
  segment->shared = held;
  segment->bytes = const_cast<std::uint8_t*>(frame.data());  // the queue only reads it
  segment->end = static_cast<std::uint32_t>(frame.size());
  segment->frames = 1;
  size_ += frame.size();
  return true;
}

WriteQueue::Keyed* WriteQueue::find(FrameKey key) const noexcept {
  if (head_ == nullptr || head_->index == nullptr) {
    return nullptr;
  }
  Keyed* keyed = head_->index->bucket_of(key);
  while (keyed != nullptr && keyed->key != key) {
    keyed = keyed->chain;
  }
  return keyed;
}

std::size_t WriteQueue::size_of(const Keyed& keyed) noexcept { return keyed.end; }

// Writes the frame after the segment, if it fits there and is not shared. Otherwise the segment refers to it. Returns
// false, and changes nothing, if there is no memory, or the budget is spent.
bool WriteQueue::put(Keyed& segment, const KeyedFrame& frame, HeldFrames& frames) noexcept {
  mem::Buffer* const block = mem::Buffer::of(&segment);
  const std::size_t size = sum_of(frame.parts);
  HeldFrames::Held* held = nullptr;
  std::uint8_t* bytes = block->data() + sizeof(Keyed);
  if (frame.buffer != nullptr) {
    held = frames.hold(frame.buffer);
    bytes = const_cast<std::uint8_t*>(frame.parts[0].data());  // the queue only reads it
  } else if (size > block->capacity() - sizeof(Keyed)) {
    mem::Buffer* const larger = mem::Buffer::make(size);
    if (larger == nullptr) {
      return false;
    }
    copy_parts(larger->data(), frame.parts);
    held = frames.hold(larger);
    bytes = larger->data();
    larger->release();
  } else {
    copy_parts(bytes, frame.parts);
  }
  if (held == nullptr && bytes != block->data() + sizeof(Keyed)) {
    return false;
  }
  if (segment.shared != nullptr) {
    HeldFrames::release(segment.shared);
  }
  segment.shared = held;
  segment.bytes = bytes;
  segment.end = static_cast<std::uint32_t>(size);
  return true;
}

// Sets `index` to the index, with room for one more frame. Without a head it is not linked.
bool WriteQueue::make_index_room(Index*& index, ByteBudget::Share& budget) noexcept {
  index = head_ == nullptr ? nullptr : head_->index;
  if (index != nullptr && index->frames < index->buckets) {
    return true;
  }
  Index* const larger = Index::make(index == nullptr ? Index::kBucketsMin : 2 * index->buckets, budget);
  if (larger == nullptr) {
    return false;
  }
  if (index != nullptr) {
    index->move_to(*larger);
    Index::release(index, budget);
    head_->index = larger;
  }
  index = larger;
  return true;
}

bool WriteQueue::append_keyed(const KeyedFrame& frame, HeldFrames& frames, ByteBudget::Share& budget) noexcept {
  Index* index = nullptr;
  if (!make_index_room(index, budget)) {
    return false;
  }
  auto* const segment = make_segment<Keyed>(frame.buffer == nullptr ? sum_of(frame.parts) : 0, budget);
  if (segment == nullptr || !put(*segment, frame, frames)) {
    if (segment != nullptr) {
      release(segment, budget);
    }
    if (index->frames == 0) {
      Index::release(index, budget);
    }
    return false;
  }
  segment->frames = 1;
  segment->key = frame.key;
  segment->indexed = true;
  index->add(*segment);
  link(*segment);
  head_->index = index;
  size_ += segment->end;
  return true;
}

bool WriteQueue::replace(Keyed& older, const KeyedFrame& frame, HeldFrames& frames) noexcept {
  const std::size_t before = older.end;
  if (!put(older, frame, frames)) {
    return false;
  }
  size_ = size_ - before + older.end;
  return true;
}

void WriteQueue::forget(Segment& segment, ByteBudget::Share& budget) noexcept {
  if (!segment.indexed) {
    return;
  }
  segment.indexed = false;
  Index& index = *head_->index;
  index.remove(static_cast<Keyed&>(segment));
  if (index.frames == 0) {
    head_->index = nullptr;
    Index::release(&index, budget);
  }
}

std::size_t WriteQueue::gather(std::span<Bytes> into) const noexcept {
  std::size_t count = 0;
  for (const Segment* segment = head_; segment != nullptr && count < into.size(); segment = segment->next) {
    into[count++] = Bytes(segment->bytes + segment->begin, segment->end - segment->begin);
  }
  return count;
}

void WriteQueue::release(Segment* segment, ByteBudget::Share& budget) noexcept {
  if (segment->shared != nullptr) {
    HeldFrames::release(segment->shared);
  }
  mem::Buffer* const block = mem::Buffer::of(segment);
  budget.give_back(block->capacity(), MemoryOwner::queues);
  block->release();
}

void WriteQueue::pop(ByteBudget::Share& budget) noexcept {
  Segment* const segment = head_;
  forget(*segment, budget);
  head_ = segment->next;
  if (head_ == nullptr) {
    tail_ = nullptr;
  } else {
    head_->index = segment->index;
    if (segment->searched != segment) {
      head_->searched = segment->searched;
    }
  }
  release(segment, budget);
}

std::size_t WriteQueue::states_of(const Segment& segment) noexcept {
  std::size_t states = 0;
  for (std::uint32_t frame = segment.first; frame < segment.frames; ++frame) {
    states += is_state(segment, frame) ? 1 : 0;
  }
  return states;
}

void WriteQueue::advance(std::size_t bytes, ByteBudget::Share& budget) noexcept {
  size_ -= bytes;
  while (bytes != 0) {
    Segment& segment = *head_;
    const std::size_t left = segment.end - segment.begin;
    if (bytes >= left) {
      bytes -= left;
      states_ -= states_ == 0 ? 0 : states_of(segment);
      pop(budget);
      continue;
    }
    forget(segment, budget);
    segment.begin += static_cast<std::uint32_t>(bytes);
    segment.begun = true;
    while (end_of(segment, segment.first) <= segment.begin) {
      segment.begun = end_of(segment, segment.first) != segment.begin;
      states_ -= is_state(segment, segment.first) ? 1 : 0;
      ++segment.first;
    }
    return;
  }
}

bool WriteQueue::drop_from(Segment& segment, std::size_t wanted, Dropped& dropped) noexcept {
  // The frames before this offset stay.
  const std::uint32_t kept = segment.begun ? end_of(segment, segment.first) : segment.begin;
  std::uint32_t frame = segment.first + (segment.begun ? 1 : 0);
  std::uint32_t cut = kept;
  for (; frame < segment.frames && dropped.bytes < wanted; ++frame) {
    const std::uint32_t end = end_of(segment, frame);
    dropped.bytes += end - cut;
    dropped.states += is_state(segment, frame) ? 1 : 0;
    ++dropped.frames;
    cut = end;
  }
  if (cut == kept) {
    return false;
  }
  if (!segment.begun) {
    segment.begin = cut;
    segment.first = frame;
    return cut == segment.end;
  }
  // Move the rest of the begun frame up to the frames that stay; it then ends where the last dropped frame
  // ended.
  const std::uint32_t rest = kept - segment.begin;
  const std::uint32_t mark = is_state(segment, segment.first) ? kState : 0;
  std::memmove(segment.bytes + cut - rest, segment.bytes + segment.begin, rest);
  segment.begin = cut - rest;
  segment.first = frame - 1;
  segment.ends[-static_cast<std::ptrdiff_t>(frame)] = cut | mark;
  return false;
}

// Moves the frames that stay together, and gives the room of the others back.
bool WriteQueue::drop_state_from(Segment& segment, Dropped& dropped) noexcept {
  std::uint32_t frame = segment.first + (segment.begun ? 1 : 0);
  std::uint32_t from = segment.begun ? end_of(segment, segment.first) : segment.begin;
  std::uint32_t to = from;
  std::uint32_t kept = frame;
  for (; frame < segment.frames; ++frame) {
    const std::uint32_t end = end_of(segment, frame);
    const std::uint32_t size = end - from;
    if (is_state(segment, frame)) {
      ++dropped.frames;
      ++dropped.states;
      dropped.bytes += size;
    } else {
      if (to != from) {
        std::memmove(segment.bytes + to, segment.bytes + from, size);
        segment.ends[-static_cast<std::ptrdiff_t>(kept) - 1] = to + size;
      }
      to += size;
      ++kept;
    }
    from = end;
  }
  if (segment.ends != nullptr) {
    segment.limit += static_cast<std::uint32_t>((segment.frames - kept) * kEndSize);
    segment.frames = kept;
    segment.end = to;
  }
  return !segment.begun && to == segment.begin;
}

template <typename Drop>
WriteQueue::Dropped WriteQueue::drop_with(Segment* from, std::size_t wanted, std::size_t states,
                                          ByteBudget::Share& budget, const Drop& drop) noexcept {
  Dropped dropped;
  Segment* before = nullptr;
  for (Segment* segment = from; segment != nullptr && dropped.bytes < wanted && dropped.states < states;) {
    Segment* const next = segment->next;
    if (!drop(*segment, dropped)) {
      before = segment;
    } else if (before == nullptr) {
      pop(budget);
    } else {
      before->next = next;
      tail_ = tail_ == segment ? before : tail_;
      forget(*segment, budget);
      release(segment, budget);
    }
    segment = next;
  }
  size_ -= dropped.bytes;
  states_ -= dropped.states;
  return dropped;
}

WriteQueue::Dropped WriteQueue::drop_oldest(std::size_t wanted, ByteBudget::Share& budget) noexcept {
  const Dropped dropped = drop_with(head_, wanted, kAll, budget, [wanted](Segment& segment, Dropped& so_far) {
    return drop_from(segment, wanted, so_far);
  });
  if (head_ != nullptr) {
    head_->searched = nullptr;  // it may be one of those that have gone
  }
  return dropped;
}

std::size_t WriteQueue::drop_state(ByteBudget::Share& budget) noexcept {
  // A frame that was begun is the first one, and stays.
  const bool begun = states_ != 0 && head_->begun && is_state(*head_, head_->first);
  const std::size_t states = begun ? states_ - 1 : states_;
  if (states == 0) {
    return 0;
  }
  // The last segment of an earlier search keeps an event, unless it is the head now.
  Segment* const from = head_->searched != nullptr ? head_->searched : head_;
  const Dropped dropped = drop_with(from, kAll, states, budget, &drop_state_from);
  if (head_ != nullptr) {
    head_->searched = tail_;
  }
  return dropped.frames;
}

std::size_t WriteQueue::clear(ByteBudget::Share& budget) noexcept {
  std::size_t frames = 0;
  while (head_ != nullptr) {
    frames += head_->frames - head_->first;
    pop(budget);
  }
  size_ = states_ = 0;
  return frames;
}

}  // namespace weft::serve
