// SPDX-License-Identifier: MIT
#include "weft/zmtp/datagram_codec.h"

#include <algorithm>

#include "weft/base/assert.h"

namespace weft::zmtp {

void IncomingFrames::put_grouped(Bytes datagram, std::uint64_t part_max) noexcept {
  if (datagram.empty() || datagram.size() - 1 < datagram[0]) {
    put_malformed();
    return;
  }
  const std::size_t length = datagram[0];
  put(datagram.subspan(1, length), datagram.subspan(1 + length), part_max);
}

void IncomingFrames::put_addressed(Bytes address, Bytes body, std::uint64_t part_max) noexcept {
  put(address, body, part_max);
}

void IncomingFrames::put_malformed() noexcept {
  body_ = {};
  at_ = 0;
  size_ = write_frame_header(prefix_.data(), 0, 0);
}

void IncomingFrames::put(Bytes head, Bytes body, std::uint64_t part_max) noexcept {
  if (head.size() > std::min<std::uint64_t>(kHeadMax, part_max) || body.size() > part_max) {
    put_malformed();
    return;
  }
  at_ = 0;
  size_ = write_frame_header(prefix_.data(), kMore, head.size());
  copy_bytes(prefix_.data() + size_, head);
  size_ += head.size();
  size_ += write_frame_header(prefix_.data() + size_, 0, body.size());
  body_ = body;
}

std::size_t IncomingFrames::take(MutableBytes into) noexcept {
  const std::size_t from_prefix = std::min(size_ - at_, into.size());
  copy_bytes(into.data(), Bytes(prefix_.data() + at_, from_prefix));
  at_ += from_prefix;
  const std::size_t from_body = std::min(body_.size(), into.size() - from_prefix);
  copy_bytes(into.data() + from_prefix, body_.first(from_body));
  body_ = body_.subspan(from_body);
  return from_prefix + from_body;
}

bool OutgoingFrames::next(Frame& frame) noexcept {
  while (!from_.empty() && at_ == from_[0].size()) {
    from_ = from_.subspan(1);
    at_ = 0;
  }
  if (from_.empty()) {
    return false;
  }
  Bytes rest = from_[0].subspan(at_);
  const auto status = parse_frame_header(rest, frame.header);
  WEFT_ASSERT(status == ParseStatus::complete);
  const auto size = static_cast<std::size_t>(frame.header.body_size);
  const std::size_t whole = frame.header.header_size + size;
  taken_ += whole;
  if (whole <= rest.size()) {
    frame.header_and_body = rest.first(whole);
    frame.body = rest.subspan(frame.header.header_size, size);
    at_ += whole;
    return true;
  }
  WEFT_ASSERT(rest.size() == frame.header.header_size && from_.size() > 1 && from_[1].size() >= size);
  from_ = from_.subspan(1);
  frame.header_and_body = {};
  frame.body = from_[0].first(size);
  at_ = size;
  return true;
}

}  // namespace weft::zmtp
