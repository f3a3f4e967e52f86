// SPDX-License-Identifier: MIT
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "weft/base/assert.h"
#include "weft/base/bytes.h"
#include "weft/serve/config/read.h"

// The first byte chooses: texts of values, or a whole file. Checks besides the sanitizers: a value's text parses as the
// same value; a file is refused with a problem, or gives settings whose values are in their bounds and are read again
// from their own texts.
namespace {

using namespace weft::serve::config;  // NOLINT(google-build-using-namespace)

template <typename T>
void expect_same(const weft::Result<T>& parsed, weft::Result<T> (*parse)(std::string_view) noexcept) {
  if (parsed) {
    const std::string text = to_text(*parsed);
    const auto again = parse(text);
    WEFT_ASSERT(again && to_text(*again) == text);
  }
}

void read_values(std::string_view text) {
  expect_same(parse_duration(text), &parse_duration);
  expect_same(parse_size(text), &parse_size);
  expect_same(parse_rate(text), &parse_rate);
  const std::string shown = quote(text);
  WEFT_ASSERT(shown.size() <= 70);
  for (const char c : shown) {
    WEFT_ASSERT(static_cast<unsigned char>(c) >= 0x20 && c != 0x7F);
  }
}

void read_file(std::string_view text) {
  static const ProgramKeys keys = [] {
    ProgramKeys made;
    (void)made.integer("n", 1, {0, 9}, "A number");
    (void)made.text("t.x", "", "A text");
    made.take_others();
    return made;
  }();
  Problem fault;
  const auto root = parse_toml(text, fault);
  if (!root) {
    WEFT_ASSERT(!fault.text.empty());
    return;
  }
  Draft draft;
  draft.program = keys.defaults();
  Problems problems;
  read_tables(*root, "file", keys, draft, problems);
  const std::string variables[] = {"WEFT_SERVER_CORES=" + std::string(text.substr(0, 100)), "WEFT_APP_N=1"};
  read_environment(variables, "WEFT", keys, draft, problems);
  check_together("/etc", draft, problems);
  problems.sort();
  for (const Problem& problem : problems.list()) {
    WEFT_ASSERT(!problem.text.empty() && !problem.message().empty());
  }
  for (const auto& [key, origin] : draft.origins) {
    WEFT_ASSERT(!key.empty() && !origin.source.empty());
  }
  std::string why;
  WEFT_ASSERT(check_bounds(keys.keys()[0], draft.program[0], why) &&
              check_bounds(keys.keys()[1], draft.program[1], why));
  make_gates(false, draft, problems);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size != 0) {
    const std::string_view text = weft::as_text({data + 1, size - 1});
    (data[0] % 2 == 0) ? read_values(text) : read_file(text);
  }
  return 0;
}
