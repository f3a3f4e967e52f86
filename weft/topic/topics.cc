// SPDX-License-Identifier: MIT
#include "weft/topic/topics.h"

#include <utility>

#include "weft/base/no_memory.h"
#include "weft/topic/fleet_calls.h"
#include "weft/topic/hub_link_of.h"
#include "weft/topic/kept/hub_link.h"
#include "weft/topic/kept/moved_from.h"
#include "weft/topic/node/node.h"

namespace weft {

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
  auto core = WEFT_TRY(WEFT_TRY(topic::borrow(node_))->make_publisher(topic));
  return Publisher(node_, std::move(core), options);
}

Result<Subscription> Topics::subscribe(std::initializer_list<std::string_view> filters,
                                       const SubscriptionOptions& options) {
  return or_no_memory([&]() -> Result<Subscription> {
    auto core = WEFT_TRY(WEFT_TRY(topic::borrow(node_))->subscribe({}, options));
    Subscription subscription(node_, std::move(core));
    for (const std::string_view filter : filters) {
      WEFT_TRY(subscription.add(filter));
    }
    return subscription;
  });
}
Result<Subscription> Topics::subscribe(std::string_view filter, const SubscriptionOptions& options) {
  return subscribe({filter}, options);
}
Result<Subscription> Topics::subscribe(const Filter& filter, const SubscriptionOptions& options) {
  auto core = WEFT_TRY(WEFT_TRY(topic::borrow(node_))->subscribe({&filter, 1}, options));
  return Subscription(node_, std::move(core));
}
Result<Subscription> Topics::subscribe(const Result<Filter>& filter, const SubscriptionOptions& options) {
  return filter ? subscribe(*filter, options) : Result<Subscription>(filter.error());
}

// stream(), key_value() and streams() wait. Each keeps the node: another thread may destroy the handle meanwhile.
Result<Stream> Topics::stream(const StreamOptions& options) {
  const auto node = node_;
  auto link = WEFT_TRY(topic::hub_link_of(node));
  return Stream::declare(std::move(link), options);
}
Result<KeyValue> Topics::key_value(std::string_view name, const KeyValueOptions& options) {
  const auto node = node_;
  auto link = WEFT_TRY(topic::hub_link_of(node));
  return KeyValue::declare(std::move(link), name, options);
}
Result<std::vector<StreamInfo>> Topics::streams() {
  const auto node = node_;
  const auto link = WEFT_TRY(topic::hub_link_of(node));
  return Stream::list(link, node->space_prefix());
}
KeptStatistics Topics::kept_statistics() const { return topic::kept_statistics_of(node_.get()); }

Result<void> Topics::add_peer(std::string_view endpoint) { return WEFT_TRY(topic::borrow(node_))->add_peer(endpoint); }
Result<void> Topics::remove_peer(std::string_view endpoint) {
  return WEFT_TRY(topic::borrow(node_))->remove_peer(endpoint);
}

Result<std::vector<NodeInfo>> Topics::sync(Instant deadline) {
  const auto node = WEFT_TRY(topic::share(node_));
  return or_no_memory([&]() -> Result<std::vector<NodeInfo>> {
    const std::uint64_t ask = WEFT_TRY(node->ask_rosters());
    if (node->gate() != nullptr) {
      WEFT_TRY(node->gate()->flush(deadline));
    }
    WEFT_TRY(node->wait_mesh(deadline, [&](const topic::MeshState& mesh) { return mesh.settled(ask); }));
    return node->with_mesh(topic::known_nodes);
  });
}

std::vector<NodeInfo> Topics::nodes() const {
  return node_ == nullptr ? std::vector<NodeInfo>() : node_->with_mesh(topic::present_nodes);
}

Result<std::vector<NodeInfo>> Topics::watch_nodes(const std::vector<NodeInfo>& known, Instant deadline) const {
  const auto node = WEFT_TRY(topic::share(node_));
  topic::NodesChange call(*node, known, deadline);
  return topic::wait_for_fleet(*node, call);
}

Result<TopicMessage> Topics::request(std::string_view topic, Bytes body, Instant deadline, const Headers& headers) {
  const auto node = WEFT_TRY(topic::share(node_));
  topic::RequestStart call(*node, topic, body, headers.block(), deadline);
  const topic::Node::Request request = WEFT_TRY(topic::wait_for_fleet(*node, call));
  auto reply = node->next_until(*request.replies, deadline);
  node->end_request(request.id);
  return topic::Node::reply_of(std::move(reply));
}

Result<Service> Topics::serve(std::string_view topic, const ServiceOptions& options, RequestHandler handler) {
  return or_no_memory([&]() -> Result<Service> {
    auto node = WEFT_TRY(topic::share(node_));
    return Service::start(std::move(node), topic, options, std::move(handler));
  });
}

Result<RequestQueue> Topics::serve(std::string_view topic, const ServiceOptions& options) {
  constexpr std::size_t kQueueMost = std::size_t{1} << 20;
  return or_no_memory([&]() -> Result<RequestQueue> {
    auto* const node = WEFT_TRY(topic::borrow(node_));
    if (options.queue_max == 0 || options.queue_max > kQueueMost) {
      return Error(Errc::invalid_argument, "a queue of requests has 1 to 1,048,576 places");
    }
    Message name = WEFT_TRY(Message::copy_of(topic));
    auto requests = WEFT_TRY(node->serve(topic, options.group, options.queue_max));
    return RequestQueue(node_, std::move(requests), std::move(name));
  });
}

Result<Owned> Topics::create(std::string_view topic, Instant deadline) {
  const auto node = WEFT_TRY(topic::share(node_));
  return or_no_memory([&]() -> Result<Owned> {
    std::string wire = WEFT_TRY(node->names().encode(topic));
    topic::TopicClaim call(*node, topic, deadline);
    const std::uint64_t epoch = WEFT_TRY(topic::wait_for_fleet(*node, call));
    return Owned(node, std::move(wire), epoch);
  });
}
bool Topics::exists(std::string_view topic) const { return node_ != nullptr && node_->is_owned(topic); }
bool Topics::is_local(std::string_view topic) const { return node_ != nullptr && node_->owns_now(topic); }
Result<std::vector<std::string>> Topics::list(std::string_view filter) const {
  auto* const node = WEFT_TRY(topic::borrow(node_));
  return or_no_memory([&] { return node->owned_topics(filter); });
}

Result<void> Topics::route(std::string_view filter, std::string_view endpoint) {
  auto* const node = WEFT_TRY(topic::borrow(node_));
  WEFT_TRY(node->names().filter(filter));
  return node->add_peer(endpoint);
}

std::uint64_t Topics::instance() const noexcept { return node_ == nullptr ? 0 : node_->instance(); }
std::string Topics::endpoint() const { return node_ == nullptr ? std::string() : node_->endpoint(); }
std::uint64_t Topics::pattern_count() const noexcept { return node_ == nullptr ? 0 : node_->pattern_count(); }
TopicsStatistics Topics::statistics() const { return node_ == nullptr ? TopicsStatistics{} : node_->statistics(); }

CounterSource Topics::counter_source() const { return topic::counter_source_of(node_); }

}  // namespace weft
