// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "weft/base/assert.h"
#include "weft/net/admit/proxy_header.h"

// The first byte chooses the cuts; the rest is the proxy's bytes. Checked besides the sanitizers: the outcome is the
// same whole and in pieces, and the header is bounded.
namespace {

struct Outcome {
  std::size_t taken = 0;
  std::string end;
  bool operator==(const Outcome&) const = default;
};

Outcome run(weft::Bytes bytes, std::size_t piece) {
  weft::net::ProxyHeader header;
  Outcome outcome;
  for (;;) {
    const std::size_t size = std::min({piece, header.wanted(), bytes.size() - outcome.taken});
    if (size == 0) {
      break;
    }
    header.handle_input(bytes.subspan(outcome.taken, size));
    outcome.taken += size;
    WEFT_ASSERT(outcome.taken <= weft::net::ProxyHeader::kBytesMax);
  }
  WEFT_ASSERT(!(header.done() && header.fault()));
  if (header.fault()) {
    outcome.taken = 0;  // the fault may be found earlier in small pieces
  }
  outcome.end = header.done()    ? "done " + header.source().to_text()
                : header.fault() ? header.fault()->text()
                                 : "waiting";
  return outcome;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1) {
    return 0;
  }
  const weft::Bytes bytes(data + 1, size - 1);
  WEFT_ASSERT(run(bytes, bytes.size() + 1) == run(bytes, std::size_t{1} + (data[0] >> 4)));
  return 0;
}
