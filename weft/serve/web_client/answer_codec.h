// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "weft/net/http/answer_head.h"
#include "weft/net/http/chunks.h"
#include "weft/net/http/head_scanner.h"
#include "weft/net/http/refusal.h"
#include "weft/serve/frame/frame_codec.h"

namespace weft::serve::web {

// Bounds of the answers that a client takes.
struct AnswerLimits : net::http::HeadLimits {
  std::uint32_t framing_max = 64 * 1024;  // bytes by which sizes, extensions and trailers of chunks exceed the content
  std::uint64_t body_max = std::uint64_t{16} << 20;     // bytes of a body that is collected
  std::uint64_t streamed_max = std::uint64_t{1} << 40;  // of one that is read in pieces; in chunks at most 3.7 GiB
};

// Why the bytes of a server are not an answer.
enum class AnswerFault : std::uint8_t {
  none,
  refused,   // AnswerHeader::refusal has the reason
  unasked,   // no request waits for them
  interims,  // more than kInterimsMax interim answers
  switched,  // 101 without a request for it
};

enum class AnswerPart : std::uint8_t {
  interim,  // a head with a status below 200: another one follows
  head,     // the head of the answer
  piece,    // the next bytes of its body, without framing, or no bytes
};

// A chunk of a request's body. An empty body is the end of the chunks.
struct ChunkHeader {
  bool after_chunk = false;
};

struct AnswerHeader {
  net::http::AnswerHead head;  // views into the input
  std::string_view text;       // the bytes of the head
  AnswerPart part = AnswerPart::piece;
  AnswerFault fault = AnswerFault::none;
  net::http::HttpRefusal refusal = net::http::HttpRefusal::none;
  bool last = false;        // the answer ends with this frame
  bool keep_alive = false;  // with `last`: the connection may take another request

  operator ChunkHeader() const noexcept { return {}; }  // NOLINT(google-explicit-constructor): a codec's header
};

struct AnswerFrame {
  AnswerHeader header;
  Bytes body;
};

// AnswerCodec: the client's end of HTTP/1.1: answers in, chunks of requests out (RFC 9112). A FrameCodec. Heads and
// chunks are read by the parsers of the server (net/http). Each answer follows a begin(). A frame with a fault is the
// last one.
// Cost: the scanner reads every byte of a head once; the bytes of a body are views.
// Invariants:
//   (1) The end of a body follows from the length, the chunks or the end of the connection, in this order. An answer
//       for which two of them hold is refused.
//   (2) A body that is cut is never whole: in_answer() stays true.
// Errors of decode: protocol_error after a fault. Errors of encode_header: invalid_argument (more than 16 MiB).
class AnswerCodec {
 public:
  using Header = ChunkHeader;
  using Frame = AnswerFrame;
  static constexpr std::size_t kHeaderMax = net::http::kChunkLineMax;
  static constexpr unsigned kInterimsMax = 16;

  AnswerCodec() noexcept : AnswerCodec(AnswerLimits()) {}
  explicit AnswerCodec(const AnswerLimits& limits) noexcept;

  // A request was sent. `to_head`: of the method HEAD, whose answer has no body. `upgrades`: 101 is an answer. Its body
  // has at most `body_max` bytes.
  void begin(bool to_head, bool upgrades, std::uint64_t body_max) noexcept;

  [[nodiscard]] Decoded<Frame> decode(Bytes input) noexcept;
  [[nodiscard]] Result<std::size_t> encode_header(const ChunkHeader& header, Bytes body,
                                                  std::span<std::uint8_t, kHeaderMax> out) const noexcept;
  [[nodiscard]] static Bytes trailer() noexcept { return {}; }
  [[nodiscard]] std::size_t body_max() const noexcept { return kBodyMax; }

  [[nodiscard]] bool in_answer() const noexcept { return stage_ != Stage::idle; }  // the answer has not ended
  [[nodiscard]] bool heard() const noexcept { return heard_; }                     // a byte of it has come
  // Whether the end of the connection is the end of the answer.
  [[nodiscard]] bool ends_with_connection() const noexcept { return stage_ == Stage::to_the_end; }

 private:
  enum class Stage : std::uint8_t { idle, head, length, chunks, to_the_end, refused };

  [[nodiscard]] Decoded<Frame> decode_head(Bytes input) noexcept;
  [[nodiscard]] Decoded<Frame> decode_piece(Bytes input) noexcept;
  [[nodiscard]] Decoded<Frame> take_head(AnswerFrame& frame, std::size_t size) noexcept;
  [[nodiscard]] Decoded<Frame> refuse(AnswerFault fault, net::http::HttpRefusal why = {}) noexcept;
  void end(AnswerFrame& frame) noexcept;

  net::http::HeadLimits head_limits_;
  std::uint32_t framing_max_;
  std::uint64_t rest_ = 0;      // bytes that a body with a length lacks
  std::uint64_t body_max_ = 0;  // bytes that the body may still have
  net::http::HeadScanner scanner_;
  net::http::ChunkScanner chunks_;
  Stage stage_ = Stage::idle;
  std::uint8_t interims_ = 0;
  bool heard_ = false;
  bool to_head_ = false;
  bool upgrades_ = false;
  bool keep_alive_ = false;
};
static_assert(FrameCodec<AnswerCodec>);

// The error of a refused answer: message_too_large where a bound of AnswerLimits is exceeded, otherwise protocol_error.
[[nodiscard]] Error error_of(net::http::HttpRefusal refusal) noexcept;

}  // namespace weft::serve::web
