// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tools/weft/topics/fleet.h"
#include "tools/weft/topics/shown.h"

// kv get, put, delete, watch and ls: the buckets of a local fleet, or of one on NATS.
namespace weft::cli {

struct BucketOptions {
  FleetOptions fleet{};
  ShownOptions shown{};
  std::string bucket{};
  std::string key{};
  std::string filter{};  // of keys; empty: every one
  ValueOptions value{};
  std::optional<std::uint64_t> revision{};  // put, delete: that of the newest change
  double time_to_live = 0;                  // put: s; 0: none
  bool absent = false;                      // put: only a key without a value
  std::string survives = "power";           // put: of a bucket that it makes
  bool all = false;                         // watch: the older values, too
  std::uint64_t count = 0;                  // watch; 0: no end
};
int kv_get(Console& console, const BucketOptions& options);
int kv_put(Console& console, const BucketOptions& options);
int kv_delete(Console& console, const BucketOptions& options);
int kv_watch(Console& console, const BucketOptions& options);
int kv_ls(Console& console, const BucketOptions& options);

}  // namespace weft::cli
