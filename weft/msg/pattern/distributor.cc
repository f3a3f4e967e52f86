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
  std::uint64_t missed = 0;
  for (Pipe* pipe : chosen_) {
    if (shared == nullptr) [[likely]] {
      Outbound copy{part.bytes, nullptr, false};
      missed += pipe->try_send(copy, wide) ? 0 : 1;
    } else {
      Message share = shared->share();
      Outbound copy{share.bytes(), &share, false};
      missed += pipe->try_send(copy, wide) ? 0 : 1;
    }
  }
  if (missed != 0) {
    chosen_.front()->drops().dropped_full += missed;
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
      return Error(Errc::resource_exhausted, "no memory for a message");
    }
    part.bytes = owned.bytes();
    send_single(part, &owned);
    return {};
  }
  Cell cell;
  if (!make_cell(cell, part)) {
    return Error(Errc::resource_exhausted, "no memory for a message part");
  }
  staged_.push_back(cell);
  in_message_ = part.more;
  if (part.more) {
    return {};
  }
  send_parts(staged_, chosen_);
  staged_.clear();
  return {};
}

void Distributor::send_parts(std::span<Cell> parts, std::span<Pipe* const> to) {
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
    pipe->send_parts(copies_, to.size() > kWide, false);
  }
  for (Cell& part : parts) {
    part.release();
  }
}

}  // namespace weft::msg
