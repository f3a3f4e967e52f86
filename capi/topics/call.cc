// SPDX-License-Identifier: MIT
#include "capi/topics/call.h"

#include <chrono>
#include <iterator>

#include "weft/sys/clock.h"

namespace weft::capi::topics {

namespace {

// One row per code, in the order of Errc.
constexpr int kCodes[] = {
    WEFT_TOPICS_OK,
    WEFT_TOPICS_WOULD_BLOCK,
    WEFT_TOPICS_TIMED_OUT,
    WEFT_TOPICS_INTERRUPTED,
    WEFT_TOPICS_TERMINATED,
    WEFT_TOPICS_CLOSED,
    WEFT_TOPICS_INVALID_ARGUMENT,
    WEFT_TOPICS_INVALID_STATE,
    WEFT_TOPICS_NOT_SUPPORTED,
    WEFT_TOPICS_UNKNOWN_OPTION,
    WEFT_TOPICS_MALFORMED_ENDPOINT,
    WEFT_TOPICS_UNKNOWN_TRANSPORT,
    WEFT_TOPICS_ADDRESS_IN_USE,
    WEFT_TOPICS_ADDRESS_UNAVAILABLE,
    WEFT_TOPICS_NAME_UNRESOLVED,
    WEFT_TOPICS_NO_SUCH_ENDPOINT,
    WEFT_TOPICS_UNREACHABLE,
    WEFT_TOPICS_TOO_MANY_SOCKETS,
    WEFT_TOPICS_RESOURCE_EXHAUSTED,
    WEFT_TOPICS_MESSAGE_TOO_LARGE,
    WEFT_TOPICS_BUFFER_TOO_SMALL,
    WEFT_TOPICS_CONNECTION_CLOSED,
    WEFT_TOPICS_CONNECTION_FAILED,
    WEFT_TOPICS_PROTOCOL_ERROR,
    WEFT_TOPICS_INCOMPATIBLE_PEER,
    WEFT_TOPICS_HANDSHAKE_REFUSED,
    WEFT_TOPICS_SYSTEM,
    WEFT_TOPICS_OTHER,
    WEFT_TOPICS_CANCELLED,
    WEFT_TOPICS_JOB_THREW,
    WEFT_TOPICS_NOT_FOUND,
    WEFT_TOPICS_CONFLICT,
    WEFT_TOPICS_NOT_PERMITTED,
    WEFT_TOPICS_OUTCOME_UNKNOWN,
    WEFT_TOPICS_CORRUPT,
};

constexpr bool codes_are_those_of_errc() {
  for (std::size_t i = 0; i < std::size(kCodes); ++i) {
    if (kCodes[i] != -static_cast<int>(i)) {
      return false;
    }
  }
  return std::size(kCodes) == static_cast<std::size_t>(Errc::corrupt) + 1;
}
static_assert(codes_are_those_of_errc(), "the codes are the negative numbers of Errc: a new Errc needs one");

}  // namespace

int code_of(const Error& error) noexcept {
  note(error);
  return kCodes[static_cast<std::size_t>(error.code())];
}

Result<Duration> duration_of(std::int64_t milliseconds) noexcept {
  if (milliseconds < 0) {
    return Error(Errc::invalid_argument, "a negative time");
  }
  constexpr auto kLongest = std::chrono::duration_cast<std::chrono::milliseconds>(Duration::max()).count();
  return Duration(std::chrono::milliseconds(std::min<std::int64_t>(milliseconds, kLongest)));
}

Result<Patience> patience_of(std::int64_t timeout_ms) noexcept {
  if (timeout_ms == WEFT_TOPICS_FOREVER) {
    return Patience{kNever, true};
  }
  const Duration wait = WEFT_TRY(duration_of(timeout_ms));
  return timeout_ms == 0 ? Patience{Instant::min(), false} : Patience{sys::now() + wait, true};
}

Result<Headers> headers_of(const weft_topics_header* headers, std::size_t count) {
  if (headers == nullptr && count != 0) {
    return kNullPointer;
  }
  Headers made;
  for (std::size_t i = 0; i < count; ++i) {
    WEFT_TRY(made.add(WEFT_TRY(text_of(headers[i].name)), WEFT_TRY(text_of(headers[i].value))));
  }
  return made;
}

}  // namespace weft::capi::topics
