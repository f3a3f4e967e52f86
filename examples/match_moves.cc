// SPDX-License-Identifier: MIT
// A match server: the players of a match come in on any core and move to the core of their match. There one service has
// all of them: no lock, and no message between cores. 60 times a second it sends them the state. Two players
// demonstrate it.
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

constexpr std::uint32_t kJoin = 1, kStep = 2, kState = 3;  // the ids of frames

struct Player {  // moves with the session
  std::uint8_t match;
  int position = 0;
};
using Match = std::map<std::uint64_t, Session*>;             // the players who have arrived, by their sessions' ids
using Matches = std::vector<std::map<std::uint8_t, Match>>;  // those of each core; only that core uses them

struct Arena {  // one for each core
  Matches& all;

  void on_open(Session& session) {  // again on the core to which it moved
    if (session.state<Player>() != nullptr) {
      enter(session);
    }
  }
  void on_frame(Session& session, const Codec::Frame& frame) {
    Player* const player = session.state<Player>();
    if (frame.header.id == kJoin && frame.body.size() == 1 && player == nullptr) {
      join(session, frame.body[0]);
    } else if (frame.header.id == kStep && frame.body.size() == 1 && player != nullptr) {
      player->position += frame.body[0];  // on the core of the match: the move keeps the order of the frames
    } else {
      session.close();
    }
  }
  void on_close(Session& session, const Error& /*why*/) {  // also when it leaves for another core
    if (const Player* const player = session.state<Player>()) {
      here()[player->match].erase(session.id().value);
    }
  }

  void join(Session& session, std::uint8_t match) {
    const unsigned core = match % static_cast<unsigned>(all.size());
    if (!session.make_state<Player>(match) || !session.move_to(core)) {
      return session.close();
    }
    if (core == rt::Core::current()->index()) {
      enter(session);
    }
  }
  void enter(Session& session) { here()[session.state<Player>()->match][session.id().value] = &session; }
  std::map<std::uint8_t, Match>& here() { return all[rt::Core::current()->index()]; }
};

// One on each core, until the runtime stops.
rt::Task<Result<void>> tick(Matches* all) {
  for (Instant next = sys::now();; next += 16'666us) {
    WEFT_CO_TRY(co_await rt::sleep_until(next));  // late ticks do not add up
    for (const auto& [number, match] : (*all)[rt::Core::current()->index()]) {
      std::string state = std::to_string(rt::Core::current()->index()) + ":";
      for (const auto& [id, session] : match) {
        state += " " + std::to_string(session->state<Player>()->position);
      }
      for (const auto& [id, session] : match) {  // a slow player gets the newest state only
        (void)session->send_state({kState, 0}, as_bytes(state), serve::FrameKey{number});
      }
    }
  }
}

// A player: joins match 7, takes a step of 5, and waits for a state with two players who did so.
rt::Task<Result<void>> play(std::string endpoint) {
  rt::AsyncEvent seen;
  const auto host = std::make_shared<serve::ClientHost>(*rt::Core::current());
  WEFT_CO_TRY(const auto client, serve::Client<Codec>::open(host, endpoint));
  client->on_push([&seen](const Codec::Frame& frame) { as_text(frame.body) == "1: 5 5" ? seen.set() : void(); });
  WEFT_CO_TRY(co_await client->connected(sys::now() + 10s));
  WEFT_CO_TRY(client->send({kJoin, 0}, as_bytes("\7")));
  WEFT_CO_TRY(client->send({kStep, 0}, as_bytes("\5")));
  co_return co_await seen.wait();
}

Result<void> run() {
  rt::RuntimeOptions options;
  options.cores = 2;
  Matches matches(options.cores);
  const auto runtime = WEFT_TRY(rt::Runtime::start(options));
  const auto server = WEFT_TRY(serve::Server::make(*runtime));
  serve::ListenerOptions in_turns;
  in_turns.accept = serve::AcceptMode::hand_off;  // the players come in on both cores
  const auto endpoint = WEFT_TRY(server->listen<Codec>("tcp://127.0.0.1:0", in_turns, [&] { return Arena{matches}; }));
  for (unsigned core = 0; core < runtime->size(); ++core) {
    (void)WEFT_TRY(rt::spawn(runtime->core(core), tick(&matches)));
  }
  auto first = WEFT_TRY(rt::spawn(runtime->core(0), play(endpoint)));
  auto second = WEFT_TRY(rt::spawn(runtime->core(1), play(endpoint)));
  const auto result = first.get() ? second.get() : Error(Errc::other, "the first player saw no other");
  std::printf("match_moves: %llu of 2 players moved to core 1; %s\n",
              static_cast<unsigned long long>(server->counters().moves),
              result ? "both saw both" : result.error().text());
  return result;
}

int main() { return run() ? 0 : 1; }
