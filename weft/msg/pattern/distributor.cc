// SPDX-License-Identifier: MIT
#include "weft/msg/pattern/distributor.h"

#include <algorithm>
#include <new>

namespace weft::msg {

void Distributor::forget_staged() noexcept {
  for (Cell& cell : staged_) {
    cell.release();
  }
  staged_.clear();
}

void Distributor::send_single(Outbound& part, const Message* shared) noexcept {
  const bool wide = chosen_.size() > kWide;
  std::uint64_t full = 0;
  std::uint64_t no_memory = 0;
  for (Pipe* pipe : chosen_) {
    Offered offered = Offered::taken;
    if (shared == nullptr) [[likely]] {
      Outbound copy{part.bytes, nullptr, false};
      offered = pipe->try_send(copy, wide);
    } else {
      Message share = shared->share();
      Outbound copy{share.bytes(), &share, false};
      offered = pipe->try_send(copy, wide);
    }
    if (!offered) [[unlikely]] {
      ++(offered.lacks_memory() ? no_memory : full);
    }
  }
  if (full + no_memory != 0) {
    MessageDrops& drops = chosen_.front()->drops();
    drops.dropped_full += full;
    drops.dropped_no_memory += no_memory;
  }
}

Result<void> Distributor::send(Outbound& part) {
  if (!in_message_ && !part.more) [[likely]] {
    if ((part.bytes.size() <= Cell::kInlineMax && !part.external()) || chosen_.empty()) {
      send_single(part, nullptr);
      return {};
    }
    Message owned;
    if (part.message != nullptr) {
      owned = std::move(*part.message);
    } else if (!owned.assign_copy(part.bytes)) {
      return kNoMemoryToSend;
    }
    part.bytes = owned.bytes();
    send_single(part, &owned);
    return {};
  }
  if (!reserve(staged_.size() + 1) || !append_cell(staged_, part)) {
    return kNoMemoryToSend;
  }
  in_message_ = part.more;
  if (part.more) {
    return {};
  }
  send_parts(staged_, chosen_);
  staged_.clear();
  return {};
}

bool Distributor::reserve(std::size_t parts) noexcept {
  constexpr std::size_t kFirst = 8;
  if (copies_.capacity() >= parts) [[likely]] {
    return true;
  }
  try {
    const std::size_t room = std::max(parts + parts / 2, kFirst);
    staged_.reserve(room);
    copies_.reserve(room);  // the last, because it has the size
  } catch (const std::bad_alloc&) {
    return false;
  }
  return true;
}

void Distributor::send_parts(std::span<Cell> parts, std::span<Pipe* const> to) noexcept {
  for (Pipe* pipe : to) {
    if (!pipe->writable()) {
      ++pipe->drops().dropped_full;
      continue;
    }
    copies_.assign(parts.begin(), parts.end());
    for (Cell& copy : copies_) {
      if (copy.is_large()) {
        copy.body.large.buffer->add_reference();
      }
    }
    if (!pipe->send_parts(copies_, to.size() > kWide, nullptr)) {
      for (Cell& copy : copies_) {
        copy.release();
      }
      ++pipe->drops().dropped_no_memory;
    }
  }
  for (Cell& part : parts) {
    part.release();
  }
}

}  // namespace weft::msg
