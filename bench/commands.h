// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>

// The commands of the harness, on standard input, and the end of a program that does not finish one.
namespace bench {

inline constexpr unsigned kPatienceS = 120;  // for one command; beyond, the program ends and reports it

// Command: `run COUNT INTERVAL_NS VERIFY_ALL`, or `count COUNT`, which counts and measures nothing.
struct Command {
  std::uint64_t count = 0;
  std::uint64_t interval_ns = 0;
  bool verify_all = false;
  bool counts = false;
};

// Call it first. The program ends with its parent, and with an error when an alarm(kPatienceS) rings.
void end_when_stuck();
// Waits for the next command, without a bound, and gives it kPatienceS. Returns nullopt at the end of the input.
[[nodiscard]] std::optional<Command> next_command();

}  // namespace bench
