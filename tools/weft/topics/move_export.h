// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "tools/weft/topics/fleet.h"

// stream export and kv export: a stream or a bucket into a file.
namespace weft::cli {

struct ExportOptions {
  FleetOptions fleet{};
  std::string name{};   // of the stream or the bucket
  std::string file{};   // empty or "-": standard output
  bool resume = false;  // continue a file
  bool bucket = false;
};
int export_stream(Console& console, const ExportOptions& options);

}  // namespace weft::cli
