// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "weft/base/assert.h"
#include "weft/zmtp/datagram_codec.h"

// Byte 0 is the size of the pieces, byte 1 the limit of a part, the rest is a datagram. Checked besides the sanitizers:
// the frames are whole, they are a message of two parts that gives the datagram back, or an empty part alone.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) {
    return 0;
  }
  const std::size_t step = std::size_t{1} + data[0];
  const std::uint64_t part_max = std::uint64_t{data[1]} * 16;
  const weft::Bytes datagram(data + 2, size - 2);
  weft::zmtp::IncomingFrames incoming;
  incoming.put_grouped(datagram, part_max);

  std::vector<std::uint8_t> all;
  std::vector<std::uint8_t> piece(step);
  while (!incoming.empty()) {
    const std::size_t taken = incoming.take(piece);
    WEFT_ASSERT(taken > 0 && taken <= step);
    all.insert(all.end(), piece.begin(), piece.begin() + static_cast<std::ptrdiff_t>(taken));
  }
  const weft::Bytes bytes(all);
  weft::zmtp::OutgoingFrames outgoing({&bytes, 1});
  weft::zmtp::OutgoingFrames::Frame frame;
  WEFT_ASSERT(outgoing.next(frame));
  if (frame.header.flags == 0) {
    WEFT_ASSERT(frame.body.empty() && outgoing.taken() == all.size() && !outgoing.next(frame));
    return 0;
  }
  WEFT_ASSERT((frame.header.flags & weft::zmtp::kMore) != 0 && frame.body.size() <= part_max);
  std::vector<std::uint8_t> again(frame.header_and_body.begin() + 1, frame.header_and_body.end());
  WEFT_ASSERT(outgoing.next(frame) && (frame.header.flags & weft::zmtp::kMore) == 0 && frame.body.size() <= part_max);
  again.insert(again.end(), frame.body.begin(), frame.body.end());
  WEFT_ASSERT(outgoing.taken() == all.size() && !outgoing.next(frame));
  WEFT_ASSERT(std::equal(again.begin(), again.end(), datagram.begin(), datagram.end()));
  return 0;
}
