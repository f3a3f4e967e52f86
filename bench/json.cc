// SPDX-License-Identifier: MIT
#include "bench/json.h"

#include <cstdio>

namespace bench {
namespace {

constexpr std::size_t kFold = Histogram::kBuckets / (33 * 32);  // printed buckets are 1/32 of a power of two

}  // namespace

Json count_or_null(std::optional<std::uint64_t> count) { return count ? Json(*count) : Json(nullptr); }

void add_trips(Json& record, const Histogram& trips) {
  record["p50_ns"] = trips.quantile(0.5);
  record["p99_ns"] = trips.quantile(0.99);
  record["p999_ns"] = trips.quantile(0.999);
  record["max_ns"] = trips.max();
  Json& buckets = record["trips"] = Json::array();
  for (std::size_t i = 0; i < Histogram::kBuckets; i += kFold) {
    std::uint64_t count = 0;
    for (std::size_t k = i; k < i + kFold; ++k) {
      count += trips.count(k);
    }
    if (count > 0) {
      buckets.push_back({Histogram::lowest_of(i), count});
    }
  }
}

void print_line(const Json& value) {
  // A name of a file or of a version need not be UTF-8.
  std::puts(value.dump(-1, ' ', false, Json::error_handler_t::replace).c_str());
  std::fflush(stdout);
}

}  // namespace bench
