// SPDX-License-Identifier: MIT
#include "weft/nats/protocol/subject.h"

#include <algorithm>
#include <utility>

#include "weft/nats/protocol/escape.h"
#include "weft/nats/protocol/limits.h"

namespace weft::nats {

namespace {

constexpr Error kStrange(Errc::invalid_argument, "the subject is not that of a topic");

[[nodiscard]] bool is_printable(char c) noexcept { return static_cast<unsigned char>(c) > 0x20; }

[[nodiscard]] bool is_wildcard(std::string_view token) noexcept { return token == "*" || token == ">"; }

// Calls check(token, last) for each token until it returns false.
template <typename Check>
[[nodiscard]] bool all_tokens(std::string_view text, Check check) {
  for (;;) {
    const std::size_t dot = text.find('.');
    const bool last = dot == std::string_view::npos;
    const std::string_view token = text.substr(0, dot);
    if (token.empty() || !check(token, last)) {
      return false;
    }
    if (last) {
      return true;
    }
    text.remove_prefix(dot + 1);
  }
}

[[nodiscard]] bool has_form(std::string_view text) noexcept {
  return !text.empty() && text.size() <= kSubjectMax && std::all_of(text.begin(), text.end(), is_printable);
}

}  // namespace

bool is_subject(std::string_view subject) noexcept {
  return has_form(subject) && all_tokens(subject, [](std::string_view token, bool) { return !is_wildcard(token); });
}

bool is_subject_filter(std::string_view filter) noexcept {
  return has_form(filter) && all_tokens(filter, [](std::string_view token, bool last) { return last || token != ">"; });
}

bool is_group(std::string_view group) noexcept {
  return !group.empty() && group.size() <= kReplyMax && std::all_of(group.begin(), group.end(), is_printable);
}

Result<SubjectNames> SubjectNames::make(std::string_view space, char separator) {
  const auto byte = static_cast<unsigned char>(separator);
  const bool letter = (byte >= '0' && byte <= '9') || ((byte | 0x20U) >= 'a' && (byte | 0x20U) <= 'z');
  if (byte <= 0x20 || byte >= 0x7F || letter || separator == '=' || separator == '*' || separator == '>') {
    return Error(Errc::invalid_argument, "this character cannot separate the tokens of a topic");
  }
  SubjectNames names({}, separator);
  if (!space.empty()) {
    WEFT_TRY(check_topic(space));
    if (space.find('.') != std::string_view::npos) {
      return Error(Errc::invalid_argument, "a space is one token");
    }
    std::string prefix;
    names.append_escaped(space, '.', false, prefix);
    names.prefix_ = std::move(prefix) + '.';
  }
  return names;
}

void SubjectNames::append_escaped(std::string_view name, char separator, bool wildcards, std::string& out) const {
  bool begins = true;  // a token
  for (std::size_t i = 0; i < name.size(); ++i) {
    const char c = name[i];
    const bool ends = i + 1 == name.size() || name[i + 1] == separator;
    if (c == separator) {
      out += '.';
      begins = true;
      continue;
    }
    const bool wild = wildcards && begins && ends && (c == '*' || c == '>');
    const bool reserved = i == 0 && prefix_.empty() && (c == '$' || c == '_');
    const bool special = c == '=' || c == '*' || c == '>' || c == '.' || c == '\x7F';
    if (!wild && (reserved || special)) {
      append_escape(c, out);
    } else {
      out += c;
    }
    begins = false;
  }
}

Result<void> SubjectNames::append_subject(std::string_view topic, std::string& out) const {
  if (separator_ == '.') {
    WEFT_TRY(check_topic(topic));
  } else {
    std::string dotted(topic.substr(0, kTopicBytesMax + 1));
    for (char& c : dotted) {  // a dot is an ordinary byte of such a name
      c = c == separator_ ? '.' : c == '.' ? '=' : c;
    }
    WEFT_TRY(check_topic(dotted));
  }
  out += prefix_;
  append_escaped(topic, separator_, false, out);
  return {};
}

Result<void> SubjectNames::append_filter(const Filter& filter, std::string& out) const {
  if (separator_ != '.') {
    return Error(Errc::not_supported, "filters separate their tokens by dots");
  }
  if (filter.kind() == FilterKind::exact) {
    return append_subject(filter.text(), out);  // fails for a text that no topic has
  }
  const Filter wide = filter.widen_to_tokens();
  const std::string_view text = wide.text();
  out += prefix_;
  append_escaped(text, '.', wide.kind() == FilterKind::tokens, out);
  return {};
}

Result<void> SubjectNames::append_topic(std::string_view subject, std::string& out) const {
  if (!subject.starts_with(prefix_)) {
    return Error(Errc::invalid_argument, "the subject is of another space");
  }
  const std::string_view name = subject.substr(prefix_.size());
  const std::size_t before = out.size();
  for (std::size_t i = 0; i < name.size(); ++i) {
    char c = name[i];
    if (c == kEscape) {
      const int byte = escaped_byte(name, i);
      if (byte < 0) {
        out.resize(before);
        return kStrange;
      }
      c = static_cast<char>(byte);
      i += kEscapeSize - 1;
    } else if (c == '.') {
      c = separator_;
    }
    out += c;
  }
  // One topic has one subject: another spelling of it is not accepted.
  std::string again;
  const Result<void> same = append_subject(std::string_view(out).substr(before), again);
  if (!same || again != subject) {
    out.resize(before);
    return kStrange;
  }
  return {};
}

}  // namespace weft::nats
