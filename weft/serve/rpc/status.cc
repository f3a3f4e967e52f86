// SPDX-License-Identifier: MIT
#include "weft/serve/rpc/status.h"

#include "weft/sync/kept_text.h"

namespace weft::serve::rpc {

namespace {

constexpr auto kLastStatus = static_cast<std::uint16_t>(Status::too_large);

// The text of an answer without one.
StaticText text_of(Status status) noexcept {
  switch (status) {
    case Status::unknown_method: return "the peer has no such method";
    case Status::invalid_request: return "the peer did not understand the request";
    case Status::failed: return "the peer's handler threw";
    case Status::timed_out: return "the deadline passed at the peer";
    case Status::busy: return "the peer is busy";
    case Status::too_large: return "the response exceeds the peer's bound";
    default: return "the peer's service refused";
  }
}

}  // namespace

Refusal refusal_of(const Error& error) noexcept {
  const std::string_view text = *error.text() != '\0' ? error.text() : describe(error.code());
  const bool has_status = error.domain() == kRpcDomain && error.value() != 0 && error.value() <= kLastStatus;
  if (has_status) {
    return {static_cast<Status>(error.value()), 0, text};
  }
  return {Status::refused, error.value(), text};
}

Error error_of(const Refusal& refusal) noexcept {
  const auto value = static_cast<std::uint16_t>(refusal.status);
  if (value == 0 || value > kLastStatus) {
    return Error(Errc::protocol_error, "the answer has an unknown status").with_fate(Fate::answered);
  }
  const StaticText fallback = text_of(refusal.status);
  const StaticText text = refusal.text.empty() ? fallback : sync::keep_peer_text({refusal.text}, fallback);
  if (refusal.status == Status::refused) {
    return Error(kServiceDomain, refusal.code, text).with_fate(Fate::answered);
  }
  if (refusal.status == Status::timed_out) {
    return Error(Errc::timed_out, text).with_fate(Fate::answered);
  }
  return status_error(refusal.status, text).with_fate(Fate::answered);
}

}  // namespace weft::serve::rpc
