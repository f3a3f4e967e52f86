// SPDX-License-Identifier: MIT
// hub_side DIRECTORY: hosts the hub of that directory until standard input ends. Prints "hosting", or the error.
#include <signal.h>
#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>

#include "weft/topic/hub/hub.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    return 2;
  }
  // A disk that fails at this size of a file, not for lack of room.
  if (const char* bytes = std::getenv("WEFT_HUB_FILE_BYTES"); bytes != nullptr) {
    const rlim_t size = std::strtoul(bytes, nullptr, 10);
    const rlimit limit{size, size};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    ::signal(SIGXFSZ, SIG_IGN);
  }
  weft::Context context;
  weft::topic::HubOptions options;
  options.directory = argv[1];
  options.store = options.directory + "/store.db";
  auto hub = weft::topic::Hub::host(context, options);
  std::puts(hub ? "hosting" : hub.error().message().c_str());
  std::fflush(stdout);
  if (!hub) {
    return hub.error() == weft::Errc::would_block ? 3 : 1;
  }
  std::string line;
  while (std::getline(std::cin, line)) {
  }
  return 0;
}
