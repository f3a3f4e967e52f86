// SPDX-License-Identifier: MIT
// Node: a handle of a nats fleet. The handles of this process meet over inproc, as those of every fleet. The gate has
// the messages of other processes, the control messages between them, and all requests.
#include "weft/topic/node/gate.h"

#include <algorithm>
#include <utility>

#include "weft/base/no_memory.h"
#include "weft/nats/protocol/escape.h"
#include "weft/sync/lock.h"
#include "weft/sys/clock.h"
#include "weft/topic/node/node.h"

namespace weft::topic {

namespace {

constexpr std::string_view kNoGroup = "=";  // no other group's name has it unescaped
constexpr std::size_t kRepliesMax = 16;     // of one request, one of each group; the first is taken

// The group on the engine: the same name, so that its other clients can join it.
std::string engine_group(std::string_view group) {
  if (group.empty()) {
    return std::string(kNoGroup);
  }
  std::string escaped;
  for (const char c : group) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte > 0x20 && byte < 0x7f && c != nats::kEscape) {
      escaped += c;
    } else {
      nats::append_escape(c, escaped);
    }
  }
  return escaped;
}

}  // namespace

GateOptions gate_options(std::string servers, std::string name, const FleetSecurity& security) {
  GateOptions options;
  options.servers = std::move(servers);
  options.name = std::move(name);
  options.user = security.user;
  options.password = security.password;
  options.token = security.token;
  options.nkey_seed_file = security.nkey_seed_file;
  options.credentials_file = security.credentials_file;
  options.tls_certificate = security.tls_certificate;
  options.tls_key = security.tls_key;
  options.tls_authorities = security.tls_authorities;
  options.tls_server_name = security.tls_server_name;
  return options;
}

GateOptions Node::gate_options() {
  std::string name = with_mesh([](const MeshState& mesh) { return mesh.self().node; });
  GateOptions options = topic::gate_options(fleet().servers, std::move(name), options_.security);
  options.group = context().get();
  options.outage_bytes_max = options_.outage_bytes_max;
  options.ping_every = options_.ping_every;
  return options;
}

Result<void> Node::begin_gate() {
  const GateOptions options = gate_options();
  constexpr int kTriesMax = 16;
  Result<void> joined = Error(Errc::closed, "the gate closed again and again");
  for (int i = 0; i < kTriesMax && !joined && joined.error() == Errc::closed; ++i) {
    gate_ = WEFT_TRY(Gate::open(options));
    joined = gate_->join(*this, instance());
  }
  return joined;
}

void Node::end_gate() noexcept {
  if (gate_ == nullptr) {
    return;
  }
  (void)or_no_memory([&]() -> Result<void> {
    const Control leaving{.kind = Control::Kind::leaving, .from = instance()};
    gate_->send_control(0, WEFT_TRY(encode_control(leaving)));
    return {};
  });
  gate_->leave(*this);
}

void Node::add_gate_counts(TopicsStatistics& into) {
  const GateCounts gate = gate_->counts();
  into.fleet_published = gate.published;
  into.fleet_sent = gate.sent;
  into.fleet_queued = gate.queued;
  into.fleet_dropped_oldest = gate.dropped_oldest;
  into.fleet_dropped_refused = gate.dropped_refused;
  into.fleet_dropped_closed = gate.dropped_closed;
  into.fleet_dropped_full = gate.dropped_full;
  into.fleet_connected = gate.connected;
}

// A filter that no subject matches needs no subscription.
Result<void> Node::gate_want(const Filter& filter) {
  if (gate_ == nullptr) {
    return {};
  }
  const Filter widened = filter.widen_to_tokens();
  std::string subject;
  return Gate::names().append_filter(widened, subject) ? gate_->want(widened) : Result<void>();
}

void Node::gate_unwant(const Filter& filter) noexcept {
  if (gate_ != nullptr) {
    gate_->unwant(filter.widen_to_tokens());
  }
}

template <typename Function>
void Node::in_loop(Function function) noexcept {
  const Result<void> posted = or_no_memory([&]() -> Result<void> {
    loop_.post([this, function = std::move(function)]() mutable {
      const auto done = or_no_memory([&]() -> Result<void> {
        function(*this);
        return {};
      });
      counters_.control_lost += done ? 0 : 1;
    });
    return {};
  });
  counters_.control_lost += posted ? 0 : 1;
}

template <typename Function>
void Node::where_subscriptions_are(Function function) noexcept {
  if (async()) {
    in_loop(std::move(function));
    return;
  }
  const auto done = or_no_memory([&]() -> Result<void> {
    function(*this);
    return {};
  });
  counters_.control_lost += done ? 0 : 1;
}

// --- messages ---

void Node::handle_gate_message(FleetMessage& message) noexcept {
  if (!async()) {
    pump_.deliver(message);
    return;
  }
  if (pump_.keep(message, options_.queue_bytes_max)) {
    in_loop([](Node& node) { node.pump_.deliver_kept(); });
  }
}

void Node::handle_gate_room() noexcept {
  if (async()) {
    in_loop([](Node& node) { node.pulse_room(); });
  }
}

void Node::handle_gate_refused(const Filter& widened, const Error& why) noexcept {
  const Result<void> taken = or_no_memory([&]() -> Result<void> {
    where_subscriptions_are([widened, why](Node& node) {
      for (const auto& each : node.subscriptions_.all()) {
        if (node.interest_.has_widened(*each, widened)) {
          each->end(why);
        }
      }
    });
    return {};
  });
  counters_.control_lost += taken ? 0 : 1;
}

// --- the other handles ---

void Node::handle_gate_control(Bytes control) noexcept {
  if (const std::uint64_t to = control_addressee(control); to != 0 && to != instance()) {
    return;
  }
  const Result<void> taken = or_no_memory([&]() -> Result<void> {
    auto decoded = decode_control(control);
    if (!decoded) {
      ++counters_.control_malformed;
      return {};
    }
    in_loop([control = *std::move(decoded)](Node& node) mutable {
      using Kind = Control::Kind;
      switch (control.kind) {
        case Kind::probe:
        case Kind::ready: (void)node.handle_control(std::move(control), {}, 0); break;
        case Kind::roster: node.handle_gate_roster(std::move(control)); break;
        case Kind::roster_wanted:  // of a handle that came, perhaps; it has none of the probes
          for (Control& probe : node.with_mesh([](MeshState& mesh) { return mesh.readiness().all(sys::now()); })) {
            probe.to = control.from;
            (void)node.send_control(probe);
          }
          if (node.options_.presence > Duration::zero()) {
            node.send_roster(control.from);
          }
          break;
        case Kind::leaving:
          node.with_mesh([&](MeshState& mesh) { mesh.handle_silent(control.from); });
          node.mesh_changed();
          break;
        default: break;  // a nats fleet has no owners
      }
    });
    return {};
  });
  counters_.control_lost += taken ? 0 : 1;
}

void Node::repeat_probes_soon() noexcept {
  if (gate_ != nullptr) {
    in_loop([](Node& node) { node.probes_.repeat_soon(); });
  }
}

// Handles with a presence announce themselves.
void Node::handle_gate_roster(Control&& control) {
  if (control.number == 0) {
    return;
  }
  with_mesh([&](MeshState& mesh) { mesh.handle_leased(control.from, sys::now()); });
  (void)handle_control(std::move(control), {}, 0);
}

// The messages of an outage are lost, or came late: rosters, probes and counts go out again.
void Node::handle_gate_connection(bool stands) noexcept {
  if (stands) {
    mesh_.permit();
    in_loop([](Node& node) { node.exchange_soon(0, true); });
  }
}

// --- requests ---

Result<Node::Request> Node::begin_gate_request(const std::string& wire, Bytes body, std::string_view headers) {
  const std::string block = WEFT_TRY(with_header(headers, kServiceHeader, wire));
  std::string subject;
  WEFT_TRY(Gate::names().append_subject(wire, subject));
  Request request;
  request.id = with_mesh([](MeshState& mesh) { return mesh.next_id(); });
  request.replies = make_intrusive<SubscriptionCore>(Full::drop_newest, kRepliesMax, options_.queue_bytes_max);
  WEFT_TRY(calls_.begin(request.id, request.replies, subject));
  ++counters_.requests;
  const Result<void> sent = gate_->ask(subject, instance(), request.id, block, body);
  if (!sent) {
    end_request(request.id);
    return sent.error() == Errc::would_block ? Error(Errc::resource_exhausted, "the fleet's server does not read")
                                             : sent.error();
  }
  return request;
}

void Node::handle_gate_reply(std::uint64_t request, Message&& body, Message&& headers, bool unserved) noexcept {
  const Result<void> taken = or_no_memory([&]() -> Result<void> {
    where_subscriptions_are([request, body = std::make_shared<Message>(std::move(body)),
                             headers = std::make_shared<Message>(std::move(headers)), unserved](Node& node) {
      const IntrusivePtr<SubscriptionCore> replies = node.calls_.replies_of(request);
      if (replies == nullptr) {
        ++node.counters_.late_replies;
      } else if (unserved) {
        replies->close(Error(Errc::unreachable, "nobody serves this topic"));
      } else {
        ++node.counters_.replies;
        replies->offer(TopicMessage(Message(), std::move(*body), std::move(*headers), {}));
      }
    });
    return {};
  });
  counters_.control_lost += taken ? 0 : 1;  // the request's deadline passes
}

void Node::handle_gate_requests_connected() noexcept { calls_.permit(); }

void Node::handle_gate_requests_lost() noexcept {
  where_subscriptions_are([](Node& node) {
    node.calls_.fail_all(Error(Errc::connection_closed, "the connection ended; the request may have been answered"));
  });
}

// The server names the subject alone, and the same user sent them all: the refusals of the others follow.
void Node::handle_gate_request_refused(std::string_view subject, const Error& why) noexcept {
  if (subject.starts_with('_') || subject.starts_with('$')) {  // no topic: an answer
    calls_.refuse_answers(why);
    return;
  }
  const Result<void> taken = or_no_memory([&]() -> Result<void> {
    where_subscriptions_are([subject = std::string(subject), why = why.with_fate(Fate::not_sent)](Node& node) {
      node.calls_.fail_subject(subject, why);
    });
    return {};
  });
  counters_.control_lost += taken ? 0 : 1;  // the requests' deadlines pass
}

void Node::handle_gate_replies_refused(const Error& why) noexcept {
  calls_.refuse_replies(why);
  where_subscriptions_are([why](Node& node) { node.calls_.fail_all(why); });
}

void Node::handle_gate_control_refused(const Error& why) noexcept {
  mesh_.refuse(why);
  in_loop([](Node& node) { node.mesh_changed(); });
}

Result<void> Node::service_status(SubscriptionCore& requests) noexcept {
  WEFT_TRY(requests.status());
  return calls_.answers();
}

Result<IntrusivePtr<SubscriptionCore>> Node::serve_at_gate(const std::string& wire, std::string_view group,
                                                           std::size_t queue_max) {
  std::string subject;
  WEFT_TRY(Gate::names().append_subject(wire, subject));
  const std::string engine = engine_group(group);
  auto requests = make_intrusive<SubscriptionCore>(Full::drop_newest, 2 * queue_max, options_.queue_bytes_max);
  const std::uint64_t id = with_mesh([](MeshState& mesh) { return mesh.next_id(); });
  WEFT_TRY(calls_.add_service(id, {requests, queue_max}));
  if (const auto served = gate_->serve(*this, id, subject, engine); !served) {
    calls_.remove_service(id);
    return served.error();
  }
  return requests;
}

void Node::handle_gate_service_refused(std::uint64_t service, const Error& why) noexcept {
  where_subscriptions_are([service, why](Node& node) { node.calls_.fail_service(service, why); });
}

void Node::handle_gate_request(std::uint64_t service, std::string_view reply, Message&& body,
                               Message&& headers) noexcept {
  const Result<void> taken = or_no_memory([&]() -> Result<void> {
    const std::string block = WEFT_TRY(with_header(headers.text(), kReplyHeader, reply));
    auto request = std::make_shared<TopicMessage>(Message(), std::move(body), WEFT_TRY(Message::copy_of(block)),
                                                  IntrusivePtr<const OwnFilter>());
    where_subscriptions_are(
        [service, request](Node& node) { node.offer_request(node.calls_.service(service), std::move(*request)); });
    return {};
  });
  counters_.control_lost += taken ? 0 : 1;
}

}  // namespace weft::topic
