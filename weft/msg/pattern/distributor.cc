// SPDX-License-Identifier: MIT
#include "weft/msg/pattern/distributor.h"

namespace weft::msg {

void Distributor::forget_staged() noexcept {
  for (Cell& cell : staged_) {
    cell.release();
  }
  staged_.clear();
}

void Distributor::send_single(Outbound& part, const Message* shared) noexcept {
  const bool wide = chosen_.size() > kWide;
  for (Pipe* pipe : chosen_) {
    if (shared == nullptr) [[likely]] {
      Outbound copy{part.bytes, nullptr, false};
      pipe->dropped += pipe->try_send(copy, wide) ? 0 : 1;
    } else {
      Message share = shared->share();
      Outbound copy{share.bytes(), &share, false};
      pipe->dropped += pipe->try_send(copy, wide) ? 0 : 1;
    }
  }
}

Result<void> Distributor::send(Outbound& part) {
  if (!in_message_ && !part.more) [[likely]] {
    if (part.bytes.size() <= Cell::kInlineMax || chosen_.empty()) {
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
  if (!append_cell(staged_, part)) {
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

// Whether copies_ holds references of its own to `parts`; false when memory ran out.
bool Distributor::copy(std::span<const Cell> parts) noexcept {
  copies_.clear();
  for (const Cell& part : parts) {
    if (!make_room(copies_)) {
      return false;
    }
    copies_.push_back(part);
  }
  for (Cell& copy : copies_) {
    if (copy.is_large()) {
      copy.body.large.buffer->add_reference();
    }
  }
  return true;
}

void Distributor::send_parts(std::span<Cell> parts, std::span<Pipe* const> to) noexcept {
  for (Pipe* pipe : to) {
    if (!pipe->writable() || !copy(parts)) {
      ++pipe->dropped;
      continue;
    }
    if (!pipe->send_parts(copies_, to.size() > kWide, false)) {
      for (Cell& copy : copies_) {
        copy.release();
      }
      ++pipe->dropped;
    }
  }
  for (Cell& part : parts) {
    part.release();
  }
}

}  // namespace weft::msg
