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
#include "weft/sync/duration_counts.h"

namespace weft::serve {

struct Label {
  std::string_view name;
  std::string_view value;
};
using Labels = std::span<const Label>;

// PrometheusWriter: metrics as the text that Prometheus scrapes (exposition format 0.0.4). A writer makes one answer;
// each object with metrics adds its families.
// Owner: the code that answers the scrape. Affinity: one thread.
// Cost: allocates; no hot path.
// Invariants:
//   1. The text is well formed at any time: names are valid, values are escaped and UTF-8, every line ends.
//   2. A family has one HELP and one TYPE before its samples, and is in one piece.
//   3. A sample is in the text once.
//   4. A refused family or sample leaves no text, so one mistake does not cost the whole scrape.
class PrometheusWriter {
 public:
  static constexpr const char* kContentType = "text/plain; version=0.0.4; charset=utf-8";

  enum class Type : std::uint8_t { counter, gauge, histogram };

  // Begins a family; the next samples belong to it. Errors: invalid_argument (the name is not of letters, digits, '_'
  // and ':', without a digit first); invalid_state (the text has a family of this name). After an error the writer
  // refuses samples until the next family.
  Result<void> family(std::string_view name, Type type, std::string_view help);

  // Writes a sample of a counter or gauge. Errors: invalid_argument (the name of a label is not of letters, digits and
  // '_', without a digit or "__" first, each once); invalid_state (no family of this type was begun, or the text has
  // this sample).
  Result<void> sample(Labels labels, std::uint64_t value);
  Result<void> sample(Labels labels, double value);
  Result<void> sample(std::initializer_list<Label> labels, auto value) {
    return sample(Labels(labels.begin(), labels.size()), value);
  }
  // Writes a histogram of seconds, with a bucket for each power of two of nanoseconds from 1 us to 17 s. Each bound is
  // the end of a bucket of LatencyHistogram, so the counts are exact. Errors: those of sample(); invalid_argument (a
  // label `le`).
  Result<void> histogram(Labels labels, const LatencyHistogram& durations, std::uint64_t sum_ns);
  Result<void> histogram(Labels labels, const sync::DurationValues& durations);  // the same bounds

  [[nodiscard]] const std::string& text() const noexcept { return text_; }

 private:
  Result<void> begin(Labels labels, bool histogram, std::string& rendered);
  void line(std::string_view suffix, std::string_view labels, std::string_view value);

  std::string text_;
  std::string name_;  // of the family; empty if none
  Type type_ = Type::gauge;
  std::set<std::string, std::less<>> families_;
  std::set<std::string, std::less<>> samples_;  // samples of this family: their labels, in order of name
};

}  // namespace weft::serve
