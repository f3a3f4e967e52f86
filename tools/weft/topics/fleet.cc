// SPDX-License-Identifier: MIT
#include "tools/weft/topics/fleet.h"

#include <array>
#include <random>

#include "tools/weft/keys.h"
#include "weft/msg/socket/context_core.h"
#include "weft/net/stream/endpoint.h"
#include "weft/sys/clock.h"
#include "weft/sys/poll.h"
#include "weft/sys/signals.h"
#include "weft/topic/fleet/fleet.h"
#include "weft/topic/fleet/local_directory.h"
#include "weft/topic/hub/hub.h"
#include "weft/topic/hub_link_of.h"
#include "weft/topic/node/gate.h"
#include "weft/topic/wire/control.h"

namespace weft::cli {

namespace {

FleetSecurity security_of(const FleetOptions& options) {
  FleetSecurity tls;
  tls.tls_certificate = options.tls_certificate;
  tls.tls_key = options.tls_key;
  tls.tls_authorities = options.tls_authorities;
  tls.tls_server_name = options.tls_name;
  return tls;
}

}  // namespace

TopicsOptions topics_options(const FleetOptions& options) {
  TopicsOptions all;
  all.fleet = options.fleet;
  all.space = options.space;
  all.runtime_directory = options.directory;
  all.listen = options.listen;
  all.hosts = false;
  all.security = security_of(options);
  all.security.credentials_file = options.credentials;
  if (!options.curve_key.empty()) {
    const KeyPair fleet = read_key_pair(options.curve_key);
    const KeyPair own = make_key_pair();
    all.security.curve_server_public = decode_key(fleet.public_key);
    all.security.curve_server_secret = decode_key(fleet.secret_key);
    all.security.curve_public = decode_key(own.public_key);
    all.security.curve_secret = decode_key(own.secret_key);
  }
  return all;
}

namespace {

topic::Fleet parsed(const FleetOptions& options) {
  const auto fleet = topic::Fleet::parse(options.fleet);
  const bool secret = options.fleet.find('@') != std::string::npos;  // a password may stand there
  return need(fleet, secret ? "--fleet" : "--fleet " + printable(options.fleet));
}

// The options of a connection to the servers of a fleet on NATS.
topic::GateOptions nats_of(const FleetOptions& options, std::string servers) {
  if (!options.curve_key.empty() || !options.curve_hub_key.empty()) {
    throw Usage("keys of CURVE belong to --hub tcp://HOST:PORT; a fleet on NATS has tls://, and --creds");
  }
  if (!options.directory.empty()) {
    throw Usage("--directory belongs to a local fleet");
  }
  FleetSecurity security = security_of(options);
  security.credentials_file = options.credentials;
  return topic::gate_options(std::move(servers), "weft", security);
}

// The endpoint of the hub.
std::string hub_of(const FleetOptions& options, const topic::Fleet& fleet) {
  if (fleet.kind != topic::Fleet::Kind::local) {
    throw Usage(
        "the handles of a fleet keep topics at a hub or on NATS: --fleet local, local:NAME or nats://HOST:PORT, or "
        "--hub");
  }
  if (!options.credentials.empty()) {
    throw Usage("--creds belongs to a fleet on NATS");
  }
  if (options.hub.empty()) {
    if (!security_of(options).empty() || !options.curve_key.empty() || !options.curve_hub_key.empty()) {
      throw Usage("--tls-cert, --tls-key, --tls-ca, --tls-name and keys of CURVE belong to --hub ENDPOINT");
    }
    return topic::Hub::endpoint(
        need(topic::LocalDirectory::open(options.directory, fleet.name), "the directory of the fleet").path());
  }
  const bool tls = !security_of(options).empty();
  const bool curve = !options.curve_hub_key.empty() && !options.curve_key.empty();
  const bool any_curve = !options.curve_hub_key.empty() || !options.curve_key.empty();
  const bool fits = options.hub.starts_with("tcp://")       ? curve && !tls
                    : options.hub.starts_with("tls+tcp://") ? security_of(options).tls() && !any_curve
                                                            : options.hub.starts_with("ipc://") && !tls && !any_curve;
  if (!fits) {
    throw Usage(
        "--hub is ipc://PATH, tls+tcp://HOST:PORT with --tls-cert, --tls-key and --tls-ca, or tcp://HOST:PORT with "
        "--curve-key and --curve-server-key");
  }
  (void)need(net::parse_endpoint(options.hub, false), "--hub " + printable(options.hub));
  return options.hub;
}

FleetSecurity hub_keys_of(const FleetOptions& options) {
  FleetSecurity keys = security_of(options);
  if (!options.curve_key.empty()) {
    const KeyPair own = read_key_pair(options.curve_key);
    keys.curve_public = decode_key(own.public_key);
    keys.curve_secret = decode_key(own.secret_key);
    keys.curve_hub_public = decode_key(read_public_key(options.curve_hub_key));
  }
  return keys;
}

Instant after(double count) { return deadline_after(sys::now(), seconds(count)); }

std::string fresh_id() {
  std::random_device device;
  return topic::instance_text(std::uint64_t{device()} << 32U | device());
}

}  // namespace

bool is_on_nats(const FleetOptions& options) { return parsed(options).kind == topic::Fleet::Kind::nats; }

// --- Guard ---

Guard::Guard(std::function<void()> end)
    : end_(std::move(end)), event_(need(sys::EventFd::make(), "an event descriptor")) {
  const sys::SignalsBlocked blocked;  // signals go to the command's thread
  thread_ = std::thread([this] { run(); });
}

Guard::~Guard() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  event_.signal();
  thread_.join();
}

void Guard::set(Instant deadline) {
  {
    const std::lock_guard lock(mutex_);
    deadline_ = deadline;
  }
  event_.signal();
}

void Guard::run() noexcept {
  for (;;) {
    event_.drain();
    Instant deadline;
    {
      const std::lock_guard lock(mutex_);
      if (ending_) {
        return;
      }
      deadline = deadline_;
    }
    const Instant now = sys::now();
    if (stop_signal() != 0 || now >= deadline) {
      expired_.store(stop_signal() == 0, std::memory_order_release);
      end_();
      return;
    }
    std::array<sys::PollFd, 2> fds{
        {{.fd = stop_fd(), .want = sys::Interest::readable}, {.fd = event_.fd(), .want = sys::Interest::readable}}};
    (void)sys::poll_fds(fds, time_left(deadline, now));  // an error: the loop looks again
  }
}

// --- Member ---

Member::Member(const FleetOptions& options)
    : options_(options),
      topics_(need(Topics::open(context_, topics_options(options)), "the fleet " + printable(options.fleet))),
      guard_([this] { topics_.close(); }) {}

Instant Member::answer_deadline() const { return after(options_.timeout < 0 ? kAnswerSeconds : options_.timeout); }
Instant Member::message_deadline() const { return after(options_.timeout); }

// --- KeptLink ---

KeptLink::KeptLink(const FleetOptions& options) : options_(options) {
  const topic::Fleet fleet = parsed(options);
  on_nats_ = fleet.kind == topic::Fleet::Kind::nats;
  topic::LinkSettings settings;
  topic::Hosting hosting;
  settings.id = fresh_id();
  settings.names = need(topic::Names::make(options.space, '.'), "--space " + printable(options.space));
  FleetSecurity keys;
  if (on_nats_) {
    if (!options.hub.empty()) {
      throw Usage("--hub and a fleet on NATS exclude each other: the servers of NATS keep its topics");
    }
    const sys::SignalsBlocked blocked;
    hosting = need(topic::host_jetstream(*context_.core(), nats_of(options, fleet.servers), settings), "the fleet");
  } else {
    settings.endpoint = hub_of(options, fleet);
    settings.remote = !options.hub.empty();
    keys = hub_keys_of(options);
  }
  settings.make_socket = [this, keys]() -> Result<Socket> {
    Socket socket = WEFT_TRY(context_.socket(SocketType::dealer));
    WEFT_TRY(topic::set_hub_keys(socket, keys));
    return socket;
  };
  loop_ = need(rt::Loop::make("kept"), "a loop");
  link_ = std::make_shared<topic::HubLink>(*loop_, std::move(settings), std::move(hosting));
  {
    const sys::SignalsBlocked blocked;
    need(loop_->start(nullptr), "a loop");
  }
  guard_.emplace([link = link_, loop = loop_.get()] {
    rt::Job close([link] { link->close(); });
    (void)loop->try_post(close);  // without memory a second signal ends the process
  });
}

KeptLink::~KeptLink() {
  guard_.reset();
  loop_->stop();
  link_->close();
}

Instant KeptLink::answer_deadline() const { return after(answer_seconds()); }

Instant KeptLink::begin(double limit) {
  const Instant deadline = after(limit);
  guard_->set(deadline);
  return deadline;
}

bool KeptLink::before(Instant deadline) const {
  return stop_signal() == 0 && !guard_->expired() && sys::now() < deadline;
}

void KeptLink::fail(const std::string& context, const Error& error, double limit, bool message) const {
  throw_if_stopped();
  if (!guard_->expired() && error != Errc::timed_out) {
    throw Failure(context + ": " + error.message());
  }
  const std::string time = " in " + format("%g", limit) + " s";
  // Why there is no connection to the hub of another host, or to the servers of NATS.
  const std::string last = options_.hub.empty() && !on_nats_ ? "" : "; " + printable(link_->untaken().message());
  const std::string they = on_nats_ ? "the servers" : "the hub";
  throw Failure(context + ": " +
                (message ? "no message came" + time
                 : error == Errc::outcome_unknown
                     ? "no answer came" + time + "; " + they + " may have carried it out" + (on_nats_ ? last : "")
                 : on_nats_             ? "no server of NATS answered" + time + last
                 : options_.hub.empty() ? "no hub answered" + time + "; `weft hub` is one"
                                        : "no hub answered" + time + last));
}

}  // namespace weft::cli
