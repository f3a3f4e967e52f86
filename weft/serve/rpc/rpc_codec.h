// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>

#include "weft/base/endian.h"
#include "weft/base/time.h"
#include "weft/serve/client/correlation.h"
#include "weft/serve/frame/frame_codec.h"
#include "weft/serve/frame/request_number.h"
#include "weft/serve/rpc/status.h"
#include "weft/trace/trace_context.h"

namespace weft::serve::rpc {

enum class FrameType : std::uint8_t {
  request = 1,  // of a client: begins a call
  answer = 2,   // of a server: ends it
  cancel = 3,   // of a client: it has given the call up; the call has no answer
  data = 4,     // of either end: a message of a stream
  end = 5,      // of a client: it sends no more messages
  credit = 6,   // of either end: the peer may send `number` further bytes (credit.h)
};

// IdReceiver: gets the id that a client gives to its request.
struct IdReceiver {
  void (*got)(IdReceiver& self, std::uint64_t id) noexcept = nullptr;
};

inline constexpr std::uint32_t kGrantMax = 0x7FFFFFFF;  // bytes of one credit

inline constexpr std::size_t kNameMax = 128;                       // bytes of a method's name
inline constexpr std::size_t kRequestMax = std::size_t{4} << 20;   // the default bound of a body: 4 MiB
inline constexpr std::uint64_t kTimeMax = std::uint64_t{1} << 53;  // microseconds; more counts as without a deadline
inline constexpr std::size_t kStateMax = trace::TraceContext::kStateMax;  // bytes of a tracestate

// Header: a frame without its body. The views are into the bytes that it was decoded from; those of an answer and of a
// cancel are empty.
struct Header {
  FrameType type = FrameType::request;
  bool traced = false;         // of a request: it has `trace`, `span`, `sampled` and `state`
  bool sampled = false;        // W3C Trace Context: the caller records its span
  Status status = Status::ok;  // of an answer
  std::uint64_t id = 0;        // of the call, not 0; a client never has two calls of one id in flight
  std::uint64_t time_us = 0;   // of a request: the time that it has from its arrival on; 0: any time
  std::uint32_t number = 0;  // of a request: that of its method; 0: `method` names it. Of an answer: the service's code
  trace::TraceId trace{};
  trace::SpanId span{};
  std::string_view state{};        // the tracestate, at most kStateMax bytes
  std::string_view method{};       // at most kNameMax bytes
  IdReceiver* receiver = nullptr;  // of a request that is sent: not on the wire

  [[nodiscard]] constexpr bool is_error() const noexcept { return type == FrameType::answer && status != Status::ok; }
  friend bool operator==(const Header&, const Header&) = default;
};

// Times of the wire: a time that is left, rounded up, so that it is never 0; and the duration that it means, negative
// without a deadline.
[[nodiscard]] constexpr std::uint64_t time_us_of(Duration left) noexcept {
  using Microseconds = std::chrono::microseconds;
  return left < Duration::zero() ? 0
                                 : static_cast<std::uint64_t>(
                                       std::max<Microseconds::rep>(std::chrono::ceil<Microseconds>(left).count(), 1));
}
[[nodiscard]] constexpr Duration duration_of(std::uint64_t time_us) noexcept {
  return time_us == 0 || time_us > kTimeMax ? Duration(-1)
                                            : Duration(std::chrono::microseconds(static_cast<std::int64_t>(time_us)));
}

// Codec: calls after a header of 32 bytes, big endian:
//   0 version u8 = 4 | 1 type u8 | 2 flags u8: 1 traced, 2 sampled | 3 name size u8 | 4 status u16 | 6 state size u16
//   8 id u64 | 16 time u64, us | 24 number u32 | 28 body size u32
// After it: the trace id (16 bytes) and the span id (8 bytes) of a traced request, its tracestate, the method's name,
// and the body. The number of a credit is its bytes. Of an answer other than ok the body is the text of the refusal.
// A FrameCodec. Cost: four loads of eight bytes a frame, and the views. A wrong version is refused at its first byte,
// and a wrong header before its body. Errors: protocol_error; message_too_large (the body exceeds the bound).
class Codec {
 public:
  using Header = rpc::Header;
  struct Frame {
    Header header;
    Bytes body;
  };
  // The policy of a client (correlation.h). It numbers calls in the lower half of the id; the upper half is 0.
  struct Correlation {
    static constexpr Matching kMatching = Matching::by_number;
    static bool is_response(const Header& header) noexcept {
      return header.type == FrameType::answer && header.id <= std::numeric_limits<std::uint32_t>::max();
    }
    static void set_number(Header& header, std::uint32_t number) noexcept {
      header.id = number;
      if (header.receiver != nullptr) {
        header.receiver->got(*header.receiver, number);
      }
    }
    static std::uint32_t number(const Header& header) noexcept { return static_cast<std::uint32_t>(header.id); }
    static void set_time_left(Header& header, Duration left) noexcept { header.time_us = time_us_of(left); }
    static Header withdrawal(const Header& header) noexcept {
      Header cancel;
      cancel.type = FrameType::cancel;
      cancel.id = header.id;
      return cancel;
    }
  };
  static constexpr std::size_t kHeaderSize = 32;
  static constexpr std::size_t kTraceSize = 24;
  static constexpr std::size_t kHeaderMax = kHeaderSize + kTraceSize + kStateMax + kNameMax;
  static constexpr std::uint8_t kVersion = 4;

  constexpr Codec() noexcept = default;
  // A bound above kBodyMax (16 MiB) counts as kBodyMax.
  explicit constexpr Codec(std::size_t body_max) noexcept
      : body_max_(static_cast<std::uint32_t>(std::min(body_max, kBodyMax))) {}

  [[nodiscard]] Decoded<Frame> decode(Bytes input) const noexcept {
    using Outcome = Decoded<Frame>;
    if (input.size() < kHeaderSize) [[unlikely]] {
      return input.empty() || input[0] == kVersion ? Outcome::more(kHeaderSize) : Outcome::refused(kWrongVersion);
    }
    const std::uint8_t* const at = input.data();
    if (at[0] != kVersion) [[unlikely]] {
      return Outcome::refused(kWrongVersion);
    }
    Sizes sizes;
    Frame frame{read_fixed(at, sizes), {}};
    if (const Error wrong = check(frame.header, at[2], sizes); !(wrong == Errc::ok)) [[unlikely]] {
      return Outcome::refused(wrong);
    }
    const std::size_t size = kHeaderSize + sizes.trace + sizes.state + sizes.name + sizes.body;
    if (input.size() < size) {
      return Outcome::more(size);
    }
    Bytes rest = input.subspan(kHeaderSize, size - kHeaderSize);
    if (frame.header.traced) {
      frame.header.trace = {load_big_endian<std::uint64_t>(rest.data()),
                            load_big_endian<std::uint64_t>(rest.data() + 8)};
      frame.header.span = {load_big_endian<std::uint64_t>(rest.data() + 16)};
      rest = rest.subspan(kTraceSize);
    }
    frame.header.state = as_text(rest.first(sizes.state));
    frame.header.method = as_text(rest.subspan(sizes.state, sizes.name));
    frame.body = rest.subspan(sizes.state + sizes.name);
    return Outcome::whole(frame, size);
  }

  // Errors: message_too_large (the body); invalid_argument (a header that decode() refuses).
  [[nodiscard]] Result<std::size_t> encode_header(const Header& header, Bytes body,
                                                  std::span<std::uint8_t, kHeaderMax> out) const noexcept {
    if (body.size() > body_max_) [[unlikely]] {
      return kTooLarge;
    }
    if (header.method.size() > kNameMax || header.state.size() > kStateMax) [[unlikely]] {
      return kNotAHeader;
    }
    const Sizes sizes{header.method.size(), header.state.size(), header.traced ? kTraceSize : 0, body.size()};
    const auto flags = static_cast<std::uint8_t>((header.traced ? kTraced : 0U) | (header.sampled ? kSampled : 0U));
    if (!(check(header, flags, sizes) == Errc::ok)) [[unlikely]] {
      return kNotAHeader;
    }
    std::uint8_t* to = out.data();
    store_big_endian(to, std::uint64_t{kVersion} << 56U | std::uint64_t{static_cast<std::uint8_t>(header.type)} << 48U |
                             std::uint64_t{flags} << 40U | std::uint64_t{sizes.name} << 32U |
                             std::uint64_t{static_cast<std::uint16_t>(header.status)} << 16U | sizes.state);
    store_big_endian(to + 8, header.id);
    store_big_endian(to + 16, header.time_us);
    store_big_endian(to + 24, std::uint64_t{header.number} << 32U | sizes.body);
    to += kHeaderSize;
    if (header.traced) {
      store_big_endian(to, header.trace.high);
      store_big_endian(to + 8, header.trace.low);
      store_big_endian(to + 16, header.span.value);
      to += kTraceSize;
    }
    copy_bytes(to, as_bytes(header.state));
    copy_bytes(to + sizes.state, as_bytes(header.method));
    return kHeaderSize + sizes.trace + sizes.state + sizes.name;
  }
  [[nodiscard]] static constexpr Bytes trailer() noexcept { return {}; }
  [[nodiscard]] constexpr std::size_t body_max() const noexcept { return body_max_; }

 private:
  static constexpr unsigned kTraced = 1;
  static constexpr unsigned kSampled = 2;
  static constexpr Error kWrongVersion{Errc::protocol_error, "the version of a call's frame is not 4"};
  static constexpr Error kTooLarge{Errc::message_too_large, "the body of a call"};
  static constexpr Error kNotAHeader{Errc::invalid_argument, "not the header of a call's frame"};

  // Of the parts after the fixed header, in bytes.
  struct Sizes {
    std::size_t name = 0;
    std::size_t state = 0;
    std::size_t trace = 0;
    std::size_t body = 0;
  };

  static Header read_fixed(const std::uint8_t* at, Sizes& sizes) noexcept {
    const auto first = load_big_endian<std::uint64_t>(at);
    const auto last = load_big_endian<std::uint64_t>(at + 24);
    Header header;
    header.type = static_cast<FrameType>(first >> 48U & 0xFFU);
    header.traced = (first >> 40U & kTraced) != 0;
    header.sampled = (first >> 40U & kSampled) != 0;
    header.status = static_cast<Status>(first >> 16U & 0xFFFFU);
    header.id = load_big_endian<std::uint64_t>(at + 8);
    header.time_us = load_big_endian<std::uint64_t>(at + 16);
    header.number = static_cast<std::uint32_t>(last >> 32U);
    sizes.name = first >> 32U & 0xFFU;
    sizes.state = first & 0xFFFFU;
    sizes.trace = header.traced ? kTraceSize : 0;
    sizes.body = static_cast<std::uint32_t>(last);
    return header;
  }

  // Whether the fixed header is one that this format has. Of each type, the fields that others use are 0.
  [[nodiscard]] Error check(const Header& header, unsigned flags, const Sizes& sizes) const noexcept {
    if (header.id == 0) {
      return {Errc::protocol_error, "the id of a call is 0"};
    }
    if (sizes.body > body_max_) {
      return kTooLarge;
    }
    if (header.type == FrameType::request) {
      if (flags > (kTraced | kSampled) || flags == kSampled || (sizes.state != 0 && !header.traced) ||
          sizes.state > kStateMax) {
        return {Errc::protocol_error, "the trace of a request"};
      }
      if (sizes.name > kNameMax || (sizes.name != 0) == (header.number != 0) || header.status != Status::ok) {
        return {Errc::protocol_error, "a request has a method's name or its number, and no status"};
      }
      return {};
    }
    if (flags != 0 || sizes.name != 0 || sizes.state != 0 || header.time_us != 0) {
      return {Errc::protocol_error, "a frame other than a request has fields of a request"};
    }
    if (header.type == FrameType::answer) {
      return header.number <= 0xFFFFU && (header.number == 0 || header.status == Status::refused)
                 ? Error()
                 : Error(Errc::protocol_error, "the service's code in an answer");
    }
    if (header.type == FrameType::cancel) {
      return header.number == 0 && header.status == Status::ok && sizes.body == 0
                 ? Error()
                 : Error(Errc::protocol_error, "a cancel has a status or a body");
    }
    if (header.type == FrameType::data || header.type == FrameType::end) {
      return header.number == 0 && header.status == Status::ok && (header.type == FrameType::data || sizes.body == 0)
                 ? Error()
                 : Error(Errc::protocol_error, "a message of a stream has a number or a status, or its end a body");
    }
    if (header.type == FrameType::credit) {
      return header.number != 0 && header.number <= kGrantMax && header.status == Status::ok && sizes.body == 0
                 ? Error()
                 : Error(Errc::protocol_error, "a credit of nothing, or of 2^31 bytes or more");
    }
    return {Errc::protocol_error, "the type of a call's frame"};
  }

  std::uint32_t body_max_ = kRequestMax;
};
static_assert(FrameCodec<Codec> && kNumbersRequests<Codec> && Correlation<Codec::Correlation, Codec>);

}  // namespace weft::serve::rpc
