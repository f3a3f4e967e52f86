// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "weft/base/result.h"

namespace weft {

// The bounds of topic names and filters.
inline constexpr std::size_t kTopicBytesMax = 255;
inline constexpr std::size_t kTopicTokensMax = 16;
inline constexpr std::size_t kFilterStarsMax = 4;  // the `*` of one tokens filter
inline constexpr char kTopicSeparator = '.';

// A topic name has 1 to 255 bytes: at most 16 tokens with a '.' between two, none of them empty, and no byte below
// 0x21. Fails with invalid_argument if the name breaks a rule, which the text names.
[[nodiscard]] Result<void> check_topic(std::string_view name) noexcept;

// FilterKind: the meaning of a filter's text. The numbers are those of the wire and of the C interface.
enum class FilterKind : std::uint8_t {
  exact = 1,   // the topic is the text
  tokens = 2,  // tokens between dots: `*` is any one token, a final `>` is one token or more
  prefix = 3,  // the topic begins with the text
  glob = 4,    // Redis' rules: `*` any bytes, `?` one byte, `[a-z]` one of them, `[^a-z]` none of them, `\x` the byte x
};

// FilterView: a filter whose text belongs to another object. Filter::make() accepts `text` for `kind`.
// Cost: nothing allocates or recurses. matches() takes at most 3 x 255 x 255 steps, whatever text and topic are. A
// topic longer than 255 bytes matches a prefix, and it matches a filter with a final `*` (glob) or `>` if its first 255
// bytes match.
struct FilterView {
  FilterKind kind;
  std::string_view text;

  [[nodiscard]] bool matches(std::string_view topic) const noexcept;
  // The same for at most `steps` steps of one to three nanoseconds; the call subtracts its steps. If none is left, it
  // returns true, which may be wrong.
  [[nodiscard]] bool may_match(std::string_view topic, std::size_t& steps) const noexcept;
  // Whether this filter matches each topic that `other` matches. Returns false if not; also in most cases in which one
  // of the two is a glob, for which the function checks only simple cases.
  [[nodiscard]] bool covers(const FilterView& other) const noexcept;
  // The bytes at the beginning of each matching topic: the front of the text. In a glob they end before the first
  // backslash, too.
  [[nodiscard]] std::string_view literal_head() const noexcept;

  friend bool operator==(const FilterView&, const FilterView&) = default;
  friend auto operator<=>(const FilterView&, const FilterView&) = default;
};

// Filter: the topics of a subscription.
// Affinity: a value. Cost: 257 bytes, trivially copyable; only widen_to_tokens() and the makers do more than read.
// Errors of the makers: invalid_argument, with a text that names the rule; message_too_large (more than 255 bytes).
class Filter {
 public:
  // A topic name, or tokens: "px.AAPL", "px.*", "*.error.>", ">". The rules of check_topic() hold. At most 4 tokens are
  // `*`. A `*` or `>` beside other bytes of a token is refused: a glob or exact() has it.
  [[nodiscard]] static Result<Filter> parse(std::string_view text) noexcept;
  // Any bytes, also those that are not a topic name.
  [[nodiscard]] static Result<Filter> exact(std::string_view topic) noexcept;
  // Any bytes. Empty: every topic.
  [[nodiscard]] static Result<Filter> prefix(std::string_view bytes) noexcept;
  // The pattern of Redis' PSUBSCRIBE. Unlike Redis a `[` without its `]` is refused, and a `\` at the end.
  [[nodiscard]] static Result<Filter> glob(std::string_view pattern) noexcept;
  // The same by kind, for text from outside. Fails for tokens without a `*` or `>`, and for a kind that does not exist.
  [[nodiscard]] static Result<Filter> make(FilterKind kind, std::string_view text) noexcept;

  [[nodiscard]] FilterKind kind() const noexcept { return kind_; }
  [[nodiscard]] std::string_view text() const noexcept { return {text_.data(), size_}; }
  [[nodiscard]] FilterView view() const noexcept { return {kind_, text()}; }
  operator FilterView() const noexcept { return view(); }  // NOLINT(google-explicit-constructor)

  // The same as in FilterView.
  [[nodiscard]] bool matches(std::string_view topic) const noexcept { return view().matches(topic); }
  [[nodiscard]] bool covers(const FilterView& other) const noexcept { return view().covers(other); }
  [[nodiscard]] std::string_view literal_head() const noexcept { return view().literal_head(); }

  // An exact or tokens filter that matches each topic name that this filter matches: the glob "news.*" becomes
  // "news.>", the prefix "ne" becomes ">".
  [[nodiscard]] Filter widen_to_tokens() const noexcept;

  friend bool operator==(const Filter& a, const Filter& b) noexcept { return a.view() == b.view(); }
  friend auto operator<=>(const Filter& a, const Filter& b) noexcept { return a.view() <=> b.view(); }

 private:
  Filter(FilterKind kind, std::string_view text) noexcept;

  FilterKind kind_;
  std::uint8_t size_;
  std::array<char, kTopicBytesMax> text_;  // the first size_ bytes
};
static_assert(std::is_trivially_copyable_v<Filter> && sizeof(Filter) == 257);

}  // namespace weft
