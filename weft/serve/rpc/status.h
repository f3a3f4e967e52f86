// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "weft/base/bytes.h"
#include "weft/base/error.h"
#include "weft/serve/frame/error_frame.h"

namespace weft::serve::rpc {

// The outcome of a call, as its answer has it. Values are stable: new ones are added at the end.
enum class Status : std::uint16_t {
  ok = 0,
  refused = 1,          // the handler returned an error: the answer has the service's code and text
  unknown_method = 2,   // the server has no method of this name or number
  invalid_request = 3,  // the body is not a request of this method
  failed = 4,           // the handler threw; the text of the exception stays with the server
  timed_out = 5,        // the deadline passed at the server
  busy = 6,             // calls_max or the memory of the server is used up; the handler did not run
  too_large = 7,        // the handler's response exceeds the server's bound
};

inline constexpr std::size_t kTextMax = 512;  // bytes of a refusal's text; a longer one is cut

// The domain of a call's errors whose value is a Status. A handler may return one to choose the status of its answer.
inline constexpr ErrorDomain kRpcDomain("weft.rpc");
[[nodiscard]] constexpr Error status_error(Status status, StaticText text) noexcept {
  return {kRpcDomain, static_cast<std::uint16_t>(status), text};
}

// Whether the peer was busy and the handler did not run: the call may be sent again (RetryPolicy::retry_answer).
[[nodiscard]] constexpr bool is_busy(const Error& error) noexcept { return error == status_error(Status::busy, ""); }

// Refusal: the parts of an answer other than ok. The text is static, or of the Error or the body that it came from.
struct Refusal {
  Status status = Status::refused;
  std::uint16_t code = 0;  // the service's, with Status::refused
  std::string_view text;

  friend bool operator==(const Refusal&, const Refusal&) = default;
};

// Returns the answer to an error that a handler returned: its Status if it is of kRpcDomain, otherwise `refused` with
// the value of the error as code.
[[nodiscard]] Refusal refusal_of(const Error& error) noexcept;
// Returns the Error that such an answer is at its caller, with Fate::answered: of kServiceDomain with the service's
// code; timed_out; of kRpcDomain with any other status. The text is the peer's (sync/kept_text.h), cut at 159 bytes.
// Returns protocol_error if the status is unknown.
[[nodiscard]] Error error_of(const Refusal& refusal) noexcept;

}  // namespace weft::serve::rpc
