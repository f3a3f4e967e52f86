// SPDX-License-Identifier: MIT
#include "weft/serve/metrics/prometheus.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <vector>

#include "weft/base/text/utf8.h"

namespace weft::serve {
namespace {

constexpr bool is_letter(char c) noexcept { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
constexpr bool is_metric_digit(char c) noexcept { return c >= '0' && c <= '9'; }

bool is_name(std::string_view name, std::string_view also) noexcept {
  const auto may_begin = [&](char c) { return is_letter(c) || also.find(c) != std::string_view::npos; };
  return !name.empty() && may_begin(name[0]) &&
         std::all_of(name.begin(), name.end(), [&](char c) { return may_begin(c) || is_metric_digit(c); });
}

// `quoted`: escapes quotes, too; a label's value needs that, and a help text does not.
void append_escaped(std::string& out, std::string_view text, bool quoted) {
  while (!text.empty()) {
    const std::size_t size = utf8_size(text);
    if (size == 0) {
      out += "\xEF\xBF\xBD";  // the replacement character
    } else if (text[0] == '\\') {
      out += "\\\\";
    } else if (text[0] == '\n') {
      out += "\\n";
    } else if (text[0] == '"' && quoted) {
      out += "\\\"";
    } else {
      out.append(text.substr(0, size));
    }
    text.remove_prefix(std::max<std::size_t>(size, 1));
  }
}

template <typename Number>
std::string text_of(Number value) {
  if constexpr (std::is_floating_point_v<Number>) {
    if (std::isnan(value)) {
      return "NaN";
    }
    if (std::isinf(value)) {
      return value > 0 ? "+Inf" : "-Inf";
    }
  }
  std::array<char, 32> digits;
  return {digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr};
}

constexpr const char* name_of(PrometheusWriter::Type type) noexcept {
  switch (type) {
    case PrometheusWriter::Type::counter: return "counter";
    case PrometheusWriter::Type::gauge: return "gauge";
    case PrometheusWriter::Type::histogram: return "histogram";
  }
  return "untyped";
}

// The samples of a histogram have names with these suffixes; family() reserves the names.
constexpr std::array<std::string_view, 3> kSuffixes = {"_bucket", "_sum", "_count"};

}  // namespace

Result<void> PrometheusWriter::family(std::string_view name, Type type, std::string_view help) {
  name_.clear();
  samples_.clear();
  if (!is_name(name, ":")) {
    return Error(Errc::invalid_argument, "the name of a metric");
  }
  std::vector<std::string> names{std::string(name)};
  if (type == Type::histogram) {
    for (const std::string_view suffix : kSuffixes) {
      names.push_back(names[0] + std::string(suffix));
    }
  }
  if (std::any_of(names.begin(), names.end(), [&](const std::string& each) { return families_.contains(each); })) {
    return Error(Errc::invalid_state, "a metric has this name already");
  }
  name_ = names[0];
  type_ = type;
  families_.insert(names.begin(), names.end());
  text_ += "# HELP " + name_ + " ";
  append_escaped(text_, help, false);
  text_ += "\n# TYPE " + name_ + " " + name_of(type) + "\n";
  return {};
}

// Checks the rules for every sample, and writes its labels: a="1",b="2".
Result<void> PrometheusWriter::begin(Labels labels, bool histogram, std::string& rendered) {
  if (name_.empty() || (type_ == Type::histogram) != histogram) {
    return Error(Errc::invalid_state, "no metric of this type was begun");
  }
  std::vector<Label> sorted(labels.begin(), labels.end());
  std::sort(sorted.begin(), sorted.end(), [](const Label& a, const Label& b) { return a.name < b.name; });
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    const std::string_view name = sorted[i].name;
    if (!is_name(name, "") || name.starts_with("__") || (histogram && name == "le") ||
        (i > 0 && sorted[i - 1].name == name)) {
      return Error(Errc::invalid_argument, "the name of a label");
    }
    rendered += (i > 0 ? "," : "") + std::string(name) + "=\"";
    append_escaped(rendered, sorted[i].value, true);
    rendered += '"';
  }
  if (!samples_.insert(rendered).second) {
    return Error(Errc::invalid_state, "the metric has this sample already");
  }
  return {};
}

void PrometheusWriter::line(std::string_view suffix, std::string_view labels, std::string_view value) {
  text_.append(name_).append(suffix);
  if (!labels.empty()) {
    text_.append("{").append(labels).append("}");
  }
  text_.append(" ").append(value).append("\n");
}

Result<void> PrometheusWriter::sample(Labels labels, std::uint64_t value) {
  std::string rendered;
  WEFT_TRY(begin(labels, false, rendered));
  line("", rendered, text_of(value));
  return {};
}

Result<void> PrometheusWriter::sample(Labels labels, double value) {
  std::string rendered;
  WEFT_TRY(begin(labels, false, rendered));
  line("", rendered, text_of(value));
  return {};
}

Result<void> PrometheusWriter::histogram(Labels labels, const LatencyHistogram& durations, std::uint64_t sum_ns) {
  sync::DurationValues values;
  std::size_t fine = 0;
  for (std::size_t bucket = 0; bucket < sync::DurationBuckets::kBounds; ++bucket) {
    const std::size_t end = LatencyHistogram::bucket_of(sync::DurationBuckets::end_of(bucket));
    for (; fine < end; ++fine) {
      values.counts[bucket] += durations.count(fine);
    }
  }
  for (; fine < LatencyHistogram::kBuckets; ++fine) {
    values.counts.back() += durations.count(fine);
  }
  values.sum_ns = sum_ns;
  return histogram(labels, values);
}

Result<void> PrometheusWriter::histogram(Labels labels, const sync::DurationValues& durations) {
  std::string rendered;
  WEFT_TRY(begin(labels, true, rendered));
  const std::string front = rendered + (rendered.empty() ? "" : ",") + "le=\"";
  std::uint64_t count = 0;
  for (std::size_t bucket = 0; bucket < sync::DurationBuckets::kBounds; ++bucket) {
    count += durations.counts[bucket];
    const auto bound = static_cast<double>(sync::DurationBuckets::end_of(bucket) - 1);
    line("_bucket", front + text_of(bound / 1e9) + "\"", text_of(count));
  }
  count += durations.counts.back();
  line("_bucket", front + "+Inf\"", text_of(count));
  line("_sum", rendered, text_of(static_cast<double>(durations.sum_ns) / 1e9));
  line("_count", rendered, text_of(count));
  return {};
}

}  // namespace weft::serve
