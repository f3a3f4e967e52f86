// SPDX-License-Identifier: MIT
#include "weft/serve/config/program_keys.h"

#include <algorithm>
#include <string_view>

namespace weft::serve::config {

namespace {

bool is_key_name(std::string_view name) noexcept {
  char before = '.';
  for (const char c : name) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
    if (!letter && (c != '.' || before == '.')) {
      return false;
    }
    before = c;
  }
  return before != '.' && name.size() <= 64;
}

// Whether both cannot be in one file: equal, or one is a table of the other.
bool collide(std::string_view a, std::string_view b) noexcept {
  const std::string_view longer = a.size() < b.size() ? b : a;
  const std::string_view shorter = a.size() < b.size() ? a : b;
  return longer.starts_with(shorter) && (longer.size() == shorter.size() || longer[shorter.size()] == '.');
}

// The name in an environment variable: two keys that differ in '.' and '_' alone would have the same one.
std::string flat(std::string name) {
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
}

}  // namespace

template <typename T>
ProgramKey<T> ProgramKeys::add(Key key, T fallback) {
  std::string why;
  if (!is_key_name(key.name)) {
    why = "a name has small letters, digits, '_' and points between them, at most 64 in all";
  } else if (keys_.size() >= kMax) {
    why = "a program has at most 1000 keys";
  } else if (std::any_of(keys_.begin(), keys_.end(), [&](const Key& other) {
               return collide(key.name, other.name) || flat(key.name) == flat(other.name);
             })) {
    why = "the name is taken by another key";
  } else {
    (void)check_bounds(key, Value(fallback), why);
  }
  if (!why.empty()) {
    mistake_ = mistake_.empty() ? "app." + key.name + ": " + why : mistake_;
    return ProgramKey<T>(static_cast<std::size_t>(-1), std::move(fallback));  // reads its default
  }
  keys_.push_back(std::move(key));
  defaults_.emplace_back(fallback);
  return ProgramKey<T>(keys_.size() - 1, std::move(fallback));
}

ProgramKey<bool> ProgramKeys::flag(std::string name, bool fallback, std::string doc, Change change) {
  return add({std::move(name), Kind::flag, std::move(doc), change}, fallback);
}

ProgramKey<std::int64_t> ProgramKeys::integer(std::string name, std::int64_t fallback, Range<std::int64_t> range,
                                              std::string doc, Change change) {
  return add({std::move(name), Kind::integer, std::move(doc), change, range.least, range.most}, fallback);
}

ProgramKey<double> ProgramKeys::real(std::string name, double fallback, Range<double> range, std::string doc,
                                     Change change) {
  return add({std::move(name), Kind::real, std::move(doc), change, 0, 0, range.least, range.most}, fallback);
}

ProgramKey<Duration> ProgramKeys::duration(std::string name, Duration fallback, Range<Duration> range, std::string doc,
                                           Change change) {
  return add({std::move(name), Kind::duration, std::move(doc), change, std::max<std::int64_t>(range.least.count(), 0),
              range.most.count(), 0, 0, range.least < Duration::zero()},
             fallback);
}

ProgramKey<Size> ProgramKeys::size(std::string name, Size fallback, Range<Size> range, std::string doc, Change change) {
  return add({std::move(name), Kind::size, std::move(doc), change, static_cast<std::int64_t>(range.least.bytes),
              static_cast<std::int64_t>(range.most.bytes)},
             fallback);
}

ProgramKey<net::RateLimit> ProgramKeys::rate(std::string name, net::RateLimit fallback, std::string doc,
                                             Change change) {
  return add({std::move(name), Kind::rate, std::move(doc), change, 1, 0xFFFF'FFFF}, fallback);
}

ProgramKey<std::string> ProgramKeys::text(std::string name, std::string fallback, std::string doc, Change change) {
  return add({std::move(name), Kind::text, std::move(doc), change, 0, kTextMax}, std::move(fallback));
}

ProgramKey<std::string> ProgramKeys::word(std::string name, std::string fallback, std::vector<std::string> words,
                                          std::string doc, Change change) {
  Key key{std::move(name), Kind::word, std::move(doc), change};
  key.words = std::move(words);
  return add(std::move(key), std::move(fallback));
}

ProgramKey<std::vector<std::string>> ProgramKeys::texts(std::string name, std::vector<std::string> fallback,
                                                        std::string doc, Change change) {
  return add({std::move(name), Kind::texts, std::move(doc), change, 0, kTextsMax}, std::move(fallback));
}

}  // namespace weft::serve::config
