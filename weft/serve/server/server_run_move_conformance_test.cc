// SPDX-License-Identifier: MIT
// A session's move between two cores, with two other events at every two places between the turns of the cores: no
// frame is lost, none comes twice, each comes in its order, the session is counted once, and no memory stays charged.
// Then the same with movers that are wrong in one way each, which the checks find.
#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "weft/rt/core/core_job.h"
#include "weft/serve/server/test_client.h"
#include "weft/serve/session/shard.h"
#include <gtest/gtest.h>

namespace weft::serve {
namespace {

using test::Client;
using test::frame_of;
using test::HeaderSession;
using test::kLong;
using test::Signal;

constexpr GroupId kMovers{3};
constexpr unsigned kTurnsOfAMove = 8;

unsigned core_here() { return rt::Core::current()->index(); }

// Stops a core at the end of each turn, until the test lets it run one more.
class TurnGate final : private rt::TurnJob {
 public:
  TurnGate() noexcept : rt::TurnJob([](rt::TurnJob& job) noexcept { static_cast<TurnGate&>(job).stand(); }) {}

  void close(rt::Runtime& runtime, unsigned core) {
    closed_ = true;
    EXPECT_TRUE(runtime.post(core, [this] { rt::Core::current()->at_turn_end(*this); }));
    EXPECT_TRUE(stands_.take());
  }
  void turn() {
    go_.give();
    EXPECT_TRUE(stands_.take());
  }
  void open() {
    closed_ = false;
    go_.give();
    EXPECT_TRUE(left_.take());
  }

 private:
  void stand() noexcept {
    stands_.give();
    EXPECT_TRUE(go_.take());
    if (closed_) {
      rt::Core::current()->at_turn_end(*this);
    } else {
      left_.give();
    }
  }

  std::atomic<bool> closed_{false};
  Signal stands_;
  Signal go_;
  Signal left_;
};

enum class Event {
  frame,     // the rest of a frame of the client arrives
  own,       // a job on the session's core sends
  far,       // another thread sends to the session's id
  publish,   // and to its group
  back,      // the session shall move again
  close,     // the session is closed
  peer_end,  // the client ends its stream
  drain,     // the server stops
};
constexpr std::array kEvents{Event::frame, Event::own,   Event::far,      Event::publish,
                             Event::back,  Event::close, Event::peer_end, Event::drain};

// Turns of the core on which the session began (0) and of the other one (1).
using Turns = std::vector<unsigned>;

// The connection's state, which moves with the session.
struct Journey {
  static inline std::atomic<int> alive{0};
  Journey() { ++alive; }
  Journey(const Journey&) = delete;
  Journey& operator=(const Journey&) = delete;
  ~Journey() { --alive; }
  int frames = 0;
};

// The events of one run, in the order in which the services saw them.
struct Trace {
  std::string problem;            // of the first frame that came at the wrong place
  std::vector<std::string> sent;  // frames that the session took from its own core
  int arrived = 0;
  int departed = 0;
  int ended = 0;
};

enum class Mistake { none, loses_input, doubles_input, loses_state, loses_session };

// Moves sessions as a server does, with a mistake.
class SeededMover final : public SessionMover {
 public:
  SeededMover(Mistake mistake, rt::Runtime& runtime) noexcept : mistake_(mistake), runtime_(runtime) {}

  void note_slot(const ServiceSlot& slot) noexcept { slots_[core_here()] = &slot; }
  Result<SessionMove*> begin_move(SessionId session, std::size_t /*port*/, unsigned core) noexcept override {
    auto* const move = new Move(*this, session, core);
    move->go(core, &Move::reserve);
    return move;
  }

 private:
  struct Move final : rt::CoreJob, SessionMove {
    Move(SeededMover& of, SessionId moved, unsigned target) noexcept
        : rt::CoreJob([](rt::CoreJob& job) noexcept {
            auto& self = static_cast<Move&>(job);
            (self.*self.step)();
          }),
          mover(of),
          session(moved),
          to(target) {}
    void go(unsigned core, void (Move::*next)() noexcept) noexcept {
      step = next;
      mover.runtime_.core(core).give(*this);
    }
    void reserve() noexcept {
      Shard* const shard = Shard::here(session.epoch());
      granted = shard != nullptr && shard->reserve();
      go(session.core(), &Move::answer);
    }
    void answer() noexcept {
      Shard* const shard = Shard::here(session.epoch());
      if (shard == nullptr || !shard->answer(session, *this, granted)) {
        granted ? cancel() : delete this;
      }
    }
    void carry(SessionRest given) noexcept override {
      rest = std::move(given);
      const std::vector<std::uint8_t> input = rest.unread;
      switch (mover.mistake_) {
        case Mistake::none: break;
        case Mistake::loses_input: rest.unread.clear(); break;
        case Mistake::doubles_input: rest.unread.insert(rest.unread.end(), input.begin(), input.end()); break;
        case Mistake::loses_state: rest.state = nullptr; break;
        case Mistake::loses_session: rest = {}; return cancel();
      }
      go(to, &Move::arrive);
    }
    void cancel() noexcept override { go(to, &Move::release); }
    void arrive() noexcept {
      Shard::here(session.epoch())->arrive(*mover.slots_[to], std::move(rest));
      delete this;
    }
    void release() noexcept {
      if (Shard* const shard = Shard::here(session.epoch()); shard != nullptr) {
        shard->release();
      }
      delete this;
    }
    SeededMover& mover;
    const SessionId session;
    const unsigned to;
    void (Move::*step)() noexcept = nullptr;
    bool granted = false;
    SessionRest rest;
  };

  const Mistake mistake_;
  rt::Runtime& runtime_;
  std::array<const ServiceSlot*, 2> slots_{};
};

class MoveModel : public test::ServerTest {
 protected:
  void SetUp() override {
    ServerTest::SetUp();
    script_.on_open = [this](HeaderSession& session) { note_open(session); };
    script_.on_frame = [this](HeaderSession& session, const HeaderCodec::Frame& frame) { handle(session, frame); };
    script_.on_close = [this](HeaderSession& /*session*/, const Error& why) {
      const std::lock_guard lock(mutex_);
      ++(why == Errc::ok ? trace_.departed : trace_.ended);
    };
  }

  // The beginnings of a move's turns: the cores in turns, first the one on which the session is. No other order
  // differs: the turn of a core that has nothing to do changes nothing.
  static std::vector<Turns> beginnings() {
    std::vector<Turns> all{{}};
    for (unsigned turn = 0; turn < kTurnsOfAMove; ++turn) {
      all.push_back(all.back());
      all.back().push_back(turn % 2);
    }
    return all;
  }

  // The client sends a frame that moves its session, one more, and a half. Then come turns, an event, turns, an
  // event; then the cores run freely. Returns the first problem; empty if there is none.
  std::string run(const Turns& first, Event one, const Turns& second, Event two, SeededMover* mover = nullptr) {
    begin_run(mover);
    Client client(endpoint_);
    client.write(frame_of(1, "1"));
    if (client.receive() != "1") {
      return "the first frame has no answer";
    }
    const unsigned from = home_.load();
    for (unsigned core = 0; core < 2; ++core) {
      gates_[core].close(*runtime_, core);
    }
    client.write(frame_of(1, "2go") + frame_of(1, "3") + frame_of(1, "4").substr(0, 12));
    rest_ = frame_of(1, "4").substr(12);
    take_turns(first, from);
    apply(one, client);
    take_turns(second, from);
    apply(two, client);
    for (TurnGate& gate : gates_) {
      gate.open();
    }
    return end_run(client);
  }

  std::set<std::string> stages_;  // how far the move was when an event came
  Duration patience_ = kLong;     // with the end of a session

 private:
  static SharedFrame shared(const std::string& text) {
    return std::move(SharedFrame::encode(HeaderCodec(), {1, 0}, as_bytes(text))).value();
  }

  void begin_run(SeededMover* mover) {
    {
      const std::lock_guard lock(mutex_);
      mover_ = mover;
    }
    if (server_ == nullptr) {
      ListenerOptions options;
      options.accept = AcceptMode::hand_off;
      make_server();
      endpoint_ = listen(options);
      // A connection on each core: a seeded mover gets the listener's slot there.
      for (int i = 0; i < 2; ++i) {
        Client visitor(endpoint_);
        visitor.write(frame_of(1, "1"));
        EXPECT_EQ(visitor.receive(), "1");
      }
      EXPECT_TRUE(settles([this] { return server_->sessions() == 0; }, kLong));
    }
    const std::lock_guard lock(mutex_);
    trace_ = {};
    drains_ = closes_ = peer_ended_ = false;
    far_ = news_ = own_ = 0;
    before_ = server_->counters();
  }

  void note_open(HeaderSession& session) {
    const std::lock_guard lock(mutex_);
    if (mover_ != nullptr) {
      mover_->note_slot(session.slot());
      session.shard().set_mover(*mover_);
    }
    home_ = core_here();
    id_ = session.id().value;
    EXPECT_TRUE(session.join(kMovers));
    if (session.state<Journey>() != nullptr) {
      ++trace_.arrived;
    } else {
      EXPECT_TRUE(session.make_state<Journey>());
    }
  }
  void handle(HeaderSession& session, const HeaderCodec::Frame& frame) {
    const std::string text(as_text(frame.body));
    const std::string number = text.substr(0, 1);
    const std::string wanted = std::to_string(++session.state<Journey>()->frames);
    const bool taken = session.send(frame.header, as_bytes(number)).has_value();
    {
      const std::lock_guard lock(mutex_);
      if (trace_.problem.empty() && number != wanted) {
        trace_.problem = "frame " + number + " came in the place of frame " + wanted;
      }
      if (taken) {
        trace_.sent.push_back(number);
      }
    }
    if (text.ends_with("go")) {
      (void)session.move_to(1 - core_here());  // refused in a drain
    }
  }

  void take_turns(const Turns& turns, unsigned from) {
    for (const unsigned turn : turns) {
      gates_[turn == 0 ? from : 1 - from].turn();
    }
  }

  void apply(Event event, Client& client) {
    note_stage();
    const SessionId id{id_.load()};
    switch (event) {
      case Event::frame: send_rest(client); break;
      case Event::own: {
        const std::string text = "own " + std::to_string(++own_);
        EXPECT_TRUE(server_->post_to<HeaderCodec>(id, [this, text](HeaderSession& session) {
          const bool taken = session.send({1, 0}, as_bytes(text)).has_value();
          const std::lock_guard lock(mutex_);
          if (taken) {
            trace_.sent.push_back(text);
          }
        }));
        break;
      }
      case Event::far: EXPECT_TRUE(server_->send_to(id, shared("far " + std::to_string(++far_)))); break;
      case Event::publish: EXPECT_TRUE(server_->publish(kMovers, shared("news " + std::to_string(++news_)))); break;
      case Event::back:
        EXPECT_TRUE(server_->post_to(id, [](Session& session) { (void)session.move_to(1 - core_here()); }));
        break;
      case Event::close:
        closes_ = true;
        EXPECT_TRUE(server_->post_to(id, [](Session& session) { session.close(); }));
        break;
      case Event::peer_end:
        send_rest(client);
        client.end_writing();
        peer_ended_ = true;
        break;
      case Event::drain:
        drains_ = true;
        server_->begin_stop(sys::now() + kLong);
        break;
    }
  }
  void send_rest(Client& client) {
    if (!peer_ended_) {
      (void)client.write_some(rest_, kLong);
    }
    rest_.clear();
  }
  void note_stage() {
    const CounterValues now = server_->counters();
    const std::lock_guard lock(mutex_);
    stages_.insert(trace_.arrived != 0                     ? "arrived"
                   : trace_.departed != 0                  ? "between the cores"
                   : now.frames_in - before_.frames_in > 1 ? "about to move"
                                                           : "before the move");
  }

  template <typename Condition>
  static bool settles(const Condition& condition, Duration patience) {
    const Instant limit = sys::now() + patience;
    while (!condition() && sys::now() < limit) {
      std::this_thread::yield();
    }
    return condition();
  }

  std::string end_run(Client& client) {
    send_rest(client);
    if (!peer_ended_) {
      (void)client.write_some(frame_of(1, "5"), kLong);
      client.end_writing();
    }
    std::vector<std::string> received;
    while (auto body = client.receive()) {
      received.push_back(std::move(*body));
    }
    client.close();
    // All that this thread posted has run: also messages to a session that has gone, on the other core.
    for (unsigned core = 0; core < 2; ++core) {
      Signal ran;
      EXPECT_TRUE(runtime_->post(core, [&ran] { ran.give(); }));
      EXPECT_TRUE(ran.take());
    }
    if (drains_) {
      EXPECT_TRUE(server_->stop(sys::now() + kLong));
    }
    const bool settled = settles(
        [this] {
          const CounterValues now = server_->counters();
          std::uint64_t held = 0;
          for (const std::uint64_t bytes : now.memory) {
            held += bytes;
          }
          return server_->sessions() == 0 && held == 0 && now.closed_total() == before_.closed_total() + 1 &&
                 Journey::alive.load() == 0;
        },
        patience_);
    const std::string problem = settled ? judge(received) : "the session, its memory or its state has not gone";
    if (drains_) {
      server_.reset();
    }
    return problem;
  }

  std::string judge(const std::vector<std::string>& received) {
    const std::lock_guard lock(mutex_);
    const CounterValues now = server_->counters();
    if (!trace_.problem.empty()) {
      return trace_.problem;
    }
    if (now.opened != before_.opened + 1 || trace_.ended != 1) {
      return "the connection was not counted once";
    }
    if (trace_.arrived != trace_.departed || now.moves != before_.moves + static_cast<unsigned>(trace_.departed)) {
      return "a session departed and did not arrive";
    }
    std::vector<std::string> from_session{"1"};
    std::vector<std::string> from_afar;
    std::vector<std::string> news;
    for (std::size_t i = 0; i < received.size(); ++i) {
      (received[i].starts_with("far")    ? from_afar
       : received[i].starts_with("news") ? news
                                         : from_session)
          .push_back(received[i]);
    }
    if (from_session != trace_.sent) {
      return "the client did not get what the session sent";
    }
    const int wanted = peer_ended_ ? 4 : 5;
    const auto last = std::find(from_session.begin(), from_session.end(), std::to_string(wanted));
    if (!closes_ && !drains_ && last == from_session.end()) {
      return "a frame of the client was lost";
    }
    const std::uint64_t missed =
        now.stale_ids - before_.stale_ids + now.refused_closed - before_.refused_closed;  // own ones may be among them
    std::vector<std::string> all;
    for (int i = 1; i <= far_; ++i) {
      all.push_back("far " + std::to_string(i));
    }
    if (!std::includes(all.begin(), all.end(), from_afar.begin(), from_afar.end()) ||
        from_afar.size() + missed < all.size()) {
      return "a frame from another thread was lost or came twice";
    }
    for (int i = 1; i <= news_; ++i) {
      if (std::count(news.begin(), news.end(), "news " + std::to_string(i)) > 2) {
        return "a published frame came more than once on a core";
      }
    }
    return "";
  }

  std::array<TurnGate, 2> gates_;
  std::string endpoint_;
  SeededMover* mover_ = nullptr;
  std::atomic<unsigned> home_{0};  // the core of the last session
  std::atomic<std::uint64_t> id_{0};
  std::mutex mutex_;
  Trace trace_;
  CounterValues before_;
  std::string rest_;
  bool drains_ = false;
  bool closes_ = false;
  bool peer_ended_ = false;
  int far_ = 0;
  int news_ = 0;
  int own_ = 0;
};

class MoveModelOf : public MoveModel, public testing::WithParamInterface<Event> {};

TEST_P(MoveModelOf, LosesAndDoublesNothingInAnyOrderOfTurns) {
  const std::vector<Turns> between{{}, {1}, {0, 1, 0, 1}};
  for (const Turns& first : beginnings()) {
    for (const Event two : kEvents) {
      for (const Turns& second : between) {
        const std::string problem = run(first, GetParam(), second, two);
        ASSERT_EQ(problem, "") << first.size() << " turns, then " << testing::PrintToString(second) << " and event "
                               << static_cast<int>(two);
      }
    }
  }
  const std::set<std::string> all{"before the move", "about to move", "between the cores", "arrived"};
  EXPECT_EQ(stages_, all);
}

INSTANTIATE_TEST_SUITE_P(EveryEvent, MoveModelOf, testing::ValuesIn(kEvents));

// Whether a run finds the mistake.
class SeededMoves : public MoveModel {
 protected:
  bool finds(Mistake mistake) {
    SeededMover mover(mistake, *runtime_);
    patience_ = mistake == Mistake::loses_session ? std::chrono::milliseconds(100) : kLong;
    bool found = false;
    for (const Turns& first : beginnings()) {
      for (const Event one : {Event::frame, Event::far, Event::drain}) {
        found = found || !run(first, one, {}, Event::own, &mover).empty();
      }
    }
    server_.reset();
    return found;
  }
};

TEST_F(SeededMoves, AreFound) {
  EXPECT_FALSE(finds(Mistake::none));
  EXPECT_TRUE(finds(Mistake::loses_input));
  EXPECT_TRUE(finds(Mistake::doubles_input));
  EXPECT_TRUE(finds(Mistake::loses_state));
  EXPECT_TRUE(finds(Mistake::loses_session));
}

}  // namespace
}  // namespace weft::serve
