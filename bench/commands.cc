// SPDX-License-Identifier: MIT
#include "bench/commands.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <iostream>
#include <sstream>
#include <string>

#include "bench/cell.h"

namespace bench {
namespace {

void say_stuck(int) {
  constexpr char kText[] = ": a cell made no progress: a message or a wake-up was lost\n";
  [[maybe_unused]] auto written =
      write(STDERR_FILENO, program_invocation_short_name, std::strlen(program_invocation_short_name));
  written = write(STDERR_FILENO, kText, sizeof kText - 1);
  _exit(3);
}

}  // namespace

void end_when_stuck() {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  std::signal(SIGALRM, say_stuck);
}

std::optional<Command> next_command() {
  alarm(0);
  std::optional<Command> result;
  if (std::string line; std::getline(std::cin, line)) {
    std::istringstream words(line);
    std::string name;
    Command command;
    words >> name >> command.count >> command.interval_ns >> command.verify_all;
    if ((name != "run" && name != "count") || command.count == 0) {
      fail("no command '" + line + "'");
    }
    command.counts = name == "count";
    result = command;
  }
  alarm(kPatienceS);
  return result;
}

}  // namespace bench
