// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bench/server/load.h"
#include "bench/server/rpc/client_process.h"
#include "bench/server/wire.h"

// Shared by the programs that are loads by a client library of their own: command line, bodies and their checks.
namespace bench {

// RpcLoad: the calls, or the streams, of a client library over `connections` connections. Owner: run_client().
// Invariants:
//   (1) Each connection has at most `depth` calls in flight. A call begins when an earlier answer makes room.
//   (2) Every answer is checked: its size, its tag and its checksum. The first bad one throws LoadError.
//   (3) A stream has messages of the client, which the server counts and checks (StreamCheck), and one answer: the
//       body of the answer to kSync.
class RpcLoad {
 public:
  RpcLoad() = default;
  virtual ~RpcLoad() = default;
  RpcLoad(const RpcLoad&) = delete;
  RpcLoad& operator=(const RpcLoad&) = delete;
  // Makes `count` calls in all, and adds the time of each to result.trips.
  virtual void call(std::uint64_t count, LoadResult& result) = 0;
  // Sends `each` messages in a stream of each connection, and returns after the answers to all of them.
  virtual void stream(std::uint64_t each) = 0;
};

using MakeRpcLoad = std::unique_ptr<RpcLoad> (*)(const ClientProcess::Options&);

// The main() of such a program. Prints {"version"} on one line, then answers each command `run COUNT` on its standard
// input with a JSON object. The end of the input ends the program.
int run_client(int argc, char** argv, const std::string& version, MakeRpcLoad make);

// RequestBodies: the bodies of requests and of messages. Affinity: one thread.
class RequestBodies {
 public:
  explicit RequestBodies(std::uint32_t size);
  [[nodiscard]] Bytes make(std::uint64_t tag);  // valid until the next one
  void check(Bytes answer, std::uint64_t tag) const;

 private:
  std::vector<std::uint8_t> body_;
  std::uint64_t filling_ = 0;
};

// Checks the answer to a stream of `count` messages.
void check_report(Bytes report, std::uint64_t count);

}  // namespace bench
