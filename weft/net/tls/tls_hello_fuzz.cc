// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "weft/base/assert.h"
#include "weft/base/bytes.h"
#include "weft/net/tls/tls_hello.h"

// The first byte chooses the cuts; the rest is a TLS client's bytes before they reach OpenSSL: records of any kind and
// length. Checked besides the sanitizers: the outcome is that of a reader byte by byte, whole and in pieces.
namespace {

using weft::net::HelloBound;

bool run(weft::Bytes input, std::size_t piece) {
  HelloBound bound;
  while (!input.empty()) {
    const std::size_t size = std::min(piece, input.size());
    if (!bound.check(input.first(size))) {
      return false;
    }
    input = input.subspan(size);
  }
  return true;
}

// RFC 8446, 4 and 5.1: the bodies of all records of a handshake, one after another, are its messages.
bool expected(weft::Bytes input) {
  std::size_t skip = 0;     // bytes of a message's body
  std::size_t header = 0;   // bytes of a message's header
  std::size_t claimed = 0;  // by the header so far
  for (std::size_t at = 0; at + 5 <= input.size();) {
    const bool handshake = input[at] == 22;
    const std::size_t size = std::size_t{input[at + 3]} * 256 + input[at + 4];
    at += 5;
    for (const std::size_t end = at + size; at < std::min(end, input.size()); ++at) {
      if (!handshake) {
        continue;
      }
      if (skip != 0) {
        --skip;
        continue;
      }
      claimed = header == 0 ? 0 : claimed * 256 + input[at];
      if (++header == 4) {
        if (claimed > HelloBound::kHelloMax) {
          return false;
        }
        skip = claimed;
        header = 0;
      }
    }
  }
  return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1) {
    return 0;
  }
  const weft::Bytes input(data + 1, size - 1);
  const bool passes = expected(input);
  WEFT_ASSERT(run(input, input.size() + 1) == passes);
  WEFT_ASSERT(run(input, std::size_t{1} + data[0]) == passes);
  return 0;
}
