// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tools/weft/table.h"

namespace weft::cli {

inline constexpr std::size_t kColumns = 80;  // of help

// The command line as CLI11 reads it, made from the table.
struct Model {
  struct Row {
    const Command* command = nullptr;
    CLI::App* app = nullptr;
    Run run{};
  };

  Model();
  ~Model();
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  // Runs the command of the arguments; gives the exit code.
  int run(int argc, char** argv);

  bool json = false;
  std::unique_ptr<CLI::App> app;
  std::vector<Row> rows;                                          // in the order of the table
  std::vector<std::pair<const Group*, const CLI::App*>> parents;  // of the commands of groups

 private:
  [[nodiscard]] std::vector<std::string> in_order(std::vector<std::string> arguments) const;
  int parse(const std::vector<std::string>& arguments);  // -1: a command is chosen
};

// The lines of help, none wider than kColumns. A longer line goes on under its text.
[[nodiscard]] std::string wrapped(std::string_view text, std::size_t indent);

}  // namespace weft::cli
