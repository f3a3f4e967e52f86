// SPDX-License-Identifier: MIT
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "weft/base/assert.h"
#include "weft/serve/udp/datagram_wire.h"

// A datagram that is parsed has the header that is written from it, and its payload is the rest.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weft::serve;
  if (const auto datagram = parse_datagram(weft::Bytes(data, size))) {
    std::array<std::uint8_t, kDatagramHeader> header{};
    write_datagram_header(header.data(), datagram->kind, datagram->cookie);
    WEFT_ASSERT(std::equal(header.begin(), header.end(), data));
    WEFT_ASSERT(datagram->payload.size() == size - kDatagramHeader);
  }
  return 0;
}
