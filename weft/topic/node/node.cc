// SPDX-License-Identifier: MIT
#include "weft/topic/node/node.h"

#include <algorithm>
#include <random>
#include <utility>

#include "weft/msg/socket/socket_core.h"
#include "weft/net/stream/endpoint.h"
#include "weft/sys/path.h"
#include "weft/topic/kept/hub_link.h"

namespace weft::topic {

namespace {

std::uint64_t fresh_instance() {
  std::random_device device;
  std::uint64_t instance = 0;
  while (instance == 0) {
    instance = std::uint64_t{device()} << 32U | device();
  }
  return instance;
}

// Removes those of the keys that the hub of another host takes.
Result<void> check_hub(const TopicsOptions& options, const Fleet& fleet, FleetSecurity& keys) {
  const bool curve = options.hub.starts_with("tcp://");
  const bool tls = options.hub.starts_with("tls+tcp://");
  if (!keys.curve_hub_public.empty() && !curve) {
    return Error(Errc::invalid_argument, "only a hub at tcp://HOST:PORT has a key of CURVE");
  }
  if (options.hub.empty() || options.hub.starts_with("ipc://")) {
    return {};
  }
  if (curve ? !keys.curve_of_hub() : !tls || !keys.tls()) {
    return Error(
        Errc::invalid_argument,
        "another hub is ipc://PATH; tls+tcp://HOST:PORT, which needs a certificate, its key and authorities; or "
        "tcp://HOST:PORT, which needs the hub's public key and a pair of CURVE keys");
  }
  WEFT_TRY(net::parse_endpoint(options.hub, false));
  keys.curve_hub_public.clear();
  if (curve && !keys.curve()) {
    keys.curve_public.clear();
    keys.curve_secret.clear();
  }
  if (tls && !fleet.tls) {
    keys.tls_certificate.clear();
    keys.tls_key.clear();
    keys.tls_authorities.clear();
    keys.tls_server_name.clear();
  }
  return {};
}

// A key without an effect would protect nothing.
Result<void> check_security(const TopicsOptions& options, const Fleet& fleet) {
  FleetSecurity keys = options.security;
  WEFT_TRY(check_hub(options, fleet, keys));
  if (fleet.tls) {
    for (const std::string* const text : {&options.listen, &options.advertise}) {
      if (!text->empty() && !text->starts_with(fleet.scheme())) {
        return Error(Errc::invalid_argument, "every endpoint of a tls+tcp fleet is tls+tcp://");
      }
    }
    return keys.tls() && !keys.curve()
               ? Result<void>()
               : Error(Errc::invalid_argument,
                       "a tls+tcp fleet needs a certificate, its key and authorities, and no CURVE");
  }
  if (keys.empty()) {
    return {};
  }
  if (fleet.kind == Fleet::Kind::nats) {
    return keys.curve() ? Result<void>(Error(Errc::invalid_argument, "a nats fleet has no CURVE")) : Result<void>();
  }
  if (keys.login()) {
    return Error(Errc::invalid_argument, "only a nats fleet has a login");
  }
  if (fleet.kind != Fleet::Kind::tcp) {
    return Error(Errc::invalid_argument, "only a tcp fleet has keys");
  }
  if (keys.curve_server_public.empty() || keys.curve_server_secret.empty() || keys.curve_public.empty() ||
      keys.curve_secret.empty()) {
    return Error(Errc::invalid_argument, "CURVE needs the fleet's pair of keys, and a pair of this handle's own");
  }
  return {};
}

MeshState::Self self_of(const TopicsOptions& options, const Fleet& fleet) {
  MeshState::Self self;
  self.instance = fresh_instance();
  self.node =
      options.node.empty() ? std::to_string(sys::process_id()) + "-" + instance_text(self.instance) : options.node;
  self.presence = options.presence;
  self.names_peers = fleet.kind == Fleet::Kind::tcp;
  self.secret = options.security.curve();
  return self;
}

}  // namespace

Node::Node(const TopicsOptions& options, Names names, Fleet fleet, rt::Loop* loop)
    : rt::TurnJob(&Node::flush_out),
      options_(options),
      names_(std::move(names)),
      mesh_(self_of(options, fleet)),
      endpoints_(std::move(fleet), mesh_.instance()),
      loop_(loop) {}

Node::~Node() { close(); }

Result<std::shared_ptr<Node>> Node::open(Context& context, const TopicsOptions& options, rt::Loop* loop) {
  return msg::set_up([&]() -> Result<std::shared_ptr<Node>> {
    Names names = WEFT_TRY(Names::make(options.space, options.separator));
    Fleet fleet = WEFT_TRY(Fleet::parse(options.fleet));
    if (context.core() == nullptr) {
      return Error(Errc::closed, "the context is closed or was moved from");
    }
    if (options.peer_messages_max <= 0 || options.queue_messages_max == 0 || options.queue_bytes_max == 0 ||
        options.presence < Duration::zero() || options.node.size() > Roster::kNameMax ||
        options.advertise.size() > Roster::kEndpointMax) {
      return Error(Errc::invalid_argument, "a bound of the options is 0, or a name too long");
    }
    if (auto security = check_security(options, fleet); !security) {
      return security.error();
    }
    std::shared_ptr<Node> node(new Node(options, std::move(names), std::move(fleet), loop));
    if (auto started = node->start(context); !started) {
      node->close();
      return started.error();
    }
    return node;
  });
}

Result<void> Node::start(Context& context) {
  WEFT_TRY(loop_.make(weak_from_this(), [this] { handle_work(); }));
  WEFT_TRY(sockets_.open(context, names_, instance()));
  WEFT_TRY(open_inbox());
  links_.watch();
  watch_peer_connections();
  WEFT_TRY(lead_.begin());
  WEFT_TRY(control_.begin());
  WEFT_TRY(loop_.start());
  return begin_fleet();
}

Result<void> Node::begin_fleet() {
  WEFT_TRY(sockets_.bind_inproc());
  if (fleet().kind == Fleet::Kind::local) {
    WEFT_TRY(begin_local());
  } else if (fleet().kind == Fleet::Kind::tcp) {
    WEFT_TRY(begin_tcp());
  }
  if (fleet().kind == Fleet::Kind::nats) {
    WEFT_TRY(begin_gate());
  }
  WEFT_TRY(ProcessFleets::instance().join(*this, context().get(), options_.fleet));
  if (fleet().kind == Fleet::Kind::local) {
    WEFT_TRY(read_directory(true));  // of the handles of this process none is found there
  }
  begin_presence();
  joined_.store(true, std::memory_order_release);
  return {};
}

// The handle listens before it reads the directory: of two handles that come at once, at least one finds the other, and
// its roster shows it to the other.
Result<void> Node::begin_local() {
  const std::string endpoint = WEFT_TRY(endpoints_.open(options_.runtime_directory));
  set_endpoint(WEFT_TRY(sockets_.bind_local(endpoint)));
  return {};
}

// The loop may send the roster already.
void Node::set_endpoint(std::string endpoint) {
  with_mesh([&](MeshState& mesh) { mesh.set_endpoint(std::move(endpoint)); });
}

// `joins`: this handle is one more.
Result<void> Node::read_directory(bool joins) {
  const std::vector<FleetEndpoints::Listener> others = WEFT_TRY(endpoints_.find_others());
  if (joins && others.size() >= Fleet::kLocalHandlesMax) {
    return Error(Errc::resource_exhausted, "the local fleet has 128 handles");
  }
  for (const FleetEndpoints::Listener& other : others) {
    WEFT_TRY(learn(other.instance, other.endpoint, LinkConnections::Source::the_handle));
  }
  return {};
}

Result<void> Node::begin_tcp() {
  set_endpoint(WEFT_TRY(sockets_.bind_tcp()));
  for (const std::string& peer : fleet().peers) {
    WEFT_TRY(add_peer(peer));
  }
  return {};
}

void Node::end_watches() noexcept {
  lead_.end();
  control_.end();
  loop_.end_turns();
  links_.end();
  for (LoopTimer* const timer : {&lease_timer_, &repair_timer_, &resend_timer_}) {
    timer->stop();
  }
  probes_.stop();
  sweep_.stop();
  rt::TurnJob::unhook();
}

void Node::close() noexcept {
  if (!loop_.close()) {
    return;
  }
  flush();
  end_gate();
  if (context() != nullptr) {
    ProcessFleets::instance().leave(*this, context().get(), options_.fleet);
  }
  links_.unwatch();
  loop_.stop();
  hub_link_.close();
  if (loop_.made()) {
    end_watches();
  }
  constexpr Error kClosed(Errc::closed, "the handle of topics was closed");
  subscriptions_.close_all(kClosed);
  calls_.close(kClosed);
  sockets_.close();
  mesh_.close();
  mesh_changed();
  pulse_room();
}

namespace {
constexpr Error kHandleClosed(Errc::closed, "the handle of topics was closed");
}  // namespace

Result<std::shared_ptr<HubLink>> Node::hub_link(const std::function<Result<std::shared_ptr<HubLink>>(Node&)>& make) {
  const auto make_open = [&] { return closed() ? Result<std::shared_ptr<HubLink>>(kHandleClosed) : make(*this); };
  return closed() ? Result<std::shared_ptr<HubLink>>(kHandleClosed) : hub_link_.get_or_make(make_open);
}

TopicsStatistics Node::statistics() {
  TopicsStatistics all;
  sync::add_counters(all, counters_);
  subscriptions_.add_counts(all);
  sockets_.add_counts(all);
  if (gate_ != nullptr) {
    add_gate_counts(all);
  }
  all.peers = with_mesh([](const MeshState& mesh) { return mesh.peers().all().size(); });
  return all;
}

}  // namespace weft::topic
