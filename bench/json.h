// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>

#include "bench/histogram.h"

namespace bench {

// Print members of a JSON object to standard output; each begins with a comma.
void print_trips(const Histogram& trips);  // quantiles, and counts in buckets of 1/32 of a power of two
void print_count(const char* name, std::optional<std::uint64_t> count);
void print_number(const char* name, double number);

}  // namespace bench
