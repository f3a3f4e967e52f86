// SPDX-License-Identifier: MIT
#include "weft/topic/async_topics.h"

#include <algorithm>
#include <new>
#include <utility>

#include "weft/base/intrusive_ptr.h"
#include "weft/base/no_memory.h"
#include "weft/rt/task/async_event.h"
#include "weft/rt/task/task_scope.h"
#include "weft/rt/task/task_time.h"
#include "weft/sys/clock.h"
#include "weft/topic/async_core.h"
#include "weft/topic/fleet_calls.h"
#include "weft/topic/hub_link_of.h"
#include "weft/topic/kept/moved_from.h"
#include "weft/topic/node/node.h"

namespace weft {

namespace {

using topic::AsyncPublisherCore;
using topic::AsyncSubscriptionCore;
using topic::MeshState;
using topic::next_of;
using topic::Node;
using topic::NodePtr;
using topic::PublisherCore;
using topic::SubscriptionCore;

constexpr std::size_t kHandlersMax = 65'536;

}  // namespace

// --- AsyncPublisher ---

AsyncPublisher::AsyncPublisher(IntrusivePtr<AsyncPublisherCore> core) noexcept : core_(std::move(core)) {}

AsyncPublisher::AsyncPublisher(AsyncPublisher&&) noexcept = default;
AsyncPublisher& AsyncPublisher::operator=(AsyncPublisher&&) noexcept = default;
AsyncPublisher::~AsyncPublisher() = default;

Result<void> AsyncPublisher::publish(Bytes body, const Headers& headers) {
  auto* const core = WEFT_TRY(topic::borrow(core_));
  return core->node->publish(*core->publisher, body, headers.block(), false);
}

namespace {
rt::Task<Result<void>> publish_when_room(IntrusivePtr<AsyncPublisherCore> core, Message body, Headers headers) {
  Node* const node = core->node.get();
  while (true) {
    if (const bool cancelled = co_await rt::is_cancelled(); cancelled) {
      co_return rt::kCancelled;
    }
    Result<void> published = node->publish(*core->publisher, body.bytes(), headers.block(), true);
    if (!published && published.error() == Errc::would_block) {
      node->flush();
      published = node->publish(*core->publisher, body.bytes(), headers.block(), true);
    }
    if (published) [[likely]] {
      co_return Result<void>();  // made anew: a copy would wait until the stores of the message have left the processor
    }
    if (published.error() != Errc::would_block) {
      co_return published;
    }
    const Result<void> waited = co_await node->room().wait();
    if (!waited) {
      co_return waited;
    }
  }
}

rt::Task<Result<std::size_t>> ready_subscribers(IntrusivePtr<AsyncPublisherCore> core, std::size_t count,
                                                Instant deadline) {
  WEFT_CO_TRY(topic::borrow(core));
  topic::SubscriberCount call(*core->node, *core->publisher, count, deadline);
  const Result<std::size_t> ready = co_await topic::run_fleet_call(core->node, &call);
  co_return ready;
}
}  // namespace

rt::Task<Result<void>> AsyncPublisher::publish_wait(Message body, Headers headers) {
  return core_ == nullptr ? topic::refused<void>(topic::kMovedFrom)
                          : publish_when_room(core_, std::move(body), std::move(headers));
}
rt::Task<Result<std::size_t>> AsyncPublisher::wait_subscribers(std::size_t count, Instant deadline) {
  return ready_subscribers(core_, count, deadline);
}
std::string_view AsyncPublisher::topic() const noexcept {
  return core_ == nullptr ? std::string_view() : core_->publisher->name.text();
}

// --- AsyncSubscription ---

AsyncSubscription::AsyncSubscription(IntrusivePtr<AsyncSubscriptionCore> core) noexcept : core_(std::move(core)) {}
AsyncSubscription::AsyncSubscription(AsyncSubscription&&) noexcept = default;
AsyncSubscription& AsyncSubscription::operator=(AsyncSubscription&& other) noexcept {
  if (this != &other) {
    close();
    core_ = std::move(other.core_);
  }
  return *this;
}
AsyncSubscription::~AsyncSubscription() { close(); }
void AsyncSubscription::close() noexcept {
  if (core_ != nullptr) {
    core_->node->unsubscribe(*core_->subscription);
  }
}

rt::Task<Result<TopicMessage>> AsyncSubscription::next() {
  return core_ == nullptr ? topic::refused<TopicMessage>(topic::kMovedFrom)
                          : next_of(core_, core_->node.get(), core_->subscription.get());
}
Result<TopicMessage> AsyncSubscription::try_next() {
  auto* const core = WEFT_TRY(topic::borrow(core_));
  return core->node->try_next(*core->subscription);
}
Result<void> AsyncSubscription::add(std::string_view filter) {
  auto* const core = WEFT_TRY(topic::borrow(core_));
  return core->node->add_text_filter(*core->subscription, filter);
}
Result<void> AsyncSubscription::add(const Filter& filter) {
  auto* const core = WEFT_TRY(topic::borrow(core_));
  return core->node->add_filter(*core->subscription, filter);
}
Result<void> AsyncSubscription::add(const Result<Filter>& filter) {
  return filter ? add(*filter) : Result<void>(filter.error());
}
Result<void> AsyncSubscription::remove(std::string_view filter) {
  auto* const core = WEFT_TRY(topic::borrow(core_));
  return core->node->remove_text_filter(*core->subscription, filter);
}
Result<void> AsyncSubscription::remove(const Filter& filter) {
  auto* const core = WEFT_TRY(topic::borrow(core_));
  return core->node->remove_filter(*core->subscription, filter);
}
Result<void> AsyncSubscription::remove(const Result<Filter>& filter) {
  return filter ? remove(*filter) : Result<void>(filter.error());
}
std::uint64_t AsyncSubscription::missed() const noexcept { return core_ == nullptr ? 0 : core_->subscription->lost(); }

// --- Ongoing ---
struct Ongoing::State {
  State(NodePtr own, IntrusivePtr<SubscriptionCore> from, bool is_service)
      : node(std::move(own)), messages(std::move(from)), serves(is_service), scope(node->loop()) {}

  void stop() noexcept {
    if (std::exchange(stopped, true)) {
      return;
    }
    if (serves) {
      node->stop_serving(*messages);
    } else {
      node->unsubscribe(*messages);
    }
    scope.cancel();
  }

  NodePtr node;
  IntrusivePtr<SubscriptionCore> messages;
  const bool serves;
  bool stopped = false;
  std::size_t running = 0;
  rt::AsyncEvent done;  // a handler ended
  AsyncRequestHandler handler;
  rt::TaskScope scope;
};

Ongoing::Ongoing(std::shared_ptr<State> state) noexcept : state_(std::move(state)) {}
Ongoing::Ongoing(Ongoing&&) noexcept = default;
Ongoing& Ongoing::operator=(Ongoing&& other) noexcept {
  if (this != &other) {
    stop();
    state_ = std::move(other.state_);
  }
  return *this;
}
Ongoing::~Ongoing() { stop(); }
void Ongoing::stop() noexcept {
  if (state_ != nullptr) {
    state_->stop();
  }
}
Result<void> Ongoing::status() const noexcept {
  const auto* const state = WEFT_TRY(topic::borrow(state_));
  return state->serves && state->node != nullptr ? state->node->service_status(*state->messages)
                                                 : state->messages->status();
}

namespace {

using StatePtr = std::shared_ptr<Ongoing::State>;

rt::Task<void> answer(StatePtr state, TopicMessage request) {
  TopicMessage kept(Message(), Message(), Message(), nullptr);
  auto headers = Message::copy_of(request.headers());
  if (headers) {
    kept = TopicMessage(Message(), Message(), *std::move(headers), nullptr);
  }
  Result<Message> body = Error(Errc::job_threw, "the handler threw");
  try {
    rt::Task<Result<Message>> handling = state->handler(std::move(request));
    body = co_await std::move(handling);
  } catch (...) {
    body = Error(Errc::job_threw, "the handler threw");
  }
  if (body) {
    state->node->reply(kept, body->bytes(), {});
  } else {
    state->node->reply_error(kept, body.error());
  }
  --state->running;
  state->done.pulse();
}

rt::Task<void> serve_requests(StatePtr state, std::size_t at_a_time) {
  while (true) {
    while (state->running >= at_a_time) {
      const Result<void> waited = co_await state->done.wait();
      if (!waited) {
        co_return;
      }
    }
    Result<TopicMessage> request = co_await next_of(nullptr, state->node.get(), state->messages.get());
    if (!request) {
      co_return;
    }
    ++state->running;
    if (!state->scope.spawn(answer(state, *std::move(request)))) {
      co_return;
    }
  }
}

// Ends with the server, because no session takes the messages then. The sessions of a core miss a message that finds
// its lane full.
rt::Task<void> forward_messages(StatePtr state, serve::Server* server, serve::GroupId group,
                                std::function<Result<serve::SharedFrame>(const TopicMessage&)> encode) {
  while (true) {
    const Result<TopicMessage> message = co_await next_of(nullptr, state->node.get(), state->messages.get());
    if (!message) {
      co_return;
    }
    Result<serve::SharedFrame> frame = Errc::job_threw;
    try {
      frame = encode(*message);
    } catch (...) {
      frame = Errc::job_threw;
    }
    const Result<void> sent = frame ? server->publish(group, *frame) : Result<void>(frame.error());
    if (!sent) {
      state->node->count_not_forwarded();
    }
    if (!sent && frame && (sent.error() == Errc::closed || sent.error() == Errc::terminated)) {
      state->node->unsubscribe(*state->messages);
      co_return;
    }
  }
}

}  // namespace

// --- AsyncTopics ---

AsyncTopics::AsyncTopics(NodePtr node) noexcept : node_(std::move(node)) {}
AsyncTopics::AsyncTopics(AsyncTopics&&) noexcept = default;
AsyncTopics& AsyncTopics::operator=(AsyncTopics&& other) noexcept {
  if (this != &other) {
    close();
    node_ = std::move(other.node_);
  }
  return *this;
}
AsyncTopics::~AsyncTopics() { close(); }
void AsyncTopics::close() noexcept {
  if (node_ != nullptr) {
    node_->close();
  }
}

rt::Task<Result<AsyncTopics>> AsyncTopics::open(rt::Loop& loop, Context& context, TopicsOptions options) {
  Result<NodePtr> node = Node::open(context, options, &loop);
  if (!node) {
    co_return node.error();
  }
  co_return AsyncTopics(*std::move(node));
}

Result<AsyncPublisher> AsyncTopics::publisher(std::string_view topic) {
  return or_no_memory([&]() -> Result<AsyncPublisher> {
    IntrusivePtr<PublisherCore> core = WEFT_TRY(WEFT_TRY(topic::borrow(node_))->make_publisher(topic));
    return AsyncPublisher(make_intrusive<AsyncPublisherCore>(node_, std::move(core)));
  });
}

Result<AsyncSubscription> AsyncTopics::subscribe(std::initializer_list<std::string_view> filters,
                                                 const SubscriptionOptions& options) {
  IntrusivePtr<SubscriptionCore> core = WEFT_TRY(WEFT_TRY(topic::borrow(node_))->subscribe({}, options));
  AsyncSubscription subscription = WEFT_TRY(subscribed(core));
  for (const std::string_view filter : filters) {
    WEFT_TRY(subscription.add(filter));
  }
  return subscription;
}
Result<AsyncSubscription> AsyncTopics::subscribed(const IntrusivePtr<SubscriptionCore>& subscription) {
  try {
    return AsyncSubscription(make_intrusive<AsyncSubscriptionCore>(node_, subscription));
  } catch (const std::bad_alloc&) {
    node_->unsubscribe(*subscription);
    return Error(Errc::resource_exhausted, "no memory for a subscription");
  }
}
Result<AsyncSubscription> AsyncTopics::subscribe(std::string_view filter, const SubscriptionOptions& options) {
  return subscribe({filter}, options);
}
Result<AsyncSubscription> AsyncTopics::subscribe(const Result<Filter>& filter, const SubscriptionOptions& options) {
  if (!filter) {
    return filter.error();
  }
  IntrusivePtr<SubscriptionCore> core = WEFT_TRY(WEFT_TRY(topic::borrow(node_))->subscribe({&*filter, 1}, options));
  return subscribed(core);
}

namespace {

rt::Task<Result<TopicMessage>> ask(NodePtr node, std::string topic, Message body, Instant deadline, Headers headers) {
  WEFT_CO_TRY(topic::borrow(node));
  topic::RequestStart call(*node, topic, body.bytes(), headers.block(), deadline);
  const Result<Node::Request> request = co_await topic::run_fleet_call(node, &call);
  if (!request) {
    co_return request.error();
  }
  const Duration left = time_left(deadline, sys::now());
  Result<TopicMessage> reply = co_await rt::with_timeout(next_of(nullptr, node.get(), request->replies.get()), left);
  node->end_request(request->id);
  co_return Node::reply_of(std::move(reply));
}

rt::Task<Result<std::vector<NodeInfo>>> sync_with(NodePtr node, Instant deadline) {
  WEFT_CO_TRY(topic::borrow(node));
  const Result<std::uint64_t> ask = or_no_memory([&] { return node->ask_rosters(); });
  if (!ask) {
    co_return ask.error();
  }
  if (node->gate() != nullptr) {
    const Result<void> flushed = co_await node->gate()->flush_task(deadline);
    if (!flushed) {
      co_return flushed.error();
    }
  }
  topic::FleetWait settled{deadline, [id = *ask](const MeshState& mesh) { return mesh.settled(id); }};
  const Result<void> waited = co_await topic::run_fleet_wait(node, std::move(settled));
  if (!waited) {
    co_return waited.error();
  }
  co_return node->with_mesh(topic::known_nodes);
}

}  // namespace

rt::Task<Result<TopicMessage>> AsyncTopics::request(std::string topic, Message body, Instant deadline,
                                                    Headers headers) {
  return ask(node_, std::move(topic), std::move(body), deadline, std::move(headers));
}
rt::Task<Result<std::vector<NodeInfo>>> AsyncTopics::sync(Instant deadline) { return sync_with(node_, deadline); }

Result<Ongoing> AsyncTopics::serve(std::string_view topic, const ServiceOptions& options, AsyncRequestHandler handler) {
  auto* const node = WEFT_TRY(topic::borrow(node_));
  if (options.at_a_time == 0 || options.at_a_time > kHandlersMax || options.queue_max == 0) {
    return Error(Errc::invalid_argument, "a service has 1 to 65,536 handlers at a time, and a queue");
  }
  auto state =
      std::make_shared<Ongoing::State>(node_, WEFT_TRY(node->serve(topic, options.group, options.queue_max)), true);
  state->handler = std::move(handler);
  Ongoing ongoing(state);
  WEFT_TRY(state->scope.spawn(serve_requests(state, options.at_a_time)));
  return ongoing;
}

Result<Ongoing> AsyncTopics::forward(std::string_view filter, serve::Server& server, serve::GroupId group,
                                     std::function<Result<serve::SharedFrame>(const TopicMessage&)> encode,
                                     const SubscriptionOptions& options) {
  auto* const node = WEFT_TRY(topic::borrow(node_));
  if (!node->loop().on_loop_thread()) {
    return Error(Errc::invalid_state, "forward() on another thread than the loop's");
  }
  auto state = std::make_shared<Ongoing::State>(node_, WEFT_TRY(node->subscribe({}, options)), false);
  Ongoing ongoing(state);  // unsubscribes if the rest fails
  WEFT_TRY(node->add_text_filter(*state->messages, filter));
  WEFT_TRY(state->scope.spawn(forward_messages(state, &server, group, std::move(encode))));
  return ongoing;
}

rt::Task<Result<Owned>> AsyncTopics::create(std::string topic, Instant deadline) {
  return own(node_, std::move(topic), deadline);
}
rt::Task<Result<Owned>> AsyncTopics::own(NodePtr node, std::string topic, Instant deadline) {
  WEFT_CO_TRY(topic::borrow(node));
  Result<std::string> wire = node->names().encode(topic);
  if (!wire) {
    co_return wire.error();
  }
  topic::TopicClaim call(*node, topic, deadline);
  const Result<std::uint64_t> epoch = co_await topic::run_fleet_call(node, &call);
  if (!epoch) {
    co_return epoch.error();
  }
  co_return Owned(node, *std::move(wire), *epoch);
}

namespace {
rt::Task<Result<std::vector<NodeInfo>>> watch(NodePtr node, std::vector<NodeInfo> known, Instant deadline) {
  WEFT_CO_TRY(topic::borrow(node));
  topic::NodesChange call(*node, known, deadline);
  Result<std::vector<NodeInfo>> now = co_await topic::run_fleet_call(node, &call);
  co_return now;
}
}  // namespace

rt::Task<Result<std::vector<NodeInfo>>> AsyncTopics::watch_nodes(std::vector<NodeInfo> known, Instant deadline) {
  return watch(node_, std::move(known), deadline);
}
std::uint64_t AsyncTopics::pattern_count() const noexcept { return node_ == nullptr ? 0 : node_->pattern_count(); }
std::uint64_t AsyncTopics::instance() const noexcept { return node_ == nullptr ? 0 : node_->instance(); }
std::string AsyncTopics::endpoint() const { return node_ == nullptr ? std::string() : node_->endpoint(); }
CounterSource AsyncTopics::counter_source() const { return topic::counter_source_of(node_); }
TopicsStatistics AsyncTopics::statistics() const { return node_ == nullptr ? TopicsStatistics{} : node_->statistics(); }

// --- calls about the fleet that wait for nothing ---

bool AsyncTopics::exists(std::string_view topic) const { return node_ != nullptr && node_->is_owned(topic); }
bool AsyncTopics::is_local(std::string_view topic) const { return node_ != nullptr && node_->owns_now(topic); }
Result<std::vector<std::string>> AsyncTopics::list(std::string_view filter) const {
  return WEFT_TRY(topic::borrow(node_))->owned_topics(filter);
}
Result<void> AsyncTopics::add_peer(std::string_view endpoint) {
  return WEFT_TRY(topic::borrow(node_))->add_peer(endpoint);
}
Result<void> AsyncTopics::remove_peer(std::string_view endpoint) {
  return WEFT_TRY(topic::borrow(node_))->remove_peer(endpoint);
}
Result<void> AsyncTopics::route(std::string_view filter, std::string_view endpoint) {
  auto* const node = WEFT_TRY(topic::borrow(node_));
  WEFT_TRY(node->names().filter(filter));
  return node->add_peer(endpoint);
}
std::vector<NodeInfo> AsyncTopics::nodes() const {
  return node_ == nullptr ? std::vector<NodeInfo>() : node_->with_mesh(topic::present_nodes);
}

}  // namespace weft
