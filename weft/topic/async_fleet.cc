// SPDX-License-Identifier: MIT
// AsyncTopics: calls about the fleet that wait for nothing.
#include <string>
#include <string_view>
#include <vector>

#include "weft/topic/async_topics.h"
#include "weft/topic/node/node.h"

namespace weft {

namespace {
constexpr Error kAsyncFleetMoved(Errc::closed, "the object was moved from");
}  // namespace

bool AsyncTopics::exists(std::string_view topic) const { return node_ != nullptr && node_->is_owned(topic); }
bool AsyncTopics::is_local(std::string_view topic) const { return node_ != nullptr && node_->owns_now(topic); }
Result<std::vector<std::string>> AsyncTopics::list(std::string_view filter) const {
  return node_ == nullptr ? Result<std::vector<std::string>>(kAsyncFleetMoved) : node_->owned_topics(filter);
}
Result<void> AsyncTopics::add_peer(std::string_view endpoint) {
  return node_ == nullptr ? Result<void>(kAsyncFleetMoved) : node_->add_peer(endpoint);
}
Result<void> AsyncTopics::remove_peer(std::string_view endpoint) {
  return node_ == nullptr ? Result<void>(kAsyncFleetMoved) : node_->remove_peer(endpoint);
}
Result<void> AsyncTopics::route(std::string_view filter, std::string_view endpoint) {
  if (node_ == nullptr) {
    return kAsyncFleetMoved;
  }
  WEFT_TRY(node_->names().filter(filter));
  return node_->add_peer(endpoint);
}
std::vector<NodeInfo> AsyncTopics::nodes() const {
  return node_ == nullptr ? std::vector<NodeInfo>() : node_->with_mesh(topic::present_nodes);
}

}  // namespace weft
