// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/filter.h"
#include "weft/base/result.h"
#include "weft/base/time.h"
#include "weft/msg/context.h"
#include "weft/rt/core/core.h"
#include "weft/rt/loop/loop.h"
#include "weft/rt/task/task.h"
#include "weft/serve/frame/shared_frame.h"
#include "weft/serve/server/server.h"
#include "weft/topic/async_key_value.h"
#include "weft/topic/async_stream.h"
#include "weft/topic/service.h"
#include "weft/topic/session_topics.h"
#include "weft/topic/topics.h"

namespace weft {

namespace topic {
struct AsyncPublisherCore;
struct AsyncSubscriptionCore;
}  // namespace topic

// AsyncPublisher: Publisher for the coroutines of one loop, with the same names. publish() never waits.
// Affinity: the loop's thread. On a core, a published message leaves at the end of the turn at the latest.
class AsyncPublisher {
 public:
  AsyncPublisher(AsyncPublisher&&) noexcept;
  AsyncPublisher& operator=(AsyncPublisher&&) noexcept;
  ~AsyncPublisher();

  Result<void> publish(Bytes body, const Headers& headers = {});
  Result<void> publish(std::string_view body, const Headers& headers = {}) { return publish(as_bytes(body), headers); }
  // Waits until every peer has room. Errors: closed; kCancelled (the message goes to no peer).
  [[nodiscard]] rt::Task<Result<void>> publish_wait(Message body, Headers headers = {});
  [[nodiscard]] rt::Task<Result<std::size_t>> wait_subscribers(std::size_t count, Instant deadline);
  [[nodiscard]] std::string_view topic() const noexcept;

 private:
  friend class AsyncTopics;
  explicit AsyncPublisher(IntrusivePtr<topic::AsyncPublisherCore> core) noexcept;
  IntrusivePtr<topic::AsyncPublisherCore> core_;  // shared with the calls that are under way; null if moved from
};

// AsyncSubscription: Subscription for the coroutines of one loop, with the same names.
// Owner: a move-only value; destruction closes. Affinity: the loop's thread; any number of coroutines may wait. A
// cancelled coroutine has not taken a message. It yields to the others after 64 messages in a row.
class AsyncSubscription {
 public:
  AsyncSubscription(AsyncSubscription&&) noexcept;
  AsyncSubscription& operator=(AsyncSubscription&&) noexcept;
  ~AsyncSubscription();
  void close() noexcept;

  [[nodiscard]] rt::Task<Result<TopicMessage>> next();  // fails with kCancelled, too
  Result<TopicMessage> try_next();

  Result<void> add(std::string_view filter);
  Result<void> add(const Filter& filter);
  Result<void> add(const Result<Filter>& filter);
  Result<void> remove(std::string_view filter);
  Result<void> remove(const Filter& filter);
  Result<void> remove(const Result<Filter>& filter);
  [[nodiscard]] std::uint64_t missed() const noexcept;

 private:
  friend class AsyncTopics;
  explicit AsyncSubscription(IntrusivePtr<topic::AsyncSubscriptionCore> core) noexcept;
  IntrusivePtr<topic::AsyncSubscriptionCore> core_;  // like AsyncPublisher's
};

// Answers a request in a coroutine, like RequestHandler.
using AsyncRequestHandler = std::function<rt::Task<Result<Message>>(TopicMessage request)>;

// AsyncRequestQueue: RequestQueue for the coroutines of one loop, with the same names.
// Owner: a move-only value; destruction closes. Affinity: the loop's thread, for the requests taken, too; any number of
// coroutines may wait. A cancelled coroutine has not taken a request.
class AsyncRequestQueue {
 public:
  AsyncRequestQueue(AsyncRequestQueue&&) noexcept;
  AsyncRequestQueue& operator=(AsyncRequestQueue&&) noexcept;
  ~AsyncRequestQueue();
  void close() noexcept;

  [[nodiscard]] rt::Task<Result<TakenRequest>> next();  // fails with kCancelled, too
  Result<TakenRequest> try_next();
  // Like Service::status().
  [[nodiscard]] Result<void> status() const noexcept;

 private:
  friend class AsyncTopics;
  explicit AsyncRequestQueue(IntrusivePtr<topic::AsyncSubscriptionCore> core, Message topic) noexcept;
  [[nodiscard]] static TakenRequest taken(topic::AsyncSubscriptionCore& core, const Message& topic,
                                          TopicMessage&& request);
  [[nodiscard]] static rt::Task<Result<TakenRequest>> next_taken(IntrusivePtr<topic::AsyncSubscriptionCore> core,
                                                                 Message topic);
  IntrusivePtr<topic::AsyncSubscriptionCore> core_;  // like AsyncPublisher's
  Message topic_;
};

// Ongoing: a service or a forwarding that runs on a loop. Owner: a move-only value; destruction cancels its coroutines,
// which end in the loop's next turns. Affinity: the loop's thread.
class Ongoing {
 public:
  struct State;
  explicit Ongoing(std::shared_ptr<State> state) noexcept;
  Ongoing(Ongoing&&) noexcept;
  Ongoing& operator=(Ongoing&&) noexcept;
  ~Ongoing();
  void stop() noexcept;  // idempotent
  // Like Service::status(), for a forwarding, too.
  [[nodiscard]] Result<void> status() const noexcept;

 private:
  std::shared_ptr<State> state_;
};

// AsyncTopics: Topics for the coroutines of one loop, which may be a core's, with the same names, meanings and errors.
// Its loop's thread reads and writes the network. No lock is shared with another core. A hub of kept topics that the
// handle hosts has a thread of its own, which opens the store; close() waits for its last commit.
// Owner: a move-only value; destruction closes. Its publishers and subscriptions may outlive it. The context
// and the loop outlive both.
// Affinity: the loop's thread.
class AsyncTopics {
 public:
  [[nodiscard]] static rt::Task<Result<AsyncTopics>> open(rt::Loop& loop, Context& context, TopicsOptions options);
  [[nodiscard]] static rt::Task<Result<AsyncTopics>> open(rt::Core& core, Context& context, TopicsOptions options) {
    return open(core.loop(), context, std::move(options));
  }
  AsyncTopics(AsyncTopics&&) noexcept;
  AsyncTopics& operator=(AsyncTopics&&) noexcept;
  ~AsyncTopics();
  void close() noexcept;

  Result<AsyncPublisher> publisher(std::string_view topic);
  Result<AsyncSubscription> subscribe(std::initializer_list<std::string_view> filters,
                                      const SubscriptionOptions& options = {});
  Result<AsyncSubscription> subscribe(std::string_view filter, const SubscriptionOptions& options = {});
  Result<AsyncSubscription> subscribe(const Result<Filter>& filter, const SubscriptionOptions& options = {});

  [[nodiscard]] rt::Task<Result<TopicMessage>> request(std::string topic, Message body, Instant deadline,
                                                       Headers headers = {});
  // Runs `options.at_a_time` coroutines at once, at most 65,536.
  Result<Ongoing> serve(std::string_view topic, const ServiceOptions& options, AsyncRequestHandler handler);
  // The same without coroutines of the service: the program takes the requests from a queue, and answers each when it
  // likes. `at_a_time` has no effect.
  Result<AsyncRequestQueue> serve(std::string_view topic, const ServiceOptions& options = {});
  // Sends the messages that match the filter to the sessions of a group, on every core: one subscription, and one frame
  // for each message, made by `encode`. The server outlives the forwarding, which ends when the server stops.
  // `not_forwarded` counts the messages that `encode` refuses or throws at, and those that did not fit into a core's
  // lane. A slow session follows its own policy (ListenerOptions::limits). The loop may be one of the server's cores.
  // Errors: invalid_state (called on another thread than the loop's).
  Result<Ongoing> forward(std::string_view filter, serve::Server& server, serve::GroupId group,
                          std::function<Result<serve::SharedFrame>(const TopicMessage&)> encode,
                          const SubscriptionOptions& options = {});
  // Sends messages to single sessions of this core: those of `user.42`, say. Errors: invalid_state (called on another
  // thread than the core's); closed; resource_exhausted.
  Result<SessionTopics> session_topics(serve::Server& server, SessionFrame encode,
                                       const SubscriptionOptions& options = {});

  // Kept topics. Name options with texts before the co_await (rt/task/task.h has the reason).
  [[nodiscard]] rt::Task<Result<AsyncStream>> stream(const StreamOptions& options);
  [[nodiscard]] rt::Task<Result<AsyncKeyValue>> key_value(std::string_view name, const KeyValueOptions& options = {});
  [[nodiscard]] rt::Task<Result<std::vector<StreamInfo>>> streams();
  [[nodiscard]] KeptStatistics kept_statistics() const;

  [[nodiscard]] rt::Task<Result<Owned>> create(std::string topic, Instant deadline);
  [[nodiscard]] bool exists(std::string_view topic) const;
  [[nodiscard]] bool is_local(std::string_view topic) const;
  Result<std::vector<std::string>> list(std::string_view filter) const;
  Result<void> add_peer(std::string_view endpoint);
  Result<void> remove_peer(std::string_view endpoint);
  Result<void> route(std::string_view filter, std::string_view endpoint);
  [[nodiscard]] rt::Task<Result<std::vector<NodeInfo>>> sync(Instant deadline);
  [[nodiscard]] std::vector<NodeInfo> nodes() const;
  [[nodiscard]] rt::Task<Result<std::vector<NodeInfo>>> watch_nodes(std::vector<NodeInfo> known, Instant deadline);

  [[nodiscard]] std::uint64_t instance() const noexcept;
  [[nodiscard]] std::string endpoint() const;
  [[nodiscard]] std::uint64_t pattern_count() const noexcept;
  [[nodiscard]] TopicsStatistics statistics() const;
  // Its readers may be on any thread.
  [[nodiscard]] CounterSource counter_source() const;

 private:
  explicit AsyncTopics(std::shared_ptr<topic::Node> node) noexcept;
  Result<AsyncSubscription> subscribed(const IntrusivePtr<topic::SubscriptionCore>& subscription);
  [[nodiscard]] static rt::Task<Result<Owned>> own(std::shared_ptr<topic::Node> node, std::string topic,
                                                   Instant deadline);
  std::shared_ptr<topic::Node> node_;
};

}  // namespace weft
