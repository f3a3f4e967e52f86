// SPDX-License-Identifier: MIT
#include <cstddef>
#include <cstdint>
#include <string>

#include "weft/base/assert.h"
#include "weft/base/bytes.h"
#include "weft/base/utf8.h"
#include "weft/serve/session/log.h"
#include "weft/serve/session/test_log.h"

// The input is the peer's name. The output must be one well-formed line whose peer is exactly that name.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weft::serve;
  LogRecord record;
  record.peer = weft::as_text(weft::Bytes(data, size));
  record.reason = describe(CloseReason::idle_timeout);
  std::string line;
  append_line(record, line);
  WEFT_ASSERT(line.ends_with('\n'));
  line.pop_back();
  const auto fields = test::read_log_line(line);
  WEFT_ASSERT(fields.has_value());
  WEFT_ASSERT(fields->at("reason") == u"idle timeout" && fields->size() == 12);
  std::u16string name;
  for (std::string_view rest = record.peer.substr(0, kLogTextMax); !rest.empty();) {
    const std::size_t taken = weft::utf8_size(rest);
    const std::uint32_t code = taken == 0 ? 0xFFFD : weft::utf8_decode(rest.substr(0, taken));
    if (code >= 0x10000) {
      name += static_cast<char16_t>(0xD800 + ((code - 0x10000) >> 10));
    }
    name += static_cast<char16_t>(code < 0x10000 ? code : 0xDC00 + ((code - 0x10000) & 0x3FF));
    rest.remove_prefix(taken == 0 ? 1 : taken);
  }
  WEFT_ASSERT(fields->at("peer") == name);
  return 0;
}
