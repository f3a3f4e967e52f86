// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "weft/serve/frame/length_codec.h"

namespace weft::serve {

// DelimiterCodec: bodies that end with a delimiter of a few bytes, '\n' by default, which is not part of the
// body. A FrameCodec.
// Cost: every byte is searched once however the input is cut, except the beginning of a delimiter at its end. Fails
// with message_too_large if the first bytes within the bound have no delimiter.
class DelimiterCodec {
 public:
  using Header = NoHeader;
  using Frame = BodyFrame;
  static constexpr std::size_t kHeaderMax = 0;
  static constexpr bool kMoves = true;
  static constexpr std::size_t kDelimiterMax = 8;

  // Lines that end with '\n'. A '\r' before the '\n' is part of the body.
  constexpr DelimiterCodec() noexcept = default;
  explicit constexpr DelimiterCodec(std::size_t body_max) noexcept : body_max_(std::min(body_max, kBodyMax)) {}
  // Fails with invalid_argument if the delimiter is empty or longer than kDelimiterMax.
  [[nodiscard]] static Result<DelimiterCodec> make(Bytes delimiter, std::size_t body_max = kBodyMax) noexcept {
    if (delimiter.empty() || delimiter.size() > kDelimiterMax) {
      return Error(Errc::invalid_argument, "a delimiter has 1 to 8 bytes");
    }
    DelimiterCodec codec(body_max);
    codec.size_ = static_cast<std::uint8_t>(delimiter.size());
    copy_bytes(codec.delimiter_.data(), delimiter);
    return codec;
  }

  [[nodiscard]] Decoded<Frame> decode(Bytes input) noexcept {
    // a delimiter after these bytes is too late
    const Bytes window = input.first(std::min(input.size(), body_max_ + size_));
    const std::size_t body_size = find(window, std::min(searched_, window.size()));
    if (body_size != kNone) {
      searched_ = 0;
      return Decoded<Frame>::whole({{}, input.first(body_size)}, body_size + size_);
    }
    searched_ = window.size() < size_ ? 0 : window.size() - size_ + 1;
    if (window.size() == body_max_ + size_) {
      return Decoded<Frame>::refused(kTooLarge);
    }
    return Decoded<Frame>::more(std::max<std::size_t>(input.size() + 1, size_));
  }

  [[nodiscard]] Result<std::size_t> encode_header(const NoHeader& /*header*/, Bytes body,
                                                  std::span<std::uint8_t, kHeaderMax> /*out*/) const noexcept {
    if (body.size() > body_max_) {
      return kTooLarge;
    }
    if (!can_frame(body)) {
      return Error(Errc::invalid_argument, "the body has the delimiter in it, or runs into it");
    }
    return std::size_t{0};
  }
  [[nodiscard]] Bytes trailer() const noexcept { return {delimiter_.data(), size_}; }
  [[nodiscard]] constexpr std::size_t body_max() const noexcept { return body_max_; }

 private:
  static constexpr Error kTooLarge{Errc::message_too_large, "no delimiter within the bound"};
  static constexpr std::size_t kNone = ~std::size_t{0};

  // The offset of the first delimiter at or after `from`.
  [[nodiscard]] std::size_t find(Bytes bytes, std::size_t from) const noexcept {
    while (bytes.size() - from >= size_) {
      const auto* found = static_cast<const std::uint8_t*>(
          std::memchr(bytes.data() + from, delimiter_[0], bytes.size() - from - size_ + 1));
      if (found == nullptr) {
        return kNone;
      }
      from = static_cast<std::size_t>(found - bytes.data());
      if (std::memcmp(found, delimiter_.data(), size_) == 0) {
        return from;
      }
      ++from;
    }
    return kNone;
  }
  // Whether the first delimiter in body + delimiter is the one at the end: the body contains no delimiter, and none
  // begins in the body and ends after it.
  [[nodiscard]] bool can_frame(Bytes body) const noexcept {
    if (find(body, 0) != kNone) {
      return false;
    }
    const Bytes tail = body.last(std::min<std::size_t>(body.size(), size_ - 1));
    std::array<std::uint8_t, 2 * kDelimiterMax> joint;
    copy_bytes(joint.data(), tail);
    copy_bytes(joint.data() + tail.size(), trailer());
    return find(Bytes(joint).first(tail.size() + size_), 0) == tail.size();
  }

  std::size_t body_max_ = kBodyMax;
  std::size_t searched_ = 0;  // no delimiter begins before this offset of the frame
  std::array<std::uint8_t, kDelimiterMax> delimiter_{'\n'};
  std::uint8_t size_ = 1;
};
static_assert(FrameCodec<DelimiterCodec>);

}  // namespace weft::serve
