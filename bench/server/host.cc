// SPDX-License-Identifier: MIT
#include "bench/server/host.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>

#include "bench/usage.h"

namespace bench {
namespace {

[[noreturn]] void refuse_usage(const char* variants) {
  std::fprintf(stderr,
               "usage: PROGRAM [--threads N] [--variant NAME] [--root DIR] [--files N] [--per-address N]\n"
               "               [--patience-ms N]\n"
               "variants: %s\nCommands on standard input: `counts`; the end of the input ends it.\n",
               variants);
  std::exit(2);
}

HostOptions parse(int argc, char** argv, const char* variants) {
  HostOptions options;
  for (int i = 1; i < argc; i += 2) {
    const std::string name = argv[i];
    if (i + 1 == argc) {
      refuse_usage(variants);
    }
    const auto number = static_cast<unsigned>(std::strtoul(argv[i + 1], nullptr, 10));
    if (name == "--threads" && number > 0) {
      options.threads = number;
    } else if (name == "--variant") {
      options.variant = argv[i + 1];
    } else if (name == "--root") {
      options.root = argv[i + 1];
    } else if (name == "--files") {
      options.files = number;
    } else if (name == "--per-address") {
      options.per_address = number;
    } else if (name == "--patience-ms") {
      options.patience_ms = number;
    } else {
      refuse_usage(variants);
    }
  }
  return options;
}

void set_files(unsigned wanted) {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = wanted == 0 ? limit.rlim_max : wanted;
  setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace

void give_up(const std::string& what) {
  std::fprintf(stderr, "%s: %s\n", what.c_str(), std::strerror(errno));
  std::_Exit(1);
}

int bind_on(int type, std::uint16_t& port, bool shared) {
  const int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);
  const int yes = 1;
  if (fd < 0 || (shared && setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &yes, sizeof yes) != 0)) {
    give_up("socket");
  }
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  socklen_t size = sizeof address;
  if (bind(fd, reinterpret_cast<const sockaddr*>(&address), size) != 0 ||
      getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    give_up("bind");
  }
  port = ntohs(address.sin_port);
  return fd;
}

int listen_on(std::uint16_t& port, bool shared) {
  const int fd = bind_on(SOCK_STREAM | SOCK_NONBLOCK, port, shared);
  if (listen(fd, 4096) != 0) {
    give_up("listen");
  }
  return fd;
}

int run_host(int argc, char** argv, const char* variants, StartServer start) {
  const HostOptions options = parse(argc, argv, variants);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  std::signal(SIGPIPE, SIG_IGN);
  set_files(options.files);
  std::vector<Tally> tallies(options.threads);
  const HostedServer server = start(options, tallies);
  print_line({{"version", server.name}, {"path", ""}, {"port", server.port}, {"pid", getpid()}});
  for (std::string line; std::getline(std::cin, line);) {
    if (line != "counts") {
      errno = EINVAL;
      give_up("no command '" + line + "'");
    }
    const auto sum = [&](Tally::Name name) {
      std::uint64_t total = 0;
      for (const Tally& tally : tallies) {
        total += tally.read(name);
      }
      return total;
    };
    print_line({{"messages", sum(Tally::messages)},
                {"accepted", sum(Tally::accepted)},
                {"closed", sum(Tally::closed)},
                {"refused", sum(Tally::refused)},
                {"allocations", counts_allocations() ? Json(usage_now().allocations) : Json()},
                {"reasons", server.reasons ? server.reasons() : Json::object()}});
  }
  std::_Exit(0);  // the server's threads still run, and the program does not wait for them
}

}  // namespace bench
