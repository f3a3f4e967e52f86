// SPDX-License-Identifier: MIT
#include "weft/topic/gate/gate_interest.h"

namespace weft::topic {

GateInterest::~GateInterest() {
  for (auto& [filter, wanted] : wanted_) {
    index_.remove(wanted, filter);
  }
}

Result<std::uint64_t> GateInterest::want(const Filter& filter) {
  const auto [place, is_new] = wanted_.try_emplace(filter);
  Wanted& wanted = place->second;
  if (is_new) {
    if (const auto added = index_.add(wanted, filter.view()); !added) {
      wanted_.erase(place);
      return added.error();
    }
    wanted.filter = &place->first;
    wanted.number = next_number_++;
    first_ = 0;
  }
  ++wanted.handles;
  return is_new ? wanted.number : 0;
}

std::uint64_t GateInterest::unwant(const Filter& filter) noexcept {
  const auto found = wanted_.find(filter);
  if (found == wanted_.end() || --found->second.handles != 0) {
    return 0;
  }
  const std::uint64_t number = found->second.number;
  index_.remove(found->second, filter);
  wanted_.erase(found);
  first_ = 0;
  return number;
}

std::uint64_t GateInterest::number_of(const Filter& filter) const noexcept {
  const auto found = wanted_.find(filter);
  return found == wanted_.end() ? 0 : found->second.number;
}

bool GateInterest::is_first(std::uint64_t number, std::string_view topic) {
  if (first_ == 0 || topic != topic_) {
    first_ = 0;
    topic_ = topic;
    std::uint64_t first = ~std::uint64_t{0};
    const std::uint64_t mark = ++marks_;
    index_.match(topic, mark, [&](msg::FilterIndex::Peer& peer, bool matched) {
      peer.mark = mark;
      const auto& wanted = static_cast<const Wanted&>(peer);
      if (wanted.number < first && (matched || wanted.filter->matches(topic))) {
        first = wanted.number;
      }
    });
    first_ = first;
  }
  return number <= first_;
}

}  // namespace weft::topic
