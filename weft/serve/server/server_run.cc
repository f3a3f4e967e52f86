// SPDX-License-Identifier: MIT
#include "weft/serve/server/server_run.h"

#include <algorithm>
#include <utility>

#include "weft/rt/core/post_surely.h"

namespace weft::serve {

namespace {
constexpr Error kStops(Errc::terminated, "the server stops");
}

ServerRun::ServerRun(rt::Runtime& runtime, const ServerOptions& options, CoreCounters* counters,
                     std::shared_ptr<GroupPresence> presence)
    : runtime_(runtime),
      epoch_(next_epoch()),
      budget_(options.memory_max),
      count_(options.sessions_max),
      log_(options.log),
      counters_(counters),
      presence_(std::move(presence)),
      parts_(runtime.size()) {
  for (unsigned core = 0; core < runtime.size(); ++core) {
    parts_[core].shard = std::make_unique<Shard>(runtime.core(core), epoch_, budget_, options.core_memory_max, count_,
                                                 counters[core], log_);
  }
}

// --- running things on cores ---

void ServerRun::on_each_core(const std::function<void(unsigned)>& function) {
  std::mutex mutex;
  std::condition_variable changed;
  unsigned left = runtime_.size();
  for (unsigned core = 0; core < runtime_.size(); ++core) {
    post_surely(runtime_, core, [&, core] {
      function(core);
      const std::lock_guard lock(mutex);
      --left;
      changed.notify_all();
    });
  }
  std::unique_lock lock(mutex);
  changed.wait(lock, [&left] { return left == 0; });
}

// --- listeners ---

Result<ServerRun::Listeners> ServerRun::open_listeners(const net::Endpoint& endpoint, const ListenerOptions& options,
                                                       std::string& bound) {
  Listeners listeners(runtime_.size());
  const bool several = runtime_.size() > 1 && endpoint.transport == net::Transport::tcp && options.socket.adopt_fd < 0;
  if (options.accept == AcceptMode::reuse_port && endpoint.transport != net::Transport::tcp) {
    return Error(Errc::not_supported, "only tcp listeners can share an address");
  }
  const bool shared = several && options.accept != AcceptMode::hand_off;
  sys::SocketOptions socket = options.socket;
  socket.reuse_port = shared;
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

void ServerRun::add_port(unsigned core, const std::shared_ptr<const ListenerOptions>& options,
                         const ServiceKind& kind) {
  parts_[core].shard->move_in(*presence_);
  auto port = std::make_unique<Port>();
  port->options = options;
  port->codec = kind.codec;
  port->service = kind.make(runtime_.core(core));
  port->ops = kind.ops;
  port->slot = {&port->ops, port->service.get(), port->codec.get(), options->limits,
                options->wrap || options->tls != nullptr};
  parts_[core].ports.push_back(std::move(port));
}

Result<std::string> ServerRun::add_listener(const net::Endpoint& endpoint, const ListenerOptions& options,
                                            const ServiceKind& kind) {
  std::string bound;
  Listeners listeners = WEFT_TRY(open_listeners(endpoint, options, bound));
  const auto shared_options = std::make_shared<const ListenerOptions>(options);
  const std::size_t port = ports_;
  std::mutex mutex;
  bool failed = false;
  on_each_core([&](unsigned core) {
    try {
      if (parts_[core].shard != nullptr && !parts_[core].stopping) {
        return add_port(core, shared_options, kind);
      }
    } catch (...) {  // NOLINT(bugprone-empty-catch): reported below
    }
    const std::lock_guard lock(mutex);
    failed = true;
  });
  if (failed) {
    on_each_core([&](unsigned core) { parts_[core].ports.resize(std::min(parts_[core].ports.size(), port)); });
    return Error(Errc::system, "the service could not be made");
  }
  ++ports_;
  const bool everywhere = std::count(listeners.begin(), listeners.end(), nullptr) == 0;
  // Acceptors start last: they may pass a connection to any core.
  on_each_core([&](unsigned core) {
    if (listeners[core] == nullptr || parts_[core].stopping) {
      return;
    }
    net::Acceptor::Handlers handlers;
    if (everywhere) {
      handlers.accepted = [this, core, port](std::unique_ptr<net::Stream> stream) {
        place(core, port, std::move(stream));
      };
    } else {
      handlers.accepted = [this, port](std::unique_ptr<net::Stream> stream) { deal(port, std::move(stream)); };
    }
    CoreCounters& counters = counters_[core];
    handlers.failed = [&counters](const Error&) {
      counters.rejected[static_cast<std::size_t>(Rejection::failed)].add();
    };
    handlers.paused = [&counters](const Error&) { counters.accept_pauses.add(); };
    auto& acceptor = parts_[core].ports[port]->acceptor;
    acceptor = net::Acceptor::make(runtime_.core(core).loop(), std::move(listeners[core]), std::move(handlers));
    acceptor->start();
  });
  const std::lock_guard lock(mutex_);
  listens_ = true;
  return bound;
}

ServerRun::Phase ServerRun::phase() noexcept {
  const std::lock_guard lock(mutex_);
  return begun_ ? Phase::draining : listens_ ? Phase::serving : Phase::starting;
}

// Passes each connection to the next core in turn. Runs on the accepting core only.
void ServerRun::deal(std::size_t port, std::unique_ptr<net::Stream> stream) {
  const unsigned core = next_core_++ % runtime_.size();
  const unsigned here = rt::Core::current()->index();
  if (core == here) {
    return place(core, port, std::move(stream));
  }
  const std::string peer = parts_[here].shard->peer_of(*stream);
  const auto posted = runtime_.post(core, [run = shared_from_this(), core, port, owned = std::move(stream)]() mutable {
    run->place(core, port, std::move(owned));
  });
  if (!posted) {
    parts_[here].shard->reject(Rejection::lane_full, peer, posted.error());
  }
}

void ServerRun::place(unsigned core, std::size_t port, std::unique_ptr<net::Stream> stream) {
  Part& part = parts_[core];
  if (part.stopping) {
    if (part.shard == nullptr) {  // the shard that would log it is destroyed
      return counters_[core].rejected[static_cast<std::size_t>(Rejection::failed)].add();
    }
    return part.shard->reject(Rejection::failed, part.shard->peer_of(*stream), kStops);
  }
  const Port& into = *part.ports[port];
  Admission::Lease lease;
  if (into.options->admission != nullptr) {
    const auto peer = sys::peer_address(stream->fd());
    auto admitted = into.options->admission->admit(peer ? *peer : sys::SocketAddress(), part.shard->loop().now());
    if (!admitted) {
      return part.shard->reject(Rejection::admission, part.shard->peer_of(*stream), admitted.error());
    }
    lease = std::move(*admitted);
  }
  const ListenerOptions& options = *into.options;
  const std::string peer_name = into.slot.layered ? part.shard->peer_of(*stream) : std::string();
  if (options.wrap) {
    auto wrapped = options.wrap(std::move(stream));
    if (!wrapped) {
      return part.shard->reject(Rejection::failed, peer_name, wrapped.error());
    }
    stream = std::move(*wrapped);
  }
  if (options.tls != nullptr) {
    auto wrapped = options.tls->wrap(std::move(stream));
    if (!wrapped) {
      return part.shard->reject(Rejection::no_memory, peer_name, wrapped.error());
    }
    stream = std::move(*wrapped);
  }
  part.shard->open(into.slot, std::move(stream), std::move(lease));
}

// --- the end ---

void ServerRun::begin_stop(Instant deadline) {
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(begun_, true)) {
      return;
    }
  }
  for (unsigned core = 0; core < runtime_.size(); ++core) {
    post_surely(runtime_, core, [run = shared_from_this(), core, deadline] { run->begin_stop_here(core, deadline); });
  }
}

void ServerRun::begin_stop_here(unsigned core, Instant deadline) {
  Part& part = parts_[core];
  part.stopping = true;
  for (const auto& port : part.ports) {
    if (port->acceptor != nullptr) {
      port->acceptor->close();
    }
  }
  if (rt::Core::current() == nullptr) {  // the runtime's threads have ended
    return tear_down(core);
  }
  struct Deadline {
    ServerRun* run;
    unsigned core;
  };
  auto at_deadline = std::make_shared<Deadline>(Deadline{this, core});
  if (deadline != kNever) {
    part.deadline_timer =
        runtime_.core(core).loop().timers().schedule(deadline, {[](void* context) {
                                                                  const auto& at = *static_cast<Deadline*>(context);
                                                                  Part& late = at.run->parts_[at.core];
                                                                  late.deadline_timer = {};
                                                                  if (late.shard->size() != 0) {
                                                                    late.shard->end_all();
                                                                    const std::lock_guard lock(at.run->mutex_);
                                                                    at.run->aborted_ = true;
                                                                  }
                                                                },
                                                                at_deadline.get()});
  }
  part.shard->drain([run = shared_from_this(), core, at_deadline] {
    // Destroy the shard later: its last session is still on the stack.
    post_surely(run->runtime_, core, [run, core, at_deadline] { run->tear_down(core); });
  });
}

void ServerRun::tear_down(unsigned core) {
  Part& part = parts_[core];
  (void)runtime_.core(core).loop().timers().cancel(part.deadline_timer);
  part.shard->abandon();
  part.shard.reset();
  part.ports.clear();
  const std::lock_guard lock(mutex_);
  ++down_;
  changed_.notify_all();
}

Result<void> ServerRun::stop(Instant deadline) {
  begin_stop(deadline);
  if (rt::Core::current() != nullptr) {
    return {};
  }
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return down_ == parts_.size(); });
  if (aborted_) {
    return Error(Errc::timed_out, "sessions were left at the deadline");
  }
  return {};
}

}  // namespace weft::serve
