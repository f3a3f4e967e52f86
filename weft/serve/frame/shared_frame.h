// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <utility>

#include "weft/base/bytes.h"
#include "weft/base/result.h"
#include "weft/mem/buffer.h"
#include "weft/serve/frame/frame_codec.h"
#include "weft/serve/frame/frame_kind.h"
#include "weft/serve/frame/request_number.h"

namespace weft::serve {

// Names a group of sessions of one server, on any cores. The program numbers its groups.
enum class GroupId : std::uint64_t {};

// An address for each type of codec.
template <FrameCodec Codec>
[[nodiscard]] const void* codec_tag() noexcept {
  static constexpr char kTag = 0;
  return &kTag;
}

// SharedFrame: a frame that was encoded once, for any number of sessions on any core. Immutable.
// Owner: each copy shares the bytes. Affinity: a value; copies may be passed to other threads.
// Cost: one copy of the body in encode(); a copy of the value is one atomic addition.
class SharedFrame {
 public:
  // Errors: those of encode_header(); resource_exhausted (no memory); invalid_argument (the header has the number of a
  // request: the other sessions would take the frame for their own answer).
  template <FrameCodec Codec>
  [[nodiscard]] static Result<SharedFrame> encode(const Codec& codec, const typename Codec::Header& header, Bytes body,
                                                  FrameKind kind = FrameKind::event) {
    return encode_as(codec, header, body, kind, std::nullopt);
  }
  // The same for a frame of state with a key, see SessionOf::send_state().
  template <FrameCodec Codec>
  [[nodiscard]] static Result<SharedFrame> encode(const Codec& codec, const typename Codec::Header& header, Bytes body,
                                                  FrameKey key) {
    return encode_as(codec, header, body, FrameKind::state, key);
  }

  SharedFrame(const SharedFrame& other) noexcept
      : buffer_(other.buffer_), size_(other.size_), tag_(other.tag_), kind_(other.kind_), keyed_(other.keyed_) {
    if (buffer_ != nullptr) {
      buffer_->add_reference();
    }
  }
  SharedFrame(SharedFrame&& other) noexcept
      : buffer_(std::exchange(other.buffer_, nullptr)),
        size_(std::exchange(other.size_, 0)),
        tag_(other.tag_),
        kind_(other.kind_),
        keyed_(std::exchange(other.keyed_, false)) {}
  SharedFrame& operator=(SharedFrame other) noexcept {
    std::swap(buffer_, other.buffer_);
    std::swap(size_, other.size_);
    std::swap(tag_, other.tag_);
    std::swap(kind_, other.kind_);
    std::swap(keyed_, other.keyed_);
    return *this;
  }
  ~SharedFrame() {
    if (buffer_ != nullptr) {
      buffer_->release();
    }
  }

  [[nodiscard]] Bytes bytes() const noexcept { return buffer_ == nullptr ? Bytes() : Bytes(buffer_->data(), size_); }
  [[nodiscard]] mem::Buffer* buffer() const noexcept { return buffer_; }
  [[nodiscard]] const void* tag() const noexcept { return tag_; }
  [[nodiscard]] FrameKind kind() const noexcept { return kind_; }
  [[nodiscard]] std::optional<FrameKey> key() const noexcept {
    if (!keyed_) {
      return std::nullopt;
    }
    FrameKey key{};
    std::memcpy(&key, buffer_->data() + size_, sizeof key);
    return key;
  }

 private:
  SharedFrame(mem::Buffer* buffer, std::size_t size, const void* tag, FrameKind kind, bool keyed) noexcept
      : buffer_(buffer), size_(size), tag_(tag), kind_(kind), keyed_(keyed) {}

  template <FrameCodec Codec>
  [[nodiscard]] static Result<SharedFrame> encode_as(const Codec& codec, const typename Codec::Header& header,
                                                     Bytes body, FrameKind kind, std::optional<FrameKey> key) {
    if constexpr (kNumbersRequests<Codec>) {
      if (Codec::Correlation::is_response(header)) {
        return Error(Errc::invalid_argument, "a frame for many sessions answers no request: its number must be 0");
      }
    }
    std::array<std::uint8_t, Codec::kHeaderMax> front;
    const std::size_t front_size = WEFT_TRY(codec.encode_header(header, body, std::span(front)));
    const Bytes back = codec.trailer();
    const std::size_t size = front_size + body.size() + back.size();
    mem::Buffer* const buffer = mem::Buffer::make(size + (key ? sizeof *key : 0));
    if (buffer == nullptr) {
      return Error(Errc::resource_exhausted, "no memory for a frame");
    }
    if constexpr (Codec::kHeaderMax != 0) {  // GCC warns of an array without elements
      copy_bytes(buffer->data(), Bytes(front).first(front_size));
    }
    copy_bytes(buffer->data() + front_size, body);
    copy_bytes(buffer->data() + front_size + body.size(), back);
    if (key) {  // not in the value: a closure with a value and a group fits into an rt::Job
      std::memcpy(buffer->data() + size, &*key, sizeof *key);
    }
    return SharedFrame(buffer, size, codec_tag<Codec>(), kind, key.has_value());
  }

  mem::Buffer* buffer_;
  std::size_t size_;
  const void* tag_;
  FrameKind kind_;
  bool keyed_;  // the key follows the bytes
};

}  // namespace weft::serve
