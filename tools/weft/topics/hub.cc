// SPDX-License-Identifier: MIT
#include "tools/weft/topics/hub.h"

#include <signal.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <utility>

#include "tools/weft/keys.h"
#include "weft/sync/counter_block.h"
#include "weft/sys/clock.h"
#include "weft/sys/limits.h"
#include "weft/sys/linux/service_manager.h"
#include "weft/sys/path.h"
#include "weft/sys/poll.h"
#include "weft/topic/fleet/fleet.h"
#include "weft/topic/fleet/local_directory.h"
#include "weft/topic/hub/hub.h"
#include "weft/topic/node/node.h"
#include "weft/topic/node/stored_feed.h"

namespace weft::cli {

namespace {

constexpr Duration kLockLook = std::chrono::milliseconds(50);  // for the end of another hub
constexpr Duration kEndLook = std::chrono::seconds(1);         // for the end of this one
constexpr std::uint64_t kClientsMax = 16'384;
constexpr std::uint64_t kSpareDescriptors = 1024;  // besides members: handles of the fleet, the store, the admin port

// The state of the hub, for /readyz on the thread of the admin port.
enum class Phase : std::uint8_t { waits, opens, serves, stops };

const char* text_of(Phase phase) {
  switch (phase) {
    case Phase::waits: return "another process is the hub of the fleet; this one waits for its end";
    case Phase::opens: return "the hub opens its store";
    case Phase::serves: return "the hub serves";
    case Phase::stops: return "the hub stops";
  }
  return "";
}

Error unready(Phase phase) {
  switch (phase) {
    case Phase::waits: return {Errc::would_block, "another process is the hub of the fleet"};
    case Phase::opens: return {Errc::would_block, "the hub opens its store"};
    default: return {Errc::closed, "the hub stops"};
  }
}

std::vector<std::string> members_of(const HubRunOptions& options) {
  std::vector<std::string> keys = read_public_keys(options.curve_members);
  for (std::string& key : keys) {
    key = decode_key(key);
  }
  return keys;
}

// A file that is refused leaves the hub with the keys before.
void reload_members(Console& console, topic::Hub& hub, const HubRunOptions& options) {
  try {
    const std::vector<std::string> keys = members_of(options);
    need(hub.set_curve_members(keys), "the keys");
    console.note("reads the members' keys again: " + std::to_string(keys.size()) + " of " +
                 printable(options.curve_members));
  } catch (const Failure& failure) {
    console.note(std::string(failure.what()) + "; the hub keeps the keys that it had");
  }
}

void notify(const std::string& state) { (void)sys::notify_service_manager(state); }

// Counted: the counters of the hub's handle, for the admin port.
struct Counted {
  std::weak_ptr<topic::Node> node;
  [[nodiscard]] CounterSource counter_source() const {
    return [weak = node](std::string_view name, CounterReadings& into) {
      if (const auto still = weak.lock(); still != nullptr && !still->closed()) {
        into.push_back({&kTopicsTable, {{"topics", std::string(name)}}, sync::read_counters(still->statistics())});
      }
    };
  }
};

// The options of the admin port stand beside it; --tls-cert may be that of --listen, too.
void check_serving(const HubRunOptions& options) {
  const ServingOptions& serving = options.serving;
  if (serving.admin.empty() && (!serving.token_file.empty() || serving.admin_no_client_cert ||
                                (!serving.tls_certificate.empty() && options.listen.empty()))) {
    throw Usage(
        "--token-file and --admin-no-client-cert belong to --admin ENDPOINT, and --tls-cert to --admin or to "
        "--listen");
  }
}

topic::HubOptions hub_options(const HubRunOptions& options, const topic::Fleet& fleet, const std::string& directory,
                              const std::shared_ptr<topic::Node>& node) {
  topic::HubOptions hub;
  hub.directory = directory;
  std::string store = options.store.empty() ? options.fleet.directory : options.store;
  if (store.empty()) {
    store = need(sys::make_state_directory(), "the directory of the store");
  } else {
    need(sys::make_owned_directory(store), "--store " + printable(store));
  }
  hub.store = sys::absolute_path(store + "/" + fleet.name + ".topics");
  hub.store_bytes_max = options.store_bytes_max;
  hub.clients_max = options.clients_max;
  hub.address_clients_max = options.address_clients_max;
  hub.listen = options.listen;
  hub.group = options.group;
  hub.group_socket = options.group_socket;
  if (options.listen.starts_with("tls+tcp://")) {
    hub.tls_certificate = options.serving.tls_certificate;
    hub.tls_key = options.serving.tls_key;
    hub.tls_authorities = options.serving.tls_authorities;
  } else if (!options.listen.empty()) {
    hub.curve_secret_key = decode_key(read_key_pair(options.curve_key).secret_key);
    hub.curve_members = members_of(options);
  }
  hub.on_stored = [feed = std::make_shared<topic::StoredFeed>(node)](std::vector<store::ReadMessage>&& messages) {
    return feed->take(std::move(messages));
  };
  return hub;
}

// Waits until this process has the lock of the fleet's hub. Null: a signal came first.
std::unique_ptr<topic::Hub> take_lock(Console& console, Context& context, const topic::HubOptions& options) {
  for (bool told = false;;) {
    auto begun = topic::Hub::begin(context, options);
    if (begun) {
      return *std::move(begun);
    }
    if (begun.error() != Errc::would_block) {
      throw Failure("the hub: " + begun.error().message());
    }
    if (!told) {
      console.note(text_of(Phase::waits));
      notify(std::string("READY=1\nSTATUS=") + text_of(Phase::waits));
      told = true;
    }
    try {
      sleep_until(sys::now() + kLockLook);
    } catch (const Stopped&) {
      return nullptr;
    }
  }
}

void check_listen(const HubRunOptions& options) {
  const bool curve = !options.curve_key.empty() && !options.curve_members.empty();
  const bool any_curve = !options.curve_key.empty() || !options.curve_members.empty();
  const bool tls = !options.serving.tls_certificate.empty() && !options.serving.tls_key.empty() &&
                   !options.serving.tls_authorities.empty();
  const bool fits = options.listen.starts_with("tcp://")       ? curve
                    : options.listen.starts_with("tls+tcp://") ? tls && !any_curve
                                                               : options.listen.empty() && !any_curve;
  if (!fits) {
    throw Usage(
        "--listen is tls+tcp://HOST:PORT, and needs --tls-cert, --tls-key and --tls-ca; or tcp://HOST:PORT, and needs "
        "--curve-key and --curve-members");
  }
}

// The options with no more members than the hard limit of descriptors has places for.
HubRunOptions with_places(Console& console, HubRunOptions options) {
  const std::uint64_t limit =
      need(sys::raise_descriptor_limit(options.clients_max + kSpareDescriptors), "the limit of descriptors");
  const std::uint64_t places = limit - std::min(limit / 2, kSpareDescriptors);
  if (places < options.clients_max) {
    console.note("the hard limit of descriptors is " + std::to_string(limit) + ": the hub takes " +
                 std::to_string(places) + " members, not the " + std::to_string(options.clients_max) +
                 " of --clients-max (ulimit -Hn, or LimitNOFILE= of systemd)");
    options.clients_max = places;
    options.address_clients_max = std::min(options.address_clients_max, places);
  }
  return options;
}

}  // namespace

int run_hub(Console& console, const HubRunOptions& wanted) {
  if (wanted.clients_max == 0 || wanted.clients_max > kClientsMax) {
    throw Usage("--clients-max is 1 to " + std::to_string(kClientsMax));
  }
  if (wanted.address_clients_max > wanted.clients_max || (wanted.address_clients_max != 0 && wanted.listen.empty())) {
    throw Usage("--address-max is a part of --clients-max, and belongs to --listen");
  }
  const topic::Fleet fleet = need(topic::Fleet::parse(wanted.fleet.fleet), "--fleet " + printable(wanted.fleet.fleet));
  if (fleet.kind != topic::Fleet::Kind::local) {
    throw Usage("only a local fleet has a hub: --fleet local, or local:NAME");
  }
  check_listen(wanted);
  if (wanted.group.empty() != wanted.group_socket.empty()) {
    throw Usage("--group GROUP and --group-socket PATH belong together");
  }
  const HubRunOptions options = with_places(console, wanted);
  if (!options.curve_members.empty()) {
    catch_hang_up();  // before the file is read
  }
  std::atomic<Phase> phase = Phase::waits;
  check_serving(options);
  ServingPort port(console, options.serving, [&phase]() -> Result<void> {
    const Phase now = phase.load(std::memory_order_acquire);
    return now == Phase::serves ? Result<void>() : unready(now);
  });
  Context context;
  TopicsOptions handle;
  handle.fleet = options.fleet.fleet;
  handle.runtime_directory = options.fleet.directory;
  handle.hosts = false;  // the hub below is this process's
  const auto node = need(topic::Node::open(context, handle, nullptr), "the fleet " + printable(options.fleet.fleet));
  const std::string directory =
      need(topic::LocalDirectory::open(options.fleet.directory, fleet.name), "the directory of the fleet").path();
  const topic::HubOptions how = hub_options(options, fleet, directory, node);
  Counted counted{node};
  port.add("hub", counted);

  const std::unique_ptr<topic::Hub> hub = take_lock(console, context, how);
  if (hub == nullptr) {
    return 0;
  }
  phase.store(Phase::opens, std::memory_order_release);
  need(hub->wait_open(), "the store " + printable(how.store) +
                             (options.listen.empty() ? "" : ", or --listen " + printable(options.listen)) +
                             (options.group.empty() ? "" : ", or --group-socket " + printable(options.group_socket)));
  port.add("hub", *hub);
  phase.store(Phase::serves, std::memory_order_release);
  if (!options.listen.empty()) {
    console.note("listens for other hosts at " + hub->listening());
  }
  console.note(std::string(text_of(Phase::serves)) + " the fleet " + options.fleet.fleet + ", store " +
               printable(how.store));
  notify(std::string("READY=1\nSTATUS=") + text_of(Phase::serves));

  try {
    while (hub->ended() == Errc::ok) {
      if (hung_up()) {
        reload_members(console, *hub, options);
      }
      sleep_until(sys::now() + kEndLook);
    }
  } catch (const Stopped&) {
    phase.store(Phase::stops, std::memory_order_release);
    notify(std::string("STOPPING=1\nSTATUS=") + text_of(Phase::stops));
    for (const Instant end = sys::now() + seconds(options.drain); sys::now() < end && hub->ended() == Errc::ok;) {
      (void)sys::poll_fds({}, std::min<Duration>(end - sys::now(), kLockLook));  // a second signal ends the process
    }
    hub->stop();  // the last turn is committed and answered
    node->close();
    return 0;
  }
  throw Failure("the hub ended: " + hub->ended().message());
}

}  // namespace weft::cli
