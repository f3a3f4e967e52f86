// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bench/json.h"
#include "bench/server/wire.h"

// What every server program of the benchmark shares: its command line, its counters and its control line.
namespace bench {

struct HostOptions {
  unsigned threads = 1;
  std::string variant;       // "" or one of those that the program names
  unsigned files = 0;        // RLIMIT_NOFILE of the server; 0: as many as the system lets it
  unsigned per_address = 0;  // connections from one address; 0: any number. Only a server with limits knows it
  unsigned patience_ms = 0;  // for a whole first frame, and for a silent peer; 0: for ever. Likewise
};

// What one thread of a server counts. Affinity: that thread writes, the control line reads.
class alignas(128) Tally {
 public:
  enum Name { messages, accepted, closed, refused, kNames };

  void add(Name name, std::uint64_t more = 1) {
    std::atomic<std::uint64_t>& count = counts_[name];
    count.store(count.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);  // one writer
  }
  [[nodiscard]] std::uint64_t read(Name name) const { return counts_[name].load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> counts_[kNames]{};
};

// A server: listens on 127.0.0.1, port 0, with `threads` threads of its own. Owner: run_host(). `tallies` has one for
// each thread. Reasons: why the server closed peers, a count for each name; none where it does not count them.
struct HostedServer {
  std::string name;
  std::uint16_t port = 0;
  std::function<Json()> reasons;
};

using StartServer = HostedServer (*)(const HostOptions&, std::vector<Tally>&);

// The main() of a server program: prints {"version", "path", "port", "pid"} in a line, and then answers commands on its
// standard input: `counts` with a JSON object. It ends when the input does.
int run_host(int argc, char** argv, const char* variants, StartServer start);

// The listening socket of 127.0.0.1, nonblocking; port 0 takes any. With `shared` several may have one port.
int listen_on(std::uint16_t& port, bool shared);

[[noreturn]] void give_up(const std::string& what);  // ends the program with the reason and errno's text

}  // namespace bench
