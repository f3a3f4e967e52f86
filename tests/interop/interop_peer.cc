// SPDX-License-Identifier: MIT
// One side of a cell as a program: plays a role with its partner, which may be of another implementation. The link to
// the partner is the standard input and output; roles.h lists the lines on it.
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <sstream>

#include "tests/interop/roles.h"

namespace weft::interop {
namespace {

int usage(std::FILE* to, int status) {
  std::fputs(
      "usage: interop_peer ROLE (--bind ENDPOINT[,ENDPOINT...] | --connect) --count N --size BYTES [options]\n"
      "  ROLE            push pull pub sub xpub xsub dealer router req rep pair echo\n"
      "  --bind          says \"at ENDPOINT...\" on the standard output\n"
      "  --connect       waits for such a line on the standard input\n"
      "  --count N       messages in each direction and round\n"
      "  --size BYTES    of the main part\n"
      "  --multipart     four parts instead of one\n"
      "  --rounds N      before each but the first, waits until the partner has gone, and says \"lost\"\n"
      "  --first-round N the partner's round, for one that has come again\n"
      "  --plain         uses only send and recv\n"
      "  --set NAME=VALUE  a socket option\n"
      "Ends with the line \"done SENT RECEIVED\" or \"failed REASON\".\n"
      "exit status: 0 done, 1 failed, 2 wrong usage\n",
      to);
  return status;
}

bool read_flag(const std::string& argument, Job& job) {
  if (argument == "--connect") {
    job.bind = false;
  } else if (argument == "--multipart") {
    job.shape.multipart = true;
  } else if (argument == "--plain") {
    job.plain = true;
  } else {
    return false;
  }
  return true;
}

bool read_value(const std::string& argument, const std::string& value, Job& job) {
  if (argument == "--bind") {
    job.bind = true;
    std::istringstream list(value);
    for (std::string endpoint; std::getline(list, endpoint, ',');) {
      job.endpoints.push_back(endpoint);
    }
  } else if (argument == "--count") {
    job.count = std::atoi(value.c_str());
  } else if (argument == "--size") {
    job.shape.size = std::strtoul(value.c_str(), nullptr, 10);
  } else if (argument == "--rounds") {
    job.rounds = std::atoi(value.c_str());
  } else if (argument == "--first-round") {
    job.first_round = std::atoi(value.c_str());
  } else if (argument == "--set") {
    job.options.push_back(value);
  } else {
    return false;
  }
  return true;
}

int run(int argc, char** argv) {
  Job job;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--help") {
      return usage(stdout, 0);
    }
    if (i == 1 && is_role(argument)) {
      job.role = argument;
    } else if (!read_flag(argument, job) && (i + 1 == argc || !read_value(argument, argv[++i], job))) {
      return usage(stderr, 2);
    }
  }
  if (job.role.empty() || job.count < 1 || job.shape.size > kSizeMax || (job.bind && job.endpoints.empty())) {
    return usage(stderr, 2);
  }
  ::signal(SIGPIPE, SIG_IGN);
  Link link(STDIN_FILENO, STDOUT_FILENO, false);
  Outcome outcome;
  {
    Context context;
    outcome = run_role(context, job, link);
  }  // all sent messages are delivered now
  if (!outcome.error.empty()) {
    link.send("failed " + outcome.error);
    return 1;
  }
  link.send("done " + std::to_string(outcome.sent) + " " + std::to_string(outcome.received));
  return 0;
}

}  // namespace
}  // namespace weft::interop

int main(int argc, char** argv) { return weft::interop::run(argc, argv); }
