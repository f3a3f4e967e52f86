// SPDX-License-Identifier: MIT
// A match over UDP: every player's position goes to the others of the same core. The program is its own two players.
#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <string>

#include "weft/rt/core/runtime.h"
#include "weft/serve/udp/datagram_server.h"

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

// The whole client: kind, cookie, payload.
struct Player {
  int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  std::string cookie = std::string(8, '\0');

  explicit Player(int port) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<std::uint16_t>(port));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    (void)::connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to);
  }
  ~Player() { ::close(fd); }
  Player(const Player&) = delete;
  Player& operator=(const Player&) = delete;

  void send(char kind, const std::string& payload = {}) const {
    const std::string datagram = kind + cookie + payload;
    (void)::send(fd, datagram.data(), datagram.size(), 0);
  }
  // Empty if nothing came in the time.
  std::string receive(int milliseconds) const {
    std::array<char, 2048> room;
    pollfd one{fd, POLLIN, 0};
    const ssize_t size = ::poll(&one, 1, milliseconds) == 1 ? ::recv(fd, room.data(), room.size(), 0) : 0;
    return {room.data(), static_cast<std::size_t>(size > 0 ? size : 0)};
  }
  std::string ask(char kind, char answer) const {  // repeats until the answer comes
    for (int i = 0; i < 100; ++i) {
      send(kind);
      const std::string got = receive(200);
      if (got.size() >= 9 && got[0] == answer) {
        return got;
      }
    }
    std::fprintf(stderr, "the server does not answer\n");
    std::exit(1);
  }
  void join() {
    cookie = ask(1, 2).substr(1, 8);
    (void)ask(3, 4);
  }
};

Result<void> run() {
  rt::RuntimeOptions one;
  one.cores = 1;  // one match
  const auto runtime = WEFT_TRY(rt::Runtime::start(one));
  const auto server =
      WEFT_TRY(serve::DatagramServer::open(*runtime, "udp://127.0.0.1:0", {}, [](rt::Core&) { return Match(); }));
  const std::string& endpoint = server->endpoint();
  const int port = std::atoi(endpoint.c_str() + endpoint.rfind(':') + 1);
  Player anna(port);
  Player ben(port);
  anna.join();
  ben.join();
  for (int i = 0; i < 100; ++i) {  // a position that is lost is sent again
    anna.send(5, "x=3 y=4");
    if (const std::string seen = ben.receive(200); seen.size() > 9 && seen[0] == 5) {
      std::printf("ben sees anna at %s\n", seen.c_str() + 9);
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
