// SPDX-License-Identifier: MIT
#include "weft/net/admit/ip_prefix.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstring>

#include "weft/base/random.h"
#include "weft/sys/address.h"

namespace weft::net {
namespace {

constexpr Error kNoPrefix(Errc::invalid_argument, "a network is a numeric address, or one and the bits that count");
constexpr unsigned kMappedBits = 96;  // of an IPv6 address, before its IPv4 address

}  // namespace

Result<IpPrefix> IpPrefix::parse(std::string_view text) {
  const std::size_t slash = text.find('/');
  const std::string_view host = text.substr(0, slash);
  const auto address = sys::SocketAddress::parse_numeric(host, 0);
  if (!address) {
    return kNoPrefix;
  }
  const Bytes bytes = address->ip_bytes();
  const unsigned hidden = bytes.size() == 4 && host.find(':') != std::string_view::npos ? kMappedBits : 0;
  unsigned bits = static_cast<unsigned>(bytes.size()) * 8 + hidden;
  if (slash != std::string_view::npos) {
    unsigned given = 0;
    const std::string_view digits = text.substr(slash + 1);
    const auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), given);
    if (status != std::errc() || end != digits.data() + digits.size() || given > bits || given < hidden) {
      return kNoPrefix;
    }
    bits = given;
  }
  return of(bytes, bits - hidden);
}

IpPrefix IpPrefix::of(Bytes address, unsigned bits) noexcept {
  IpPrefix prefix;
  if (address.size() != 4 && address.size() != 16) {
    return prefix;
  }
  prefix.size_ = static_cast<std::uint8_t>(address.size());
  prefix.bits_ = static_cast<std::uint8_t>(std::min<std::size_t>(bits, address.size() * 8));
  const std::size_t whole = prefix.bits_ / 8U;
  copy_bytes(prefix.bytes_.data(), address.first(whole));
  if (prefix.bits_ % 8U != 0) {
    prefix.bytes_[whole] = static_cast<std::uint8_t>(address[whole] & (0xFF00U >> (prefix.bits_ % 8U)));
  }
  return prefix;
}

bool IpPrefix::contains(Bytes address) const noexcept {
  return size_ != 0 && address.size() == size_ && of(address, bits_) == *this;
}

std::string IpPrefix::to_text() const {
  if (size_ == 0) {
    return {};
  }
  std::array<char, 48> text{};
  if (size_ == 4) {
    std::snprintf(text.data(), text.size(), "%u.%u.%u.%u", unsigned{bytes_[0]}, unsigned{bytes_[1]},
                  unsigned{bytes_[2]}, unsigned{bytes_[3]});
  } else {
    for (std::size_t i = 0; i < 8; ++i) {
      std::snprintf(text.data() + i * 5, 6, i < 7 ? "%04x:" : "%04x", bytes_[2 * i] * 256U + bytes_[2 * i + 1]);
    }
  }
  const auto address = sys::SocketAddress::parse_numeric(text.data(), 0);
  return (address ? address->host_text() : text.data()) + "/" + std::to_string(bits_);
}

std::uint64_t IpPrefix::hash(std::uint64_t seed) const noexcept {
  std::array<std::uint64_t, 2> words;
  std::memcpy(words.data(), bytes_.data(), sizeof words);
  const std::uint64_t kind = size_ * 256U + bits_;
  return mix_bits(mix_bits(mix_bits(seed ^ kind) ^ words[0]) + words[1]);
}

Result<std::vector<IpPrefix>> parse_ip_prefixes(std::string_view list) {
  std::vector<IpPrefix> prefixes;
  while (!list.empty()) {
    const std::size_t comma = list.find(',');
    prefixes.push_back(WEFT_TRY(IpPrefix::parse(list.substr(0, comma))));
    list.remove_prefix(comma == std::string_view::npos ? list.size() : comma + 1);
  }
  return prefixes;
}

}  // namespace weft::net
