// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tools/weft/table.h"

namespace weft::cli {

// The command line as CLI11 reads it, made from the table.
struct Model {
  Model();
  ~Model();
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  // Runs the command of the arguments; gives the exit code.
  int run(int argc, char** argv);

  bool json = false;
  std::unique_ptr<CLI::App> app;
  std::vector<std::pair<CLI::App*, Run>> runs;  // in the order of the table
};

}  // namespace weft::cli
