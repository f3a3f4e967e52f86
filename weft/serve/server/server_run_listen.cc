// SPDX-License-Identifier: MIT
// The listeners of a ServerRun: their sockets, acceptors and stand-ins.
#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <string>
#include <utility>

#include "weft/net/transport.h"
#include "weft/rt/core/core_visits.h"
#include "weft/serve/server/server_run.h"
#include "weft/sync/kept_text.h"
#include "weft/sys/clock.h"

namespace weft::serve {

namespace {

constexpr Error kNoProxies(Errc::invalid_argument,
                           "proxy_protocol needs the networks of the proxies, or over ipc their processes");

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
    const std::lock_guard lock(mutex_);
    return what_.empty() ? Error(Errc::system, kText)
                         : Error(Errc::system, sync::keep_text({kText, ": ", what_}, kText));
  }

 private:
  void keep(const char* what) {
    const std::lock_guard lock(mutex_);
    what_ = what_.empty() ? what : what_;
  }
  std::mutex mutex_;
  std::string what_;  // guarded by mutex_
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
  Listeners listeners(runtime_.size());
  const bool several = runtime_.size() > 1 && endpoint.transport == net::Transport::tcp && options.socket.adopt_fd < 0;
  if (options.accept == AcceptMode::reuse_port && endpoint.transport != net::Transport::tcp) {
    return Error(Errc::not_supported, "only tcp listeners can share an address");
  }
  if (options.share_port && (endpoint.transport != net::Transport::tcp || options.socket.adopt_fd >= 0)) {
    return Error(Errc::not_supported, "only tcp listeners that the server opens itself can share a port");
  }
  const bool shared = several && options.accept != AcceptMode::hand_off;
  sys::SocketOptions socket = options.socket;
  if (socket.user_timeout == 0 && options.limits.idle_timeout > Duration::zero()) {
    // Accepted sockets inherit it. A peer that is gone, or takes nothing, ends although replies are owed.
    constexpr Duration kMost = std::chrono::hours(24);
    socket.user_timeout = static_cast<int>(
        std::max<std::int64_t>(1, std::min(options.limits.idle_timeout, kMost) / std::chrono::milliseconds(1)));
  }
  if (shared && !options.share_port && !endpoint.any_port) {
    // SO_REUSEPORT would join any listener of the same user. A socket without it finds out whether there is one.
    (void)WEFT_TRY(net::Listener::open(endpoint, socket));
  }
  socket.reuse_port = shared || options.share_port;
  listeners[0] = WEFT_TRY(net::Listener::open(endpoint, socket));
  bound = listeners[0]->bound_endpoint();
  if (shared) {
    const net::Endpoint same = WEFT_TRY(net::parse_endpoint(bound, true));
    for (unsigned core = 1; core < runtime_.size(); ++core) {
      listeners[core] = WEFT_TRY(net::Listener::open(same, socket));
    }
  }
  for (auto& listener : listeners) {
    if (listener != nullptr) {
      listener->set_filter(options.filter);
    }
  }
  return listeners;
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
  if (options->proxy_protocol && parts_[core]->proxy_waits == nullptr) {
    parts_[core]->proxy_waits = make_proxy_waits(core);
  }
  parts_[core]->ports.push_back(std::move(port));
  return true;
}

void ServerRun::set_acceptor(unsigned core, std::size_t port, std::unique_ptr<net::Listener> listener,
                             bool everywhere) {
  net::Acceptor::Handlers handlers;
  handlers.accepted = [this, core, port, everywhere](std::unique_ptr<net::Stream> stream) {
    accept(core, port, std::move(stream), everywhere);
  };
  CoreCounters& counters = counters_[core];
  handlers.failed = [&counters](const Error&) { counters.rejected[static_cast<std::size_t>(Rejection::failed)].add(); };
  handlers.paused = [this, &counters](const Error&) {
    counters.accept_pauses.add();
    paused_at_.store(sys::now(), std::memory_order_relaxed);
  };
  auto acceptor = net::Acceptor::make(runtime_.core(core).loop(), std::move(listener), std::move(handlers));
  acceptor->keep_spare(parts_[core]->ports[port]->options->spare_descriptors);
  parts_[core]->ports[port]->acceptor = std::move(acceptor);
}

// The acceptor is core 0's.
Result<void> ServerRun::set_stand_in(unsigned core, std::size_t port, std::unique_ptr<net::Listener> listener) {
  if (parts_[core]->stopping) {
    return {};  // the listener closes
  }
  auto stand_in = std::make_unique<StandIn>(
      runtime_.core(core).loop(), runtime_.core(0).loop().activity(), std::move(listener),
      [this, core, port](std::unique_ptr<net::Stream> stream) { accept(core, port, std::move(stream), false); },
      [&counters = counters_[core]] { counters.rejected[static_cast<std::size_t>(Rejection::failed)].add(); });
  WEFT_TRY(stand_in->start());
  parts_[core]->ports[port]->stand_in = std::move(stand_in);
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
  const bool everywhere = std::count(listeners.begin(), listeners.end(), nullptr) == 0;
  const std::size_t port = ports_;
  Listeners stand_ins(listeners.size());
  for (unsigned core = 1; core < stand_ins.size() && !everywhere; ++core) {
    stand_ins[core] = WEFT_TRY(listeners[0]->share());
  }
  std::atomic<bool> stops{false};
  WhyNot why_not;
  const bool made = on_each_core([&](unsigned core) {
    if (!why_not.keep_what([&] { stops = !add_port(core, shared_options, kind) || stops; }) || stops) {
      return false;
    }
    if (listeners[core] != nullptr) {
      set_acceptor(core, port, std::move(listeners[core]), everywhere);
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
    if (port < ports.size() && ports[port]->acceptor != nullptr) {
      ports[port]->acceptor->start();
    }
    return port >= ports.size() || stand_ins[core] == nullptr ||
           set_stand_in(core, port, std::move(stand_ins[core])).has_value();
  });
  if (!started) {
    (void)on_each_core([&](unsigned core) {
      const auto& ports = parts_[core]->ports;
      if (port < ports.size() && ports[port]->acceptor != nullptr) {
        ports[port]->acceptor->close();
      }
      if (port < ports.size()) {
        ports[port]->stand_in.reset();
      }
      return true;
    });
    return Error(Errc::resource_exhausted, "no memory for the listener");
  }
  const std::lock_guard lock(mutex_);
  listens_ = true;
  return bound;
}

Result<std::vector<OpenListener>> ServerRun::listeners(Instant deadline) {
  struct Found {
    std::mutex mutex;
    std::vector<OpenListener> all;
  };
  const auto found = std::make_shared<Found>();
  const auto visits = rt::CoreVisits::make(runtime_, [self = shared_from_this(), found](unsigned core) -> Result<void> {
    for (const auto& port : self->parts_[core]->ports) {
      if (port->acceptor == nullptr || port->acceptor->fd() < 0) {
        continue;
      }
      sys::Fd same = WEFT_TRY(port->acceptor->duplicate());
      const std::string& name = port->options->name;
      const std::lock_guard lock(found->mutex);
      found->all.push_back({name.empty() ? port->acceptor->endpoint() : name, std::move(same)});
    }
    return {};
  });
  visits->begin();
  WEFT_TRY(visits->wait(deadline));
  const std::lock_guard lock(found->mutex);
  return std::move(found->all);
}

Result<void> ServerRun::release_listeners(Instant deadline) {
  const auto visits = rt::CoreVisits::make(runtime_, [self = shared_from_this()](unsigned core) {
    for (const auto& port : self->parts_[core]->ports) {
      if (port->acceptor != nullptr) {
        port->acceptor->release();
      }
      port->stand_in.reset();
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
