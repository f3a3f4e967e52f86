// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/weft/topics/fleet.h"

// stream import and kv import: a file of an export into a stream or a bucket.
namespace weft::cli {

struct ImportOptions {
  FleetOptions fleet{};
  std::string file{};                 // "-": standard input
  std::string as{};                   // empty: the name in the file
  std::string survives{};             // of a stream that it makes; empty: those of the file
  std::vector<std::string> topics{};  // the same
  std::optional<std::uint64_t> bytes_max{};
  std::optional<double> id_window{};  // seconds
  bool resume = false;                // the target has none of its messages any longer
  bool others = false;                // the target has further messages
  bool incomplete = false;            // a file without its last line
  bool bucket = false;
  std::uint64_t window = 512;  // messages under way
};
int import_stream(Console& console, const ImportOptions& options);

}  // namespace weft::cli
