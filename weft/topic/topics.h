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

// Topics: a handle on a fleet: topics that any handle publishes and any handle subscribes to, wherever it is: in this
// process, on this host, or on the listed hosts (TopicsOptions::fleet). One hop, without a broker.
// Owner: a move-only value; destruction closes, and wakes every call that waits with `closed`. The context outlives it.
// Affinity: any thread. AsyncTopics is the same for coroutines of one loop.
// Cost: two sockets, and one thread that sleeps while nothing comes.
// Promise: at most once, never twice; in order of each publisher and topic. Whatever must be kept is refused with
// not_supported, not imitated.
class Topics {
 public:
  // invalid_argument: an option; not_supported: the fleet's engine; invalid_state: the runtime directory belongs to
  // another user, or other users may enter it; resource_exhausted: 64 handles of a local fleet, descriptors, memory;
  // closed; the errors of Socket::bind.
  [[nodiscard]] static Result<Topics> open(Context& context, const TopicsOptions& options = {});
  Topics(Topics&&) noexcept;
  Topics& operator=(Topics&&) noexcept;
  ~Topics();
  void close() noexcept;  // idempotent

  // invalid_argument: no topic name, or one with wildcards.
  Result<Publisher> publisher(std::string_view topic, const PublisherOptions& options = {});
  // Each text is a topic or tokens, as Filter::parse() says. The errors of Subscription::add().
  Result<Subscription> subscribe(std::initializer_list<std::string_view> filters,
                                 const SubscriptionOptions& options = {});
  Result<Subscription> subscribe(std::string_view filter, const SubscriptionOptions& options = {});
  Result<Subscription> subscribe(const Filter& filter, const SubscriptionOptions& options = {});
  Result<Subscription> subscribe(const Result<Filter>& filter, const SubscriptionOptions& options = {});

  // Asks one member of each group that serves the topic, and returns the first reply. unreachable, at once: nobody
  // serves it; timed_out; connection_closed: the handle that was asked is gone, and may have answered;
  // resource_exhausted: the service's queue is full, or 65,536 requests are under way; the error of the handler.
  Result<TopicMessage> request(std::string_view topic, Bytes body, Instant deadline, const Headers& headers = {});
  Result<TopicMessage> request(std::string_view topic, std::string_view body, Instant deadline,
                               const Headers& headers = {}) {
    return request(topic, as_bytes(body), deadline, headers);
  }
  // Answers requests, from now on. invalid_argument; resource_exhausted: 1,024 services, or no thread; closed.
  Result<Service> serve(std::string_view topic, const ServiceOptions& options, RequestHandler handler);

  // Owns the topic, once every peer that is connected agreed. conflict: somebody alive owns it; timed_out: a peer does
  // not answer; invalid_argument; closed.
  Result<Owned> create(std::string_view topic, Instant deadline);
  [[nodiscard]] bool exists(std::string_view topic) const;    // somebody owns it
  [[nodiscard]] bool is_local(std::string_view topic) const;  // this handle does
  // The owned topics of the fleet that a filter matches. The errors of Filter::parse().
  Result<std::vector<std::string>> list(std::string_view filter) const;

  // Topics that are kept, in local fleets: declares the stream. The errors of Stream::declare(); not_supported: another
  // kind of fleet, or a build without SQLite.
  Result<Stream> stream(const StreamOptions& options);
  Result<KeyValue> key_value(std::string_view name, const KeyValueOptions& options = {});
  // The streams of the handle's space, buckets too, by name. not_supported; timed_out; closed; resource_exhausted: more
  // than 65,536.
  Result<std::vector<StreamInfo>> streams();
  [[nodiscard]] KeptStatistics kept_statistics() const;  // all 0 before the first use

  // tcp fleets. Connects to a peer, and keeps trying. not_supported; malformed_endpoint; resource_exhausted.
  Result<void> add_peer(std::string_view endpoint);
  // Takes the peer off the list, and ends the connection. A peer that has heard of this handle is connected again when
  // it next says where it listens. Also no_such_endpoint: the peer is not listed.
  Result<void> remove_peer(std::string_view endpoint);
  // add_peer(), for a program that thinks of the topics that are there. The filter is checked, it narrows nothing: what
  // crosses a connection is what its receiver subscribed to (docs/design/0014). The errors of Filter::parse().
  Result<void> route(std::string_view filter, std::string_view endpoint);
  // Waits until the roster of every peer came, and returns the handles of the fleet, this one not. The peers: of a
  // process or local fleet each handle whose open() returned before this call; of a tcp fleet each listed one, and
  // those that they told of. timed_out: a peer does not answer; resource_exhausted; closed; errors of the system.
  Result<std::vector<NodeInfo>> sync(Instant deadline);
  // The other handles that have a presence and are connected, and whose lease has not run out.
  [[nodiscard]] std::vector<NodeInfo> nodes() const;
  // nodes(), when they differ from `known`. timed_out; closed.
  Result<std::vector<NodeInfo>> watch_nodes(const std::vector<NodeInfo>& known, Instant deadline) const;

  [[nodiscard]] std::uint64_t instance() const noexcept;
  [[nodiscard]] std::string endpoint() const;                  // where peers connect; empty: only within the process
  [[nodiscard]] std::uint64_t pattern_count() const noexcept;  // own filters that are not exact
  [[nodiscard]] TopicsStatistics statistics() const;
  [[nodiscard]] CounterSource counter_source() const;

 private:
  explicit Topics(std::shared_ptr<topic::Node> node) noexcept;

  std::shared_ptr<topic::Node> node_;
};

}  // namespace weft
