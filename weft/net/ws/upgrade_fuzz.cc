// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "weft/base/assert.h"
#include "weft/net/ws/upgrade.h"

// The first byte chooses the end and the cuts; the rest is the peer's bytes. Checked besides the sanitizers: the
// outcome is the same whole and in pieces, and comes within the bound of a head.
namespace {

using namespace weft::net::ws;

std::string run(bool server, weft::Bytes input, std::size_t piece) {
  Upgrade end = server ? Upgrade::as_server({"ZWS2.0/NULL", "ZWS2.0"})
                       : Upgrade::as_client("h", "/", {"ZWS2.0"}, "dGhlIHNhbXBsZSBub25jZQ==");
  std::string said = end.take_output();
  std::size_t taken = 0;
  while (taken < input.size() && !end.done() && !end.fault()) {
    const std::size_t size = end.handle_input(input.subspan(taken, std::min(piece, input.size() - taken)));
    taken += size;
    WEFT_ASSERT(size != 0 || end.fault());
    WEFT_ASSERT(taken <= kUpgradeHeadMax);
  }
  said += end.take_output();
  return end.fault() ? said + end.fault()->text()
                     : said + end.protocol() + (end.done() ? std::to_string(taken) : "...");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1) {
    return 0;
  }
  const bool server = (data[0] & 1) != 0;
  const weft::Bytes input(data + 1, size - 1);
  WEFT_ASSERT(run(server, input, input.size() + 1) == run(server, input, std::size_t{1} + (data[0] >> 3)));
  return 0;
}
