// SPDX-License-Identifier: MIT
#include "weft/serve/session/write_queue.h"

#include <algorithm>
#include <cstring>
#include <new>

namespace weft::serve {

namespace {
constexpr std::size_t kEndSize = sizeof(std::uint32_t);
constexpr std::size_t kAll = ~std::size_t{0};
}  // namespace

WriteQueue::Segment* WriteQueue::add_segment(std::size_t size, ByteBudget::Share& budget) noexcept {
  mem::Buffer* const block = mem::Buffer::make(sizeof(Segment) + size);
  if (block == nullptr) {
    return nullptr;
  }
  if (!budget.take(block->capacity(), MemoryOwner::queues)) {
    block->release();
    return nullptr;
  }
  auto* const segment = ::new (block->data()) Segment{};
  segment->bytes = block->data() + sizeof(Segment);
  (tail_ == nullptr ? head_ : tail_->next) = segment;
  tail_ = segment;
  return segment;
}

std::uint8_t* WriteQueue::reserve(std::size_t size, ByteBudget::Share& budget) noexcept {
  // The first block is small and the next ones double. A connection whose bytes the kernel takes in time needs
  // one block.
  std::size_t block = kBlockMin;
  if (tail_ != nullptr) {
    block = std::clamp<std::size_t>(2 * std::size_t{tail_->end}, kBlockMin, kBlockMax);
  }
  const std::size_t needed = (size + kEndSize - 1) / kEndSize * kEndSize + kEndSize;
  Segment* const segment = add_segment(std::max(block - sizeof(Segment), needed), budget);
  if (segment == nullptr) {
    return nullptr;
  }
  const std::size_t capacity = (mem::Buffer::of(segment)->capacity() - sizeof(Segment)) / kEndSize * kEndSize;
  segment->ends = reinterpret_cast<std::uint32_t*>(segment->bytes + capacity);
  segment->limit = static_cast<std::uint32_t>(capacity);
  return segment->bytes;
}

bool WriteQueue::append_rest(std::span<const Bytes> parts, std::size_t skip, ByteBudget::Share& budget) noexcept {
  const bool begun = skip != 0;
  std::size_t size = 0;
  for (const Bytes part : parts) {
    size += part.size();
  }
  std::uint8_t* place = reserve(size - skip, budget);
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
  Segment* const segment = add_segment(0, budget);
  if (segment == nullptr) {
    HeldFrames::release(held);
    return false;
  }
  segment->shared = held;
  segment->bytes = const_cast<std::uint8_t*>(frame.data());  // the queue only reads it
  segment->end = static_cast<std::uint32_t>(frame.size());
  segment->frames = 1;
  size_ += frame.size();
  return true;
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
  head_ = segment->next;
  if (head_ == nullptr) {
    tail_ = nullptr;
  } else if (segment->searched != segment) {
    head_->searched = segment->searched;
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
