// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "weft/base/random.h"
#include "weft/topic/mesh/mesh_state.h"
#include "weft/topic/mesh/test_mesh.h"

namespace weft::topic {

using namespace std::chrono_literals;

// SimulatedFleet: the hosts, the connections and the loops of up to eight handles in virtual time. It drives each
// MeshState like a Node. A slot is a host: its endpoint is that of each handle that runs there, one after another.
class SimulatedFleet {
 public:
  static constexpr unsigned kHandlesMax = 8;

  explicit SimulatedFleet(std::uint64_t seed) : random_(seed) {}
  SimulatedFleet(const SimulatedFleet&) = delete;
  SimulatedFleet& operator=(const SimulatedFleet&) = delete;
  virtual ~SimulatedFleet() = default;
  [[nodiscard]] std::uint64_t messages() const { return sent_; }

 protected:
  // Wire: a connection of one handle to another one, in which control messages wait.
  struct Wire {
    unsigned from = 0;
    unsigned to = 0;
    std::string endpoint;
    bool open = true;
    bool busy = false;  // a delivery is scheduled
    std::deque<Control> queue;
  };
  struct Connector {
    std::uint64_t number = 0;  // of its life: a former one's events are stale
    bool scouts = false;
    PeerConnection wire = 0;
    unsigned failures = 0;
  };
  // Program: the owner of a topic, or a call of create() under way.
  enum class Program : std::uint8_t { idle, asks, claims, owns };
  struct Handle {
    unsigned slot = 0;
    std::uint64_t life = 0;
    std::unique_ptr<MeshState> mesh;  // null: it crashed
    std::map<std::string, Connector> connectors;
    Instant paused_until{};
    std::uint64_t clock_ahead = 0;
    bool resends = false;
    Program program = Program::idle;
    std::string topic;
    std::uint64_t ask = 0;
    std::uint64_t claim = 0;
    std::uint64_t epoch = 0;
    std::map<std::string, std::uint64_t> subscriptions;
    std::uint64_t probe = 0;
    std::string probed;
    std::vector<std::uint64_t> services;
  };
  enum class Kind : std::uint8_t { attempt, link_down, ended, deliver, exchange, resend, deadline };
  struct Event {
    Instant at;
    std::uint64_t order = 0;
    Kind kind = Kind::attempt;
    unsigned slot = 0;
    std::uint64_t life = 0;
    std::uint64_t number = 0;  // of a connector, a wire or a claim
    std::string endpoint;
    bool operator<(const Event& other) const { return at != other.at ? at > other.at : order > other.order; }
  };

  virtual void advance(Handle& handle) = 0;                               // the program continues after a change
  virtual void handle_deadline(Handle& handle, std::uint64_t claim) = 0;  // of a claim

  // --- time ---
  void schedule(Kind kind, const Handle& handle, Duration after, std::uint64_t number = 0, std::string endpoint = {}) {
    events_.push({now_ + after, ++order_, kind, handle.slot, handle.life, number, std::move(endpoint)});
  }
  Duration delay(Duration most) {
    return Duration(static_cast<Duration::rep>(random_.below(static_cast<std::uint64_t>(most.count()))));
  }
  void run_until(Instant end) {
    while (failure_.empty() && !events_.empty() && events_.top().at <= end) {
      const Event event = events_.top();
      events_.pop();
      now_ = event.at;
      Handle& handle = handles_[event.slot];
      if (event.kind == Kind::deliver) {
        deliver(event.number);
      } else if (handle.mesh != nullptr && handle.life == event.life) {
        handle_event(handle, event);
        advance(handle);
      }
      if (++steps_ > 2'000'000) {
        fail("the fleet does not come to rest");
      }
    }
    now_ = end;
  }
  void handle_event(Handle& handle, const Event& event) {
    switch (event.kind) {
      case Kind::attempt: attempt(handle, event.endpoint, event.number); break;
      case Kind::link_down: handle_link_down(handle, event.endpoint, static_cast<PeerConnection>(event.number)); break;
      case Kind::ended: handle_ended(handle); break;
      case Kind::exchange: exchange(handle); break;
      case Kind::resend: resend(handle); break;
      case Kind::deadline: handle_deadline(handle, event.number); break;
      case Kind::deliver: break;
    }
  }
  void fail(const std::string& why) {
    if (failure_.empty()) {
      std::ostringstream text;
      text << why << ", at " << std::chrono::duration<double>(now_ - kMeshStart).count() << " s of " << size_
           << (calm_ ? " calm" : "") << " handles";
      failure_ = text.str();
    }
  }
  [[nodiscard]] MeshState::Times times(const Handle& handle) const {
    const auto since = std::chrono::duration_cast<std::chrono::microseconds>(now_ - kMeshStart).count();
    return {now_, kMeshClock + static_cast<std::uint64_t>(since) + handle.clock_ahead};
  }
  [[nodiscard]] bool is_open(PeerConnection id) const { return wires_[id].open; }

  // --- handles ---
  static std::string endpoint_of(unsigned slot) { return "host" + std::to_string(slot); }
  static unsigned slot_at(const std::string& endpoint) { return static_cast<unsigned>(endpoint.back() - '0'); }
  void start(unsigned slot) {
    Handle& handle = handles_[slot];
    const std::uint64_t life = handle.life + 1;
    handle = Handle();
    handle.slot = slot;
    handle.life = life;
    handle.clock_ahead = random_.below(5'000'000);
    MeshState::Self self;
    self.instance = random_.next() | 1U;
    self.node = std::to_string(slot);
    self.endpoint = endpoint_of(slot);
    self.names_peers = true;
    handle.mesh = std::make_unique<MeshState>(self);
    // Each handle is given the first one, which makes one fleet of them, and some more; some under a second name.
    for (unsigned other = 0; other < size_; ++other) {
      if (other == 0 || random_.below(3) == 0) {
        give(handle, endpoint_of(other));
      }
      if (random_.below(8) == 0) {
        give(handle, "alias" + std::to_string(other));
      }
    }
  }
  void give(Handle& handle, const std::string& endpoint) {
    if (handle.mesh->begin_link(endpoint, 0, true, now_).step == Links::Step::scout) {
      begin_scout(handle, endpoint);
    }
  }
  void crash(unsigned slot) {
    Handle& handle = handles_[slot];
    handle.mesh.reset();
    for (PeerConnection id = 1; id < wires_.size(); ++id) {
      if (wires_[id].open && (wires_[id].from == slot || wires_[id].to == slot)) {
        close(id, wires_[id].from == slot);
      }
    }
  }

  // --- connections ---
  void begin_connector(Handle& handle, const std::string& endpoint, bool scouts) {
    Connector& connector = handle.connectors[endpoint];
    connector = {++numbers_, scouts, 0, 0};
    schedule(Kind::attempt, handle, delay(20ms), connector.number, endpoint);
  }
  void begin_scout(Handle& handle, const std::string& endpoint) {
    const Links::Link* const link = handle.mesh->links().find(endpoint);
    if (link != nullptr && !link->connected && !handle.connectors.contains(endpoint)) {
      begin_connector(handle, endpoint, true);
    }
  }
  void disconnect(Handle& handle, const std::string& endpoint) {
    const auto found = handle.connectors.find(endpoint);
    if (found != handle.connectors.end()) {
      if (found->second.wire != 0 && is_open(found->second.wire)) {
        close(found->second.wire, true);
      }
      handle.connectors.erase(found);
    }
  }
  // `quietly`: without an event for the connecting handle.
  void close(PeerConnection id, bool quietly) {
    Wire& wire = wires_[id];
    wire.open = false;
    wire.queue.clear();
    if (!quietly) {
      schedule(Kind::link_down, handles_[wire.from], delay(300ms), id, wire.endpoint);
    }
    if (handles_[wire.to].mesh != nullptr) {
      schedule(Kind::ended, handles_[wire.to], delay(300ms));
    }
  }
  void attempt(Handle& handle, const std::string& endpoint, std::uint64_t number) {
    const auto found = handle.connectors.find(endpoint);
    if (found == handle.connectors.end() || found->second.number != number || found->second.wire != 0) {
      return;
    }
    const unsigned to = slot_at(endpoint);
    if (handles_[to].mesh == nullptr || cut_.contains({std::min(handle.slot, to), std::max(handle.slot, to)})) {
      Connector& connector = found->second;
      connector.failures = std::min(connector.failures + 1, 6U);
      schedule(Kind::attempt, handle, 50ms * (1U << connector.failures) / 2 + delay(10ms), number, endpoint);
      if (!connector.scouts) {
        handle_link(handle, endpoint, false);
      }
      return;
    }
    if (found->second.scouts) {
      handle.connectors.erase(found);
      if (handle.mesh->links().note_scouted(endpoint, handles_[to].mesh->self().instance)) {
        begin_connector(handle, endpoint, false);
      }
      return;
    }
    Wire wire;
    wire.from = handle.slot;
    wire.to = to;
    wire.endpoint = endpoint;
    found->second.failures = 0;
    found->second.wire = static_cast<PeerConnection>(wires_.size());
    wires_.push_back(std::move(wire));
    handle_link(handle, endpoint, true);
  }
  void handle_link_down(Handle& handle, const std::string& endpoint, PeerConnection id) {
    const auto found = handle.connectors.find(endpoint);
    if (found == handle.connectors.end() || found->second.wire != id) {
      return;
    }
    found->second.wire = 0;
    schedule(Kind::attempt, handle, 50ms + delay(50ms), found->second.number, endpoint);
    handle_link(handle, endpoint, false);
  }
  void handle_link(Handle& handle, const std::string& endpoint, bool up) {
    const MeshState::LinkChange change = handle.mesh->handle_link(endpoint, up, now_);
    if (!change.known) {
      return;
    }
    if (up) {
      exchange_soon(handle, change.instance, true);
    } else if (change.given) {
      const std::vector<std::string> again = handle.mesh->links().scout_again(endpoint);
      disconnect(handle, endpoint);
      for (const std::string& at : again) {
        begin_scout(handle, at);
      }
    } else if (change.outdated) {
      const bool scouts = handle.mesh->remove_link(endpoint, false).scouts;
      disconnect(handle, endpoint);
      for (const std::string& at : scouts ? handle.mesh->links().unconnected() : std::vector<std::string>()) {
        begin_scout(handle, at);
      }
    }
  }
  void handle_ended(Handle& handle) {
    const auto ended = handle.mesh->end_connections([this](PeerConnection id) { return is_open(id); });
    for (const std::uint64_t instance : ended.linked) {
      exchange_soon(handle, instance, true);
    }
  }
  void learn(Handle& handle, std::uint64_t instance, const std::string& endpoint, bool named) {
    if (instance == handle.mesh->self().instance || endpoint.empty()) {
      return;
    }
    const Links::Begun begun = named ? handle.mesh->begin_named_link(endpoint, instance, now_)
                                     : handle.mesh->begin_link(endpoint, instance, false, now_);
    if (begun.step == Links::Step::connect) {
      begin_connector(handle, endpoint, false);
    } else if (begun.step == Links::Step::disconnect) {
      disconnect(handle, endpoint);
    }
    if (begun.stands) {
      exchange_soon(handle, instance, true);
    }
  }

  // --- messages ---
  void send(Handle& handle, const Control& control) {
    if (!try_send(handle, control)) {
      handle.mesh->resend().note_missed(control);
      resend_soon(handle);
    }
  }
  // Returns false if a peer missed the message.
  bool try_send(Handle& handle, const Control& control) {
    bool missed = false;
    bool sent = false;
    for (const auto& [endpoint, connector] : handle.connectors) {
      if (connector.wire == 0 || !is_open(connector.wire)) {
        continue;
      }
      Wire& wire = wires_[connector.wire];
      if (control.to != 0 && handles_[wire.to].mesh->self().instance != control.to) {
        continue;  // it reads the receiver, and drops the message
      }
      sent = true;
      if (wire.queue.size() >= queue_max_ || (faulty_ && random_.below(20) == 0)) {
        missed = true;
        continue;
      }
      wire.queue.push_back(control);
      if (!std::exchange(wire.busy, true)) {
        schedule(Kind::deliver, handle, transit(), connector.wire);
      }
    }
    sent_ += sent ? 1 : 0;
    return !missed;
  }
  Duration transit() { return random_.below(16) == 0 ? delay(500ms) : delay(2ms); }
  void send_all(Handle& handle, const std::vector<Control>& controls) {
    for (const Control& control : controls) {
      send(handle, control);
    }
  }
  void deliver(std::uint64_t id) {
    Wire& wire = wires_[id];
    if (!wire.open) {
      return;
    }
    Handle& to = handles_[wire.to];
    if (to.paused_until > now_) {
      schedule(Kind::deliver, to, to.paused_until - now_, id);
      return;
    }
    const Control control = std::move(wire.queue.front());
    wire.queue.pop_front();
    wire.busy = !wire.queue.empty();
    if (wire.busy) {
      schedule(Kind::deliver, to, transit(), id);
    }
    handle_control(to, control, static_cast<PeerConnection>(id));
    advance(to);
  }
  void handle_control(Handle& handle, const Control& control, PeerConnection via) {
    const auto open = [this](PeerConnection id) { return is_open(id); };
    MeshState& mesh = *handle.mesh;
    if (control.kind != Control::Kind::roster) {
      const MeshState::Reaction reaction = mesh.handle(control, via, open, times(handle));
      react(handle, reaction);
      if (reaction.count) {
        answer_probes(handle);
      }
      return;
    }
    Result<RosterUpdate> update = read_roster(control, via, mesh.self().instance, times(handle).clock);
    if (!update) {
      fail("a handle sent a malformed roster");
      return;
    }
    const MeshState::Admission admission = mesh.admit_roster(*update, open);
    if (admission.outcome != Outcome::taken) {
      return;
    }
    learn(handle, update->from, update->roster.endpoint, admission.lost);
    if (admission.lost) {
      return;
    }
    for (const Roster::Peer& other : update->known) {
      learn(handle, other.instance, other.endpoint, true);
    }
    react(handle, mesh.enter_roster(*std::move(update), now_));
  }
  void react(Handle& handle, const MeshState::Reaction& reaction) {
    if (reaction.outcome == Outcome::malformed) {
      fail("a handle sent a malformed message");
    }
    if (reaction.roster_to) {
      exchange_soon(handle, *reaction.roster_to, false);
    }
    if (reaction.send) {
      send(handle, *reaction.send);
    }
  }
  void exchange_soon(Handle& handle, std::uint64_t to, bool full) {
    handle.mesh->request_exchange(to, full);
    schedule(Kind::exchange, handle, delay(1ms));
  }
  void exchange(Handle& handle) {
    const std::optional<MeshState::Exchange> exchange = handle.mesh->take_exchange();
    if (!exchange) {
      return;
    }
    send(handle, handle.mesh->roster(exchange->to));
    if (exchange->full) {
      send_all(handle, handle.mesh->exchange_messages(exchange->to, now_));
      answer_probes(handle);
    }
  }
  void resend_soon(Handle& handle) {
    if (!std::exchange(handle.resends, true)) {
      schedule(Kind::resend, handle, handle.mesh->resend().wait());
    }
  }
  void resend(Handle& handle) {
    handle.resends = false;
    Resend& resend = handle.mesh->resend();
    const std::vector<Control> turn = handle.mesh->resend_turn(queue_max_, now_);
    for (const Control& control : turn) {
      resend.note_sent(control, !try_send(handle, control));
    }
    std::size_t room = queue_max_ - turn.size();
    answer_probes(handle, &room);
    if (resend.end_turn(room == 0 ? Resend::End::more : Resend::End::finished)) {
      resend_soon(handle);
    }
  }
  void answer_probes(Handle& handle, std::size_t* room = nullptr) {
    ReadinessProbes& readiness = handle.mesh->readiness();
    for (const ReadinessProbes::PeerProbe& probe : readiness.due(now_, 0, 0)) {
      const std::uint64_t count = handle.subscriptions[probe.topic];
      if (count == probe.sent) {
        continue;
      }
      if (room != nullptr && (*room)-- == 0) {
        *room = 0;
        return;
      }
      send(handle, readiness.count_message(probe, count));
      readiness.sent(probe, count);
    }
  }

  Random random_;
  unsigned size_ = 0;
  bool calm_ = false;
  bool faulty_ = false;  // messages are lost
  std::uint64_t queue_max_ = 0;
  Instant now_ = kMeshStart;
  std::uint64_t order_ = 0;
  std::uint64_t numbers_ = 0;
  std::uint64_t steps_ = 0;
  std::uint64_t sent_ = 0;
  std::priority_queue<Event> events_;
  std::array<Handle, kHandlesMax> handles_;
  std::vector<Wire> wires_{1};  // by PeerConnection
  std::set<std::pair<unsigned, unsigned>> cut_;
  std::string failure_;
};

}  // namespace weft::topic
