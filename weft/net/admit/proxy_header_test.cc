// SPDX-License-Identifier: MIT
#include "weft/net/admit/proxy_header.h"

#include <algorithm>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

namespace weft::net {
namespace {

using namespace std::string_literals;
using namespace std::string_view_literals;

constexpr std::string_view kV2Signature = "\r\n\r\n\0\r\nQUIT\n"sv;
constexpr char kLocalCommand = 0x20;
constexpr char kProxyCommand = 0x21;
// 192.0.2.1:4711 to 198.51.100.7:443
constexpr std::string_view kTcp4Addresses = "\xc0\x00\x02\x01\xc6\x33\x64\x07\x12\x67\x01\xbb"sv;
constexpr std::string_view kLine = "PROXY TCP4 192.0.2.1 198.51.100.7 4711 443\r\n";

std::string binary(char command, unsigned char family, std::string_view body) {
  return std::string(kV2Signature) + command + static_cast<char>(family) + static_cast<char>(body.size() >> 8) +
         static_cast<char>(body.size() & 0xff) + std::string(body);
}

std::string unix_body(std::string_view source) {
  std::string body(source);
  body.resize(2 * 108);
  return body;
}

struct Taken {
  std::string outcome;  // "source …", "waits", or the text of the fault
  std::string rest;     // the bytes that the header did not take
};

// As a reader whose reads return at most `piece` bytes.
Taken take(std::string_view bytes, std::size_t piece) {
  ProxyHeader header;
  while (!bytes.empty() && header.wanted() != 0) {
    const std::size_t size = std::min({piece, header.wanted(), bytes.size()});
    header.handle_input(as_bytes(bytes.substr(0, size)));
    bytes.remove_prefix(size);
  }
  const std::string outcome = header.done()    ? "source " + header.source().to_text()
                              : header.fault() ? header.fault()->text()
                                               : "waits";
  return {outcome, std::string(bytes)};
}

// The outcome, which is the same for all sizes of reads. A whole header leaves the bytes after it.
std::string outcome_of(std::string_view bytes, std::string_view rest = {}) {
  const std::string all = std::string(bytes) + std::string(rest);
  const Taken whole = take(all, all.size() + 1);
  for (std::size_t piece = 1; piece <= all.size(); ++piece) {
    const Taken taken = take(all, piece);
    EXPECT_EQ(taken.outcome, whole.outcome) << "in pieces of " << piece;
    if (whole.outcome.starts_with("source")) {
      EXPECT_EQ(taken.rest, rest) << "in pieces of " << piece;
    }
  }
  return whole.outcome;
}

TEST(ProxyHeader, NamesTheClientInBinary) {
  EXPECT_EQ(outcome_of(binary(kProxyCommand, 0x11, kTcp4Addresses), "GET / "), "source 192.0.2.1:4711");
  const std::string ipv6 =
      "\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x01"s + std::string(15, '\0') + "\x01" + "\x12\x67\x01\xbb";
  EXPECT_EQ(outcome_of(binary(kProxyCommand, 0x21, ipv6), "x"), "source [2001:db8::1]:4711");
}

TEST(ProxyHeader, NamesTheClientInText) {
  EXPECT_EQ(outcome_of(kLine, "GET / "), "source 192.0.2.1:4711");
  EXPECT_EQ(outcome_of("PROXY TCP6 2001:db8::1 ::1 0 65535\r\n", "x"), "source [2001:db8::1]:0");
  EXPECT_EQ(outcome_of("PROXY TCP6 :: :: 1 1\r\n", "x"), "source [::]:1");
}

TEST(ProxyHeader, NamesAUnixSocket) {
  EXPECT_EQ(outcome_of(binary(kProxyCommand, 0x31, unix_body("/run/client")), "x"), "source /run/client");
  EXPECT_EQ(outcome_of(binary(kProxyCommand, 0x31, unix_body("\0name"sv)), "x"), "source @name");
  EXPECT_EQ(outcome_of(binary(kProxyCommand, 0x31, unix_body({})), "x"), "source ");
  EXPECT_EQ(outcome_of(binary(kProxyCommand, 0x31, unix_body(std::string(108, 'p')))), "a malformed PROXY header");
}

TEST(ProxyHeader, WithoutAnAddressTheConnectionIsTheProxysOwn) {
  EXPECT_EQ(outcome_of(binary(kLocalCommand, 0x00, {}), "x"), "source ");
  EXPECT_EQ(outcome_of(binary(kLocalCommand, 0x11, kTcp4Addresses), "x"), "source ");
  EXPECT_EQ(outcome_of(binary(kLocalCommand, 0xff, "anything"), "x"), "source ");
  EXPECT_EQ(outcome_of(binary(kProxyCommand, 0x00, {}), "x"), "source ");
  EXPECT_EQ(outcome_of("PROXY UNKNOWN\r\n", "x"), "source ");
  EXPECT_EQ(outcome_of("PROXY UNKNOWN ffff:f...f:ffff anything 65535\r\n", "x"), "source ");
}

TEST(ProxyHeader, FieldsAfterTheAddressesAreSkipped) {
  const std::string fields = std::string(kTcp4Addresses) + "\x03\x00\x04\x01\x02\x03\x04"s;
  EXPECT_EQ(outcome_of(binary(kProxyCommand, 0x11, fields), "x"), "source 192.0.2.1:4711");
  const std::string most = std::string(kTcp4Addresses) + std::string(536 - 16 - 12, 't');
  EXPECT_EQ(outcome_of(binary(kProxyCommand, 0x11, most), "x"), "source 192.0.2.1:4711");
  EXPECT_EQ(outcome_of(binary(kProxyCommand, 0x11, most + "t")), "a PROXY header of more than 536 bytes");
}

TEST(ProxyHeader, APartOfAHeaderWaits) {
  const std::string whole = binary(kProxyCommand, 0x11, kTcp4Addresses);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_EQ(take(std::string_view(whole).substr(0, size), 1).outcome, "waits") << size;
  }
  for (std::size_t size = 0; size < kLine.size(); ++size) {
    EXPECT_EQ(take(kLine.substr(0, size), 1).outcome, "waits") << size;
  }
}

TEST(ProxyHeader, OtherBytesAreNoHeader) {
  for (const std::string_view bytes :
       {"GET / HTTP/1.1\r\n"sv, "\r\n\r\nx"sv, "\0"sv, "PROXX"sv, "PROXY\r\n"sv, "p"sv}) {
    EXPECT_EQ(outcome_of(bytes), "the connection has no PROXY header");
  }
}

TEST(ProxyHeader, UnknownVersionsCommandsAndFamiliesAreRefused) {
  const std::string refused = "a PROXY header of an unknown version, command or family";
  EXPECT_EQ(outcome_of(binary(0x11, 0x11, kTcp4Addresses)), refused);
  EXPECT_EQ(outcome_of(binary(0x22, 0x11, kTcp4Addresses)), refused);
  for (const int family : {0x10, 0x12, 0x22, 0x32, 0x41, 0xff}) {  // datagrams, and families without a number
    EXPECT_EQ(outcome_of(binary(kProxyCommand, static_cast<unsigned char>(family), kTcp4Addresses)), refused);
  }
  EXPECT_EQ(outcome_of("PROXY TCP5 a b 1 2\r\n"), refused);
  EXPECT_EQ(outcome_of("PROXY UNKNOWNX\r\n"), refused);
  EXPECT_EQ(outcome_of("PROXY TCP4\r\n"), refused);
}

TEST(ProxyHeader, MalformedOnesAreRefused) {
  EXPECT_EQ(outcome_of(binary(kProxyCommand, 0x11, kTcp4Addresses.substr(1))), "a malformed PROXY header");
  EXPECT_EQ(outcome_of(binary(kProxyCommand, 0x21, kTcp4Addresses)), "a malformed PROXY header");
  for (const std::string_view line : {
           "PROXY TCP4 192.0.2.1 198.51.100.7 4711\r\n"sv,
           "PROXY TCP4 192.0.2.1 198.51.100.7 4711 443 1\r\n"sv,
           "PROXY TCP4  192.0.2.1 198.51.100.7 4711 443\r\n"sv,
           "PROXY TCP4 192.0.2.1 198.51.100.7 4711 65536\r\n"sv,
           "PROXY TCP4 192.0.2.1 198.51.100.7 -1 443\r\n"sv,
           "PROXY TCP4 192.0.2.1 198.51.100.7 04711 443\r\n"sv,
           "PROXY TCP4 192.0.2.1 198.51.100.7 4711 \r\n"sv,
           "PROXY TCP4 192.0.2.300 198.51.100.7 4711 443\r\n"sv,
           "PROXY TCP4 2001:db8::1 ::1 4711 443\r\n"sv,
           "PROXY TCP6 192.0.2.1 198.51.100.7 4711 443\r\n"sv,
           "PROXY TCP6 fe80::1%1 ::1 4711 443\r\n"sv,
           "PROXY TCP4 192.0.2.1 198.51.100.7 4711 443\n"sv,
           "PROXY TCP4 192.0.2.1 198.51.100.7 4711 443\r\r\n"sv,
           "PROXY TCP4 192.0.2.1\t198.51.100.7 4711 443 1\r\n"sv,
           "PROXY TCP4 \r\n"sv,
       }) {
    EXPECT_EQ(outcome_of(line), "a malformed PROXY header") << line;
  }
}

TEST(ProxyHeader, ALineHasAtMost107Bytes) {
  const std::string start = "PROXY UNKNOWN ";
  EXPECT_EQ(outcome_of(start + std::string(107 - 2 - start.size(), 'x') + "\r\n", "y"), "source ");
  EXPECT_EQ(outcome_of(start + std::string(107 - 1 - start.size(), 'x') + "\r\n"), "a malformed PROXY header");
}

TEST(ProxyHeader, TheFirstFaultStays) {
  ProxyHeader header;
  header.handle_input(as_bytes("no"));
  ASSERT_TRUE(header.fault());
  header.handle_input({});
  EXPECT_EQ(header.wanted(), 0u);
  EXPECT_FALSE(header.done());
}

}  // namespace
}  // namespace weft::net
