// SPDX-License-Identifier: MIT
#include "weft/net/admit/proxy_header.h"

#include <algorithm>
#include <charconv>

#include "weft/base/assert.h"
#include "weft/base/endian.h"

namespace weft::net {
namespace {

constexpr std::string_view kTextStart = "PROXY ";
constexpr std::string_view kTextTcp4 = "PROXY TCP4 ";
constexpr std::string_view kTextTcp6 = "PROXY TCP6 ";
constexpr std::string_view kTextUnknown = "PROXY UNKNOWN";
constexpr std::size_t kTextBytesMin = 15;  // "PROXY UNKNOWN\r\n"
constexpr std::size_t kTextSpaces = 5;     // of a line with addresses
constexpr std::string_view kSignature{"\r\n\r\n\0\r\nQUIT\n", 12};
constexpr std::size_t kBinaryStart = 16;
constexpr std::size_t kUnixBytes = 108;  // of each address

constexpr StaticText kNoHeader = "the connection has no PROXY header";
constexpr StaticText kMalformed = "a malformed PROXY header";
constexpr StaticText kUnknownKind = "a PROXY header of an unknown version, command or family";
constexpr StaticText kTooLong = "a PROXY header of more than 536 bytes";

enum class Command : std::uint8_t { local = 0, proxy = 1 };
enum class ProxyFamily : std::uint8_t { unspecified = 0x00, tcp4 = 0x11, tcp6 = 0x21, unix_stream = 0x31 };

// The bytes of both addresses and ports; no value: not a family of streams.
std::optional<std::size_t> address_bytes(std::uint8_t family) noexcept {
  switch (static_cast<ProxyFamily>(family)) {
    case ProxyFamily::unspecified: return 0;
    case ProxyFamily::tcp4: return 2 * (4 + 2);
    case ProxyFamily::tcp6: return 2 * (16 + 2);
    case ProxyFamily::unix_stream: return 2 * kUnixBytes;
  }
  return std::nullopt;
}

// Decimal, from 0 to 65535, without leading zeros.
std::optional<std::uint16_t> port_of(std::string_view digits) noexcept {
  std::uint16_t port = 0;
  const auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  const bool whole = status == std::errc() && end == digits.data() + digits.size();
  return whole && (digits.size() == 1 || digits[0] != '0') ? std::optional(port) : std::nullopt;
}

std::string_view take_word(std::string_view& line) noexcept {
  const std::string_view word = line.substr(0, line.find(' '));
  line.remove_prefix(std::min(line.size(), word.size() + 1));
  return word;
}

}  // namespace

std::size_t ProxyHeader::wanted() const noexcept {
  if (done_ || fault_) {
    return 0;
  }
  if (version_ == Version::binary && size_ >= kBinaryStart) {
    return announced() - size_;
  }
  if (version_ == Version::binary) {
    return kBinaryStart - size_;
  }
  if (size_ < kTextBytesMin) {  // no header of either version is shorter
    return kTextBytesMin - size_;
  }
  const std::size_t end = bytes_[size_ - 1] == '\r' ? 1 : 2;
  const bool addresses = !text().starts_with(kTextUnknown);
  return std::min(end + (addresses ? 2 * (kTextSpaces - spaces_) : 0), kTextBytesMax - size_);
}

void ProxyHeader::handle_input(Bytes input) noexcept {
  if (input.empty()) {
    return;
  }
  WEFT_ASSERT(input.size() <= wanted());
  copy_bytes(bytes_.data() + size_, input);
  size_ += input.size();
  check();
}

void ProxyHeader::fail(StaticText why) noexcept { fault_ = Error(Errc::protocol_error, why); }

std::size_t ProxyHeader::announced() const noexcept {
  return kBinaryStart + load_big_endian<std::uint16_t>(bytes_.data() + 14);
}

void ProxyHeader::check() noexcept {
  if (version_ == Version::unknown) {
    version_ = bytes_[0] == static_cast<std::uint8_t>(kSignature[0]) ? Version::binary : Version::text;
  }
  const std::string_view start = version_ == Version::binary ? kSignature : kTextStart;
  if (text().substr(0, start.size()) != start.substr(0, size_)) {
    return fail(kNoHeader);
  }
  version_ == Version::binary ? check_binary() : check_text();
}

void ProxyHeader::check_binary() noexcept {
  if (size_ > 12 && (bytes_[12] & 0xfe) != 0x20) {  // version 2, command 0 or 1
    return fail(kUnknownKind);
  }
  const bool local = (bytes_[12] & 0x0f) == static_cast<std::uint8_t>(Command::local);
  const auto addresses = address_bytes(bytes_[13]);
  if (size_ > 13 && !local && !addresses) {
    return fail(kUnknownKind);
  }
  if (size_ < kBinaryStart) {
    return;
  }
  if (announced() > kBytesMax) {
    return fail(kTooLong);
  }
  if (!local && announced() < kBinaryStart + *addresses) {
    return fail(kMalformed);
  }
  if (size_ == announced()) {
    done_ = true;
    if (!local) {
      finish_binary();
    }
  }
}

// The fields after the addresses (TLVs) are skipped.
void ProxyHeader::finish_binary() noexcept {
  const Bytes from = Bytes(bytes_).subspan(kBinaryStart);
  switch (static_cast<ProxyFamily>(bytes_[13])) {
    case ProxyFamily::unspecified: return;
    case ProxyFamily::tcp4:
      source_ = sys::SocketAddress::from_ip(from.first(4), load_big_endian<std::uint16_t>(from.data() + 8));
      return;
    case ProxyFamily::tcp6:
      source_ = sys::SocketAddress::from_ip(from.first(16), load_big_endian<std::uint16_t>(from.data() + 32));
      return;
    case ProxyFamily::unix_stream: break;
  }
  std::string_view name = as_text(from.first(kUnixBytes));
  const bool abstract = name[0] == '\0';
  name.remove_prefix(abstract ? 1 : 0);
  name = abstract ? name.substr(0, name.find_last_not_of('\0') + 1) : name.substr(0, name.find('\0'));
  if (name.empty()) {
    return;
  }
  const auto address = abstract ? sys::SocketAddress::from_abstract(name) : sys::SocketAddress::from_path(name);
  if (!address) {  // a path that fills its place
    done_ = false;
    return fail(kMalformed);
  }
  source_ = *address;
}

void ProxyHeader::check_text() noexcept {
  while (checked_ < size_ && !fault_ && !done_) {
    check_text_byte(checked_++);
  }
  if (size_ == kTextBytesMax && !done_ && !fault_) {
    fail(kMalformed);
  }
}

// Checks one byte by the earlier ones alone.
void ProxyHeader::check_text_byte(std::size_t at) noexcept {
  const std::string_view so_far = text().substr(0, at + 1);
  const char byte = so_far.back();
  const auto begins = [so_far](std::string_view start) {
    const std::size_t size = std::min(so_far.size(), start.size());
    return so_far.substr(0, size) == start.substr(0, size);
  };
  const bool addresses = begins(kTextTcp4) || begins(kTextTcp6);
  if (!addresses && !begins(kTextUnknown)) {
    return fail(kUnknownKind);
  }
  if (so_far.size() == kTextUnknown.size() + 1 && !addresses && byte != ' ' && byte != '\r') {
    return fail(kUnknownKind);
  }
  const bool after_return = at > 0 && so_far[at - 1] == '\r';
  if (after_return ? byte != '\n' : (byte < ' ' || byte > '~') && byte != '\r') {
    return fail(kMalformed);
  }
  spaces_ += byte == ' ' ? 1 : 0;
  if (addresses && (spaces_ > kTextSpaces || (byte == '\r' && spaces_ != kTextSpaces))) {
    return fail(kMalformed);
  }
  if (byte == '\n') {
    addresses ? finish_text(so_far.substr(kTextTcp4.size(), at - 1 - kTextTcp4.size()), so_far.starts_with(kTextTcp4))
              : void(done_ = true);
  }
}

// `line`: both addresses and both ports.
void ProxyHeader::finish_text(std::string_view line, bool ipv4) noexcept {
  const std::string_view source = take_word(line);
  const std::string_view target = take_word(line);
  const auto port = port_of(take_word(line));
  const auto target_port = port_of(line);
  const auto family = ipv4 ? sys::SocketAddress::Family::ipv4 : sys::SocketAddress::Family::ipv6;
  for (const std::string_view host : {source, target}) {
    const auto address = sys::SocketAddress::parse_numeric(host, 0);
    if (!address || address->family() != family || host.find('%') != std::string_view::npos) {
      return fail(kMalformed);
    }
  }
  if (!port || !target_port) {
    return fail(kMalformed);
  }
  source_ = *sys::SocketAddress::parse_numeric(source, *port);
  done_ = true;
}

}  // namespace weft::net
