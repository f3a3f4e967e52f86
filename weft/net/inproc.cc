// SPDX-License-Identifier: MIT
#include "weft/net/inproc.h"

namespace weft::net {
namespace {

Result<void> parse(std::string_view address, bool /*for_bind*/, Endpoint& into) {
  if (address.empty()) {
    return Error(Errc::malformed_endpoint, "an inproc name is missing");
  }
  if (address.size() > kMaxInprocName) {
    return Error(Errc::malformed_endpoint, "an inproc name has at most 255 bytes");
  }
  into.name = address;
  return {};
}

std::string format(const Endpoint& endpoint) { return endpoint.name; }

}  // namespace

TransportRow inproc_transport() noexcept {
  return {Transport::inproc, &parse, &format, nullptr, nullptr, nullptr, nullptr};
}

}  // namespace weft::net
