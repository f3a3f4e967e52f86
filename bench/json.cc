// SPDX-License-Identifier: MIT
#include "bench/json.h"

#include <cstdio>

namespace bench {
namespace {

constexpr std::size_t kFold = Histogram::kBuckets / (33 * 32);  // printed buckets are 1/32 of a power of two

}  // namespace

void print_trips(const Histogram& trips) {
  std::printf(", \"p50_ns\": %.1f, \"p99_ns\": %.1f, \"p999_ns\": %.1f, \"max_ns\": %llu, \"trips\": [",
              trips.quantile(0.5), trips.quantile(0.99), trips.quantile(0.999),
              static_cast<unsigned long long>(trips.max()));
  const char* comma = "";
  for (std::size_t i = 0; i < Histogram::kBuckets; i += kFold) {
    unsigned long long count = 0;
    for (std::size_t k = i; k < i + kFold; ++k) {
      count += trips.count(k);
    }
    if (count > 0) {
      std::printf("%s[%llu, %llu]", comma, static_cast<unsigned long long>(Histogram::lowest_of(i)), count);
      comma = ", ";
    }
  }
  std::printf("]");
}

void print_count(const char* name, std::optional<std::uint64_t> count) {
  if (count) {
    std::printf(", \"%s\": %llu", name, static_cast<unsigned long long>(*count));
  } else {
    std::printf(", \"%s\": null", name);
  }
}

void print_number(const char* name, double number) { std::printf(", \"%s\": %.9g", name, number); }

}  // namespace bench
