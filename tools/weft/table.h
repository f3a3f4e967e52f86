// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "tools/weft/console.h"

namespace CLI {
class App;
}

namespace weft::cli {

using Run = std::function<int(Console&)>;

struct Example {
  std::string_view line;
  std::string_view effect;
};

// One command: help, completion and the manual page come from this row and from the options that `declare` adds.
struct Command {
  std::string_view name;  // a word, or that of a group and a word: "kv get"
  std::string_view summary;
  std::vector<Example> examples;
  Run (*declare)(CLI::App& app);  // adds options and arguments; the parsed values are in the returned function
};

// Group: the commands whose names begin with one word.
struct Group {
  std::string_view name;
  std::string_view summary;
};

[[nodiscard]] std::span<const Command> commands();  // those of a group stand together
[[nodiscard]] std::span<const Group> groups();
// CLI11 takes "[a,b]" apart. The model puts this byte before such an argument, and the options drop it.
inline constexpr char kListMark = '\x1d';
inline constexpr std::string_view kExitCodes =
    "0 done; 1 failed, with the reason on standard error; 2 wrong usage; 130 ended by Ctrl-C (143 by SIGTERM), but 0 "
    "of "
    "hub, bridge and fleet up; 141 the reader of standard output has gone.";

}  // namespace weft::cli
