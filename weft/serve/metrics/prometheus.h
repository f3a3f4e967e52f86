// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <initializer_list>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "weft/base/result.h"
#include "weft/serve/metrics/metrics.h"

namespace weft::serve {

struct Label {
  std::string_view name;
  std::string_view value;
};
using Labels = std::span<const Label>;

// PrometheusWriter: metrics as the text that Prometheus scrapes (exposition format 0.0.4). A writer makes one answer,
// to which whoever has metrics adds its families. Owner: who answers. Affinity: one thread. Cost: allocates; it is no
// hot path. What it has refused it has not written, so that one mistake does not cost the whole scrape. Invariants:
//   (1) The text is well formed at any time: names are names, values are escaped and UTF-8, every line ends.
//   (2) A family has one HELP and one TYPE before its samples and stands in one piece; a sample comes once.
class PrometheusWriter {
 public:
  static constexpr const char* kContentType = "text/plain; version=0.0.4; charset=utf-8";

  enum class Type : std::uint8_t { counter, gauge, histogram };

  // The samples that follow belong to it. invalid_argument: the name (letters, digits, '_' and ':', no digit first);
  // invalid_state: there was one of this name. After an error samples are refused until the next family.
  Result<void> family(std::string_view name, Type type, std::string_view help);

  // A sample of a counter or gauge. invalid_argument: the name of a label (letters, digits and '_', no digit first, no
  // "__" first, each once); invalid_state: no such family was begun, or the sample is there.
  Result<void> sample(Labels labels, std::uint64_t value);
  Result<void> sample(Labels labels, double value);
  Result<void> sample(std::initializer_list<Label> labels, auto value) {
    return sample(Labels(labels.begin(), labels.size()), value);
  }
  // A histogram of seconds, with a bucket for each power of two of nanoseconds from 1 us to 17 s; the bounds are ends
  // of ours, so that the counts are exact. Errors: as sample(); the label `le` is ours.
  Result<void> histogram(Labels labels, const LatencyHistogram& durations, std::uint64_t sum_ns);

  [[nodiscard]] const std::string& text() const noexcept { return text_; }

 private:
  Result<void> begin(Labels labels, bool histogram, std::string& rendered);
  void line(std::string_view suffix, std::string_view labels, std::string_view value);

  std::string text_;
  std::string name_;  // of the family; empty: none
  Type type_ = Type::gauge;
  std::set<std::string, std::less<>> families_;
  std::set<std::string, std::less<>> samples_;  // of this family, by their labels in order of name
};

}  // namespace weft::serve
