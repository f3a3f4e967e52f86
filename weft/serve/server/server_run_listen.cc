// SPDX-License-Identifier: MIT
// The listeners of a ServerRun: their sockets, acceptors and stand-ins.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "weft/net/transport/transport.h"
#include "weft/rt/core/core_visits.h"
#include "weft/serve/server/server_run.h"
#include "weft/sync/kept_text.h"
#include "weft/sync/lock.h"
#include "weft/sys/clock.h"

namespace weft::serve {

namespace {

constexpr Error kNoProxies(Errc::invalid_argument,
                           "proxy_protocol needs the networks of the proxies, or over ipc their processes");
constexpr Error kAdoptedTwice(Errc::invalid_argument, "a listener has adopt_fds or socket.adopt_fd, not both");
constexpr Error kTwins(Errc::invalid_argument, "adopt_fds has a descriptor twice");
constexpr Error kSeveralAddresses(Errc::invalid_argument, "the descriptors of adopt_fds have different addresses");

// Accepted sockets inherit the user time-out: a peer that is gone, or takes nothing, ends although replies are owed.
sys::SocketOptions socket_options(const ListenerOptions& options) noexcept {
  sys::SocketOptions socket = options.socket;
  if (socket.user_timeout == 0 && options.limits.idle_timeout > Duration::zero()) {
    constexpr Duration kMost = std::chrono::hours(24);
    socket.user_timeout = static_cast<int>(
        std::max<std::int64_t>(1, std::min(options.limits.idle_timeout, kMost) / std::chrono::milliseconds(1)));
  }
  return socket;
}

bool has_twins(std::vector<int> numbers) {
  std::sort(numbers.begin(), numbers.end());
  return std::adjacent_find(numbers.begin(), numbers.end()) != numbers.end();
}

// WhyNot: the first exception of a program's function that makes a service. Affinity: any thread.
class WhyNot {
 public:
  // Returns false if the function threw.
  template <typename Function>
  bool keep_what(const Function& function) {
    try {
      function();
      return true;
    } catch (const std::exception& thrown) {
      keep(thrown.what());
    } catch (...) {
      keep("an exception that is no std::exception");
    }
    return false;
  }
  [[nodiscard]] Error error() {
    constexpr const char* kText = "the service could not be made";
    const sync::LockGuard lock(mutex_);
    return what_.empty() ? Error(Errc::system, kText)
                         : Error(Errc::system, sync::keep_text({kText, ": ", what_}, kText));
  }

 private:
  void keep(const char* what) {
    const sync::LockGuard lock(mutex_);
    what_ = what_.empty() ? what : what_;
  }
  sync::StdMutex mutex_;
  std::string what_ WEFT_GUARDED_BY(mutex_);
};
}  // namespace

Result<ServerRun::Listeners> ServerRun::open_listeners(const net::Endpoint& endpoint, const ListenerOptions& options,
                                                       std::string& bound) {
  if (net::transport_row(endpoint.transport).layer != nullptr) {
    return Error(Errc::not_supported, "a server listens on tcp and ipc; TLS is an option of its listener");
  }
  if (options.proxy_protocol && !options.proxy_protocol->names_peers(endpoint.transport == net::Transport::ipc)) {
    return kNoProxies;
  }
  const bool adopts = options.socket.adopt_fd >= 0 || !options.adopt_fds.empty();
  if (options.accept == AcceptMode::reuse_port && endpoint.transport != net::Transport::tcp) {
    return Error(Errc::not_supported, "only tcp listeners can share an address");
  }
  if (options.share_port && (endpoint.transport != net::Transport::tcp || adopts)) {
    return Error(Errc::not_supported, "only tcp listeners that the server opens itself can share a port");
  }
  if (adopts) {
    return adopt_listeners(endpoint, options, bound);
  }
  Listeners listeners(runtime_.size());
  const bool several = runtime_.size() > 1 && endpoint.transport == net::Transport::tcp;
  const bool shared = several && options.accept != AcceptMode::hand_off;
  sys::SocketOptions socket = socket_options(options);
  if (shared && !options.share_port && !endpoint.any_port) {
    // SO_REUSEPORT would join any listener of the same user. A socket without it finds out whether there is one.
    (void)WEFT_TRY(net::Listener::open(endpoint, socket));
  }
  socket.reuse_port = shared || options.share_port;
  listeners[0].push_back(WEFT_TRY(net::Listener::open(endpoint, socket)));
  bound = listeners[0][0]->bound_endpoint();
  if (shared) {
    const net::Endpoint same = WEFT_TRY(net::parse_endpoint(bound, true));
    for (unsigned core = 1; core < runtime_.size(); ++core) {
      listeners[core].push_back(WEFT_TRY(net::Listener::open(same, socket)));
    }
  }
  return listeners;
}

// The sockets of an older process, one core after the other. Each that listens is the server's, also after an error.
Result<ServerRun::Listeners> ServerRun::adopt_listeners(const net::Endpoint& endpoint, const ListenerOptions& options,
                                                        std::string& bound) {
  std::vector<int> descriptors = options.adopt_fds;
  if (descriptors.empty()) {
    descriptors.push_back(options.socket.adopt_fd);
  } else if (options.socket.adopt_fd >= 0) {
    return kAdoptedTwice;
  }
  if (has_twins(descriptors)) {
    return kTwins;
  }
  Listeners listeners(runtime_.size());
  std::optional<Error> fault;
  std::size_t next = 0;
  for (const int descriptor : descriptors) {
    sys::SocketOptions socket = socket_options(options);
    socket.adopt_fd = descriptor;
    auto listener = net::Listener::open(endpoint, socket);
    if (!listener) {
      fault = listener.error();
      continue;
    }
    if (bound.empty()) {
      bound = (*listener)->bound_endpoint();
    } else if (bound != (*listener)->bound_endpoint()) {
      fault = kSeveralAddresses;
    }
    listeners[next++ % listeners.size()].push_back(*std::move(listener));
  }
  return fault ? Result<Listeners>(*fault) : Result<Listeners>(std::move(listeners));
}

Result<std::vector<ServerRun::ToStandIn>> ServerRun::share_for(unsigned core, const Listeners& listeners) {
  std::vector<ToStandIn> shared;
  for (unsigned acceptor = 0; acceptor < listeners.size(); ++acceptor) {
    for (const auto& listener : listeners[acceptor]) {
      if (acceptor != core) {
        shared.push_back({acceptor, WEFT_TRY(listener->share())});
      }
    }
  }
  return shared;
}

void ServerRun::Port::start() {
  for (const auto& acceptor : acceptors) {
    acceptor->start();
  }
}

void ServerRun::Port::close() noexcept {
  for (const auto& acceptor : acceptors) {
    acceptor->close();
  }
  stand_ins.clear();
}

// Returns false if the server stops.
bool ServerRun::add_port(unsigned core, const std::shared_ptr<const ListenerOptions>& options,
                         const ServiceKind& kind) {
  if (parts_[core]->stopping) {
    return false;
  }
  parts_[core]->shard->move_in(*presence_);
  auto port = std::make_unique<Port>();
  port->options = options;
  port->codec = kind.codec;
  port->service = kind.make(runtime_.core(core));
  port->ops = kind.ops;
  port->slots.push_back(std::make_unique<ServiceSlot>(ServiceSlot{
      &port->ops, port->service.get(), port->codec.get(), options->limits, options->wrap || options->tls != nullptr}));
  port->slots.back()->port = parts_[core]->ports.size();
  if (options->proxy_protocol && parts_[core]->proxy_waits == nullptr) {
    parts_[core]->proxy_waits = make_proxy_waits(core);
  }
  parts_[core]->ports.push_back(std::move(port));
  return true;
}

void ServerRun::add_acceptor(unsigned core, std::size_t port, std::unique_ptr<net::Listener> listener,
                             bool everywhere) {
  net::Acceptor::Handlers handlers;
  handlers.accepted = [this, core, port, everywhere](std::unique_ptr<net::ByteStream> stream) {
    accept(core, port, std::move(stream), everywhere);
  };
  CoreCounters& counters = counters_[core];
  handlers.failed = [&counters](const Error&) { counters.rejected[static_cast<std::size_t>(Rejection::failed)].add(); };
  handlers.paused = [this, &counters](const Error&) {
    counters.accept_pauses.add();
    paused_at_.store(sys::now(), std::memory_order_relaxed);
  };
  auto acceptor = net::Acceptor::make(runtime_.core(core).loop(), std::move(listener), std::move(handlers));
  Port& into = *parts_[core]->ports[port];
  if (into.acceptors.empty()) {
    acceptor->keep_spare(into.options->spare_descriptors);  // of the core
  }
  into.acceptors.push_back(std::move(acceptor));
}

Result<void> ServerRun::add_stand_in(unsigned core, std::size_t port, ToStandIn shared) {
  if (parts_[core]->stopping) {
    return {};  // the listener closes
  }
  auto stand_in = std::make_unique<StandIn>(
      runtime_.core(core).loop(), runtime_.core(shared.acceptor).loop().activity(), std::move(shared.listener),
      [this, core, port](std::unique_ptr<net::ByteStream> stream) { accept(core, port, std::move(stream), false); },
      [&counters = counters_[core]] { counters.rejected[static_cast<std::size_t>(Rejection::failed)].add(); });
  WEFT_TRY(stand_in->start());
  parts_[core]->ports[port]->stand_ins.push_back(std::move(stand_in));
  return {};
}

Result<std::string> ServerRun::add_listener(const net::Endpoint& endpoint, const ListenerOptions& options,
                                            const ServiceKind& kind) {
  if (phase() == Phase::draining) {
    return Error(Errc::closed, "the server stops");
  }
  std::string bound;
  Listeners listeners = WEFT_TRY(open_listeners(endpoint, options, bound));
  const auto shared_options = std::make_shared<const ListenerOptions>(options);
  // Each core accepts its own connections; otherwise acceptors pass them to all cores in turn.
  const bool everywhere = listeners.size() == 1 ||
                          (options.accept != AcceptMode::hand_off &&
                           std::none_of(listeners.begin(), listeners.end(), [](const auto& of) { return of.empty(); }));
  const std::size_t port = ports_;
  for (const auto& of_core : listeners) {
    for (const auto& listener : of_core) {
      listener->set_filter(options.filter);
    }
  }
  std::vector<std::vector<ToStandIn>> stand_ins(listeners.size());
  for (unsigned core = 0; core < stand_ins.size() && !everywhere; ++core) {
    stand_ins[core] = WEFT_TRY(share_for(core, listeners));
  }
  std::atomic<bool> stops{false};
  WhyNot why_not;
  const bool made = on_each_core([&](unsigned core) {
    if (!why_not.keep_what([&] { stops = !add_port(core, shared_options, kind) || stops; }) || stops) {
      return false;
    }
    for (auto& listener : listeners[core]) {
      add_acceptor(core, port, std::move(listener), everywhere);
    }
    return true;
  });
  if (!made) {
    (void)on_each_core([&](unsigned core) {
      auto& ports = parts_[core]->ports;
      ports.resize(std::min(ports.size(), port));
      return true;
    });
    return stops ? Error(Errc::closed, "the server stops") : why_not.error();
  }
  ++ports_;
  // Acceptors start last: they may pass a connection to any core.
  const bool started = on_each_core([&](unsigned core) {
    const auto& ports = parts_[core]->ports;
    if (port >= ports.size()) {
      return true;
    }
    ports[port]->start();
    return std::all_of(stand_ins[core].begin(), stand_ins[core].end(),
                       [&](ToStandIn& shared) { return add_stand_in(core, port, std::move(shared)).has_value(); });
  });
  if (!started) {
    (void)on_each_core([&](unsigned core) {
      const auto& ports = parts_[core]->ports;
      if (port < ports.size()) {
        ports[port]->close();
      }
      return true;
    });
    return Error(Errc::resource_exhausted, "no memory for the listener");
  }
  const sync::LockGuard lock(mutex_);
  listens_ = true;
  return bound;
}

Result<std::vector<OpenListener>> ServerRun::listeners(Instant deadline) {
  struct Found {
    sync::StdMutex mutex;
    std::vector<OpenListener> all WEFT_GUARDED_BY(mutex);
  };
  const auto found = std::make_shared<Found>();
  const auto visits = rt::CoreVisits::make(runtime_, [self = shared_from_this(), found](unsigned core) -> Result<void> {
    for (const auto& port : self->parts_[core]->ports) {
      for (const auto& acceptor : port->acceptors) {
        if (acceptor->fd() < 0) {
          continue;
        }
        sys::Fd same = WEFT_TRY(acceptor->duplicate());
        const std::string& name = port->options->name;
        const sync::LockGuard lock(found->mutex);
        found->all.push_back({name.empty() ? acceptor->endpoint() : name, std::move(same)});
      }
    }
    return {};
  });
  visits->begin();
  WEFT_TRY(visits->wait(deadline));
  const sync::LockGuard lock(found->mutex);
  return std::move(found->all);
}

Result<void> ServerRun::release_listeners(Instant deadline) {
  const auto visits = rt::CoreVisits::make(runtime_, [self = shared_from_this()](unsigned core) {
    for (const auto& port : self->parts_[core]->ports) {
      for (const auto& acceptor : port->acceptors) {
        acceptor->release();
      }
      port->stand_ins.clear();
    }
    return Result<void>();
  });
  visits->begin();
  WEFT_TRY(visits->wait(deadline));
  // Connections that were passed to another core have become sessions after these: the turn that passed them has ended,
  // and then its messages were handled.
  for (int round = 0; round < 2; ++round) {
    const auto arrived = rt::CoreVisits::make(runtime_, [](unsigned) { return Result<void>(); });
    arrived->begin_behind_all();
    WEFT_TRY(arrived->wait(deadline));
  }
  return {};
}

}  // namespace weft::serve
