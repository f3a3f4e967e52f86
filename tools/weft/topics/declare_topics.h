// SPDX-License-Identifier: MIT
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "tools/weft/declare.h"
#include "tools/weft/topics/fleet.h"
#include "tools/weft/topics/shown.h"

// Options and arguments that several commands of topics share.
namespace weft::cli {

inline constexpr const char* kFleet = "Fleet";
inline constexpr const char* kSettings = "Settings";
inline constexpr const char* kBodyHelp =
    "The topic and the message. BODY is -: standard input as one message. Without BODY: lines of input";

void declare_local(CLI::App& app, FleetOptions& fleet);
void declare_kept(CLI::App& app, FleetOptions& fleet);  // of a command of kept topics
void declare_shown(CLI::App& app, ShownOptions& shown);
void declare_count(CLI::App& app, std::uint64_t& count, const char* help);
// Words that the command takes apart: a topic may be --topic instead.
void declare_words(CLI::App& app, std::vector<std::string>& words, std::string& topic, const char* help);
void declare_headers(CLI::App& app, std::vector<std::string>& headers);

// The rows of kept_table.cc.
[[nodiscard]] std::vector<Command> kept_commands();
// The rows of move_table.cc.
[[nodiscard]] std::vector<Command> stream_move_commands();
[[nodiscard]] std::vector<Command> bucket_move_commands();

}  // namespace weft::cli
