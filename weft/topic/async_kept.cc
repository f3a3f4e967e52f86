// SPDX-License-Identifier: MIT
// AsyncTopics: kept topics.
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/topic/async_core.h"
#include "weft/topic/async_topics.h"
#include "weft/topic/hub_link_of.h"
#include "weft/topic/node/node.h"

namespace weft {

rt::Task<Result<AsyncStream>> AsyncTopics::stream(const StreamOptions& options) {
  auto link = topic::hub_link_of(node_);
  return link ? AsyncStream::declare(*std::move(link), options) : topic::refused<AsyncStream>(link.error());
}
rt::Task<Result<AsyncKeyValue>> AsyncTopics::key_value(std::string_view name, const KeyValueOptions& options) {
  auto link = topic::hub_link_of(node_);
  return link ? AsyncKeyValue::declare(*std::move(link), name, options) : topic::refused<AsyncKeyValue>(link.error());
}
rt::Task<Result<std::vector<StreamInfo>>> AsyncTopics::streams() {
  auto link = topic::hub_link_of(node_);
  return link ? AsyncStream::list(*std::move(link), node_->space_prefix())
              : topic::refused<std::vector<StreamInfo>>(link.error());
}
KeptStatistics AsyncTopics::kept_statistics() const { return topic::kept_statistics_of(node_.get()); }

}  // namespace weft
