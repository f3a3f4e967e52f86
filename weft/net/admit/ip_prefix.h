// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/bytes.h"
#include "weft/base/result.h"

namespace weft::net {

// IpPrefix: the IPv4 or IPv6 addresses that begin with the same bits: "10.0.0.0/8", "2001:db8::/32", or one address. A
// value of 18 bytes. Invariant: the bits after the prefix are 0, so that equal prefixes are equal. An IPv4 address in
// IPv6 form ("::ffff:10.0.0.1") is the IPv4 address, and its bits are counted from the first of those.
class IpPrefix {
 public:
  // An address, alone or with a slash and the number of bits that count. The other bits may have any value.
  // Error: invalid_argument.
  [[nodiscard]] static Result<IpPrefix> parse(std::string_view text);
  // The first `bits` of an address of 4 or 16 bytes, or all of them when `bits` is larger. Any other size
  // gives the prefix that contains no address.
  [[nodiscard]] static IpPrefix of(Bytes address, unsigned bits) noexcept;

  [[nodiscard]] bool contains(Bytes address) const noexcept;  // `address` has 4 or 16 bytes
  [[nodiscard]] std::string to_text() const;                  // in the form that parse() reads

  [[nodiscard]] unsigned bits() const noexcept { return bits_; }
  [[nodiscard]] bool ipv6() const noexcept { return size_ == 16; }
  [[nodiscard]] bool single() const noexcept { return bits_ == size_ * 8; }  // one address
  [[nodiscard]] Bytes bytes() const noexcept { return {bytes_.data(), size_}; }
  [[nodiscard]] std::uint64_t hash(std::uint64_t seed) const noexcept;
  friend bool operator==(const IpPrefix&, const IpPrefix&) noexcept = default;

 private:
  std::array<std::uint8_t, 16> bytes_{};
  std::uint8_t size_ = 0;
  std::uint8_t bits_ = 0;
};

// "10.0.0.0/8,192.168.1.7,::1"; one comma may be at the end. Errors: invalid_argument.
[[nodiscard]] Result<std::vector<IpPrefix>> parse_ip_prefixes(std::string_view list);

}  // namespace weft::net
