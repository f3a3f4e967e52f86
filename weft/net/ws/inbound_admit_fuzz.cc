// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "weft/base/assert.h"
#include "weft/base/bytes.h"
#include "weft/net/ws/inbound.h"

// The first two bytes choose the side, the cuts and the bound of a message in fragments before admit(); the rest is the
// peer's frames, with its handshake in front. Checked besides the sanitizers: a WsInbound that waits takes nothing
// until it is admitted, and the bound delays bytes, but changes none.
namespace {

using namespace weft::net::ws;

std::string run(const WsInbound::Config& config, weft::Bytes input, std::size_t piece) {
  WsInbound in;
  in.start(config);
  std::string made;
  std::vector<std::uint8_t> output(1 << 16);
  for (std::size_t taken = 0;;) {
    const weft::Bytes next = input.subspan(taken, std::min(piece, input.size() - taken));
    const auto moved = in.translate(next, output);
    taken += moved.taken;
    made += weft::as_text(weft::Bytes(output).first(moved.made));
    if (in.control() != WsInbound::Control::none) {
      made += static_cast<char>(in.control());
      made += weft::as_text(in.control_body());
    } else if (in.fault()) {
      return made + in.fault()->error.text();
    } else if (in.waits()) {
      const auto held = in.translate(input.subspan(taken), output);
      WEFT_ASSERT(held.taken == 0 && held.made == 0 && in.control() == WsInbound::Control::none && !in.fault());
      in.admit();
      WEFT_ASSERT(!in.waits());
    } else if (moved.taken == 0 && moved.made == 0) {
      WEFT_ASSERT(taken == input.size());
      return made;
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) {
    return 0;
  }
  WsInbound::Config config;
  config.masked = (data[0] & 1) != 0;
  config.bare = (data[0] & 2) != 0;
  config.maybe_bare = (data[0] & 4) != 0;
  config.mechanism = "NULL";
  config.message_max = 1000;
  const weft::Bytes input(data + 2, size - 2);
  const std::string whole = run(config, input, input.size() + 1);
  config.unadmitted_max = data[1];
  WEFT_ASSERT(run(config, input, std::size_t{1} + (data[0] >> 4)) == whole);
  return 0;
}
