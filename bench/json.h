// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>

#include "bench/histogram.h"

namespace bench {

using Json = nlohmann::ordered_json;  // members are printed in the order in which they were added

Json count_or_null(std::optional<std::uint64_t> count);
void add_trips(Json& record, const Histogram& trips);  // quantiles, and counts in buckets of 1/32 of a power of two
void print_line(const Json& value);                    // to standard output, at once

}  // namespace bench
