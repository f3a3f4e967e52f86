// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weft::serve::config {

struct Position {
  std::uint32_t line = 0;  // from 1; 0: not of a line
  std::uint32_t column = 0;
};

// Origin: the place of a value: a file with the position there, or an environment variable.
struct Origin {
  std::string source;
  Position at{};

  [[nodiscard]] std::string text() const;  // "server.toml:12:3", "WEFT_SERVER_CORES"
};

struct Problem {
  Origin origin;
  std::string key;   // "server.cores", "listener[1].limits.idle_timeout"; empty: not of a key
  std::string text;  // "600 is not in 0 to 512"

  [[nodiscard]] std::string message() const;  // "server.toml:12:3: server.cores: 600 is not in 0 to 512"
};

// Problems: all that is wrong with a configuration, at most kMax and the number of the others.
// Affinity: a value.
class Problems {
 public:
  static constexpr std::size_t kMax = 100;

  void add(Problem problem);
  void sort();  // by source and position
  [[nodiscard]] bool empty() const noexcept { return list_.empty(); }
  [[nodiscard]] bool full() const noexcept { return list_.size() == kMax; }
  [[nodiscard]] const std::vector<Problem>& list() const noexcept { return list_; }
  [[nodiscard]] std::size_t omitted() const noexcept { return omitted_; }
  [[nodiscard]] std::string text() const;  // a line each

 private:
  std::vector<Problem> list_;
  std::size_t omitted_ = 0;
};

// The word among `words` that `name` was probably meant to be: by the number of characters that were left out, added,
// replaced or swapped with their neighbour. Empty: no word is near. Cost: the sizes of both; nothing for a long `name`.
[[nodiscard]] std::string_view nearest(std::string_view name, std::span<const std::string> words);
// `; did you mean "cores"?`, or nothing.
[[nodiscard]] std::string suggestion(std::string_view name, std::span<const std::string> words);

}  // namespace weft::serve::config
