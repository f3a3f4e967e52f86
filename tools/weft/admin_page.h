// SPDX-License-Identifier: MIT
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tools/weft/admin_port.h"
#include "weft/base/time.h"

namespace weft::cli {

// One sample of /metrics.
struct Sample {
  std::string metric;
  std::map<std::string, std::string> labels;
  double value = 0;
};

inline constexpr std::size_t kAdminPageMax = std::size_t{64} << 20U;  // bytes of an answer

// The body of the answer to a GET of that path of an admin port, by one connection. Failure: those of dial_admin();
// nothing answers until `end`, something else than an admin port of Weft does, the port refuses the host or the token,
// the answer is longer than kAdminPageMax, or a file is not readable.
[[nodiscard]] std::string read_page(const AdminPort& port, std::string_view path, Instant end);
// The samples of /metrics. Failure: those of read_page(), or there is no counter of Weft.
[[nodiscard]] std::vector<Sample> read_metrics(const AdminPort& port, Instant end);

// The samples in a text of Prometheus' format. Returns false if a line is not a sample.
[[nodiscard]] bool parse_metrics(std::string_view text, std::vector<Sample>& out);

}  // namespace weft::cli
