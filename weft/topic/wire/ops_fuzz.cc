// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "weft/base/assert.h"
#include "weft/topic/wire/batch.h"
#include "weft/topic/wire/ops.h"

// The input is one op. Checked besides the sanitizers: an op that parses is within every bound, and encodes to the very
// bytes that it was parsed from.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const weft::Bytes bytes(data, size);
  if (const auto batch = weft::topic::parse_batch(bytes)) {
    std::vector<std::uint8_t> body;
    for (const weft::topic::Op& message : *batch) {
      WEFT_ASSERT(weft::topic::add_to_batch(message, 0, body).has_value());
    }
    WEFT_ASSERT(std::equal(body.begin(), body.end(), bytes.begin(), bytes.end()));
  }
  const auto op = weft::topic::parse_op(bytes);
  if (!op) {
    WEFT_ASSERT(op.error() == weft::Errc::protocol_error || op.error() == weft::Errc::not_supported);
    (void)weft::topic::op_id(bytes);
    return 0;
  }
  WEFT_ASSERT(weft::topic::check_op(*op).has_value());
  WEFT_ASSERT(weft::topic::op_id(bytes) == op->id);
  WEFT_ASSERT(weft::topic::encoded_size(*op) == size);
  std::vector<std::uint8_t> again(size);
  weft::topic::encode_op(*op, again);
  WEFT_ASSERT(std::equal(again.begin(), again.end(), bytes.begin(), bytes.end()));
  std::uint64_t sum = op->error() == weft::Errc::ok ? 0 : 1;
  for (std::size_t i = 0; i < weft::topic::sequence_count(op->body); ++i) {
    sum += weft::topic::sequence_at(op->body, i);
  }
  return sum == 0 && size == 0 ? 1 : 0;
}
