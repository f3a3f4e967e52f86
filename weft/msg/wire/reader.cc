// SPDX-License-Identifier: MIT
#include "weft/msg/wire/reader.h"

#include <algorithm>
#include <cerrno>

namespace weft::msg {

void MessageReader::drop_block() noexcept {
  if (block_ != nullptr) {
    block_->release();
    block_ = nullptr;
  }
  begin_ = end_ = 0;
}

void MessageReader::reset() noexcept {
  opened_ = false;
  drop_block();
  if (big_ != nullptr) {
    big_->release();
    big_ = nullptr;
  }
  after_big_ = false;
}

void MessageReader::set_cipher(zmtp::Mechanism* cipher, zmtp::Framing framing) noexcept {
  cipher_ = cipher;
  framing_ = framing;
  recodes_ = cipher != nullptr || framing != zmtp::Framing::v3;
  opened_ = false;
}

Bytes MessageReader::unparsed() const noexcept {
  return block_ == nullptr ? Bytes() : Bytes(block_->data() + begin_, end_ - begin_);
}

// `status`: the result of parsing frame.header.
inline MessageReader::Step MessageReader::find_body(Frame& frame, Bytes input, ParseStatus status) noexcept {
  switch (status) {
    case ParseStatus::need_more: return Step::need_more;
    case ParseStatus::malformed: return Step::malformed;
    case ParseStatus::complete: break;
  }
  if (frame.header.body_size > input.size() - frame.header.header_size) {
    return Step::header_only;
  }
  frame.body = input.subspan(frame.header.header_size, static_cast<std::size_t>(frame.header.body_size));
  frame.block = end_ < kSharedMin ? nullptr : block_;
  frame_size_ = frame.header.header_size + frame.body.size();
  return Step::frame;
}

MessageReader::Step MessageReader::look(Frame& frame) noexcept {
  if (big_ != nullptr) {
    frame.header = big_header_;
    if (big_filled_ < big_header_.body_size) {
      return Step::header_only;
    }
    frame.body = Bytes(big_->data(), big_filled_);
    frame.block = big_;
    return cipher_ == nullptr ? Step::frame : open(frame, big_->data());
  }
  if (begin_ == end_) {
    return Step::need_more;
  }
  const Bytes input(block_->data() + begin_, end_ - begin_);
  if (recodes_) [[unlikely]] {
    return find_recoded_frame(frame, input);
  }
  return find_body(frame, input, zmtp::parse_frame_header(input, frame.header));
}

MessageReader::Step MessageReader::find_recoded_frame(Frame& frame, Bytes input) noexcept {
  if (framing_ == zmtp::Framing::none) {
    frame.header = {};
    frame.body = input.first(std::min(input.size(), kRawMax));
    frame.block = nullptr;
    frame_size_ = frame.body.size();
    return Step::frame;
  }
  const ParseStatus status = framing_ == zmtp::Framing::v1 ? zmtp::parse_frame_header_v1(input, frame.header)
                                                           : zmtp::parse_frame_header(input, frame.header);
  const Step step = find_body(frame, input, status);
  if (step != Step::frame || cipher_ == nullptr) {
    return step;
  }
  return open(frame, block_->data() + begin_ + frame.header.header_size);
}

// Decrypting in place is safe: no view has shown these bytes yet.
MessageReader::Step MessageReader::open(Frame& frame, std::uint8_t* body) noexcept {
  if (!opened_) {
    breach_ = cipher_->open(MutableBytes(body, frame.body.size()), opened_flags_);
    if (breach_ != zmtp::Breach::none) {
      return Step::forged;
    }
    opened_ = true;
  }
  frame.body = frame.body.subspan(zmtp::kSealOverhead);
  frame.header.flags = opened_flags_;
  frame.header.body_size = frame.body.size();
  return Step::frame;
}

zmtp::ZmtpFrameHeader MessageReader::inner_header(const zmtp::ZmtpFrameHeader& header) const noexcept {
  zmtp::ZmtpFrameHeader inner = header;
  if (cipher_ != nullptr) {
    inner.flags = 0;
    inner.body_size -= std::min<std::uint64_t>(inner.body_size, zmtp::kSealOverhead);
  }
  return inner;
}

void MessageReader::consume() noexcept {
  opened_ = false;
  if (big_ != nullptr) {
    big_->release();
    big_ = nullptr;
    after_big_ = true;
    return;
  }
  begin_ += frame_size_;
}

bool MessageReader::begin_big(const zmtp::ZmtpFrameHeader& header) noexcept {
  const std::size_t have = end_ - begin_ - header.header_size;
  big_ = mem::Buffer::make(static_cast<std::size_t>(std::min<std::uint64_t>(header.body_size, kBigFirst)));
  if (big_ == nullptr) {
    return false;
  }
  big_header_ = header;
  copy_bytes(big_->data(), Bytes(block_->data() + begin_ + header.header_size, have));
  big_filled_ = have;
  begin_ = end_;
  return true;
}

bool MessageReader::grow_big() noexcept {
  if (big_filled_ < big_->capacity()) {
    return true;
  }
  mem::Buffer* larger = mem::Buffer::enlarge(
      big_, static_cast<std::size_t>(std::min<std::uint64_t>(big_header_.body_size, big_filled_ * 2)));
  if (larger == nullptr) {
    return false;
  }
  big_ = larger;
  return true;
}

// Makes room after the unparsed bytes for at least one more frame of up to kBigFrame.
bool MessageReader::prepare_block() noexcept {
  if (block_ != nullptr && begin_ == end_ && block_->capacity() >= kBlockSize && block_->sole_owner()) {
    begin_ = end_ = 0;
    return true;
  }
  // A frame in progress is below kBigFrame, so half a block after `begin_` always suffices.
  if (block_ != nullptr && block_->capacity() >= kBlockSize && begin_ <= kBlockSize / 2 && end_ < block_->capacity()) {
    return true;
  }
  mem::Buffer* fresh = mem::Buffer::make(kBlockSize);
  if (fresh == nullptr) {
    return false;
  }
  const std::size_t have = end_ - begin_;
  if (block_ != nullptr && have > 0) {
    copy_bytes(fresh->data(), Bytes(block_->data() + begin_, have));
  }
  drop_block();
  block_ = fresh;
  end_ = have;
  return true;
}

sys::IoResult MessageReader::fill(net::ByteStream& stream, const zmtp::ZmtpFrameHeader* header, bool& drained,
                                  std::size_t most) noexcept {
  const sys::IoResult no_memory{sys::IoResult::Status::failed, 0, ENOMEM};
  if (big_ == nullptr && header != nullptr && header->body_size >= kBigFrame && !begin_big(*header)) {
    return no_memory;
  }
  if ((big_ != nullptr && !grow_big()) || !prepare_block()) {
    return no_memory;
  }
  MutableBytes into[2];
  std::size_t count = 0;
  std::size_t big_room = 0;
  if (big_ != nullptr) {
    const std::size_t limit = static_cast<std::size_t>(
        std::min<std::uint64_t>({big_->capacity(), big_header_.body_size, big_filled_ + kBigReadMax}));
    big_room = limit - big_filled_;
    into[count++] = {big_->data() + big_filled_, big_room};
  }
  std::size_t room = big_room;
  // The block must stay empty until this read can complete the big frame: the bytes after belong to the big frame.
  if (big_ == nullptr || big_filled_ + big_room == big_header_.body_size) {
    const std::size_t behind =
        std::min({block_->capacity() - end_, big_ != nullptr || after_big_ ? kBehindBig : kBlockSize, most});
    into[count++] = {block_->data() + end_, behind};
    room += behind;
  }
  const sys::IoResult result = stream.read({into, count});
  if (result.status == sys::IoResult::Status::done) {
    const std::size_t to_big = std::min(result.bytes, big_room);
    big_filled_ += big_ != nullptr ? to_big : 0;
    end_ += result.bytes - to_big;
    after_big_ &= big_ != nullptr;
    drained = result.bytes < room && !result.cut;
  } else {
    drained = true;
  }
  return result;
}

void MessageReader::settle() noexcept {
  const std::size_t have = end_ - begin_;
  if (have == 0) {
    drop_block();
  } else if (block_->capacity() >= kBlockSize && have <= kSettleMax) {
    if (mem::Buffer* small = mem::Buffer::make(have); small != nullptr) {
      copy_bytes(small->data(), Bytes(block_->data() + begin_, have));
      drop_block();
      block_ = small;
      end_ = have;
    }
  }
}

}  // namespace weft::msg
