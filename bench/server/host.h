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

// Shared by the server programs of the benchmark: their command line, counters and control line.
namespace bench {

struct HostOptions {
  unsigned threads = 1;
  std::string variant;       // "" or one that the program names
  std::string root;          // of the files SIZE of a web server; "": there are none
  unsigned files = 0;        // RLIMIT_NOFILE of the server; 0: the most that the system allows
  unsigned per_address = 0;  // connections from one address; 0: unlimited. For servers with limits only
  unsigned patience_ms = 0;  // for a whole first frame, and for a silent peer; 0: for ever. Likewise
};

// Counters of one thread of a server. Affinity: that thread writes, the control line reads.
class alignas(128) Tally {
 public:
  enum Name { messages, accepted, closed, refused, kNames };

  void add(Name name, std::uint64_t more = 1) {
    std::atomic<std::uint64_t>& count = counts_[name];
    // One writer; relaxed: guards no memory.
    count.store(count.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
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

// The main() of a server program. Prints {"version", "path", "port", "pid"} on one line, then answers the
// command `counts` on its standard input with a JSON object. The end of the input ends the program.
int run_host(int argc, char** argv, const char* variants, StartServer start);

// A socket of 127.0.0.1 and of that type (SOCK_STREAM, SOCK_DGRAM, and flags), bound as listen_on() binds it.
int bind_on(int type, std::uint16_t& port, bool shared);
// A nonblocking listening socket of 127.0.0.1; port 0 takes any port. With `shared` several sockets may have
// one port.
int listen_on(std::uint16_t& port, bool shared);

[[noreturn]] void give_up(const std::string& what);  // ends the program with the reason and errno's text

}  // namespace bench
