// SPDX-License-Identifier: MIT
#include <cstddef>
#include <cstdint>
#include <string>

#include "weft/base/assert.h"
#include "weft/base/bytes.h"
#include "weft/logging/line.h"
#include "weft/logging/test_line.h"

// The input is the value of a field. The output must be one well-formed line in each format, with exactly that value,
// up to its bound.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weft::logging;
  const std::string_view value = weft::as_text(weft::Bytes(data, size));
  const Field fields[] = {{"before", 1}, {"value", value}, {"after", true}};
  const LineParts parts{1'700'000'000'000'123'456, Level::info, "fuzz", "event", fields};
  for (const Format format : {Format::text, Format::json}) {
    std::size_t bound = 0;
    WEFT_ASSERT(count_fitting(parts, bound) == 3);
    std::string line(bound, '\0');
    TimeText time;
    const char* const end = write_line(parts, format, false, time, line.data());
    line.resize(static_cast<std::size_t>(end - line.data()));
    WEFT_ASSERT(line.size() <= bound && line.ends_with('\n'));
    line.pop_back();
    test::LineReader reader(line);
    const auto read = format == Format::text ? reader.read_text() : reader.read_json();
    WEFT_ASSERT(read.has_value());
    WEFT_ASSERT(read->size() == 7 && read->at("before") == u"1" && read->at("after") == u"true");
    const std::u16string whole = test::code_units(value);
    const std::u16string& got = read->at("value");
    WEFT_ASSERT(size <= kTextMax ? got == whole : whole.starts_with(got));
  }
  return 0;
}
