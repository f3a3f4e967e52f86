// SPDX-License-Identifier: MIT
#include "bench/server/rpc/client_host.h"

#include <sys/prctl.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <random>
#include <sstream>

#include "bench/cell.h"
#include "bench/json.h"

namespace bench {
namespace {

ClientProcess::Options parse(int argc, char** argv) {
  ClientProcess::Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i];
    const auto number = static_cast<std::uint32_t>(std::strtoul(argv[i + 1], nullptr, 10));
    if (name == "--port") {
      options.port = static_cast<std::uint16_t>(number);
    } else if (name == "--connections") {
      options.connections = number;
    } else if (name == "--size") {
      options.size = number;
    } else if (name == "--depth") {
      options.depth = number;
    } else if (name == "--streams") {
      options.streams = number != 0;
    }
  }
  if (argc % 2 == 0 || options.port == 0 || options.connections == 0 || options.size < kBodyMin || options.depth == 0) {
    std::fputs(
        "usage: PROGRAM --port PORT [--connections N] [--size BYTES] [--depth N] [--streams 0|1]\n"
        "Commands on standard input: `run COUNT`; the end of the input ends it.\n",
        stderr);
    std::exit(2);
  }
  return options;
}

Json measure(RpcLoad& load, const ClientProcess::Options& options, std::uint64_t count, LoadResult& result) {
  result.trips.clear();
  const std::uint64_t start = now_ns();
  if (options.streams) {
    const std::uint64_t each = std::max<std::uint64_t>(count / options.connections, 1);
    load.stream(each);
    result.messages = each * options.connections;
  } else {
    load.call(count, result);
    result.messages = count;
  }
  Json record = {{"messages", result.messages}, {"seconds", static_cast<double>(now_ns() - start) / 1e9}};
  if (result.trips.total() > 0) {
    add_trips(record, result.trips);
  }
  return record;
}

}  // namespace

int run_client(int argc, char** argv, const std::string& version, MakeRpcLoad make) {
  const ClientProcess::Options options = parse(argc, argv);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  std::signal(SIGPIPE, SIG_IGN);
  try {
    const std::unique_ptr<RpcLoad> load = make(options);
    const auto result = std::make_unique<LoadResult>();
    print_line({{"version", version}});
    for (std::string line; std::getline(std::cin, line);) {
      std::istringstream words(line);
      std::string command;
      std::uint64_t count = 0;
      words >> command >> count;
      if (command != "run" || count == 0) {
        throw LoadError("no command '" + line + "'");
      }
      print_line(measure(*load, options, count, *result));
    }
  } catch (const std::exception& error) {
    fail(error.what());
  }
  return 0;
}

RequestBodies::RequestBodies(std::uint32_t size) : body_(size) {
  std::mt19937_64 random(size);
  std::generate(body_.begin(), body_.end(), [&] { return static_cast<std::uint8_t>(random()); });
  filling_ = hash_of(Bytes(body_).subspan(kBodyMin));
}

Bytes RequestBodies::make(std::uint64_t tag) {
  const std::uint64_t checksum = checksum_of(tag, filling_);
  std::memcpy(body_.data(), &tag, sizeof tag);
  std::memcpy(body_.data() + 8, &checksum, sizeof checksum);
  return body_;
}

void RequestBodies::check(Bytes answer, std::uint64_t tag) const {
  if (answer.size() != body_.size()) {
    throw LoadError("an answer has a wrong size");
  }
  if (!intact(answer)) {
    throw LoadError("an answer is damaged");
  }
  if (tag_of(answer) != tag) {
    throw LoadError("an answer to another call");
  }
}

void check_report(Bytes report, std::uint64_t count) {
  if (report.size() != StreamCheck::kSyncSize) {
    throw LoadError("the answer to a stream has a wrong size");
  }
  const auto received = load_word<std::uint64_t>(report.data() + kBodyMin);
  const auto bad = load_word<std::uint64_t>(report.data() + kBodyMin + 8);
  if (received != count || bad != 0) {
    throw LoadError("of " + std::to_string(count) + " messages of a stream the server received " +
                    std::to_string(received) + ", " + std::to_string(bad) + " of them bad");
  }
}

}  // namespace bench
