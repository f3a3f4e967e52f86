// SPDX-License-Identifier: MIT
// Fleets of up to eight MeshStates in virtual time. Their connections are cut, lose messages and delay them; handles
// pause, crash and restart. Each world comes from its seed.
#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/support/sanitized.h"
#include "weft/topic/mesh/test_simulated_fleet.h"
#include <gtest/gtest.h>

namespace weft::topic {
namespace {

using namespace std::chrono_literals;

constexpr std::array<const char*, 2> kTopics{"world.1", "world.2"};

// FaultyFleet: one world, whose programs create topics, probe and serve while handles and connections fail.
// Invariants, which it checks:
//   1. In a calm fleet, whose handles have all met, a topic has one owner at a time, and epochs grow with each owner.
//   2. After the last fault, a topic has at most one owner, and exactly one if it had one then, unless another owner
//      of a partition gave it up or crashed shortly before: the roster of that one may be on its way.
//   3. After the last fault, each handle has the rosters of exactly the living ones, one connection each way with each,
//      and the counts of all probes.
//   4. Then the fleet is idle: no handle sends a message.
class FaultyFleet final : public SimulatedFleet {
 public:
  explicit FaultyFleet(std::uint64_t seed) : SimulatedFleet(seed) {
    size_ = 2 + static_cast<unsigned>(random_.below(kHandlesMax - 1));
    calm_ = random_.below(4) == 0;
    queue_max_ = 1 + random_.below(48);  // often less than a handle sends at once
    for (unsigned at = 0; at < size_; ++at) {
      start(at);
    }
  }

  // Returns the first broken invariant, or "".
  std::string run() {
    if (calm_) {
      run_until(now_ + 60s);
      check_met("before the first topic");
    }
    faulty_ = !calm_;
    for (unsigned steps = 20 + static_cast<unsigned>(random_.below(100)); steps > 0 && failure_.empty(); --steps) {
      act(static_cast<unsigned>(random_.below(size_)));
      if (!calm_ && random_.below(3) == 0) {
        break_something();
      }
      run_until(now_ + Duration(static_cast<Duration::rep>(random_.below(600)) * 1'000'000));
    }
    repair();
    run_until(now_ + 200s);
    for (Handle& handle : handles_) {
      stop_claiming(handle);
    }
    run_until(now_ + 60s);
    check_met("after the last fault");
    check_end();
    const std::uint64_t before = sent_;
    run_until(now_ + 120s);
    if (sent_ != before) {
      fail("an idle fleet sent messages");
    }
    return failure_;
  }

 private:
  // --- the program of a handle ---
  void act(unsigned slot) {
    Handle& handle = handles_[slot];
    if (handle.mesh == nullptr) {
      return;
    }
    MeshState& mesh = *handle.mesh;
    switch (random_.below(6)) {
      case 0:
      case 1:
        if (handle.program == Program::idle) {
          handle.topic = kTopics[random_.below(kTopics.size())];
          ask(handle);
        }
        break;
      case 2:
        if (handle.program == Program::owns && mesh.give_up(handle.topic)) {
          lost_at_[handle.topic] = now_;
          handle.program = Program::idle;
          send(handle, mesh.roster(0));
        }
        break;
      case 3:
        handle.subscriptions[kTopics[random_.below(kTopics.size())]] = random_.below(4);
        if (handle.probe != 0) {
          mesh.readiness().count_own(handle.probe, handle.subscriptions[handle.probed]);
        }
        answer_probes(handle);
        break;
      case 4:
        if (handle.probe != 0) {
          send(handle, mesh.readiness().end_message(handle.probe, mesh.readiness().end(handle.probe)));
        }
        handle.probed = kTopics[random_.below(kTopics.size())];
        handle.probe = mesh.next_id();
        send(handle, mesh.readiness().begin(handle.probe, handle.probed, now_ + 30min, now_));
        mesh.readiness().count_own(handle.probe, handle.subscriptions[handle.probed]);
        break;
      default:
        if (handle.services.empty()) {
          handle.services.push_back(mesh.next_id());
          (void)mesh.serve(handle.services.back(), "svc", std::to_string(random_.below(2)));
        } else {
          mesh.stop_serving(handle.services.back());
          handle.services.pop_back();
        }
        send(handle, mesh.roster(0));
        break;
    }
    advance(handle);
  }
  void ask(Handle& handle) {
    handle.ask = handle.mesh->next_ask();
    handle.program = Program::asks;
    send(handle, handle.mesh->roster_request(0));
  }
  void handle_deadline(Handle& handle, std::uint64_t claim) override {
    if (handle.program == Program::claims && handle.claim == claim) {
      end_claim(handle, false);
    }
  }
  void advance(Handle& handle) override {
    if (handle.mesh == nullptr) {
      return;
    }
    MeshState& mesh = *handle.mesh;
    if (handle.program == Program::owns && !mesh.ownership().owned().contains(handle.topic)) {
      handle.program = Program::idle;
      if (calm_) {
        fail("an owner lost its topic in a calm fleet");
      }
    }
    if (handle.program == Program::asks && mesh.owners_known(handle.ask)) {
      const std::uint64_t known = mesh.ownership().newest_epoch(handle.topic);
      const Result<Control> claim = mesh.begin_claim(handle.topic, times(handle).clock);
      handle.program = claim ? Program::claims : Program::idle;
      if (claim) {
        handle.claim = claim->id;
        if (claim->number <= known) {
          fail("a claim has a known epoch");
        }
        schedule(Kind::deadline, handle, 5s, claim->id);
        send(handle, *claim);
      }
    }
    if (handle.program == Program::claims && mesh.ownership().decided(handle.claim)) {
      end_claim(handle, true);
    }
  }
  void end_claim(Handle& handle, bool in_time) {
    const Result<std::uint64_t> epoch = handle.mesh->end_claim(handle.claim, in_time);
    handle.program = Program::idle;
    if (epoch) {
      handle.program = Program::owns;
      handle.epoch = *epoch;
      send(handle, handle.mesh->roster(0));
      check_new_owner(handle);
    } else if (epoch.error() == Errc::would_block && !ending_) {
      ask(handle);
    }
  }
  void stop_claiming(Handle& handle) {
    ending_ = true;
    if (handle.program == Program::asks) {
      handle.program = Program::idle;
    }
    if (handle.program == Program::claims) {
      end_claim(handle, handle.mesh->ownership().decided(handle.claim));
    }
  }

  // --- faults ---
  void break_something() {
    const auto slot = static_cast<unsigned>(random_.below(size_));
    const auto other = static_cast<unsigned>(random_.below(size_));
    switch (random_.below(6)) {
      case 0:
        if (handles_[slot].mesh != nullptr) {
          for (const auto& [topic, own] : handles_[slot].mesh->ownership().owned()) {
            lost_at_[topic] = now_;
          }
          crash(slot);
        } else {
          start(slot);
        }
        break;
      case 1: handles_[slot].paused_until = now_ + delay(3s); break;
      case 2: cut_.clear(); break;
      case 3:  // a part of the fleet
        for (unsigned at = 0; at < size_; ++at) {
          for (unsigned with = at + 1; with < size_; ++with) {
            if ((at <= slot) != (with <= slot)) {
              cut(at, with);
            }
          }
        }
        break;
      case 4:
        if (slot != other) {
          cut(std::min(slot, other), std::max(slot, other));
        }
        break;
      default:  // one connection, which may come back at once
        if (wires_.size() > 1) {
          const auto id = static_cast<PeerConnection>(1 + random_.below(wires_.size() - 1));
          if (wires_[id].open) {
            close(id, false);
          }
        }
        break;
    }
  }
  void cut(unsigned low, unsigned high) {
    cut_.insert({low, high});
    for (PeerConnection id = 1; id < wires_.size(); ++id) {
      const Wire& wire = wires_[id];
      if (wire.open && std::min(wire.from, wire.to) == low && std::max(wire.from, wire.to) == high) {
        close(id, false);
      }
    }
  }
  void repair() {
    faulty_ = false;
    cut_.clear();
    for (unsigned slot = 0; slot < size_; ++slot) {
      if (handles_[slot].mesh == nullptr) {
        start(slot);
      }
      for (const auto& [topic, own] : handles_[slot].mesh->ownership().owned()) {
        if (const auto lost = lost_at_.find(topic); lost == lost_at_.end() || now_ - lost->second > 10s) {
          owned_at_last_fault_.insert(topic);
        }
      }
    }
  }

  // --- checks ---
  void check_new_owner(const Handle& handle) {
    if (!calm_) {
      return;
    }
    for (unsigned slot = 0; slot < size_; ++slot) {
      if (slot != handle.slot && handles_[slot].mesh->ownership().owned().contains(handle.topic)) {
        fail("a topic has two owners");
      }
    }
    std::uint64_t& last = last_epochs_[handle.topic];
    if (handle.epoch <= last) {
      fail("the epoch of an owner is not greater than the former one");
    }
    last = handle.epoch;
  }
  void check_met(const std::string& when) {
    for (unsigned slot = 0; slot < size_; ++slot) {
      const MeshState& mesh = *handles_[slot].mesh;
      for (unsigned other = 0; other < size_; ++other) {
        const std::uint64_t instance = handles_[other].mesh->self().instance;
        if (other != slot && (!mesh.peers().contains(instance) || !mesh.peers().find(instance)->answered ||
                              !mesh.links().is_linked(instance))) {
          fail("handle " + std::to_string(slot) + " lacks handle " + std::to_string(other) + ' ' + when);
        }
      }
      if (mesh.peers().all().size() != size_ - 1) {
        fail("a handle has " + std::to_string(mesh.peers().all().size()) + " peers " + when);
      }
      if (mesh.peers().connection_count() != size_ - 1) {
        fail("a handle has " + std::to_string(mesh.peers().connection_count()) + " connections " + when);
      }
      std::set<std::uint64_t> linked;
      for (const auto& [endpoint, link] : mesh.links().all()) {
        if (link.connected && !linked.insert(link.instance).second) {
          fail("two connections to one handle " + when);
        }
        if (!link.up && !link.other_name) {
          fail("a link is down " + when);
        }
      }
    }
  }
  void check_end() {
    for (const char* const topic : kTopics) {
      std::uint64_t owners = 0;
      std::uint64_t subscriptions = 0;
      for (unsigned slot = 0; slot < size_; ++slot) {
        owners += handles_[slot].mesh->ownership().owned().contains(topic) ? 1 : 0;
        subscriptions += handles_[slot].subscriptions[topic];
      }
      if (owners > 1 || (owners == 0 && owned_at_last_fault_.contains(topic))) {
        fail("a topic has " + std::to_string(owners) + " owners after the last fault");
      }
      for (unsigned slot = 0; slot < size_; ++slot) {
        const Handle& handle = handles_[slot];
        if (handle.probe != 0 && handle.probed == topic &&
            handle.mesh->readiness().sum(handle.probe) != subscriptions) {
          fail("a probe counts " + std::to_string(handle.mesh->readiness().sum(handle.probe)) + " of " +
               std::to_string(subscriptions) + " subscriptions");
        }
      }
    }
    for (unsigned slot = 0; slot < size_; ++slot) {
      const Handle& handle = handles_[slot];
      if (handle.mesh->ownership().claim_count() != 0) {
        fail("a claim is left");
      }
      for (unsigned other = 0; other < size_; ++other) {
        if (other != slot) {
          check_roster(handle, *handles_[other].mesh);
        }
      }
    }
  }
  void check_roster(const Handle& of, const MeshState& at) {
    const Peers::Peer* const peer = at.peers().find(of.mesh->self().instance);
    if (peer == nullptr) {
      return;
    }
    const auto& owned = of.mesh->ownership().owned();
    const auto& announced = peer->roster.owned;
    const auto is_owned = [&](const Roster::Owned& each) {
      const auto own = owned.find(each.topic);
      return own != owned.end() && own->second.epoch == each.epoch;
    };
    if (announced.size() != owned.size() || !std::all_of(announced.begin(), announced.end(), is_owned) ||
        peer->roster.services.size() != of.services.size()) {
      fail("an old roster of handle " + of.mesh->self().node + " at handle " + at.self().node + ": " +
           std::to_string(announced.size()) + " of " + std::to_string(owned.size()) + " owned topics, " +
           std::to_string(peer->roster.services.size()) + " of " + std::to_string(of.services.size()) + " services");
    }
  }

  bool ending_ = false;
  std::map<std::string, Instant> lost_at_;  // the last time when an owner gave the topic up, or crashed
  std::set<std::string> owned_at_last_fault_;
  std::map<std::string, std::uint64_t> last_epochs_;
};

void run_worlds(std::uint64_t first, std::uint64_t last) {
  unsigned failures = 0;
  for (std::uint64_t seed = first; seed <= last && failures < 3; ++seed) {
    FaultyFleet fleet(seed);
    const std::string failure = fleet.run();
    if (!failure.empty()) {
      ++failures;
      ADD_FAILURE() << "seed " << seed << ": " << failure;
    }
  }
}

constexpr std::uint64_t kBlock = kSanitized ? 1000 : 10'000;

TEST(MeshSimulation, RandomFleetsConvergeAfterTheirFaults) { run_worlds(1, kSanitized ? 100 : 300); }

class ManyFleets : public testing::TestWithParam<std::uint64_t> {};
TEST_P(ManyFleets, ConvergeAfterTheirFaults) { run_worlds(GetParam() * 10'000, GetParam() * 10'000 + kBlock - 1); }
INSTANTIATE_TEST_SUITE_P(MeshSimulation, ManyFleets, testing::Range<std::uint64_t>(1, 11));

}  // namespace
}  // namespace weft::topic
