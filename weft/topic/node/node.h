// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/base/result.h"
#include "weft/base/time.h"
#include "weft/msg/context.h"
#include "weft/msg/socket.h"
#include "weft/rt/loop/loop.h"
#include "weft/rt/loop/turn_job.h"
#include "weft/rt/task/async_event.h"
#include "weft/sync/lock.h"
#include "weft/sync/mutex.h"
#include "weft/topic/fleet/fleet_endpoints.h"
#include "weft/topic/fleet/process_fleets.h"
#include "weft/topic/gate/gate.h"
#include "weft/topic/kept/hub_link_slot.h"
#include "weft/topic/loop/connection_sweep.h"
#include "weft/topic/loop/control_reader.h"
#include "weft/topic/loop/loop_timer.h"
#include "weft/topic/loop/node_loop.h"
#include "weft/topic/mesh/mesh_state.h"
#include "weft/topic/mesh/shared_mesh.h"
#include "weft/topic/node/calls.h"
#include "weft/topic/node/counters.h"
#include "weft/topic/node/input_lead.h"
#include "weft/topic/node/interest.h"
#include "weft/topic/node/link_connections.h"
#include "weft/topic/node/node_sockets.h"
#include "weft/topic/node/open_subscriptions.h"
#include "weft/topic/node/options.h"
#include "weft/topic/node/pump.h"
#include "weft/topic/node/subscriber_probes.h"
#include "weft/topic/node/subscription_core.h"
#include "weft/topic/wire/control.h"
#include "weft/topic/wire/name.h"

namespace weft::topic {

class Node;

// PublisherCore: one topic of a handle, encoded once. Guarded by the node's publish lock, except const members.
struct PublisherCore : sync::AtomicCounted<PublisherCore> {
  std::string wire;     // const
  std::string subject;  // const, of a nats fleet; empty: not for its servers
  Message name;         // const: in the program's form
  bool inside = false;  // const: never leaves the process
  MatchMemo memo;
};

// Node: the inside of a Topics or AsyncTopics handle: an XPUB that the fleet connects to, an XSUB that connects to the
// fleet, and the index of the handle's own subscriptions.
// Owner: the handle and all its objects, by shared_ptr. Affinity: any thread; of AsyncTopics: the loop's. InputLead
// has the reader of the XSUB. MeshState decides about the other handles; LinkConnections connects, and the node carries
// the messages.
// Cost: publishing is a lock, a memo and a queue for each own subscription, and one send if there are peers.
// Locks, in order: link, pump, publish, answer, interest, mesh, calls, subscription; each is in the part of its name,
// link in LinkConnections and answer in SubscriberProbes. No socket is called under the mesh lock.
// The locks of the hub link and of the open subscriptions come before the mesh lock.
// Invariants:
//   1. Each subscription gets the messages of one publisher in order.
//   2. A message enters a subscription once, through any number of filters and connections.
//   3. An idle node makes no wake-ups, unless it has a presence.
class Node final : public std::enable_shared_from_this<Node>,
                   private rt::TurnJob,
                   private ProcessFleets::Member,
                   private GateMember {
 public:
  // `loop` is null for a handle of any thread: the node then runs a loop of its own.
  // Errors: invalid_argument (an option); not_supported (an engine that this build does not have); resource_exhausted
  // (128 handles of a local fleet, descriptors, memory); those of Socket::bind.
  [[nodiscard]] static Result<std::shared_ptr<Node>> open(Context& context, const TopicsOptions& options,
                                                          rt::Loop* loop);
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;
  ~Node();
  void close() noexcept;  // idempotent; ends every wait with `closed`. AsyncTopics: on the loop's thread
  [[nodiscard]] bool closed() const noexcept { return loop_.closed(); }

  [[nodiscard]] const TopicsOptions& options() const noexcept { return options_; }
  [[nodiscard]] const Names& names() const noexcept { return names_; }
  [[nodiscard]] std::string space_prefix() const { return options_.space.empty() ? "" : options_.space + '.'; }
  [[nodiscard]] std::uint64_t instance() const noexcept override { return mesh_.instance(); }
  // For peers of other processes; empty: none.
  [[nodiscard]] std::string endpoint() const {
    return mesh_.with([](const MeshState& mesh) { return mesh.self().endpoint; });
  }
  [[nodiscard]] rt::Loop& loop() noexcept { return loop_.loop(); }
  [[nodiscard]] bool async() const noexcept { return !loop_.is_own(); }
  [[nodiscard]] TopicsStatistics statistics();
  [[nodiscard]] const std::shared_ptr<Gate>& gate() const noexcept { return gate_; }  // null: not a nats fleet
  void count_not_forwarded() noexcept { ++counters_.not_forwarded; }

  // --- kept topics ---
  // The link to the fleet's hub. The first call makes it by `make`. Errors: closed; those of
  // `make`. A later call then tries it again.
  [[nodiscard]] Result<std::shared_ptr<HubLink>> hub_link(
      const std::function<Result<std::shared_ptr<HubLink>>(Node&)>& make);
  [[nodiscard]] std::shared_ptr<HubLink> used_hub_link() noexcept { return hub_link_.used(); }  // null if not used yet
  [[nodiscard]] const Fleet& fleet() const noexcept { return endpoints_.fleet(); }
  [[nodiscard]] GateOptions gate_options();  // of a nats fleet
  [[nodiscard]] const std::shared_ptr<msg::ContextCore>& context() const noexcept { return sockets_.context(); }

  // --- publishing (publish.cc) ---
  [[nodiscard]] Result<IntrusivePtr<PublisherCore>> make_publisher(std::string_view name);
  // A topic in the wire's form: a reply's.
  [[nodiscard]] Result<IntrusivePtr<PublisherCore>> make_wire_publisher(std::string wire, bool inside);
  // `keep`: fails with would_block, without an effect, while a peer's queue is full. Errors: closed; message_too_large
  // (the headers or the body); resource_exhausted.
  [[nodiscard]] Result<void> publish(PublisherCore& publisher, Bytes body, std::string_view headers, bool keep);
  // The same, but waits for room.
  [[nodiscard]] Result<void> publish_until(PublisherCore& publisher, Bytes body, std::string_view headers,
                                           Instant deadline);
  void flush() noexcept;  // AsyncTopics, before a wait: sends the published messages
  [[nodiscard]] rt::AsyncEvent& room() noexcept { return room_; }  // AsyncTopics: a peer may have room

  // --- subscribing (subscribe.cc) ---
  [[nodiscard]] Result<IntrusivePtr<SubscriptionCore>> subscribe(std::span<const Filter> filters,
                                                                 const SubscriptionOptions& options);
  [[nodiscard]] Result<void> add_filter(SubscriptionCore& subscription, const Filter& filter);
  [[nodiscard]] Result<void> add_text_filter(SubscriptionCore& subscription, std::string_view text);
  // Fails with invalid_argument if the subscription does not have the filter.
  [[nodiscard]] Result<void> remove_filter(SubscriptionCore& subscription, const Filter& filter);
  [[nodiscard]] Result<void> remove_text_filter(SubscriptionCore& subscription, std::string_view text);
  void unsubscribe(SubscriptionCore& subscription) noexcept;
  void drain(SubscriptionCore& subscription) noexcept;  // the same, without the messages in the queue
  [[nodiscard]] Result<TopicMessage> try_next(SubscriptionCore& subscription) { return lead_.try_next(subscription); }
  [[nodiscard]] Result<TopicMessage> next_until(SubscriptionCore& subscription, Instant deadline) {
    return lead_.next_until(subscription, deadline);
  }
  // For an event loop of the program, which reads instead of the node's loop while it calls take_input() at least once
  // a tick: a descriptor that is readable while there may be messages of other handles. Errors: closed;
  // resource_exhausted.
  [[nodiscard]] Result<int> input_descriptor();
  unsigned take_input() {
    return lead_.take_input();
  }  // delivers messages to the subscriptions, never waits, and returns their number
  [[nodiscard]] std::uint64_t pattern_count() noexcept {
    return interest_.patterns() - 1;  // the inbox has one
  }

  // --- the fleet (mesh.cc) ---
  [[nodiscard]] Result<void> add_peer(std::string_view endpoint);
  [[nodiscard]] Result<void> remove_peer(std::string_view endpoint);
  // Why the waits for other handles cannot end, on a fleet with a server; ok: they can.
  [[nodiscard]] Error control_refused() const noexcept { return mesh_.refused(); }
  // Service::status().
  [[nodiscard]] Result<void> service_status(SubscriptionCore& requests) noexcept;
  // Waits on the mesh: calls `done` with the MeshState, under the mesh lock, after each change of the mesh.
  template <typename Done>
  [[nodiscard]] Result<void> wait_mesh(Instant deadline, const Done& done) {
    return mesh_.wait(deadline, std::cref(done));  // a function of this size allocates nothing
  }
  [[nodiscard]] rt::AsyncEvent& mesh_event() noexcept { return mesh_.event(); }
  [[nodiscard]] LinkConnections& links() noexcept { return links_; }
  // Calls the function with the MeshState, under the mesh lock.
  template <typename Function>
  auto with_mesh(Function function) {
    return mesh_.with(std::move(function));
  }
  // Requests the roster of every handle of the fleet whose open() returned before. Of AsyncTopics: in the loop.
  // Errors: those of LocalDirectory::listening(); resource_exhausted.
  [[nodiscard]] Result<std::uint64_t> ask_rosters();
  // The loop sends the roster in one of its next turns. `to`: 0: to every peer. `full`: see
  // MeshState::request_exchange(). Allocates nothing.
  void exchange_soon(std::uint64_t to, bool full) noexcept;
  [[nodiscard]] const std::string& inproc_endpoint() const noexcept override { return endpoints_.inproc(); }
  [[nodiscard]] bool has_inner() const noexcept override { return sockets_.has_inner(); }

  // Compares the mesh with the connections and the scouts of this handle, makes the missing ones, and exchanges all
  // messages. In the loop. After resource_exhausted or std::bad_alloc the caller repeats the pass: the end is the same.
  [[nodiscard]] Result<void> reconcile();

  // --- requests (requests.cc) ---
  // A request under way: the replies enter its subscription. Owner: the call that waits for the reply.
  struct Request {
    std::uint64_t id = 0;
    IntrusivePtr<SubscriptionCore> replies;
  };
  // Sends to one member of each group. Errors: unreachable (no handle serves the topic); would_block (no known handle
  // serves it, and a peer has not answered yet); resource_exhausted: kRequestsMax, or no memory; invalid_argument;
  // closed.
  [[nodiscard]] Result<Request> begin_request(std::string_view topic, Bytes body, std::string_view headers);
  void end_request(std::uint64_t id) noexcept;
  // The result for the program: the reply, or the service's error.
  [[nodiscard]] static Result<TopicMessage> reply_of(Result<TopicMessage> received);
  void reply(const TopicMessage& request, Bytes body, std::string_view headers) noexcept;
  void reply_error(const TopicMessage& request, const Error& error) noexcept;
  // The requests for one service. Fails with conflict at 1,024 services.
  [[nodiscard]] Result<IntrusivePtr<SubscriptionCore>> serve(std::string_view topic, std::string_view group,
                                                             std::size_t queue_max);
  void stop_serving(SubscriptionCore& service) noexcept;

  // --- owners (owners.cc) ---
  // After every reachable handle has sent its owned topics since a request (ask_rosters(), MeshState::owners_known()):
  // only then a topic without a known owner has none. Errors: those of Ownership::begin(); closed; resource_exhausted.
  [[nodiscard]] Result<std::uint64_t> begin_claim(std::string_view topic);
  // Errors: those of Ownership::end().
  [[nodiscard]] Result<std::uint64_t> end_claim(std::uint64_t claim, bool in_time);
  void give_up_ownership(const std::string& wire) noexcept;
  [[nodiscard]] bool owns(const std::string& wire, std::uint64_t epoch) const;
  [[nodiscard]] bool owns_now(std::string_view topic) const;
  [[nodiscard]] bool is_owned(std::string_view topic) const;
  [[nodiscard]] Result<std::vector<std::string>> owned_topics(std::string_view filter) const;

  // --- readiness of subscribers ---
  [[nodiscard]] Result<std::uint64_t> begin_probe(const PublisherCore& publisher, Instant deadline) noexcept;
  void end_probe(std::uint64_t probe) noexcept { probes_.end(probe); }

 private:
  static constexpr Duration kRepairFirst = std::chrono::milliseconds(10);  // then twice as long each time
  static constexpr Duration kRepairLast = std::chrono::seconds(1);
  static constexpr Duration kRenewLeast = std::chrono::milliseconds(1);  // between two rosters of a presence
  Node(const TopicsOptions& options, Names names, Fleet fleet, rt::Loop* loop);
  [[nodiscard]] Result<void> start(Context& context);
  [[nodiscard]] Result<void> begin_fleet();
  void set_endpoint(std::string endpoint);
  [[nodiscard]] Result<void> begin_local();
  [[nodiscard]] Result<void> read_directory(bool joins);
  [[nodiscard]] Result<void> begin_tcp();
  void end_watches() noexcept;

  // publish.cc
  [[nodiscard]] Result<void> send_out(PublisherCore& publisher, Bytes body, std::string_view headers, bool keep);
  void offer_own(PublisherCore& publisher, Bytes body, std::string_view headers);
  static void flush_out(rt::TurnJob& job) noexcept;
  void pulse_room() noexcept {
    if (async()) {
      room_.pulse();
    }
  }

  // subscribe.cc
  [[nodiscard]] Result<void> want(const Filter& filter);
  void unwant(const Filter& filter) noexcept;
  [[nodiscard]] Result<void> add(SubscriptionCore& subscription, std::string text, const Filter& wire);
  void forget_filters(SubscriptionCore& subscription) noexcept;
  void interest_changed() noexcept;

  // mesh.cc
  void mesh_changed() noexcept;
  // Of AsyncTopics: in the loop.
  [[nodiscard]] Result<void> handle_peer_opened(std::uint64_t instance, const std::string& inproc_endpoint,
                                                bool inner) override;
  void handle_peer_closed(std::uint64_t instance, const std::string& inproc_endpoint) noexcept override;
  void handle_joined() noexcept override { exchange_soon(0, true); }
  [[nodiscard]] Result<void> link_inproc(std::uint64_t instance, const std::string& inproc_endpoint,
                                         bool inner) override {
    return links_.link_inproc(instance, inproc_endpoint, inner);
  }

  // roster.cc
  [[nodiscard]] bool take_control(Message& message) noexcept;  // returns false if there is no memory; take it again
  // After resource_exhausted or std::bad_alloc, handle it again.
  [[nodiscard]] Result<void> handle_control(Control&& control, std::string_view from_host, msg::PeerId via);
  [[nodiscard]] Result<void> handle_roster(Control&& control, std::string_view from_host, msg::PeerId via);
  [[nodiscard]] Result<void> react(MeshState::Reaction&& reaction);  // errors: those of send_control()
  [[nodiscard]] Result<void> learn(std::uint64_t instance, const std::string& endpoint, LinkConnections::Source from);
  [[nodiscard]] static MeshState::Times times() noexcept;
  // Fails with resource_exhausted: counted, and not sent.
  [[nodiscard]] Result<void> send_control(const Control& control) noexcept;
  // The same; returns false if a peer missed the message, which the caller notes.
  [[nodiscard]] Result<bool> try_send_control(const Control& control) noexcept;
  [[nodiscard]] Result<void> send_all(const std::vector<Control>& controls) noexcept;  // as send_control()
  void send_roster(std::uint64_t to) noexcept;                                         // 0: every peer
  void exchange() noexcept;

  void watch_peer_connections();
  static void sweep(void* self);

  // reconcile.cc
  void repair_soon() noexcept { loop_.request(NodeLoop::kRepair); }
  void resend_soon() noexcept { loop_.request(NodeLoop::kResend); }
  void handle_work() noexcept;
  static void repair(void* self);
  static void resend(void* self);
  [[nodiscard]] Result<Resend::End> resend_now();

  // gate.cc: of a nats fleet
  [[nodiscard]] Result<void> begin_gate();
  void end_gate() noexcept;
  void add_gate_counts(TopicsStatistics& into);
  [[nodiscard]] Result<void> gate_want(const Filter& filter);
  void gate_unwant(const Filter& filter) noexcept;
  // Runs the function, where the subscriptions may be used: for AsyncTopics in the loop, later.
  template <typename Function>
  void where_subscriptions_are(Function function) noexcept;
  template <typename Function>
  void in_loop(Function function) noexcept;
  void repeat_probes_soon() noexcept;
  void handle_gate_roster(Control&& control);
  [[nodiscard]] Result<Request> begin_gate_request(const std::string& wire, Bytes body, std::string_view headers);
  [[nodiscard]] Result<IntrusivePtr<SubscriptionCore>> serve_at_gate(const std::string& wire, std::string_view group,
                                                                     std::size_t queue_max);
  void handle_gate_message(FleetMessage& message) noexcept override;
  void handle_gate_control(Bytes control) noexcept override;
  void handle_gate_reply(std::uint64_t request, Message&& body, Message&& headers, bool unserved) noexcept override;
  void handle_gate_request(std::uint64_t service, std::string_view reply, Message&& body,
                           Message&& headers) noexcept override;
  void handle_gate_connection(bool stands) noexcept override;
  void handle_gate_requests_connected() noexcept override;
  void handle_gate_requests_lost() noexcept override;
  void handle_gate_room() noexcept override;
  void handle_gate_refused(const Filter& widened, const Error& why) noexcept override;
  void handle_gate_service_refused(std::uint64_t service, const Error& why) noexcept override;
  void handle_gate_request_refused(std::string_view subject, const Error& why) noexcept override;
  void handle_gate_replies_refused(const Error& why) noexcept override;
  void handle_gate_control_refused(const Error& why) noexcept override;

  // requests.cc
  [[nodiscard]] Result<void> open_inbox();
  void handle_reply(TopicMessage&& message);
  void handle_request(TopicMessage&& message);
  void offer_request(const Calls::Service& service, TopicMessage&& message);
  [[nodiscard]] std::string inbox() const { return std::string(kInboxes) + instance_text(instance()) + "."; }
  [[nodiscard]] static std::string request_topic(std::uint64_t instance) {
    return std::string(kRequests) + instance_text(instance);
  }

  void begin_presence();
  static void renew(void* self);

  const TopicsOptions options_;
  const Names names_;
  SharedMesh mesh_;
  FleetEndpoints endpoints_;  // const after open()
  NodeSockets sockets_{options_, endpoints_};
  NodeLoop loop_;
  std::shared_ptr<Gate> gate_;       // of a nats fleet; const after start()
  std::atomic<bool> joined_{false};  // the handle has joined its fleet
  LoopTimer repair_timer_{loop_, {&Node::repair, this}, kRepairFirst, kRepairLast};
  LoopTimer resend_timer_{loop_, {&Node::resend, this}, Duration::zero()};
  TopicsCounters counters_;

  HubLinkSlot hub_link_;

  sync::Mutex publish_mutex_;
  rt::AsyncEvent room_;
  ControlReader control_{loop_, sockets_.out(), [this](Message& message) { return take_control(message); },
                         [this] { pulse_room(); }};

  InterestTable interest_;
  SubscriberProbes probes_{loop_, mesh_, interest_, [this](const Control& control) { return send_control(control); }};
  Pump pump_{sockets_.in(), interest_, names_, counters_};
  InputLead lead_{loop_, sockets_.in(), pump_};
  OpenSubscriptions subscriptions_;

  LinkConnections links_{loop_, mesh_, endpoints_, sockets_, pump_, [this] { mesh_changed(); }};
  Calls calls_;
  LoopTimer lease_timer_{loop_, {&Node::renew, this}, std::max<Duration>(options_.presence / 3, kRenewLeast)};
  ConnectionSweep sweep_{loop_, {&Node::sweep, this}};
};

// The handles with a valid lease, in order of their instances.
[[nodiscard]] std::vector<NodeInfo> present_nodes(const MeshState& mesh);
// The handles with a known roster.
[[nodiscard]] std::vector<NodeInfo> known_nodes(const MeshState& mesh);
// Returns true if present_nodes() differs from `known`, whatever the order; `now` is present_nodes() then.
[[nodiscard]] bool present_nodes_differ(const MeshState& mesh, const std::vector<NodeInfo>& known,
                                        std::vector<NodeInfo>& now);

}  // namespace weft::topic
