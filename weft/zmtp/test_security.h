// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "weft/zmtp/local_end.h"
#include "weft/zmtp/null.h"
#include "weft/zmtp/test_support.h"

// Helpers for the tests of the security mechanisms.
namespace weft::zmtp::test {

inline LocalEnd secured(WireType type, std::unique_ptr<Mechanism> mechanism) {
  LocalEnd peer(config_of(type), std::move(mechanism));
  peer.start(kStart);
  return peer;
}

// Moves the output of `from` into `to`, `piece` bytes becoming visible at a time. `wait` keeps the bytes that
// `to` did not take.
inline void carry(LocalEnd& from, LocalEnd& to, std::size_t piece, Buffer& wait) {
  for (Bytes offered = from.pending_output(); !offered.empty(); offered = from.pending_output()) {
    const Bytes part = offered.first(std::min(piece, offered.size()));
    wait.insert(wait.end(), part.begin(), part.end());
    from.consume_output(part.size());
    const std::size_t taken = to.handle_input(wait, kStart);
    wait.erase(wait.begin(), wait.begin() + static_cast<std::ptrdiff_t>(taken));
  }
}

// Runs two started ends until neither has more output. Answers questions with `status`.
inline void shake(LocalEnd& client, LocalEnd& server, std::size_t piece, int status,
                  std::vector<std::string>* asked = nullptr) {
  Buffer to_client;
  Buffer to_server;
  while (!client.pending_output().empty() || !server.pending_output().empty() || server.question() != nullptr) {
    carry(client, server, piece, to_server);
    if (const Question* question = server.question(); question != nullptr) {
      if (asked != nullptr) {
        *asked = question->credentials;
      }
      server.answer(status, kStart);
    }
    carry(server, client, piece, to_client);
  }
}

}  // namespace weft::zmtp::test
