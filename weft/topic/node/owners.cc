// SPDX-License-Identifier: MIT
// Node: the calls of the program on owned topics. mesh/ownership.h has the rules.
#include <chrono>
#include <set>
#include <utility>

#include "weft/sys/clock.h"
#include "weft/topic/node/node.h"

namespace weft::topic {

MeshState::Times Node::times() noexcept {
  const auto wall = std::chrono::duration_cast<std::chrono::microseconds>(sys::wall_now().time_since_epoch()).count();
  return {sys::now(), wall > 0 ? static_cast<std::uint64_t>(wall) : 1};
}

Result<std::uint64_t> Node::begin_claim(std::string_view topic) {
  if (gate_ != nullptr) {
    return Error(Errc::not_supported, "a fleet on NATS has no owned topics");
  }
  std::string wire = WEFT_TRY(names_.encode(topic));
  if (closed()) {
    return Error(Errc::closed, "the handle of topics was closed");
  }
  const Control claim =
      WEFT_TRY(with_mesh([&](MeshState& mesh) { return mesh.begin_claim(std::move(wire), times().clock); }));
  const std::uint64_t id = claim.id;
  if (const Result<void> sent = send_control(claim); !sent) {
    with_mesh([&](MeshState& mesh) { mesh.ownership().cancel(id); });
    return sent.error();
  }
  return id;
}

Result<std::uint64_t> Node::end_claim(std::uint64_t claim, bool in_time) {
  const Result<std::uint64_t> epoch = with_mesh([&](MeshState& mesh) { return mesh.end_claim(claim, in_time); });
  if (epoch) {
    send_roster(0);
  }
  return epoch;
}

void Node::give_up_ownership(const std::string& wire) noexcept {
  if (with_mesh([&](MeshState& mesh) { return mesh.give_up(wire); })) {
    send_roster(0);
  }
}

bool Node::owns(const std::string& wire, std::uint64_t epoch) const {
  return mesh_.with([&](const MeshState& mesh) {
    const auto found = mesh.ownership().owned().find(wire);
    return found != mesh.ownership().owned().end() && found->second.epoch == epoch;
  });
}

bool Node::owns_now(std::string_view topic) const {
  const auto wire = names_.encode(topic);
  return wire && mesh_.with([&](const MeshState& mesh) { return mesh.ownership().owned().contains(*wire); });
}

bool Node::is_owned(std::string_view topic) const {
  const auto wire = names_.encode(topic);
  return wire && mesh_.with([&](const MeshState& mesh) { return mesh.is_owned(*wire); });
}

Result<std::vector<std::string>> Node::owned_topics(std::string_view filter) const {
  const Filter wire = WEFT_TRY(names_.filter(filter));
  std::set<std::string> found;
  mesh_.with([&](const MeshState& mesh) {
    mesh.each_owned([&](const std::string& topic) {
      if (wire.matches(topic)) {
        found.insert(names_.decode(topic));
      }
    });
  });
  return std::vector<std::string>(found.begin(), found.end());
}

}  // namespace weft::topic
