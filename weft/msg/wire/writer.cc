// SPDX-License-Identifier: MIT
#include "weft/msg/wire/writer.h"

#include <algorithm>
#include <cstring>

#include "weft/base/assert.h"
#include "weft/zmtp/frame.h"

namespace weft::msg {

namespace {
constexpr std::size_t kHeaderSizeMax = zmtp::kFrameHeaderSizeMaxV1;
static_assert(kHeaderSizeMax >= zmtp::kFrameHeaderSizeMax);

std::size_t write_header(zmtp::Framing framing, std::uint8_t* to, std::uint8_t flags, std::size_t size) noexcept {
  switch (framing) {
    case zmtp::Framing::v1: return zmtp::write_frame_header_v1(to, flags, size);
    case zmtp::Framing::v3: return zmtp::write_frame_header(to, flags, size);
    case zmtp::Framing::none: break;
  }
  return 0;
}

// Takes the frame at the front of `frames`: whole ZMTP 3 frames that this process encoded.
Bytes take_frame(Bytes& frames, std::uint8_t& flags) noexcept {
  zmtp::ZmtpFrameHeader header;
  const auto status = zmtp::parse_frame_header(frames, header);
  WEFT_ASSERT(status == ParseStatus::complete && header.body_size <= frames.size() - header.header_size);
  const Bytes body = frames.subspan(header.header_size, static_cast<std::size_t>(header.body_size));
  flags = header.flags & (zmtp::kMore | zmtp::kCommand);
  frames = frames.subspan(header.header_size + body.size());
  return body;
}
}  // namespace

std::uint64_t MessageWriter::open(net::ByteStream* stream, zmtp::Mechanism* cipher, zmtp::Framing framing) noexcept {
  stream_ = stream;
  cipher_ = cipher;
  framing_ = framing;
  recodes_ = cipher != nullptr || framing != zmtp::Framing::v3;
  overhead_ = kHeaderSizeMax + (cipher != nullptr ? zmtp::kSealOverhead : 0);
  blocked_ = failed_ = false;
  return recodes_ && begin_ != end_ ? recode_kept() : 0;
}

// Kept messages are ZMTP 3 frames in the clear. This connection has a cipher or another framing, so encode them again.
std::uint64_t MessageWriter::recode_kept() noexcept {
  const std::uint64_t messages = pending_messages();
  mem::Buffer* const kept = block_;
  Bytes frames(kept->data() + begin_, end_ - begin_);
  rewind();
  block_ = mem::Buffer::make(raw_size(frames));
  const bool has_memory = block_ != nullptr && reserve_ends(messages);
  if (has_memory) {
    add(appended_, -messages);  // append() counts them again
  } else {
    reset();
    add(lost_, messages);
  }
  for (std::uint8_t flags = 0; has_memory && !frames.empty();) {
    const Bytes body = take_frame(frames, flags);
    append(flags, body);
  }
  kept->release();
  return has_memory ? 0 : messages;
}

void MessageWriter::drop_big() noexcept {
  if (big_ != nullptr) {
    big_->release();
    big_ = nullptr;
    big_rest_ = {};
    lent_ = false;
  }
}

void MessageWriter::reset() noexcept {
  drop_big();
  if (block_ != nullptr) {
    block_->release();
    block_ = nullptr;
  }
  if (ends_ != nullptr) {
    ends_->release();
    ends_ = nullptr;
  }
  rewind();
}

void MessageWriter::rewind() noexcept {
  begin_ = end_ = 0;
  end_count_ = 0;
}

// Room for so many more ends. False when memory ran out.
bool MessageWriter::reserve_ends(std::uint64_t count) noexcept {
  constexpr std::size_t kEndsMin = 64;
  const std::size_t needed = (end_count_ + count) * sizeof(std::uint32_t);
  if (ends_ != nullptr && ends_->capacity() >= needed) {
    return true;
  }
  mem::Buffer* const larger = mem::Buffer::make(std::max(2 * needed, kEndsMin * sizeof(std::uint32_t)));
  if (larger == nullptr) {
    return false;
  }
  if (ends_ != nullptr) {
    copy_bytes(larger->data(), Bytes(ends_->data(), end_count_ * sizeof(std::uint32_t)));
    ends_->release();
  }
  ends_ = larger;
  return true;
}

void MessageWriter::note_end() noexcept {
  const auto end = static_cast<std::uint32_t>(end_);
  std::memcpy(ends_->data() + end_count_ * sizeof end, &end, sizeof end);
  ++end_count_;
}

std::uint64_t MessageWriter::count_sent_ends() const noexcept {
  std::uint64_t count = 0;
  for (std::uint32_t end = 0; count < end_count_; ++count) {
    std::memcpy(&end, ends_->data() + count * sizeof end, sizeof end);
    if (end > begin_) {
      break;
    }
  }
  return count;
}

void MessageWriter::rest() noexcept {
  limit_ = kBatchMin;
  if (empty()) {
    reset();
  }
}

std::uint64_t MessageWriter::close(bool keep) noexcept {
  const Split split = split_batch(keep);
  const std::uint64_t lost = pending_messages() - split.sent - split.kept;
  const std::uint64_t begun = inside_message_ ? 1 : 0;
  add(sent_, split.sent);
  add(lost_, lost);
  (void)open(nullptr);
  blocked_ = failed_ = false;
  inside_message_ = false;
  drop_big();  // not kept: a part of its message may be sent already, and the MessageWriter does not track whether
  if (split.kept == 0) {
    reset();
  }
  return lost + begun;
}

// Counts the messages of the batch that the kernel has, and keeps those in the block that the next connection gets.
MessageWriter::Split MessageWriter::split_batch(bool keep) noexcept {
  Split split;
  if (recodes_) {
    split.sent = count_sent_ends();
    return split;
  }
  // Walk the frames of the block. Keep the messages that are whole in it and begin at or after `begin_`. Drop the
  // commands, also those between the parts of a message: they belong to the old connection.
  std::uint8_t* const data = block_ != nullptr ? block_->data() : nullptr;  // null: end_ is 0
  std::size_t kept = 0;                                                     // bytes of whole messages so far
  std::size_t written = 0;  // those, and the parts of the message at hand
  bool at_start = !begins_inside_;
  bool unsent = false;  // the message at hand may be kept
  zmtp::ZmtpFrameHeader header;
  for (std::size_t at = 0, size = 0; at < end_; at += size) {
    const auto status = zmtp::parse_frame_header(Bytes(data + at, end_ - at), header);
    if (status != ParseStatus::complete || header.body_size > end_ - at - header.header_size) {
      break;  // the header of the big part's frame
    }
    size = header.header_size + static_cast<std::size_t>(header.body_size);
    const bool ends = (header.flags & zmtp::kMore) == 0;
    const bool is_subscription =
        subscribes_ && at_start && ends && header.body_size > 0 && data[at + header.header_size] <= 1;
    if ((header.flags & zmtp::kCommand) != 0 || is_subscription) {
      continue;
    }
    unsent = at_start ? at >= begin_ : unsent;
    at_start = ends;
    split.sent += ends && at + size <= begin_ ? 1 : 0;
    if (unsent && keep) {
      std::memmove(data + written, data + at, size);
      written += size;
      kept = ends ? written : kept;
      split.kept += ends ? 1 : 0;
    }
    written = ends ? kept : written;
  }
  begin_ = 0;
  end_ = kept;
  begins_inside_ = false;
  return split;
}

bool MessageWriter::prepare(std::size_t size) noexcept {
  if (big_ != nullptr || (recodes_ && !reserve_ends(1))) {
    return false;
  }
  const std::size_t needed = size + overhead_;
  // An empty block that is smaller than the limit is exchanged below; otherwise batches would never grow.
  if (block_ != nullptr && block_->capacity() - end_ >= needed && (begin_ != end_ || block_->capacity() >= limit_))
      [[likely]] {
    return true;
  }
  if (begin_ != end_) {
    return false;
  }
  rewind();
  const std::size_t wanted = std::max(needed, limit_ + kBatchMin / 8);
  if (block_ != nullptr && block_->capacity() >= wanted) {
    return true;
  }
  if (block_ != nullptr) {
    block_->release();
  }
  block_ = mem::Buffer::make(std::min(std::max(wanted, needed), std::max(needed, mem::Buffer::kPooledMax)));
  return block_ != nullptr;
}

void MessageWriter::note_part(std::uint8_t flags) noexcept {
  begins_inside_ = end_ == 0 ? inside_message_ : begins_inside_;
  inside_message_ = (flags & zmtp::kMore) != 0;
  add(appended_, inside_message_ ? 0 : 1);
}

void MessageWriter::append_recoded(std::uint8_t flags, Bytes body) noexcept {
  std::uint8_t* to = block_->data() + end_;
  if (cipher_ == nullptr) {
    const std::size_t header = write_header(framing_, to, flags, body.size());
    copy_bytes(to + header, body);
    end_ += header + body.size();
    return;
  }
  // The outer frame is always a message frame: libzmq sends it so, and every peer takes it.
  const std::size_t size = body.size() + zmtp::kSealOverhead;
  const std::size_t header = zmtp::write_frame_header(to, 0, size);
  cipher_->seal(to + header, flags, body);
  end_ += header + size;
}

void MessageWriter::append(std::uint8_t flags, Bytes body) noexcept {
  note_part(flags);
  if (recodes_) [[unlikely]] {
    append_recoded(flags, body);
    if (!inside_message_) {
      note_end();
    }
    return;
  }
  std::uint8_t* to = block_->data() + end_;
  const std::size_t header = zmtp::write_frame_header(to, flags, body.size());
  copy_bytes(to + header, body);
  end_ += header + body.size();
}

std::size_t MessageWriter::raw_size(Bytes frames) const noexcept {
  std::size_t size = frames.size();
  for (std::uint8_t flags = 0; recodes_ && !frames.empty();) {
    (void)take_frame(frames, flags);
    size += overhead_;
  }
  return size;
}

void MessageWriter::append_raw(Bytes frames) noexcept {
  begins_inside_ = end_ == 0 ? inside_message_ : begins_inside_;
  for (std::uint8_t flags = 0; recodes_ && !frames.empty();) {
    const Bytes body = take_frame(frames, flags);
    append_recoded(flags, body);
  }
  copy_bytes(block_->data() + end_, frames);
  end_ += frames.size();
}

void MessageWriter::append_big(std::uint8_t flags, mem::Buffer* buffer, Bytes body) noexcept {
  note_part(flags);
  end_ += write_header(framing_, block_->data() + end_, flags, body.size());
  big_ = buffer;
  big_rest_ = body;
}

bool MessageWriter::seal_big(std::uint8_t flags, Bytes body) noexcept {
  const std::size_t size = body.size() + zmtp::kSealOverhead;
  mem::Buffer* sealed = mem::Buffer::make(size);
  if (sealed == nullptr) {
    return false;
  }
  note_part(flags);
  cipher_->seal(sealed->data(), flags, body);
  end_ += zmtp::write_frame_header(block_->data() + end_, 0, size);
  big_ = sealed;
  big_rest_ = Bytes(sealed->data(), size);
  return true;
}

bool MessageWriter::lend_big(std::uint8_t flags, Bytes body) noexcept {
  if (cipher_ != nullptr) [[unlikely]] {
    return seal_big(flags, body);
  }
  // Reserve the memory before the first byte leaves: half a frame could not be taken back.
  mem::Buffer* reserve = mem::Buffer::make(body.size());
  if (reserve == nullptr) {
    return false;
  }
  append_big(flags, reserve, body);
  lent_ = true;
  return true;
}

void MessageWriter::keep_rest() noexcept {
  if (lent_) {
    copy_bytes(big_->data(), big_rest_);
    big_rest_ = Bytes(big_->data(), big_rest_.size());
    lent_ = false;
  }
}

void MessageWriter::advance(std::size_t bytes) noexcept {
  const std::size_t from_block = std::min(bytes, end_ - begin_);
  begin_ += from_block;
  big_rest_ = big_rest_.subspan(bytes - from_block);
  if (big_ != nullptr && big_rest_.empty()) {
    drop_big();
  }
  if (begin_ == end_ && big_ == nullptr) {
    rewind();
    add(sent_, pending_messages());
  }
}

void MessageWriter::handle(const sys::IoResult& result) noexcept {
  switch (result.status) {
    case sys::IoResult::Status::done:
      written_ += result.bytes;
      blocked_ = false;
      advance(result.bytes);
      return;
    case sys::IoResult::Status::would_block: blocked_ = true; return;
    case sys::IoResult::Status::end_of_stream:
    case sys::IoResult::Status::failed: blocked_ = failed_ = true; return;
  }
}

void MessageWriter::flush() noexcept {
  if (stream_ == nullptr || failed_) {
    return;
  }
  blocked_ = false;
  while (!empty() && !blocked_) {
    const Bytes from[2] = {Bytes(block_->data() + begin_, end_ - begin_), big_rest_};
    const bool has_block = begin_ != end_;
    const std::size_t wanted = pending();
    const std::uint64_t before = written_;
    handle(stream_->write(
        {from + (has_block ? 0 : 1), static_cast<std::size_t>((has_block ? 1 : 0) + (big_ != nullptr ? 1 : 0))}));
    // A short write means that the kernel's buffer is full. A second write at once would only return would_block.
    if (written_ != before && !empty() && pending() < wanted) {
      blocked_ = true;
    }
  }
}

void MessageWriter::write_through(std::uint8_t flags, Bytes body) noexcept {
  std::uint8_t header[zmtp::kFrameHeaderSizeMax];
  const std::size_t header_size = zmtp::write_frame_header(header, flags, body.size());
  const Bytes from[2] = {Bytes(header, header_size), body};
  WEFT_DCHECK(empty());
  // Make room first: the block takes the bytes that the kernel does not take.
  if (!prepare(body.size())) {
    return;
  }
  if (recodes_) [[unlikely]] {
    append(flags, body);
    flush();
    return;
  }
  const sys::IoResult result = stream_->write({from, body.empty() ? std::size_t{1} : std::size_t{2}});
  const std::size_t sent = result.status == sys::IoResult::Status::done ? result.bytes : 0;
  if (sent == header_size + body.size()) {
    written_ += sent;
    add(appended_, (flags & zmtp::kMore) == 0 ? 1 : 0);
    add(sent_, pending_messages());
    return;
  }
  append(flags, body);
  if (result.status == sys::IoResult::Status::done) {
    written_ += sent;
    begin_ += sent;
    blocked_ = true;
  } else {
    handle(result);
  }
}

}  // namespace weft::msg
