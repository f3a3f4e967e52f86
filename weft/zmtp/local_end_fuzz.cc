// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "weft/base/assert.h"
#include "weft/zmtp/frame.h"
#include "weft/zmtp/test_support.h"

// The first bytes choose our socket type, the limits, whether a valid handshake comes first and of which
// version, our opening, and the cuts. The rest is the peer's bytes. Checked besides the sanitizers: no call
// takes more than it was shown, events point into their body, and the outcome is the same whole and in
// pieces.
namespace {

using namespace weft::zmtp;
using test::Buffer;
using weft::ParseStatus;
using test::operator+;

LocalEndConfig make_config(std::uint8_t type, std::uint8_t options) {
  LocalEndConfig config = test::config_of(static_cast<WireType>(type % kSocketTypeCount));
  config.identity = "fuzz";
  if ((options & 1) != 0) {
    config.limits = {64, 3, 24, 16, 40, 2, {300, 0}};
  }
  return config;
}

const char* partner(WireType type) {
  for (int i = 0; i < kSocketTypeCount; ++i) {
    if (compatible(type, static_cast<WireType>(i))) {
      return socket_type_name(static_cast<WireType>(i)).data();
    }
  }
  return "PAIR";
}

void check_header_round_trip(weft::Bytes input) {
  ZmtpFrameHeader header;
  if (parse_frame_header(input, header) != ParseStatus::complete) {
    return;
  }
  WEFT_ASSERT(header.header_size <= input.size() && header.body_size <= kFrameBodySizeMax);
  std::uint8_t again[kFrameHeaderSizeMax];
  ZmtpFrameHeader second;
  const std::size_t size = write_frame_header(again, header.flags & (kMore | kCommand), header.body_size);
  WEFT_ASSERT(size == frame_header_size(header.body_size) && size <= header.header_size);
  WEFT_ASSERT(parse_frame_header({again, size}, second) == ParseStatus::complete);
  WEFT_ASSERT(second.body_size == header.body_size && ((second.flags ^ header.flags) & (kMore | kCommand)) == 0);
}

void check_header_round_trip_v1(weft::Bytes input) {
  ZmtpFrameHeader header;
  if (parse_frame_header_v1(input, header) != ParseStatus::complete) {
    return;
  }
  WEFT_ASSERT(header.header_size <= input.size() && header.body_size <= kFrameBodySizeMax && header.flags <= kMore);
  std::uint8_t again[kFrameHeaderSizeMaxV1];
  ZmtpFrameHeader second;
  const std::size_t size = write_frame_header_v1(again, header.flags, header.body_size);
  WEFT_ASSERT(size <= header.header_size && parse_frame_header_v1({again, size}, second) == ParseStatus::complete);
  WEFT_ASSERT(second.body_size == header.body_size && second.flags == header.flags);
}

// The bytes that a peer of ZMTP 1.0 or 2.0 sends before its first message.
Buffer old_handshake(bool first_version, WireType ours) {
  if (first_version) {
    return test::wire("03 00 'id'");
  }
  const auto theirs = parse_socket_type(partner(ours)).value_or(WireType::pair);
  return test::wire("FF 00000000 00000001 7F 01") + Buffer{static_cast<std::uint8_t>(theirs)} +
         test::wire("00 02 'id'");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 4) {
    return 0;
  }
  const LocalEndConfig config = make_config(data[0], data[1]);
  std::uint32_t random = data[2] * 256U + data[3];
  const weft::Bytes rest(data + 4, size - 4);
  check_header_round_trip(rest);
  check_header_round_trip_v1(rest);
  const Opening opening = (data[1] & 16) != 0 ? Opening::signature : Opening::whole;

  Buffer stream;
  if ((data[1] & 2) != 0) {
    stream = test::greeting_bytes(3, (data[1] & 4) != 0 ? 0 : 1);
  }
  if ((data[1] & 8) != 0) {
    stream = stream + test::ready_frame(partner(config.socket_type));
  }
  if ((data[1] & 32) != 0) {
    stream = old_handshake((data[1] & 64) != 0, config.socket_type);
  }
  stream.insert(stream.end(), rest.begin(), rest.end());

  LocalEnd peer = test::started(config, test::kStart, opening);
  const test::Outcome whole = test::run_whole(peer, stream);
  peer.start(test::kStart, opening);
  const test::Outcome pieces = test::run(peer, stream, [&random] {
    random = random * 1664525U + 1013904223U;
    return std::size_t{1} + (random >> 24) % 40;
  });
  WEFT_ASSERT(whole == pieces);
  WEFT_ASSERT(peer.next_deadline(test::kStart) > test::kStart);
  return 0;
}
