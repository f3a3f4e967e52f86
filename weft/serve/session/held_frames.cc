// SPDX-License-Identifier: MIT
#include "weft/serve/session/held_frames.h"

#include <new>
#include <utility>

namespace weft::serve {

HeldFrames::Held* HeldFrames::hold(mem::Buffer* buffer) noexcept {
  Held* held = last_;
  if (held == nullptr || held->buffer != buffer) {
    const auto found = table_.find(buffer);
    held = found != table_.end() ? &found->second : add(buffer);
  }
  if (held != nullptr) {
    ++held->holders;
    last_ = held;
  }
  return held;
}

HeldFrames::Held* HeldFrames::add(mem::Buffer* buffer) noexcept {
  if (!budget_.take(buffer->capacity(), MemoryOwner::shared)) {
    return nullptr;
  }
  Held* added = nullptr;
  try {
    if (spare_.empty()) {
      added = &table_.try_emplace(buffer).first->second;
    } else {
      spare_.key() = buffer;
      added = &table_.insert(std::move(spare_)).position->second;
    }
  } catch (const std::bad_alloc&) {
    budget_.give_back(buffer->capacity(), MemoryOwner::shared);
    return nullptr;
  }
  buffer->add_reference();
  *added = {this, buffer, 0};
  return added;
}

void HeldFrames::let_go(Held& held) noexcept {
  if (last_ == &held) {
    last_ = nullptr;
  }
  mem::Buffer* const buffer = held.buffer;
  spare_ = table_.extract(buffer);
  budget_.give_back(buffer->capacity(), MemoryOwner::shared);
  buffer->release();
}

}  // namespace weft::serve
