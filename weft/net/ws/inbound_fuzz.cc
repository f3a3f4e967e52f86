// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "weft/base/assert.h"
#include "weft/net/ws/inbound.h"
#include "weft/net/ws/outbound.h"
#include "weft/zmtp/greeting.h"

// The first byte chooses the side, the sub-protocol and the cuts; the rest is the peer's bytes. Checked besides the
// sanitizers: the output is the same whole and in pieces, it consists of frames of ZMTP, and WsOutbound takes them.
namespace {

using namespace weft::net::ws;

std::string run(const WsInbound::Config& config, weft::Bytes input, std::size_t piece, std::size_t room) {
  WsInbound in;
  in.start(config);
  std::string made;
  std::string controls;
  std::vector<std::uint8_t> output(room);
  for (std::size_t taken = 0;;) {
    const weft::Bytes next = input.subspan(taken, std::min(piece, input.size() - taken));
    const auto moved = in.translate(next, output);
    WEFT_ASSERT(moved.taken <= next.size() && moved.made <= output.size());
    taken += moved.taken;
    made += weft::as_text(weft::Bytes(output).first(moved.made));
    if (in.control() != WsInbound::Control::none) {
      controls += static_cast<char>(in.control());
      controls += weft::as_text(in.control_body());
    } else if (in.fault()) {
      return made + controls + in.fault()->error.text();
    } else if (moved.taken == 0 && moved.made == 0) {
      WEFT_ASSERT(taken == input.size());
      return made + controls;
    }
  }
}

void send_back(const WsInbound::Config& config, weft::Bytes input) {
  WsInbound in;
  in.start(config);
  std::vector<std::uint8_t> output(4 * input.size() + 1000);
  WsOutbound out;
  out.start(config.masked ? std::make_unique<weft::net::ws::Masks>() : nullptr, false);
  std::vector<std::uint8_t> wire(2 * output.size() + WsOutbound::kRoomMin);
  const auto moved = in.translate(input, output);
  if (moved.made >= weft::zmtp::kGreetingSize) {
    (void)out.translate(weft::Bytes(output).first(moved.made), wire);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1) {
    return 0;
  }
  WsInbound::Config config;
  config.masked = (data[0] & 1) != 0;
  config.bare = (data[0] & 2) != 0;
  config.mechanism = "NULL";
  config.message_max = 1000;
  const weft::Bytes input(data + 1, size - 1);
  const std::size_t piece = std::size_t{1} + (data[0] >> 4);
  WEFT_ASSERT(run(config, input, input.size() + 1, 1 << 17) == run(config, input, piece, 1 + piece % 5));
  send_back(config, input);
  return 0;
}
