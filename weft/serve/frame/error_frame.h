// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "weft/base/bytes.h"
#include "weft/base/error.h"
#include "weft/base/result.h"

namespace weft::serve {

// Error frames: the answer to a frame that no handler served. The header has the id of that frame and
// kFlagError. The receiver does not answer an error frame. The body is a FlatBuffer with the file identifier
// "AERR" (schemas/error_response.fbs):
//   table ErrorResponse { code: ushort; message: string; service_error_code: ushort; }
// write_error_body() always uses this layout (little endian), so that a receiver needs no library:
//   0 u32 = 20 | 4 "AERR" | 8 tables of offsets | 28 code u16 | 30 service code u16 | 32 size u32 | 36 text, 0, padding
enum class ErrorCode : std::uint16_t {
  unknown_message = 1,  // no handler has this id
  invalid_body = 2,     // the body is not a message of the handler's type
  handler_failed = 3,   // the handler threw; the text of the exception stays with the server
  refused = 4,          // the handler refused; the service code is the value of its Error
};

struct ErrorResponse {
  ErrorCode code = {};
  std::uint16_t service_code = 0;
  std::string_view text;  // static, or in the body that it was parsed from

  friend bool operator==(const ErrorResponse&, const ErrorResponse&) = default;
};

// The domain of errors whose value is an ErrorCode. A handler may return one to choose the code of the answer.
inline constexpr ErrorDomain kFrameDomain("weft.frame");
[[nodiscard]] constexpr Error frame_error(ErrorCode code, StaticText text) noexcept {
  return {kFrameDomain, static_cast<std::uint16_t>(code), text};
}

// The domain of the errors of `call`. The value is the service's code: that of the Error that the handler returned.
inline constexpr ErrorDomain kServiceDomain("weft.service");

// Returns the answer to an Error that a handler returned.
[[nodiscard]] ErrorResponse response_of(const Error& error) noexcept;
// Returns the Error that such an answer is at its receiver: of kServiceDomain if the service gave a code, otherwise of
// kFrameDomain. The text is the peer's (sync/kept_text.h), cut at 159 bytes, without control characters; after
// kKeptTexts different texts it is one of this library. Fails with protocol_error if the code is unknown.
[[nodiscard]] Error error_of(const ErrorResponse& response) noexcept;

// error_of() for the body of an error frame, with Fate::answered. Fails with protocol_error if the body is not an
// ErrorResponse.
[[nodiscard]] Error error_of_frame(Bytes body) noexcept;

inline constexpr std::size_t kErrorTextMax = 219;
inline constexpr std::size_t kErrorBodyMax = 36 + kErrorTextMax + 1;

// Cuts a longer text. Cost: no allocation.
[[nodiscard]] Bytes write_error_body(const ErrorResponse& response,
                                     std::span<std::uint8_t, kErrorBodyMax> out) noexcept;
// Accepts any layout of the table that FlatBuffers allows. Fails with protocol_error if the body is not an
// ErrorResponse.
[[nodiscard]] Result<ErrorResponse> parse_error_body(Bytes body) noexcept;

}  // namespace weft::serve
