// SPDX-License-Identifier: MIT
#include "weft/serve/server/server_run.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <new>
#include <utility>

#include "weft/rt/core/core_visits.h"
#include "weft/serve/server/wrap.h"
#include "weft/sync/condition.h"
#include "weft/sys/clock.h"

namespace weft::serve {

namespace {
constexpr Error kNotDone(Errc::system, "the function returned false");
constexpr Error kNoProxy(Errc::connection_failed, "the connection came from no stated proxy");
constexpr Duration kHeaderPatience = std::chrono::seconds(10);  // without a handshake_timeout
constexpr Error kStops(Errc::terminated, "the server stops");
constexpr Error kNoMemoryForConnection(Errc::resource_exhausted, "no memory for the connection");

}  // namespace

ServerRun::ServerRun(rt::Runtime& runtime, const ServerOptions& options, std::shared_ptr<CoreCounters[]> counters,
                     std::shared_ptr<GroupPresence> presence)
    : runtime_(runtime),
      epoch_(next_epoch()),
      budget_(options.memory_max),
      count_(options.sessions_max),
      settle_timeout_(options.settle_timeout),
      log_(options.log),
      counters_(std::move(counters)),
      presence_(std::move(presence)),
      drain_(
          runtime,
          [this](unsigned core) { return parts_[core]->shard == nullptr || parts_[core]->shard->still_drained(); },
          [this] {
            {
              const sync::LockGuard lock(mutex_);
              drained_ = true;
            }
            for (unsigned core = 0; core < parts_.size(); ++core) {
              call(core);
            }
          }),
      part_states_(runtime.size()) {
  for (unsigned core = 0; core < runtime.size(); ++core) {
    parts_.push_back(std::make_unique<Part>(*this, core));
    parts_.back()->shard = std::make_unique<Shard>(runtime.core(core), epoch_, budget_, options.core_memory_max, count_,
                                                   counters_[core], log_, options.on_exception);
    parts_.back()->shard->set_mover(*this);
  }
}

void ServerRun::start() {
  for (unsigned core = 0; core < parts_.size(); ++core) {
    call(core);
  }
}

// --- running things on cores ---

void ServerRun::call(unsigned core) {
  {
    const sync::LockGuard lock(mutex_);
    PartState& state = part_states_[core];
    if (state.down || state.due != nullptr) {
      return;
    }
    state.due = shared_from_this();
  }
  runtime_.core(core).give(parts_[core]->attend);
}

// Does the core's part of start() and begin_stop(). A core that ended before the run started has nothing.
void ServerRun::attend(unsigned core) noexcept {
  Part& part = *parts_[core];
  std::shared_ptr<ServerRun> self;
  bool begun = false;
  bool drained = false;
  bool stands_in = false;
  Instant deadline;
  {
    const sync::LockGuard lock(mutex_);
    PartState& state = part_states_[core];
    self = std::move(state.due);
    if (state.down) {
      return;
    }
    begun = begun_;
    drained = drained_;
    stands_in = std::exchange(state.stands_in, false);
    deadline = stop_deadline_;
  }
  rt::Core& here = runtime_.core(core);
  if (here.ended()) {
    return tear_down(core);
  }
  if (part.keep == nullptr) {
    part.keep = self;
    here.at_end(part.core_ended);
    const sync::LockGuard lock(mutex_);
    part_states_[core].attended = true;
  }
  if (begun) {
    stop_by(core, deadline);
  }
  if (drained && !part.closing) {
    close_sessions(part);
    arm(part);
  }
  for (const auto& port : part.ports) {
    for (const auto& each : port->stand_ins) {
      if (stands_in) {
        each->look();
      }
    }
  }
}

// The lock keeps the runtime: a core ends after the tear_down() of its part, if that was attended once.
void ServerRun::stand_in() noexcept {
  const sync::LockGuard lock(mutex_);
  for (unsigned core = 0; core < parts_.size(); ++core) {
    PartState& state = part_states_[core];
    if (state.down || !state.attended) {
      continue;
    }
    state.stands_in = true;
    if (state.due == nullptr) {
      state.due = shared_from_this();
      runtime_.core(core).give(parts_[core]->attend);
    }
  }
}

bool ServerRun::on_each_core(const std::function<bool(unsigned)>& function) {
  const auto visited = rt::CoreVisits::run(
      runtime_, [&function](unsigned core) { return function(core) ? Result<void>() : Result<void>(kNotDone); });
  return visited.has_value();
}

ServerRun::Phase ServerRun::phase() noexcept {
  const sync::LockGuard lock(mutex_);
  return begun_ ? Phase::draining : listens_ ? Phase::serving : Phase::starting;
}

bool ServerRun::accepts() const noexcept {
  return sys::now() - paused_at_.load(std::memory_order_relaxed) > 2 * net::Acceptor::kPause;
}

bool ServerRun::down() noexcept {
  const sync::LockGuard lock(mutex_);
  return down_ == parts_.size();
}

// --- connections ---

void ServerRun::accept(unsigned core, std::size_t port, std::unique_ptr<net::ByteStream> stream,
                       bool everywhere) noexcept {
  if (everywhere) {
    return place(core, port, std::move(stream));
  }
  try {
    deal(port, std::move(stream));
  } catch (...) {
    reject(core, Rejection::no_memory, kNoMemoryForConnection);
  }
}

// The next core in turn, except others whose turn lasts. A connection waits for the end of the turn of its core.
unsigned ServerRun::next_core() noexcept {
  const auto cores = static_cast<unsigned>(parts_.size());
  const unsigned here = rt::Core::current()->index();
  const unsigned first = next_core_.fetch_add(1, std::memory_order_relaxed);
  constexpr Duration kLongTurn = std::chrono::milliseconds(10);
  const Instant before = sys::now() - kLongTurn;
  for (unsigned i = 0; i < cores; ++i) {
    const unsigned core = (first + i) % cores;
    if (core == here || !runtime_.core(core).loop().activity()->busy_since(before)) {
      return core;
    }
  }
  return here;
}

// Runs on the accepting core, or on the one that stands in for it.
void ServerRun::deal(std::size_t port, std::unique_ptr<net::ByteStream> stream) {
  const unsigned core = next_core();
  const unsigned here = rt::Core::current()->index();
  if (core == here) {
    return place(core, port, std::move(stream));
  }
  Shard& shard = *parts_[here]->shard;
  const std::string peer = shard.peer_of(*stream);
  auto pass = [run = shared_from_this(), core, port, owned = std::move(stream)]() mutable {
    run->place(core, port, std::move(owned));
  };
  if (const auto posted = runtime_.post(core, std::move(pass)); !posted) {
    shard.reject(Rejection::lane_full, peer, posted.error());  // counted before its peer sees the end
  }
}

void ServerRun::place(unsigned core, std::size_t port, std::unique_ptr<net::ByteStream> stream) noexcept {
  Part& part = *parts_[core];
  try {
    if (!part.stopping) {
      return try_place(part, port, std::move(stream));
    }
    reject(core, Rejection::failed, kStops, part.shard == nullptr ? std::string() : part.shard->peer_of(*stream));
  } catch (...) {
    reject(core, Rejection::no_memory, kNoMemoryForConnection);
  }
}

// Throws std::bad_alloc.
void ServerRun::try_place(Part& part, std::size_t port, std::unique_ptr<net::ByteStream> stream) {
  Port& into = *part.ports[port];
  const ListenerOptions& options = *into.options;
  if (!options.proxy_protocol) {
    return admit(part, into, std::move(stream), {}, part.shard->loop().now());
  }
  if (!options.proxy_protocol->admits(stream->fd())) {
    return part.shard->reject(Rejection::proxy_header, part.shard->peer_of(*stream), kNoProxy);
  }
  const Duration patience = slot_of(into).limits.handshake_timeout;
  part.proxy_waits->begin(port, std::move(stream), patience < Duration::zero() ? kHeaderPatience : patience);
}

std::unique_ptr<ProxyWaits> ServerRun::make_proxy_waits(unsigned core) {
  Shard& shard = *parts_[core]->shard;
  ProxyWaits::Handlers handlers;
  handlers.ready = [this, core](std::size_t port, std::unique_ptr<net::ByteStream> stream,
                                const sys::SocketAddress& client,
                                Instant accepted) { place_client(core, port, std::move(stream), client, accepted); };
  handlers.refused = [&shard](const net::ByteStream& stream, const Error& why) {
    shard.reject(why == Errc::resource_exhausted ? Rejection::no_memory
                 : why == Errc::terminated       ? Rejection::failed
                                                 : Rejection::proxy_header,
                 shard.peer_of(stream), why);
  };
  handlers.full = [&shard](const net::ByteStream& stream) { shard.reject(Rejection::full, shard.peer_of(stream)); };
  return std::make_unique<ProxyWaits>(shard.loop(), count_, std::move(handlers));
}

// The header was read.
void ServerRun::place_client(unsigned core, std::size_t port, std::unique_ptr<net::ByteStream> stream,
                             const sys::SocketAddress& client, Instant accepted) noexcept {
  Part& part = *parts_[core];
  try {
    if (client.family() != sys::SocketAddress::Family::none) {
      stream->name_peer(client.to_text());
    }
    admit(part, *part.ports[port], std::move(stream), client, accepted);
  } catch (...) {
    reject(core, Rejection::no_memory, kNoMemoryForConnection);
  }
}

// The slot of new sessions. If the listener's limits have changed, it is another one: sessions refer to theirs.
const ServiceSlot& ServerRun::slot_of(Port& port) {
  const auto& live = port.options->live_limits;
  if (live != nullptr && live->newer_than(port.limits_version)) {
    const ServiceSlot& before = *port.slots.back();
    auto next = std::make_unique<ServiceSlot>(before);
    port.slots.reserve(port.slots.size() + 1);  // from here on nothing fails
    port.limits_version = live->take(next->limits);
    next->limits.handlers_max = before.limits.handlers_max;
    next->sessions = 0;
    std::erase_if(port.slots, [](const auto& slot) { return slot->sessions == 0; });
    port.slots.push_back(std::move(next));
  }
  return *port.slots.back();
}

// `client`: from the PROXY header; none: the socket's peer. `accepted`: before that header. Throws std::bad_alloc.
void ServerRun::admit(Part& part, Port& into, std::unique_ptr<net::ByteStream> stream, const sys::SocketAddress& client,
                      Instant accepted) {
  const ListenerOptions& options = *into.options;
  const ServiceSlot& slot = slot_of(into);
  net::Admission::Lease lease;
  if (options.admission != nullptr) {
    const bool named = client.family() != sys::SocketAddress::Family::none;
    const auto address = named ? Result<sys::SocketAddress>(client) : sys::peer_address(stream->fd());
    auto admitted = options.admission->admit(address ? *address : sys::SocketAddress(), part.shard->loop().now());
    if (!admitted) {
      return part.shard->reject(Rejection::admission, part.shard->peer_of(*stream), admitted.error());
    }
    lease = std::move(*admitted);
  }
  const std::string peer = slot.layered ? part.shard->peer_of(*stream) : std::string();
  if (options.wrap) {
    auto wrapped = wrap_stream(options.wrap, std::move(stream));
    if (!wrapped) {
      return part.shard->reject(Rejection::failed, peer, wrapped.error());
    }
    stream = std::move(*wrapped);
  }
  if (options.tls != nullptr) {
    auto wrapped = options.tls->wrap(std::move(stream));
    if (!wrapped) {
      return part.shard->reject(Rejection::no_memory, peer, wrapped.error());
    }
    stream = std::move(*wrapped);
  }
  part.shard->open(slot, std::move(stream), std::move(lease), accepted);
}

void ServerRun::reject(unsigned core, Rejection why, const Error& error, std::string_view peer) noexcept {
  if (Shard* const shard = parts_[core]->shard.get()) {
    return shard->reject(why, peer, error);
  }
  counters_[core].rejected[static_cast<std::size_t>(why)].add();  // the shard that would log it is destroyed
}

}  // namespace weft::serve
