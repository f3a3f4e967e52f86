// SPDX-License-Identifier: MIT
// RADIO (RFC 48): a message goes to every peer that joined its group. In pipes, the group is an extra part in front.
#include <algorithm>
#include <map>
#include <string>
#include <unordered_map>

#include "weft/msg/pattern/distributor.h"
#include "weft/msg/pattern/pattern.h"

namespace weft::msg {

namespace {

class Radio final : public Pattern {
 public:
  using Pattern::Pattern;

  void attach(Pipe& /*pipe*/) override {}
  void detach(Pipe& pipe) override {
    if (counts_.erase(&pipe) == 0) {
      return;
    }
    for (auto entry = members_.begin(); entry != members_.end();) {
      std::erase(entry->second, &pipe);
      entry = entry->second.empty() ? members_.erase(entry) : std::next(entry);
    }
  }
  void lost(Pipe& pipe) override { detach(pipe); }

  Result<void> send(Outbound& part) override {
    if (part.more) {
      return refuse_more();
    }
    const std::string_view group = part.message == nullptr ? std::string_view() : part.message->group();
    const auto found = members_.find(group);
    if (found == members_.end()) {
      return {};
    }
    const std::vector<Pipe*>& members = found->second;
    if (options_.xpub_no_drop &&
        !std::all_of(members.begin(), members.end(), [](Pipe* pipe) { return pipe->writable(); })) {
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
    distributor_.send_parts(parts, members);
    return {};
  }

  bool can_send() override { return true; }

  bool handle_subscription(Pipe& pipe, bool join, Bytes group) override {
    std::size_t& count = counts_[&pipe];
    if (join) {
      if (count >= kGroupsMax) {
        return false;
      }
      std::vector<Pipe*>& members = members_[std::string(as_text(group))];
      if (std::find(members.begin(), members.end(), &pipe) == members.end()) {
        members.push_back(&pipe);
        ++count;
      }
    } else if (const auto found = members_.find(as_text(group)); found != members_.end()) {
      count -= std::erase(found->second, &pipe);
      if (found->second.empty()) {
        members_.erase(found);
      }
    }
    return true;
  }
  [[nodiscard]] std::size_t subscribers() const noexcept override {
    return static_cast<std::size_t>(
        std::count_if(counts_.begin(), counts_.end(), [](const auto& peer) { return peer.second != 0; }));
  }

 private:
  static constexpr std::size_t kGroupsMax = 262'144;  // of one peer

  std::map<std::string, std::vector<Pipe*>, std::less<>> members_;  // send lock, as the next two
  std::unordered_map<Pipe*, std::size_t> counts_;                   // groups of each peer
  Distributor distributor_;
};

}  // namespace

std::unique_ptr<Pattern> make_radio(const PatternTraits& traits, const Options& options) {
  return std::make_unique<Radio>(traits, options);
}

}  // namespace weft::msg
