// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>

#include "weft/base/bytes.h"
#include "weft/net/http/refusal.h"

namespace weft::net::http {

// Bounds of a body. Each of both is at most 1 GiB.
struct BodyLimits {
  std::uint32_t body_max = 1024 * 1024;          // bytes of its content
  std::uint32_t framing_max = 64 * 1024;         // bytes of chunked's sizes, extensions, line ends and trailers
  static constexpr std::size_t kLineMax = 1024;  // bytes of a size with its extensions, and of a trailer
};

// ChunkScanner: finds the end of a body with chunks (RFC 9112 section 7.1), and checks its form. A value of 20 bytes.
// Affinity: one thread at a time. Cost: the scanner reads each byte of the framing once, and none of the content.
// Invariants:
//   (1) A size is 1 to 8 hexadecimal digits, without a sign, prefix or space. ';' begins its extensions, which are
//       printable and ignored.
//   (2) Lines end with CRLF. Trailers have the form of fields, and are ignored.
class ChunkScanner {
 public:
  enum class Found : std::uint8_t {
    nothing,  // more bytes are needed: least()
    end,      // size() bytes are the body
    refusal,
  };

  // `input` begins where the first call's did, and has at least the bytes of the last one.
  [[nodiscard]] Found scan(Bytes input, const BodyLimits& limits) noexcept;

  // For a body that is taken as it comes, instead of scan(): the next bytes of it. `skipped` bytes of framing stand
  // before `size` bytes of content; the next call's input begins after both. `limits.framing_max` bounds the bytes by
  // which the framing exceeds the content. `input` is not empty.
  struct Piece {
    Found found = Found::nothing;
    std::size_t skipped = 0;
    std::size_t size = 0;
  };
  [[nodiscard]] Piece take_piece(Bytes input, const BodyLimits& limits) noexcept;

  [[nodiscard]] std::size_t size() const noexcept { return at_; }
  [[nodiscard]] std::size_t least() const noexcept { return at_ + 1; }          // bytes that the next call's input has
  [[nodiscard]] std::size_t content_size() const noexcept { return content_; }  // bytes in the chunks
  [[nodiscard]] HttpRefusal refusal() const noexcept { return refusal_; }

 private:
  enum class Part : std::uint8_t {
    size,
    extension,
    size_end,
    content_cr,
    content_end,
    trailer,
    value,
    trailer_end,
    end
  };

  [[nodiscard]] HttpRefusal take(std::uint8_t c, const BodyLimits& limits) noexcept;
  [[nodiscard]] HttpRefusal take_size(std::uint8_t c) noexcept;
  [[nodiscard]] HttpRefusal end_size(const BodyLimits& limits) noexcept;
  [[nodiscard]] HttpRefusal take_trailer(std::uint8_t c) noexcept;
  [[nodiscard]] HttpRefusal expect(std::uint8_t c, char wanted, Part next) noexcept {
    part_ = next;
    return c == static_cast<std::uint8_t>(wanted) ? HttpRefusal::none : HttpRefusal::chunk;
  }
  void begin_line(Part part) noexcept {
    part_ = part;
    in_line_ = 0;
  }

  std::uint32_t at_ = 0;       // bytes that were looked at, or skipped: also those that are still to come
  std::uint32_t content_ = 0;  // bytes in the chunks so far
  std::uint32_t chunk_ = 0;    // the size of the present chunk
  std::uint32_t framing_ = 0;  // bytes that are not content
  std::uint16_t in_line_ = 0;  // bytes of the present line
  Part part_ = Part::size;
  HttpRefusal refusal_ = HttpRefusal::none;
};

// Copies the content of a body that ChunkScanner found to `into`, which has room for content_size() bytes. Returns
// their number.
std::size_t copy_chunks(Bytes body, std::uint8_t* into) noexcept;

// Writes the line before a chunk of that size, at most 16 MiB, with the line end of the chunk before; or, of size 0,
// the end of the chunks. Returns the number of bytes, at most kChunkLineMax.
inline constexpr std::size_t kChunkLineMax = 16;
std::size_t write_chunk_line(std::size_t size, bool after_chunk, std::uint8_t* into) noexcept;

}  // namespace weft::net::http
