// SPDX-License-Identifier: MIT
// RADIO (RFC 48): a message goes to every peer that joined its group. In pipes, the group is an extra part in front.
#include <algorithm>
#include <new>
#include <vector>

#include "weft/base/list.h"
#include "weft/base/slot_map.h"
#include "weft/msg/interest/subscription_table.h"
#include "weft/msg/pattern/distributor.h"
#include "weft/msg/pattern/pattern.h"

namespace weft::msg {

namespace {

class Radio final : public Pattern {
 public:
  using Pattern::Pattern;

  void attach(Pipe& pipe) override {
    if (pipe.notes.datagrams && std::find(open_.begin(), open_.end(), &pipe) == open_.end()) {
      open_.push_back(&pipe);
    }
  }
  // The groups of the peer stay for sweep(), as there may be many.
  void detach(Pipe& pipe) override {
    std::erase(open_, &pipe);
    if (Member* const member = members_.find(pipe.notes.subscriber); member != nullptr) {
      pipe.notes.subscriber = {};
      joined_ -= member->groups.topics() != 0 ? 1 : 0;
      member->groups.pipe = nullptr;
      leaving_.push_back(*member);
    }
  }
  void lost(Pipe& pipe) override { detach(pipe); }
  bool sweep() override {
    Member* const member = leaving_.first();
    if (member == nullptr) {
      return false;
    }
    if (groups_.remove_some(member->groups, [](const FilterView&, bool) { return true; })) {
      members_.erase(member->id);
    } else {
      member->unhook();
      leaving_.push_back(*member);
    }
    return !leaving_.empty();
  }

  Result<void> send(Outbound& part) override {
    if (part.more) {
      return refuse_more();
    }
    const std::string_view group = part.message == nullptr ? std::string_view() : part.message->group();
    std::vector<Pipe*>& chosen = distributor_.chosen();
    if (!distributor_.reserve(2) || !choose(as_bytes(group), chosen)) {
      return Error(Errc::resource_exhausted, "no memory for a message");
    }
    if (chosen.empty()) {
      return {};
    }
    if (options_.xpub_no_drop &&
        !std::all_of(chosen.begin(), chosen.end(), [](Pipe* pipe) { return pipe->writable(); })) {
      return Errc::would_block;
    }
    Cell parts[2];
    Outbound head{as_bytes(group), nullptr, true};
    if (!make_cell(parts[0], head)) {
      return Error(Errc::resource_exhausted, "no memory for a message part");
    }
    if (!make_cell(parts[1], part)) {
      parts[0].release();
      return Error(Errc::resource_exhausted, "no memory for a message part");
    }
    distributor_.send_parts(parts, chosen);
    return {};
  }

  bool can_send() override { return true; }

  Result<void> handle_subscription(Pipe& pipe, bool join, const FilterView& group) override {
    Member* member = members_.find(pipe.notes.subscriber);
    if (member == nullptr) {
      const SlotId id = WEFT_TRY(members_.emplace());
      member = members_.find(id);
      member->id = pipe.notes.subscriber = id;
      member->groups.pipe = &pipe;
      member->groups.local = pipe.connection() == nullptr;
    }
    const std::size_t before = member->groups.topics();
    if (join) {
      WEFT_TRY(groups_.add(member->groups, group, options_.subscriptions_max));
    } else {
      groups_.remove(member->groups, group);
    }
    joined_ += (member->groups.topics() != 0 ? 1u : 0u) - (before != 0 ? 1u : 0u);
    return {};
  }
  [[nodiscard]] std::size_t subscribers() const noexcept override { return joined_ + open_.size(); }

 private:
  struct Member : ListHook {  // in leaving_, once the pipe is detached
    SubscriptionTable::Peer groups;
    SlotId id;
  };

  // Returns false if there is no memory.
  [[nodiscard]] bool choose(Bytes group, std::vector<Pipe*>& chosen) noexcept {
    const auto members = groups_.peers(group);
    chosen.clear();
    try {
      chosen.reserve(members.size() + open_.size());
    } catch (const std::bad_alloc&) {
      return false;
    }
    chosen.insert(chosen.end(), open_.begin(), open_.end());
    for (const SubscriptionTable::Peer* member : members) {
      if (member->pipe != nullptr) {
        chosen.push_back(member->pipe);
      }
    }
    return true;
  }

  SubscriptionTable groups_;  // send lock, as all below
  SlotMap<Member> members_;
  List<Member> leaving_;     // the pipe is detached, groups may be left
  std::size_t joined_ = 0;   // members of a group, without those that leave
  std::vector<Pipe*> open_;  // over datagrams: get every message
  Distributor distributor_;
};

}  // namespace

std::unique_ptr<Pattern> make_radio(const PatternTraits& traits, const Options& options) {
  return std::make_unique<Radio>(traits, options);
}

}  // namespace weft::msg
