// SPDX-License-Identifier: MIT
#include "weft/topic/topics.h"

#include <utility>

#include "weft/topic/hub_link_of.h"
#include "weft/topic/kept/hub_link.h"
#include "weft/topic/node/node.h"

namespace weft {

namespace {
constexpr Error kMoved(Errc::closed, "the handle of topics was moved from");
}

Topics::Topics(std::shared_ptr<topic::Node> node) noexcept : node_(std::move(node)) {}
Topics::Topics(Topics&&) noexcept = default;
Topics& Topics::operator=(Topics&& other) noexcept {
  if (this != &other) {
    close();
    node_ = std::move(other.node_);
  }
  return *this;
}
Topics::~Topics() { close(); }

Result<Topics> Topics::open(Context& context, const TopicsOptions& options) {
  return Topics(WEFT_TRY(topic::Node::open(context, options, nullptr)));
}

void Topics::close() noexcept {
  if (node_ != nullptr) {
    node_->close();
  }
}

Result<Publisher> Topics::publisher(std::string_view topic, const PublisherOptions& options) {
  if (node_ == nullptr) {
    return kMoved;
  }
  return Publisher(node_, WEFT_TRY(node_->make_publisher(topic)), options);
}

Result<Subscription> Topics::subscribe(std::initializer_list<std::string_view> filters,
                                       const SubscriptionOptions& options) {
  if (node_ == nullptr) {
    return kMoved;
  }
  Subscription subscription(node_, WEFT_TRY(node_->subscribe({}, options)));
  for (const std::string_view filter : filters) {
    WEFT_TRY(subscription.add(filter));
  }
  return subscription;
}
Result<Subscription> Topics::subscribe(std::string_view filter, const SubscriptionOptions& options) {
  return subscribe({filter}, options);
}
Result<Subscription> Topics::subscribe(const Filter& filter, const SubscriptionOptions& options) {
  if (node_ == nullptr) {
    return kMoved;
  }
  return Subscription(node_, WEFT_TRY(node_->subscribe({&filter, 1}, options)));
}
Result<Subscription> Topics::subscribe(const Result<Filter>& filter, const SubscriptionOptions& options) {
  return filter ? subscribe(*filter, options) : Result<Subscription>(filter.error());
}

Result<Stream> Topics::stream(const StreamOptions& options) {
  if (node_ == nullptr) {
    return kMoved;
  }
  auto link = WEFT_TRY(topic::hub_link_of(*node_));
  return Stream::declare(std::move(link), options);
}
Result<KeyValue> Topics::key_value(std::string_view name, const KeyValueOptions& options) {
  if (node_ == nullptr) {
    return kMoved;
  }
  auto link = WEFT_TRY(topic::hub_link_of(*node_));
  return KeyValue::declare(std::move(link), name, options);
}
KeptStatistics Topics::kept_statistics() const {
  const auto link = node_ == nullptr ? nullptr : node_->used_hub_link();
  return link == nullptr ? KeptStatistics{} : link->statistics();
}

Result<void> Topics::add_peer(std::string_view endpoint) {
  return node_ == nullptr ? Result<void>(kMoved) : node_->add_peer(endpoint);
}
Result<void> Topics::remove_peer(std::string_view endpoint) {
  return node_ == nullptr ? Result<void>(kMoved) : node_->remove_peer(endpoint);
}

Result<std::vector<NodeInfo>> Topics::sync(Instant deadline) {
  if (node_ == nullptr) {
    return kMoved;
  }
  node_->ask_rosters();
  WEFT_TRY(node_->wait_mesh(deadline, [this] { return node_->settled(); }));
  return nodes();
}

std::vector<NodeInfo> Topics::nodes() const {
  std::vector<NodeInfo> all;
  if (node_ != nullptr) {
    for (auto& member : node_->members()) {
      all.push_back({member.instance, std::move(member.node), std::move(member.endpoint)});
    }
  }
  return all;
}

std::uint64_t Topics::instance() const noexcept { return node_ == nullptr ? 0 : node_->instance(); }
std::string Topics::endpoint() const { return node_ == nullptr ? std::string() : node_->endpoint(); }
std::uint64_t Topics::pattern_count() const noexcept { return node_ == nullptr ? 0 : node_->pattern_count(); }
TopicsStatistics Topics::statistics() const { return node_ == nullptr ? TopicsStatistics{} : node_->statistics(); }

CounterSource Topics::counter_source() const {
  return [weak = std::weak_ptr<topic::Node>(node_)](std::string_view name, CounterReadings& into) {
    if (const auto node = weak.lock(); node != nullptr && !node->closed()) {
      into.push_back({&kTopicsTable, {{"topics", std::string(name)}}, sync::read_counters(node->statistics())});
    }
  };
}

}  // namespace weft
