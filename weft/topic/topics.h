// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/counter_table.h"
#include "weft/base/filter.h"
#include "weft/base/result.h"
#include "weft/base/time.h"
#include "weft/msg/context.h"
#include "weft/topic/kept/counters.h"
#include "weft/topic/key_value.h"
#include "weft/topic/node/counters.h"
#include "weft/topic/node/options.h"
#include "weft/topic/owned.h"
#include "weft/topic/publisher.h"
#include "weft/topic/service.h"
#include "weft/topic/stream.h"
#include "weft/topic/subscription.h"

namespace weft {

namespace topic {
class Node;
}

// Topics: a handle on a fleet. Any handle publishes to a topic and any handle subscribes to it: in the same process, on
// the same host, or on the listed hosts (TopicsOptions::fleet). A message takes one hop, without a broker.
// Owner: a move-only value. Destruction closes the handle: each waiting call returns `closed`. The context outlives the
// handle.
// Affinity: any thread. AsyncTopics is the same for the coroutines of one loop.
// Cost: two sockets, and one thread that sleeps while no message arrives.
// Promise: a message arrives at most once, in the order of its publisher and topic. A fleet that cannot keep messages
// refuses the calls for kept topics with not_supported.
class Topics {
 public:
  // Errors: invalid_argument (an option); not_supported (the engine of the fleet); invalid_state (the runtime directory
  // belongs to another user, or other users may enter it); resource_exhausted (128 handles of a local fleet,
  // descriptors, memory); closed; the errors of Socket::bind.
  [[nodiscard]] static Result<Topics> open(Context& context, const TopicsOptions& options = {});
  Topics(Topics&&) noexcept;
  Topics& operator=(Topics&&) noexcept;
  ~Topics();
  void close() noexcept;  // idempotent

  // Errors: invalid_argument (the text is not a topic name, or it has wildcards).
  Result<Publisher> publisher(std::string_view topic, const PublisherOptions& options = {});
  // Each text is a topic or tokens, as in Filter::parse(). Errors: those of Subscription::add().
  Result<Subscription> subscribe(std::initializer_list<std::string_view> filters,
                                 const SubscriptionOptions& options = {});
  Result<Subscription> subscribe(std::string_view filter, const SubscriptionOptions& options = {});
  Result<Subscription> subscribe(const Filter& filter, const SubscriptionOptions& options = {});
  Result<Subscription> subscribe(const Result<Filter>& filter, const SubscriptionOptions& options = {});

  // Sends the request to one member of each group that serves the topic, and returns the first reply. Errors:
  // unreachable, at once, if no handle serves the topic; timed_out; connection_closed (the handle that received the
  // request has gone; it may have answered); resource_exhausted (the service's queue is full, or 65,536 requests are
  // under way); not_permitted (by a server of a fleet on NATS); the error of the handler.
  Result<TopicMessage> request(std::string_view topic, Bytes body, Instant deadline, const Headers& headers = {});
  Result<TopicMessage> request(std::string_view topic, std::string_view body, Instant deadline,
                               const Headers& headers = {}) {
    return request(topic, as_bytes(body), deadline, headers);
  }
  // Answers requests from now on. Errors: invalid_argument; resource_exhausted (1,024 services, or no thread); closed.
  Result<Service> serve(std::string_view topic, const ServiceOptions& options, RequestHandler handler);
  // The same without threads: the program takes the requests from a queue. `at_a_time` has no effect. Errors:
  // invalid_argument (also a queue_max of 0, or of more than 1,048,576); resource_exhausted; closed.
  Result<RequestQueue> serve(std::string_view topic, const ServiceOptions& options = {});

  // Owns the topic, after every connected peer has agreed. Errors: conflict (another handle alive owns it); timed_out
  // (a peer does not answer); invalid_argument; closed.
  Result<Owned> create(std::string_view topic, Instant deadline);
  [[nodiscard]] bool exists(std::string_view topic) const;    // whether any handle of the fleet owns it
  [[nodiscard]] bool is_local(std::string_view topic) const;  // whether this handle owns it
  // Returns the owned topics of the fleet that match the filter. Errors: those of Filter::parse().
  Result<std::vector<std::string>> list(std::string_view filter) const;

  // Declares a stream: topics whose messages are kept, by a hub or by the servers of a fleet on NATS. Errors: those of
  // Stream::declare(); not_supported (another kind of fleet, a stream that NATS does not keep, a build without SQLite).
  Result<Stream> stream(const StreamOptions& options);
  Result<KeyValue> key_value(std::string_view name, const KeyValueOptions& options = {});
  // Returns the streams of the handle's space, buckets included, by name. Errors: not_supported; timed_out; closed;
  // resource_exhausted (more than 65,536).
  Result<std::vector<StreamInfo>> streams();
  [[nodiscard]] KeptStatistics kept_statistics() const;  // all 0 before the first use of a kept topic

  // For a tcp fleet. Connects to a peer, and retries until it succeeds. Errors: not_supported; malformed_endpoint;
  // resource_exhausted.
  Result<void> add_peer(std::string_view endpoint);
  // Removes the peer from the list, and ends the connection. A peer that has this handle's endpoint is connected again
  // when it next announces its own. Errors: those of add_peer(); no_such_endpoint (the peer is not listed).
  Result<void> remove_peer(std::string_view endpoint);
  // The same as add_peer(), for a program that addresses peers by topics. The call checks the filter, but the filter
  // has no effect: a connection carries the topics to which its receiver has subscribed (docs/design/0014). Errors:
  // those of add_peer() and Filter::parse().
  Result<void> route(std::string_view filter, std::string_view endpoint);
  // Waits until the roster of every peer has arrived, and returns the other handles of the fleet. The peers of a
  // process or local fleet are the handles whose open() returned before this call; those of a tcp fleet are the listed
  // ones and the ones in their rosters. Errors: timed_out (a peer does not answer); resource_exhausted; closed; errors
  // of the system.
  Result<std::vector<NodeInfo>> sync(Instant deadline);
  // The other connected handles that have a presence whose lease has not expired.
  [[nodiscard]] std::vector<NodeInfo> nodes() const;
  // Waits until nodes() differs from `known`, and returns it. Errors: timed_out; closed.
  Result<std::vector<NodeInfo>> watch_nodes(const std::vector<NodeInfo>& known, Instant deadline) const;

  [[nodiscard]] std::uint64_t instance() const noexcept;
  [[nodiscard]] std::string endpoint() const;                  // to which peers connect; empty: only within the process
  [[nodiscard]] std::uint64_t pattern_count() const noexcept;  // number of own filters that are not exact
  [[nodiscard]] TopicsStatistics statistics() const;
  [[nodiscard]] CounterSource counter_source() const;
  // For the C interface, whose queue of calls begins requests without a wait. Null if moved from.
  [[nodiscard]] const std::shared_ptr<topic::Node>& node() const noexcept { return node_; }

 private:
  explicit Topics(std::shared_ptr<topic::Node> node) noexcept;

  std::shared_ptr<topic::Node> node_;
};

}  // namespace weft
