// SPDX-License-Identifier: MIT
#include "weft/base/filter.h"

#include <algorithm>
#include <cstring>
#include <optional>

namespace weft {
namespace {

constexpr std::string_view kAnyToken = "*";
constexpr std::string_view kAnyTokens = ">";
constexpr std::string_view kGlobSpecials = "*?[\\";

// Tokens: those of a text in turn. An empty text has one empty token.
class Tokens {
 public:
  explicit Tokens(std::string_view text) noexcept : rest_(text) {}

  [[nodiscard]] bool next(std::string_view& token) noexcept {
    if (done_) {
      return false;
    }
    const std::size_t end = std::min(rest_.find(kTopicSeparator), rest_.size());
    token = rest_.substr(0, end);
    done_ = end == rest_.size();
    rest_.remove_prefix(done_ ? end : end + 1);
    return true;
  }
  // The text after the last token and its separator.
  [[nodiscard]] std::string_view rest() const noexcept { return rest_; }
  [[nodiscard]] bool done() const noexcept { return done_; }

 private:
  std::string_view rest_;
  bool done_ = false;
};

bool tokens_match(std::string_view text, std::string_view topic) noexcept {
  Tokens wanted(text);
  Tokens given(topic);
  std::string_view want;
  std::string_view have;
  while (wanted.next(want)) {
    if (want == kAnyTokens) {
      return !given.rest().empty();
    }
    if (!given.next(have) || (want == kAnyToken ? have.empty() : have != want)) {
      return false;
    }
  }
  return given.done();
}

bool tokens_cover(std::string_view text, std::string_view other) noexcept {
  Tokens wide(text);
  Tokens narrow(other);
  std::string_view a;
  std::string_view b;
  while (wide.next(a)) {
    if (!narrow.next(b)) {
      return false;
    }
    if (a == kAnyTokens) {
      return true;
    }
    if (b == kAnyTokens || (a != kAnyToken && a != b)) {
      return false;
    }
  }
  return narrow.done();
}

// Glob: a pattern as elements, each of which stands for one byte of the topic, and stars between them.
class Glob {
 public:
  explicit Glob(std::string_view pattern) noexcept : pattern_(pattern) {}

  // At most one step for each byte of the pattern at each byte of the topic; three if it is a class's.
  [[nodiscard]] bool matches(std::string_view topic, std::size_t& steps) const noexcept {
    std::size_t at = 0;
    Run run = run_from(0);
    steps += run.end + 1;
    if (run.elements > topic.size() || (run.end == pattern_.size() && run.elements != topic.size()) ||
        !matches_at(run, topic, 0, steps)) {
      return false;
    }
    at = run.elements;
    while (run.end < pattern_.size()) {
      const std::size_t begin = run.end + 1;  // after the star
      run = run_from(begin);
      steps += run.end - begin + 1;
      if (run.elements > topic.size() - at) {
        return false;
      }
      const std::size_t last = topic.size() - run.elements;
      if (run.end == pattern_.size()) {  // only the end of the topic will do
        return matches_at(run, topic, last, steps);
      }
      // The first place that matches leaves the most room for the rest, so no other need be tried.
      while (!matches_at(run, topic, at, steps)) {
        if (++at > last) {
          return false;
        }
      }
      at += run.elements;
    }
    return true;
  }

  // Returns null if the pattern is well formed.
  [[nodiscard]] StaticText problem() const noexcept {
    for (std::size_t i = 0; i < pattern_.size();) {
      const std::size_t end = element_end(i);
      if (end > pattern_.size()) {
        return pattern_[i] == '[' ? StaticText("a glob has a [ without its ]")
                                  : StaticText("a glob ends with a backslash");
      }
      i = end;
    }
    return nullptr;
  }

 private:
  // Run: the elements up to the next star or the end of the pattern.
  struct Run {
    std::size_t begin;
    std::size_t end;
    std::size_t elements;
  };

  [[nodiscard]] Run run_from(std::size_t begin) const noexcept {
    Run run{begin, begin, 0};
    for (; run.end < pattern_.size() && pattern_[run.end] != '*'; run.end = element_end(run.end)) {
      ++run.elements;
    }
    return run;
  }

  // After the element that begins at `i`. After the pattern: the element has no end.
  [[nodiscard]] std::size_t element_end(std::size_t i) const noexcept {
    if (pattern_[i] == '\\') {
      return i + 2;
    }
    if (pattern_[i] != '[') {
      return i + 1;
    }
    i = class_begin(i);
    while (i < pattern_.size() && pattern_[i] != ']') {
      i += range_size(i);
    }
    return i + 1;
  }
  [[nodiscard]] std::size_t class_begin(std::size_t i) const noexcept {
    return i + (i + 1 < pattern_.size() && pattern_[i + 1] == '^' ? 2 : 1);
  }
  // The bytes of `x`, `\x` or `x-y` in a class.
  [[nodiscard]] std::size_t range_size(std::size_t i) const noexcept {
    if (pattern_[i] == '\\') {
      return 2;
    }
    return i + 2 < pattern_.size() && pattern_[i + 1] == '-' ? 3 : 1;
  }

  // Whether the class that opens at `i` has the byte; `i` goes after the class.
  [[nodiscard]] bool take_class(std::size_t& i, unsigned char byte) const noexcept {
    const std::size_t begin = class_begin(i);
    const bool has = begin == i + 1;
    bool found = false;
    for (i = begin; i < pattern_.size() && pattern_[i] != ']';) {
      const std::size_t size = range_size(i);
      const auto first = static_cast<unsigned char>(pattern_[size == 2 ? i + 1 : i]);
      const auto last = static_cast<unsigned char>(size == 3 ? pattern_[i + 2] : first);
      found = found || (byte >= std::min(first, last) && byte <= std::max(first, last));
      i += size;
    }
    ++i;
    return found == has;
  }

  [[nodiscard]] bool matches_at(const Run& run, std::string_view topic, std::size_t at,
                                std::size_t& steps) const noexcept {
    std::size_t i = run.begin;
    bool same = true;
    while (same && i < run.end) {
      const char byte = topic[at++];
      switch (pattern_[i]) {
        case '?': ++i; break;
        case '[': {
          const std::size_t open = i;
          same = take_class(i, static_cast<unsigned char>(byte));
          steps += 2 * (i - open);  // a byte of a class takes two to three times as long
          break;
        }
        case '\\':
          same = pattern_[i + 1] == byte;
          i += 2;
          break;
        default: same = pattern_[i++] == byte;
      }
    }
    steps += i - run.begin + 1;
    return same;
  }

  std::string_view pattern_;
};

// A glob that ends with a star, tokens that end with >.
bool ends_open(const FilterView& filter) noexcept {
  if (filter.kind != FilterKind::glob || !filter.text.ends_with('*')) {
    return filter.kind == FilterKind::tokens && filter.text.ends_with(kAnyTokens);
  }
  const std::size_t last = filter.text.size() - 1;
  const std::size_t before = filter.text.find_last_not_of('\\', last - 1);
  const std::size_t backslashes = last == 0 ? 0 : last - (before == std::string_view::npos ? 0 : before + 1);
  return backslashes % 2 == 0;  // with an odd number the last of them makes the star a plain byte
}

// Cuts a topic that is too long for the filter to read, if the filter has an open end. Returns nullopt if there is no
// match.
std::optional<std::string_view> readable(const FilterView& filter, std::string_view topic) noexcept {
  if (topic.size() <= kTopicBytesMax) {
    return topic;
  }
  return ends_open(filter) ? std::optional(topic.substr(0, kTopicBytesMax)) : std::nullopt;
}

// The pattern of a glob is "head*": a prefix. Or it has no special byte: one topic.
bool is_prefix_glob(const FilterView& filter) noexcept {
  return filter.kind == FilterKind::glob && filter.text.ends_with('*') &&
         filter.text.find_first_of(kGlobSpecials) == filter.text.size() - 1;
}
bool is_one_topic(const FilterView& filter) noexcept {
  return filter.kind == FilterKind::exact ||
         (filter.kind == FilterKind::glob && filter.text.find_first_of(kGlobSpecials) == std::string_view::npos);
}

// Why `text` is neither a topic name nor a tokens filter; null: it is one of them. Counts the stars.
StaticText problem_of_tokens(std::string_view text, bool wildcards, std::size_t& stars, bool& open) noexcept {
  if (text.empty()) {
    return "a topic is empty";
  }
  if (std::any_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x21; })) {
    return "a topic has a space or a control byte";
  }
  std::size_t count = 0;
  std::string_view token;
  for (Tokens tokens(text); tokens.next(token);) {
    if (token.empty()) {
      return "a topic has an empty token";
    }
    if (++count > kTopicTokensMax) {
      return "a topic has more than 16 tokens";
    }
    if (!wildcards) {
      continue;
    }
    if (open) {
      return "tokens follow the > of a filter";
    }
    open = token == kAnyTokens;
    stars += token == kAnyToken ? 1 : 0;
    if (!open && token != kAnyToken && token.find_first_of("*>") != std::string_view::npos) {
      return "a * or > of a filter is not a token of its own: a glob may have it";
    }
  }
  return stars > kFilterStarsMax ? StaticText("a filter has more than four *") : StaticText();
}

constexpr Error kTooLong(Errc::message_too_large, "a topic or filter is longer than 255 bytes");

}  // namespace

Result<void> check_topic(std::string_view name) noexcept {
  if (name.size() > kTopicBytesMax) {
    return kTooLong;
  }
  std::size_t stars = 0;
  bool open = false;
  if (const StaticText problem = problem_of_tokens(name, false, stars, open); problem != nullptr) {
    return Error(Errc::invalid_argument, problem);
  }
  return {};
}

bool FilterView::matches(std::string_view topic) const noexcept {
  std::size_t steps = SIZE_MAX;
  return may_match(topic, steps);
}

bool FilterView::may_match(std::string_view topic, std::size_t& steps) const noexcept {
  std::size_t taken = 1;
  bool found = false;
  if (steps == 0) {
    return true;
  }
  switch (kind) {
    case FilterKind::exact: return topic == text;
    case FilterKind::prefix: return topic.starts_with(text);
    case FilterKind::tokens:
      if (const auto read = readable(*this, topic); read) {
        taken += text.size();
        found = tokens_match(text, *read);
      }
      break;
    case FilterKind::glob:
      if (const auto read = readable(*this, topic); read) {
        found = Glob(text).matches(*read, taken);
      }
      break;
  }
  steps -= std::min(steps, taken);
  return found;
}

std::string_view FilterView::literal_head() const noexcept {
  if (kind == FilterKind::glob) {
    return text.substr(0, text.find_first_of(kGlobSpecials));
  }
  if (kind == FilterKind::tokens) {
    return text.substr(0, text.find_first_of("*>"));
  }
  return text;
}

bool FilterView::covers(const FilterView& other) const noexcept {
  if (*this == other) {
    return true;
  }
  if (is_one_topic(other)) {
    return matches(other.text);
  }
  if (kind == FilterKind::prefix) {
    return other.literal_head().starts_with(text);
  }
  if (is_prefix_glob(*this)) {
    return other.literal_head().starts_with(literal_head());
  }
  if (kind == FilterKind::tokens) {
    if (other.kind == FilterKind::tokens) {
      return tokens_cover(text, other.text);
    }
    // Of the topics that begin with `head`, a filter that takes one of them and ends with > takes all that are longer.
    return text.ends_with(kAnyTokens) && matches(other.literal_head());
  }
  return false;
}

Filter::Filter(FilterKind kind, std::string_view text) noexcept
    : kind_(kind), size_(static_cast<std::uint8_t>(text.size())), text_{} {
  std::memcpy(text_.data(), text.data(), text.size());
}

Result<Filter> Filter::make(FilterKind kind, std::string_view text) noexcept {
  if (text.size() > kTopicBytesMax) {
    return kTooLong;
  }
  StaticText problem;
  switch (kind) {
    case FilterKind::exact:
    case FilterKind::prefix: break;
    case FilterKind::tokens: {
      std::size_t stars = 0;
      bool open = false;
      problem = problem_of_tokens(text, true, stars, open);
      if (problem == nullptr && stars == 0 && !open) {
        problem = "a tokens filter has neither * nor >: it is exact";
      }
      break;
    }
    case FilterKind::glob: problem = Glob(text).problem(); break;
    default: problem = "no such kind of filter";
  }
  return problem != nullptr ? Result<Filter>(Error(Errc::invalid_argument, problem)) : Filter(kind, text);
}

Result<Filter> Filter::parse(std::string_view text) noexcept {
  if (text.size() > kTopicBytesMax) {
    return kTooLong;
  }
  std::size_t stars = 0;
  bool open = false;
  if (const StaticText problem = problem_of_tokens(text, true, stars, open); problem != nullptr) {
    return Error(Errc::invalid_argument, problem);
  }
  return Filter(stars != 0 || open ? FilterKind::tokens : FilterKind::exact, text);
}

Result<Filter> Filter::exact(std::string_view topic) noexcept { return make(FilterKind::exact, topic); }
Result<Filter> Filter::prefix(std::string_view bytes) noexcept { return make(FilterKind::prefix, bytes); }
Result<Filter> Filter::glob(std::string_view pattern) noexcept { return make(FilterKind::glob, pattern); }

Filter Filter::widen_to_tokens() const noexcept {
  if (kind_ == FilterKind::tokens) {
    return *this;
  }
  if (is_one_topic(*this)) {
    if (const auto same = parse(text()); same && same->kind_ == FilterKind::exact) {
      return *same;
    }
  }
  // The longest front of whole tokens that leaves room for a `>`.
  const std::string_view head = literal_head();
  for (std::size_t end = head.rfind(kTopicSeparator); end != std::string_view::npos && end != 0;
       end = head.rfind(kTopicSeparator, end - 1)) {
    char wide[kTopicBytesMax];
    if (end + 2 > sizeof(wide)) {
      continue;
    }
    std::memcpy(wide, head.data(), end + 1);
    wide[end + 1] = '>';
    if (const auto parsed = parse({wide, end + 2}); parsed && parsed->text().find('*') == std::string_view::npos) {
      return *parsed;
    }
  }
  return {FilterKind::tokens, kAnyTokens};
}

}  // namespace weft
