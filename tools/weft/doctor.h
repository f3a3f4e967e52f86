// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tools/weft/console.h"

namespace weft::cli {

enum class State : std::uint8_t { good, information, warning };
[[nodiscard]] std::string_view state_name(State state) noexcept;

struct Finding {
  std::string name;
  State state;
  std::string value;
  std::string advice;  // of a warning: the change to make, and the reason
};
using Findings = std::vector<Finding>;

// The facts that limit this process and this machine. No finding holds the name of a user, of a file or of the machine.
[[nodiscard]] Findings examine_machine();

// `strict`: exit code 1 when one is a warning.
[[nodiscard]] int print_findings(Console& console, const Findings& findings, bool strict);
int doctor(Console& console, bool strict);

}  // namespace weft::cli
