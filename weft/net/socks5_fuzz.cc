// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "weft/base/assert.h"
#include "weft/net/socks5.h"

// The first byte chooses the login and the cuts; the rest is the proxy's bytes. Checked besides the
// sanitizers: the outcome is the same whole and in pieces, and the end comes after less than one reply of
// each kind.
namespace {

using namespace weft::net;

struct Outcome {
  std::string said;
  std::string end;
  bool operator==(const Outcome&) const = default;
};

Outcome run(const Socks5Proxy& proxy, weft::Bytes replies, std::size_t piece) {
  Socks5 client;
  client.start(proxy, "host.example", 5555);
  Outcome outcome;
  std::size_t taken = 0;
  for (;;) {
    outcome.said += weft::as_text(client.pending_output());
    client.consume_output(client.pending_output().size());
    const std::size_t size = std::min({piece, client.wanted(), replies.size() - taken});
    if (size == 0) {
      break;
    }
    client.handle_input(replies.subspan(taken, size));
    taken += size;
    WEFT_ASSERT(taken <= 2 + 2 + 5 + 255 + 2);
  }
  outcome.end = client.done() ? "done" : client.fault() ? client.fault()->text() : "waiting";
  return outcome;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1) {
    return 0;
  }
  Socks5Proxy proxy;
  proxy.username = (data[0] & 1) != 0 ? "me" : "";
  const weft::Bytes replies(data + 1, size - 1);
  WEFT_ASSERT(run(proxy, replies, replies.size() + 1) == run(proxy, replies, std::size_t{1} + (data[0] >> 4)));
  return 0;
}
