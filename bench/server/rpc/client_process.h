// SPDX-License-Identifier: MIT
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "bench/json.h"

namespace bench {

// ClientProcess: a program that is a load by a client library of its own (client_host.h). The load generator starts it,
// commands it, and waits while it works, so that a rival has a client of its protocol.
// Owner: main. Affinity: one thread. The process runs on the processors of that thread, and ends with the generator.
class ClientProcess {
 public:
  struct Options {
    std::uint16_t port = 0;
    std::uint32_t connections = 1;
    std::uint32_t size = 64;
    std::uint32_t depth = 1;
    bool streams = false;  // of messages, instead of calls
  };

  // Throws LoadError, like its other functions.
  ClientProcess(const std::string& program, const Options& options);
  ~ClientProcess();
  ClientProcess(const ClientProcess&) = delete;
  ClientProcess& operator=(const ClientProcess&) = delete;

  [[nodiscard]] const std::string& version() const { return version_; }
  // Makes `count` calls, or sends `count` messages. Returns `messages`, `seconds` and, of calls, the members of
  // add_trips().
  [[nodiscard]] Json run(std::uint64_t count);
  void finish();

 private:
  [[nodiscard]] Json read_line();
  void wait_for_end();

  pid_t pid_ = -1;
  int to_ = -1;
  int from_ = -1;
  std::string rest_;  // bytes after the last line
  std::string version_;
};

}  // namespace bench
