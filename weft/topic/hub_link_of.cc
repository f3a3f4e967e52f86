// SPDX-License-Identifier: MIT
#include "weft/topic/hub_link_of.h"

#include <utility>

#include "weft/msg/context.h"
#include "weft/msg/socket/context_core.h"
#include "weft/sys/path.h"
#include "weft/topic/fleet/local_directory.h"
#include "weft/topic/hub/hub.h"
#include "weft/topic/jetstream/server.h"
#include "weft/topic/kept/hub_link.h"
#include "weft/topic/kept/moved_from.h"
#include "weft/topic/node/node.h"
#include "weft/topic/node/stored_feed.h"

namespace weft::topic {

namespace {

// Hosted: a hub of this process, with sockets of its own: it outlives the handle's for as long as it commits.
struct Hosted {
  Context context;
  std::unique_ptr<Hub> hub;
};

// A fleet has one store: that of its first hub, as long as a handle lives that has its name.
Result<Hosting> host(const std::string& directory, const TopicsOptions& options, const std::string& fleet,
                     const std::string& store, const std::shared_ptr<Node>& node) {
  return msg::set_up([&]() -> Result<Hosting> {
    std::string path = options.store_directory.empty() ? options.runtime_directory : options.store_directory;
    if (!store.empty()) {
      path.clear();
    } else if (path.empty()) {
      path = WEFT_TRY(sys::make_state_directory());
    } else {
      WEFT_TRY(sys::make_owned_directory(path));
    }
    auto hosted = std::make_shared<Hosted>();
    HubOptions hub;
    hub.directory = directory;
    hub.store = store.empty() ? path + "/" + fleet + ".topics" : store;
    hub.on_stored = [feed = std::make_shared<StoredFeed>(node)](std::vector<store::ReadMessage>&& messages) {
      return feed->take(std::move(messages));
    };
    hosted->hub = WEFT_TRY(Hub::begin(hosted->context, hub));
    const Hub* const raw = hosted->hub.get();
    return Hosting{std::move(hosted), [raw] { return raw->ended(); }, raw->counter_source()};
  });
}

// Of the hub of this host, which this process may host.
Result<void> set_local(LinkSettings& settings, Node& node) {
  if (node.fleet().kind != Fleet::Kind::local) {
    return Error(
        Errc::not_supported,
        "only a local fleet and one on NATS keep topics by themselves: other handles name a hub (TopicsOptions::hub)");
  }
  const LocalDirectory directory = WEFT_TRY(LocalDirectory::open(node.options().runtime_directory, node.fleet().name));
  settings.endpoint = Hub::endpoint(directory.path());
  if (node.options().hosts) {
    settings.host = [path = directory.path(), options = node.options(), fleet = node.fleet().name,
                     weak = node.weak_from_this()](const std::string& store) -> Result<Hosting> {
      const auto still = weak.lock();
      return still == nullptr ? Result<Hosting>(Errc::closed) : host(path, options, fleet, store, still);
    };
  }
  return {};
}

Result<std::shared_ptr<HubLink>> make(Node& node) {
  return msg::set_up([&]() -> Result<std::shared_ptr<HubLink>> {
    LinkSettings settings;
    settings.id = instance_text(node.instance());
    settings.names = node.names();
    settings.async = node.async();
    FleetSecurity keys;
    Hosting hosting;
    if (node.options().hub.empty() && node.fleet().kind == Fleet::Kind::nats) {
      hosting = WEFT_TRY(host_jetstream(*node.context(), node.gate_options(), settings));
    } else if (node.options().hub.empty()) {
      WEFT_TRY(set_local(settings, node));
    } else {
      settings.endpoint = node.options().hub;
      settings.remote = true;
      keys = node.options().security;
    }
    settings.make_socket = [weak = std::weak_ptr<msg::ContextCore>(node.context()),
                            keys = std::move(keys)]() -> Result<Socket> {
      const auto context = weak.lock();
      if (context == nullptr) {
        return Error(Errc::closed, "the context was closed");
      }
      Socket socket(WEFT_TRY(context->make_socket(SocketType::dealer)));
      WEFT_TRY(set_hub_keys(socket, keys));
      return socket;
    };
    return std::make_shared<HubLink>(node.loop(), std::move(settings), std::move(hosting));
  });
}

}  // namespace

Result<Hosting> host_jetstream(msg::ContextCore& context, const GateOptions& options, LinkSettings& settings) {
  Socket router(WEFT_TRY(context.make_socket(SocketType::router)));
  WEFT_TRY(router.set(option::max_message_size, static_cast<std::int64_t>(kOpSizeMax)));
  WEFT_TRY(router.set(option::send_high_water_mark, 0));  // the credits and calls of the handle are the bound
  WEFT_TRY(router.set(option::receive_high_water_mark, 0));
  WEFT_TRY(router.set(option::router_mandatory, true));
  WEFT_TRY(router.set(option::router_notify, 2));
  settings.direct = true;
  settings.endpoint = "inproc://weft.jetstream." + settings.id;
  (void)WEFT_TRY(router.bind(settings.endpoint));
  std::shared_ptr<JetStreamServer> server = WEFT_TRY(JetStreamServer::start(std::move(router), options));
  settings.servers_missing = server->missing();
  return Hosting{std::move(server), [] { return Error(); }, {}};
}

Result<void> set_hub_keys(Socket& socket, const FleetSecurity& keys) {
  if (keys.curve_of_hub()) {
    WEFT_TRY(socket.set(option::curve_public_key, keys.curve_public));
    WEFT_TRY(socket.set(option::curve_secret_key, keys.curve_secret));
    return socket.set(option::curve_server_key, keys.curve_hub_public);
  }
  if (!keys.tls()) {
    return {};
  }
  WEFT_TRY(socket.set(option::tls_certificate, keys.tls_certificate));
  WEFT_TRY(socket.set(option::tls_key, keys.tls_key));
  WEFT_TRY(socket.set(option::tls_authorities, keys.tls_authorities));
  return socket.set(option::tls_server_name, keys.tls_server_name);
}

Result<std::shared_ptr<HubLink>> hub_link_of(const std::shared_ptr<Node>& node) {
  return WEFT_TRY(borrow(node))->hub_link(make);
}

KeptStatistics kept_statistics_of(Node* node) {
  const auto link = node == nullptr ? nullptr : node->used_hub_link();
  return link == nullptr ? KeptStatistics{} : link->statistics();
}

CounterSource counter_source_of(const std::shared_ptr<Node>& node) {
  return [weak = std::weak_ptr<Node>(node)](std::string_view name, CounterReadings& into) {
    if (const auto alive = weak.lock(); alive != nullptr && !alive->closed()) {
      into.push_back({&kTopicsTable, {{"topics", std::string(name)}}, sync::read_counters(alive->statistics())});
      if (const auto link = alive->used_hub_link()) {
        link->read_counters(name, into);
      }
    }
  };
}

}  // namespace weft::topic
