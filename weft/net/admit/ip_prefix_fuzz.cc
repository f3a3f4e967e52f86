// SPDX-License-Identifier: MIT
#include <cstddef>
#include <cstdint>

#include "weft/base/assert.h"
#include "weft/net/admit/ip_prefix.h"

// The first 16 bytes are an address, the rest is a list of prefixes as text. Checked besides the sanitizers:
// a prefix's text parses as the same prefix, and contains() agrees with a comparison bit by bit.
namespace {

bool same_first_bits(weft::Bytes a, weft::Bytes b, unsigned bits) {
  for (unsigned i = 0; i < bits; ++i) {
    if (((a[i / 8] ^ b[i / 8]) >> (7 - i % 8) & 1) != 0) {
      return false;
    }
  }
  return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using weft::net::IpPrefix;
  if (size < 16) {
    return 0;
  }
  const weft::Bytes address(data, 16);
  const auto list = weft::net::parse_ip_prefixes(weft::as_text({data + 16, size - 16}));
  if (!list) {
    return 0;
  }
  for (const IpPrefix& prefix : *list) {
    WEFT_ASSERT(prefix.bits() <= prefix.bytes().size() * 8);
    const auto again = IpPrefix::parse(prefix.to_text());
    WEFT_ASSERT(again && *again == prefix && again->hash(size) == prefix.hash(size));
    const weft::Bytes mine = address.first(prefix.bytes().size());
    WEFT_ASSERT(prefix.contains(mine) == same_first_bits(mine, prefix.bytes(), prefix.bits()));
    WEFT_ASSERT(IpPrefix::of(mine, prefix.bits()).contains(mine));
    WEFT_ASSERT(!prefix.contains(address.first(prefix.ipv6() ? 4 : 16)));
  }
  return 0;
}
