// SPDX-License-Identifier: MIT
// A match over UDP: every player's position goes to the others of the same core. The program is its own two players.
#include <chrono>
#include <cstdio>
#include <set>
#include <string>

#include "weft/rt/core/runtime.h"
#include "weft/serve/udp/datagram_client.h"
#include "weft/serve/udp/datagram_server.h"
#include "weft/sys/clock.h"

namespace {

using namespace weft;

struct Match {
  std::set<serve::DatagramSession*> players;

  void on_open(serve::DatagramSession& player) { players.insert(&player); }
  void on_datagram(serve::DatagramSession& from, Bytes position) {
    for (serve::DatagramSession* const player : players) {
      if (player != &from) {
        (void)player->send(position);
      }
    }
  }
  void on_close(serve::DatagramSession& player, serve::DatagramEnd /*why*/) { players.erase(&player); }
};

Result<void> run() {
  rt::RuntimeOptions one;
  one.cores = 1;  // one match
  const auto runtime = WEFT_TRY(rt::Runtime::start(one));
  const auto server =
      WEFT_TRY(serve::DatagramServer::open(*runtime, "udp://127.0.0.1:0", {}, [](rt::Core&) { return Match(); }));
  const auto anna = WEFT_TRY(serve::DatagramClient::connect(server->endpoint()));
  const auto ben = WEFT_TRY(serve::DatagramClient::connect(server->endpoint()));
  const Instant end = sys::now() + std::chrono::seconds(20);
  WEFT_TRY(anna->open_until(end));
  WEFT_TRY(ben->open_until(end));
  while (sys::now() < end) {  // a position that is lost is sent again
    WEFT_TRY(anna->send(as_bytes("x=3 y=4")));
    if (const auto seen = ben->receive_until(sys::now() + std::chrono::milliseconds(200))) {
      std::printf("ben sees anna at %s\n", std::string(as_text(*seen)).c_str());
      return {};
    }
  }
  return Error(Errc::timed_out, "no position came");
}

}  // namespace

int main() {
  if (const auto result = run(); !result) {
    std::fprintf(stderr, "match_server: %s\n", result.error().message().c_str());
    return 1;
  }
}
