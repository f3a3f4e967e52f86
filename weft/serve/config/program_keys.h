// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "weft/serve/config/key.h"

namespace weft::serve::config {

// ProgramKey: reads one key of [app] from a Snapshot, as a T. ProgramKeys makes it. Affinity: immutable value.
template <typename T>
class ProgramKey {
 public:
  ProgramKey(std::size_t index, T fallback) : index_(index), fallback_(std::move(fallback)) {}

  [[nodiscard]] std::size_t index() const noexcept { return index_; }
  [[nodiscard]] const T& fallback() const noexcept { return fallback_; }

 private:
  std::size_t index_;
  T fallback_;
};

template <typename T>
struct Range {
  T least;
  T most;
};

// ProgramKeys: the keys that a program reads from the table [app] of its configuration, with their defaults, bounds and
// sentences. A name has small letters, digits and '_'; a point makes a table: "cache.size" is `size` of [app.cache].
//   ProgramKeys keys;
//   const auto workers = keys.integer("workers", 4, {1, 64}, "Threads that compress");
//   const auto config = Config::load("game.toml", keys);
//   ... (*config)->current()->get(workers) ...
// Config::load() refuses keys of a program that has made a mistake: a wrong name, a name twice or inside another, a
// default out of its bounds, more than kMax keys.
// Owner: a value; a Config copies it. Affinity: one thread.
class ProgramKeys {
 public:
  static constexpr std::size_t kMax = 1000;

  ProgramKey<bool> flag(std::string name, bool fallback, std::string doc, Change change = Change::at_start);
  ProgramKey<std::int64_t> integer(std::string name, std::int64_t fallback, Range<std::int64_t> range, std::string doc,
                                   Change change = Change::at_start);
  ProgramKey<double> real(std::string name, double fallback, Range<double> range, std::string doc,
                          Change change = Change::at_start);
  // A range that begins with kNone permits "none".
  ProgramKey<Duration> duration(std::string name, Duration fallback, Range<Duration> range, std::string doc,
                                Change change = Change::at_start);
  ProgramKey<Size> size(std::string name, Size fallback, Range<Size> range, std::string doc,
                        Change change = Change::at_start);
  ProgramKey<net::RateLimit> rate(std::string name, net::RateLimit fallback, std::string doc,
                                  Change change = Change::at_start);
  ProgramKey<std::string> text(std::string name, std::string fallback, std::string doc,
                               Change change = Change::at_start);
  ProgramKey<std::string> word(std::string name, std::string fallback, std::vector<std::string> words, std::string doc,
                               Change change = Change::at_start);
  ProgramKey<std::vector<std::string>> texts(std::string name, std::vector<std::string> fallback, std::string doc,
                                             Change change = Change::at_start);

  // [app] may also have keys without a row here, of any type except dates. Snapshot::others() has them as texts. They
  // may change at run time.
  void take_others() noexcept { takes_others_ = true; }

  [[nodiscard]] bool takes_others() const noexcept { return takes_others_; }
  [[nodiscard]] const std::vector<Key>& keys() const noexcept { return keys_; }
  [[nodiscard]] const std::vector<Value>& defaults() const noexcept { return defaults_; }
  [[nodiscard]] const std::string& mistake() const noexcept { return mistake_; }  // the first; empty: there is none

 private:
  template <typename T>
  ProgramKey<T> add(Key key, T fallback);

  std::vector<Key> keys_;
  std::vector<Value> defaults_;
  bool takes_others_ = false;
  std::string mistake_;
};

}  // namespace weft::serve::config
