// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "weft/base/assert.h"
#include "weft/base/filter.h"
#include "weft/base/test_filters.h"

// The first two bytes choose the kind and the size of the filter's text; the topic follows. Checked besides the
// sanitizers: the bound on steps, the literal head, covers() and widen_to_tokens(), and, for short texts, the
// definition.
namespace {

using weft::Filter;
using weft::FilterKind;

void check(const Filter& filter, std::string_view topic) {
  std::size_t steps = SIZE_MAX;
  const bool found = filter.view().may_match(topic, steps);
  WEFT_ASSERT(SIZE_MAX - steps <=
              3 * weft::kTopicBytesMax * (weft::kTopicBytesMax + 4));  // a byte of a class takes three
  WEFT_ASSERT(!found || topic.starts_with(filter.literal_head()));
  WEFT_ASSERT(filter.covers(filter));
  const auto stars = std::count(filter.text().begin(), filter.text().end(), '*');
  if (topic.size() <= 16 && stars <= 4) {
    WEFT_ASSERT(found == weft::naive::matches(filter, topic));
  }
  const Filter wide = filter.widen_to_tokens();
  WEFT_ASSERT(!found || !weft::check_topic(topic) || wide.matches(topic));
  if (const auto one = Filter::exact(topic); one) {
    WEFT_ASSERT(filter.covers(*one) == found);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) {
    return 0;
  }
  const std::string_view rest(reinterpret_cast<const char*>(data) + 2, size - 2);
  const std::size_t cut = std::min<std::size_t>(data[1], rest.size());
  const std::string_view text = rest.substr(0, cut);
  const std::string_view topic = rest.substr(cut);
  if (const auto filter = Filter::make(static_cast<FilterKind>(data[0] % 6), text); filter) {
    check(*filter, topic);
  }
  if (const auto filter = Filter::parse(text); filter) {
    check(*filter, topic);
  }
  (void)weft::check_topic(topic);
  return 0;
}
