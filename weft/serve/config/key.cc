// SPDX-License-Identifier: MIT
#include "weft/serve/config/key.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <system_error>
#include <utility>

namespace weft::serve::config {

namespace {

// The form of a value in a file, for a message.
std::string_view form_of(Kind kind) noexcept {
  switch (kind) {
    case Kind::flag: return "true or false";
    case Kind::integer: return "an integer";
    case Kind::real: return "a number";
    case Kind::duration: return R"(a duration in quotes, like "250 ms")";
    case Kind::size: return R"(a size in quotes, like "16 KiB")";
    case Kind::rate: return R"(a rate in quotes, like "10/s burst 50")";
    case Kind::text: return "a text in quotes";
    case Kind::word: return "a word in quotes";
    case Kind::texts: return "a list of texts";
  }
  return "unknown";
}

template <typename Number>
std::optional<Number> number_of(std::string_view text) noexcept {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

template <typename T>
bool take(const Result<T>& parsed, std::string_view text, Value& into, std::string& why) {
  if (!parsed) {
    why = quote(text) + " is refused: " + parsed.error().text();
    return false;
  }
  into = *parsed;
  return true;
}

// The kinds that a file writes in quotes.
bool read_quoted(const Key& key, std::string_view text, Value& into, std::string& why) {
  switch (key.kind) {
    case Kind::duration: return take(parse_duration(text), text, into, why);
    case Kind::size: return take(parse_size(text), text, into, why);
    case Kind::rate: return take(parse_rate(text), text, into, why);
    default: into = std::string(text); return true;
  }
}

bool wrong_form(const Key& key, const TomlNode& node, std::string& why) {
  why = std::string(describe(node.kind)) + ", and not " + std::string(form_of(key.kind));
  return false;
}

bool read_scalar(const Key& key, const TomlNode& node, Value& into, std::string& why) {
  const auto* const integer = std::get_if<std::int64_t>(&node.scalar);
  switch (key.kind) {
    case Kind::flag:
      if (node.kind == TomlNode::Kind::flag) {
        into = std::get<bool>(node.scalar);
        return true;
      }
      break;
    case Kind::integer:
      if (node.kind == TomlNode::Kind::integer) {
        into = *integer;
        return true;
      }
      break;
    case Kind::real:
      if (node.kind == TomlNode::Kind::integer || node.kind == TomlNode::Kind::real) {
        into = integer != nullptr ? static_cast<double>(*integer) : std::get<double>(node.scalar);
        return true;
      }
      break;
    default:
      if (node.kind == TomlNode::Kind::text) {
        return read_quoted(key, std::get<std::string>(node.scalar), into, why);
      }
  }
  return wrong_form(key, node, why);
}

bool read_texts(const Key& key, const TomlNode& node, Value& into, std::string& why) {
  if (node.kind != TomlNode::Kind::list) {
    return wrong_form(key, node, why);
  }
  std::vector<std::string> texts;
  for (const TomlNode& each : node.items) {
    if (each.kind != TomlNode::Kind::text) {
      why = "the list has " + std::string(describe(each.kind)) + ", and not only texts in quotes";
      return false;
    }
    texts.push_back(std::get<std::string>(each.scalar));
  }
  into = std::move(texts);
  return true;
}

// The number that the bounds of the key are about; null: they are about no number.
std::optional<std::int64_t> measure(const Value& value) {
  if (const auto* const integer = std::get_if<std::int64_t>(&value)) {
    return *integer;
  }
  if (const auto* const duration = std::get_if<Duration>(&value)) {
    return duration->count();
  }
  if (const auto* const size = std::get_if<Size>(&value)) {
    return static_cast<std::int64_t>(size->bytes);  // parse_size() takes no more than an int64
  }
  if (const auto* const rate = std::get_if<net::RateLimit>(&value)) {
    return rate->per_second;
  }
  if (const auto* const text = std::get_if<std::string>(&value)) {
    return static_cast<std::int64_t>(text->size());
  }
  if (const auto* const texts = std::get_if<std::vector<std::string>>(&value)) {
    return static_cast<std::int64_t>(texts->size());
  }
  return std::nullopt;
}

std::string bound_text(Kind kind, std::int64_t bound) {
  switch (kind) {
    case Kind::duration: return to_text(Duration(bound));
    case Kind::size: return to_text(Size{static_cast<std::uint64_t>(bound)});
    case Kind::rate: return std::to_string(bound) + "/s";
    default: return std::to_string(bound);
  }
}

bool is_text_too_long(const Value& value) {
  const auto long_text = [](const std::string& text) { return text.size() > static_cast<std::size_t>(kTextMax); };
  const auto* const texts = std::get_if<std::vector<std::string>>(&value);
  return texts != nullptr && std::any_of(texts->begin(), texts->end(), long_text);
}

}  // namespace

std::string_view describe(Kind kind) noexcept {
  switch (kind) {
    case Kind::flag: return "true or false";
    case Kind::integer: return "integer";
    case Kind::real: return "number";
    case Kind::duration: return "duration";
    case Kind::size: return "size";
    case Kind::rate: return "rate";
    case Kind::text: return "text";
    case Kind::word: return "word";
    case Kind::texts: return "list of texts";
  }
  return "unknown";
}

std::string Key::bounds() const {
  if (kind == Kind::word) {
    std::string list;
    for (const std::string& word : words) {
      list += (list.empty() ? "" : ", ") + word;
    }
    return list;
  }
  if (kind == Kind::real) {
    return to_text(Value(least_real)) + " to " + to_text(Value(most_real));
  }
  if (kind == Kind::flag || kind == Kind::text || kind == Kind::texts) {
    return "";
  }
  return bound_text(kind, least) + " to " + bound_text(kind, most) + (takes_none ? ", none" : "");
}

bool check_bounds(const Key& key, const Value& value, std::string& why) {
  if (key.kind == Kind::word) {
    const std::string& word = std::get<std::string>(value);
    if (std::find(key.words.begin(), key.words.end(), word) != key.words.end()) {
      return true;
    }
    why = quote(word) + " is not one of " + key.bounds() + suggestion(word, key.words);
    return false;
  }
  if (const auto* const real = std::get_if<double>(&value)) {
    if (std::isfinite(*real) && *real >= key.least_real && *real <= key.most_real) {
      return true;
    }
    why = to_text(value) + " is not in " + key.bounds();
    return false;
  }
  const auto number = measure(value);
  const bool none = key.kind == Kind::duration && *number < 0;
  if (!number || (none && key.takes_none) || (key.kind == Kind::rate && *number == 0)) {
    return true;
  }
  if (key.kind == Kind::text || key.kind == Kind::texts) {
    if (*number >= key.least && *number <= key.most && !is_text_too_long(value)) {
      return true;
    }
    why = *number < key.least ? "empty"
                              : "too long: at most " + std::to_string(key.most) +
                                    (key.kind == Kind::text ? " bytes" : " texts of 4096 bytes");
    return false;
  }
  if (*number >= key.least && *number <= key.most) {
    return true;
  }
  why = to_text(value) + " is not in " + key.bounds();
  return false;
}

bool read_value(const Key& key, const TomlNode& node, Value& into, std::string& why) {
  const bool read = key.kind == Kind::texts ? read_texts(key, node, into, why) : read_scalar(key, node, into, why);
  return read && check_bounds(key, into, why);
}

bool read_value(const Key& key, std::string_view text, Value& into, std::string& why) {
  switch (key.kind) {
    case Kind::flag:
      if (text != "true" && text != "false") {
        why = quote(text) + " is not true or false";
        return false;
      }
      into = text == "true";
      break;
    case Kind::integer:
    case Kind::real: {
      const auto integer = key.kind == Kind::integer ? number_of<std::int64_t>(text) : std::nullopt;
      const auto real = key.kind == Kind::real ? number_of<double>(text) : std::nullopt;
      if (!integer && !real) {
        why = quote(text) + " is not " + std::string(form_of(key.kind));
        return false;
      }
      into = integer ? Value(*integer) : Value(*real);
      break;
    }
    case Kind::texts: {
      std::vector<std::string> texts;
      for (std::string_view rest = text; !rest.empty();) {
        const std::size_t comma = std::min(rest.find(','), rest.size());
        texts.emplace_back(rest.substr(0, comma));
        rest.remove_prefix(std::min(comma + 1, rest.size()));
      }
      into = std::move(texts);
      break;
    }
    default:
      if (!read_quoted(key, text, into, why)) {
        return false;
      }
  }
  return check_bounds(key, into, why);
}

}  // namespace weft::serve::config
