// SPDX-License-Identifier: MIT
// A game server: players join a room and move; 60 times a second each room sends its players the state. A room lives on
// one core, its players' sessions are on any core, and there is no lock. Two players on two cores demonstrate it.
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "weft/rt/core/core_task.h"
#include "weft/rt/task/async_event.h"
#include "weft/rt/task/task_time.h"
#include "weft/serve/client/client.h"
#include "weft/serve/client/client_host.h"
#include "weft/serve/server/server.h"
#include "weft/sys/clock.h"

using namespace weft;
using namespace std::chrono_literals;
using Codec = serve::HeaderCodec;
using Session = serve::SessionOf<Codec>;

constexpr std::uint32_t kJoin = 1, kMove = 2, kState = 3;  // the ids of frames
using Room = std::map<std::uint64_t, int>;                 // where its players are
using Rooms = std::vector<std::map<std::uint8_t, Room>>;   // those of each core; only that core uses them

// Game: one for each core.
struct Game {
  serve::Server& server;
  Rooms& rooms;
  std::map<std::uint64_t, std::uint8_t> joined{};  // of the sessions of this core

  void on_frame(Session& session, const Codec::Frame& frame) {
    const std::uint64_t id = session.id().value;
    if (frame.header.id == kJoin && frame.body.size() == 1 && !joined.contains(id)) {
      joined[id] = frame.body[0];
      (void)session.join(serve::GroupId{frame.body[0]});
      in_room(frame.body[0], [id](Room& room) { room[id] = 0; });
    } else if (frame.header.id == kMove && frame.body.size() == 1 && joined.contains(id)) {
      in_room(joined[id], [id, step = frame.body[0]](Room& room) { room[id] += step; });
    } else {
      session.close();
    }
  }
  void on_close(Session& session, const Error& /*why*/) {
    if (const auto node = joined.extract(session.id().value)) {
      in_room(node.mapped(), [id = node.key()](Room& room) { room.erase(id); });
    }
  }
  void in_room(std::uint8_t number, auto change) {  // a full lane loses the change, so that no core waits
    const unsigned core = number % server.runtime().size();
    (void)server.runtime().post(core, [&all = rooms, core, number, change] { change(all[core][number]); });
  }
};

// One on each core, until the runtime stops.
rt::Task<Result<void>> tick(serve::Server* server, Rooms* rooms) {
  for (Instant next = sys::now();; next += 16'666us) {
    WEFT_CO_TRY(co_await rt::sleep_until(next));  // late ticks do not add up
    for (const auto& [number, room] : (*rooms)[rt::Core::current()->index()]) {
      std::string state;
      for (const auto& [player, position] : room) {
        state += std::to_string(position) + " ";
      }
      WEFT_CO_TRY(auto frame, serve::SharedFrame::encode(Codec(), {kState, 0}, as_bytes(state)));
      (void)server->publish(serve::GroupId{number}, frame);  // encoded once; a slow player's session has its policy
    }
  }
}

// A player: joins room 7, takes a step of 5, and waits for a state with two players who did so.
rt::Task<Result<void>> play(std::string endpoint) {
  rt::AsyncEvent seen;
  const auto host = std::make_shared<serve::ClientHost>(*rt::Core::current());
  WEFT_CO_TRY(const auto client, serve::Client<Codec>::open(host, endpoint));
  client->on_push([&seen](const Codec::Frame& frame) { as_text(frame.body) == "5 5 " ? seen.set() : void(); });
  WEFT_CO_TRY(co_await client->connected(sys::now() + 10s));
  WEFT_CO_TRY(client->send({kJoin, 0}, as_bytes("\7")));
  WEFT_CO_TRY(client->send({kMove, 0}, as_bytes("\5")));
  co_return co_await seen.wait();
}

Result<void> run() {
  rt::RuntimeOptions options;
  options.cores = 2;
  Rooms rooms(options.cores);
  const auto runtime = WEFT_TRY(rt::Runtime::start(options));
  const auto server = WEFT_TRY(serve::Server::make(*runtime));
  const auto endpoint = WEFT_TRY(server->listen<Codec>("tcp://127.0.0.1:0", {}, [&] { return Game{*server, rooms}; }));
  for (unsigned core = 0; core < runtime->size(); ++core) {
    (void)WEFT_TRY(rt::spawn(runtime->core(core), tick(server.get(), &rooms)));
  }
  auto first = WEFT_TRY(rt::spawn(runtime->core(0), play(endpoint)));
  auto second = WEFT_TRY(rt::spawn(runtime->core(1), play(endpoint)));
  const auto result = first.get() ? second.get() : Error(Errc::other, "the first player saw no other");
  (void)runtime->stop(sys::now() + 5s);  // cancels the ticks, which use the server
  return result;
}

int main() {
  const auto result = run();
  std::printf("game_server: %s\n", result ? "both players saw both" : result.error().message().c_str());
  return result ? 0 : 1;
}
