// SPDX-License-Identifier: MIT
#include <cstddef>
#include <cstdint>
#include <vector>

#include "weft/base/assert.h"
#include "weft/base/endian.h"
#include "weft/store/block.h"
#include "weft/store/checksum.h"
#include "weft/store/consumer_state.h"

// The input is a block whose checksum is made right, so that the bytes after it are parsed; and the state of a
// consumer. Checked besides the sanitizers: the messages of a block lie within it; a state that is read writes itself.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace store = weft::store;
  std::vector<std::uint8_t> bytes(data, data + size);
  std::uint64_t first = 1;
  std::uint32_t stream = 1;
  if (size >= 24) {
    weft::store_big_endian(bytes.data() + 4, store::crc32c(weft::Bytes(bytes).subspan(8)));
    stream = weft::load_big_endian<std::uint32_t>(bytes.data() + 8);
    first = weft::load_big_endian<std::uint64_t>(bytes.data() + 16);
  }
  if (const auto block = store::Block::parse(bytes, stream, first)) {
    std::size_t sum = 24;
    for (std::size_t i = 0; i < (*block)->count(); ++i) {
      const store::StoredMessage message = (*block)->message((*block)->first() + i);
      const bool gone = message.expires == weft::WallTime::min() && message.topic.empty();
      WEFT_ASSERT(!gone || (message.is_over(weft::WallTime::min()) && message.body.empty()));
      sum += (gone ? 0 : 20) + message.topic.size() + message.id.size() + message.headers.size() + message.body.size();
    }
    WEFT_ASSERT(sum <= size);
  }
  store::ConsumerState state({}, ~std::uint64_t{0});
  if (state.read_waiting(weft::Bytes(data, size), weft::Instant())) {
    store::ConsumerState again({}, ~std::uint64_t{0});
    WEFT_ASSERT(again.read_waiting(state.write_waiting(), weft::Instant()).has_value());
    WEFT_ASSERT(again.waiting() == state.waiting() && again.write_waiting() == state.write_waiting());
  }
  return 0;
}
