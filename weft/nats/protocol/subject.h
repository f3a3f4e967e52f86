// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "weft/base/filter.h"
#include "weft/base/result.h"

namespace weft::nats {

// Subjects: the names of the engine. A subject is tokens with a '.' between two, none of them empty. A subject of a
// subscription may have the wildcards of a tokens filter: `*` for one token, a final `>` for one token or more.

// Whether a server takes the subject of a message: 1 to kSubjectMax bytes, no empty token, no token that is a wildcard,
// and no byte below 0x21.
[[nodiscard]] bool is_subject(std::string_view subject) noexcept;
// The same for a subscription, which may have wildcards.
[[nodiscard]] bool is_subject_filter(std::string_view filter) noexcept;
// Whether the name of a group has 1 to kReplyMax bytes, all of them printable.
[[nodiscard]] bool is_group(std::string_view group) noexcept;

// SubjectNames: topic names to subjects and back.
// A byte is escaped as `=XX`, with two capital hexadecimal digits:
//   - `=`, `*` and `>` at each place, and 0x7F;
//   - `$` and `_` at the beginning of a name without a space, because the engine's own subjects begin with them;
//   - `.`, with another separator.
// The separator becomes '.'. A space becomes the first token. So two topics never have one subject, and topic() is the
// inverse of subject() for each topic name.
// Owner: the user. Affinity: immutable value. Cost: linear; both calls append to the caller's text.
class SubjectNames {
 public:
  // `space` is escaped like a topic. Errors: invalid_argument (the space is not one token; the separator is a letter, a
  // digit, `=`, `*`, `>`, or not a printable character).
  [[nodiscard]] static Result<SubjectNames> make(std::string_view space = {}, char separator = kTopicSeparator);

  // Errors: those of check_topic(), after the separators became '.'. After an error the text is unchanged.
  [[nodiscard]] Result<void> append_subject(std::string_view topic, std::string& out) const;
  // The subject of a subscription. An exact filter is a topic; one of tokens keeps its wildcards; the others are
  // widened (Filter::widen_to_tokens()): the receiver compares each message with the filter. Errors: invalid_argument
  // (an exact filter that is not a topic name); not_supported (a separator other than '.', which filters do not
  // have).
  [[nodiscard]] Result<void> append_filter(const Filter& filter, std::string& out) const;
  // Errors: invalid_argument (the subject is of another space, or it is not the result of append_subject()). After an
  // error the text is unchanged.
  [[nodiscard]] Result<void> append_topic(std::string_view subject, std::string& out) const;

  [[nodiscard]] const std::string& prefix() const noexcept { return prefix_; }  // "space." or empty

 private:
  SubjectNames(std::string prefix, char separator) noexcept : prefix_(std::move(prefix)), separator_(separator) {}
  void append_escaped(std::string_view name, char separator, bool wildcards, std::string& out) const;

  std::string prefix_;
  char separator_;
};

}  // namespace weft::nats
