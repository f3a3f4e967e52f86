// SPDX-License-Identifier: MIT
// Control messages of peers: any bytes give a message that encodes to the same bytes, or an error.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "weft/topic/wire/control.h"
#include "weft/topic/wire/headers.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const weft::Bytes bytes(data, size);
  (void)weft::find_header(weft::as_text(bytes), "A");
  (void)weft::is_header_block(weft::as_text(bytes));
  const auto control = weft::topic::decode_control(bytes);
  if (!control) {
    return 0;
  }
  (void)weft::topic::parse_roster(control->texts);
  const auto again = weft::topic::encode_control(*control);
  if (!again || weft::as_text(bytes) != *again) {
    std::abort();
  }
  return 0;
}
