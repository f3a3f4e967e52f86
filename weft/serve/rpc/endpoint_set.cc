// SPDX-License-Identifier: MIT
#include "weft/serve/rpc/endpoint_set.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

#include "weft/rt/task/task_time.h"
#include "weft/serve/client/name_lookup.h"

namespace weft::serve::rpc {

namespace {

constexpr Error kNoEndpointYet(Errc::unreachable, "no endpoint is connected yet");
constexpr Error kNoRoom(Errc::resource_exhausted, "no connected endpoint has room for a call");
constexpr Error kClosed(Errc::closed, "the client is closed");
constexpr Error kLate(Errc::timed_out, "the deadline passed before an endpoint was ready");
constexpr Error kNoMemory(Errc::resource_exhausted, "no memory for the addresses of a name");

constexpr Duration kLookupPause = std::chrono::seconds(1);      // after a look-up, before a loss causes the next one
constexpr Duration kLookupMin = std::chrono::milliseconds(10);  // the least resolve_every
constexpr Duration kLeaveTime = std::chrono::seconds(30);       // for the calls at an address that the name lost

// The host of a connection over IP that is not a numeric address.
bool has_name(const net::Endpoint& endpoint) {
  const bool ip = endpoint.transport == net::Transport::tcp || endpoint.transport == net::Transport::tls_tcp ||
                  net::is_websocket(endpoint.transport);
  return ip && !sys::SocketAddress::parse_numeric(endpoint.host, endpoint.port);
}

}  // namespace

EndpointSet::Visit::Visit(EndpointSet& set, std::size_t index) noexcept
    : set_(set), index_(index), begun_(set.now()), ended_(begun_) {
  set_.choice_.begin(index);
}

EndpointSet::Visit::~Visit() {
  const std::uint64_t before = set_.choice_.ejections();
  set_.choice_.finish(index_, ended_ - begun_, outcome_, ended_);
  set_.counts_->ejections.add(set_.choice_.ejections() - before);
  if (set_.choice_.in_flight(index_) == 0) {
    set_.left_.pulse();
  }
}

void EndpointSet::Visit::note(Outcome outcome) noexcept {
  outcome_ = outcome;
  ended_ = set_.now();
}

EndpointSet::EndpointSet(std::shared_ptr<ClientHost> host, const BalancedOptions& options,
                         std::shared_ptr<BalancedCounts> counts)
    : host_(std::move(host)),
      options_(options),
      counts_(std::move(counts)),
      choice_(0, options.choice, net::Backoff::seed_for(this)),
      scope_(host_->core().loop()) {}

Result<void> EndpointSet::begin(const std::shared_ptr<EndpointSet>& self, const std::vector<std::string>& endpoints) {
  for (const std::string& text : endpoints) {
    net::Endpoint endpoint = WEFT_TRY(net::parse_endpoint(text, false));
    if (self->options_.resolve_every < Duration::zero() || !has_name(endpoint)) {
      WEFT_TRY(add(self, text, std::nullopt, {}));
      continue;
    }
    self->names_.push_back(std::make_unique<Name>());
    self->names_.back()->endpoint = std::move(endpoint);
    WEFT_TRY(self->scope_.spawn(watch(self, self->names_.size() - 1)));
  }
  return {};
}

Result<void> EndpointSet::add(const std::shared_ptr<EndpointSet>& self, const std::string& endpoint,
                              std::optional<std::size_t> name, const sys::SocketAddress& address) {
  ClientOptions options = self->options_.client;
  if (name && options.connection.tls_name.empty()) {
    options.connection.tls_name = self->names_[*name]->endpoint.host;
  }
  options.connection.on_event = [weak = std::weak_ptr<EndpointSet>(self), name,
                                 report = std::move(options.connection.on_event)](const ClientEvent& event) {
    if (const auto set = weak.lock()) {
      set->handle_event(name, event);
    }
    if (report) {
      report(event);
    }
  };
  auto client = WEFT_TRY(Client::open(self->host_, endpoint, std::move(options)));
  client->connection().on_room([weak = std::weak_ptr<EndpointSet>(self)] {
    if (const auto set = weak.lock()) {
      set->changed_.pulse();
    }
  });
  auto slot = std::find_if(self->slots_.begin(), self->slots_.end(), [](const Slot& one) { return !one.client; });
  if (slot == self->slots_.end()) {
    self->choice_.add();
    self->slots_.emplace_back();
    slot = self->slots_.end() - 1;
  }
  self->sources_->add(client.get(), client->counter_source());
  self->choice_.forget(static_cast<std::size_t>(slot - self->slots_.begin()));
  slot->client = std::move(client);
  slot->name = name;
  slot->address = address;
  slot->leaving = false;
  return {};
}

void EndpointSet::handle_event(std::optional<std::size_t> name, const ClientEvent& event) noexcept {
  if (event.kind == ClientEvent::Kind::connected) {
    changed_.pulse();
    return;
  }
  trouble_ = event.why;
  if (name) {
    names_[*name]->again.set();
  }
}

// A connection for each new address of the name. Those of the other addresses leave.
Result<void> EndpointSet::apply(const std::shared_ptr<EndpointSet>& self, std::size_t name,
                                const net::Resolver::Addresses& addresses) {
  for (std::size_t index = 0; index < self->slots_.size(); ++index) {
    Slot& slot = self->slots_[index];
    if (slot.client && slot.name == name && !slot.leaving &&
        std::find(addresses.begin(), addresses.end(), slot.address) == addresses.end()) {
      slot.leaving = true;
      if (const auto spawned = self->scope_.spawn(retire(self, index)); !spawned) {
        slot.leaving = false;
        return spawned;
      }
    }
  }
  net::Endpoint endpoint = self->names_[name]->endpoint;
  for (const sys::SocketAddress& address : addresses) {
    const bool known = std::any_of(self->slots_.begin(), self->slots_.end(), [&](const Slot& slot) {
      return slot.client && slot.name == name && !slot.leaving && slot.address == address;
    });
    const auto in_use = std::count_if(self->slots_.begin(), self->slots_.end(),
                                      [](const Slot& slot) { return slot.client != nullptr; });
    if (known || static_cast<std::size_t>(in_use) >= BalancedClient::kEndpointsMax) {
      continue;
    }
    endpoint.host = address.host_text();
    WEFT_TRY(add(self, endpoint.text(), name, address));
  }
  return {};
}

rt::Task<Result<void>> EndpointSet::look_up_once(std::shared_ptr<EndpointSet> self, std::size_t name) {
  const net::Endpoint& endpoint = self->names_[name]->endpoint;
  const serve::ClientOptions& options = self->options_.client.connection;
  net::Resolver& resolver = options.resolver != nullptr ? *options.resolver : net::Resolver::shared();
  auto asking = look_up_name(self->host_->core().loop(), resolver, endpoint.host, endpoint.port, options.socket.ipv6);
  const auto addresses = co_await rt::with_timeout(std::move(asking), options.lookup_timeout);
  if (!addresses) {
    co_return addresses.error();
  }
  co_return self->closed_ ? Result<void>(kClosed) : apply(self, name, *addresses);
}

// Looks the name up every resolve_every, and soon after a connection was lost or a look-up failed.
rt::Task<void> EndpointSet::watch(std::shared_ptr<EndpointSet> self, std::size_t name) {
  const Duration every = std::max(kLookupMin, self->options_.resolve_every);
  net::Backoff backoff(std::min(kLookupPause, every), every, net::Backoff::seed_for(self->names_[name].get()));
  for (;;) {
    self->names_[name]->again.reset();
    self->counts_->lookups.add();
    Result<void> applied = kNoMemory;
    try {
      applied = co_await look_up_once(self, name);
    } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): no memory: the error of `applied`
    }
    const bool cancelled = co_await rt::is_cancelled();
    if (cancelled || self->closed_) {
      co_return;
    }
    Duration wait = every;
    if (applied) {
      backoff.reset();
    } else {
      self->counts_->lookups_failed.add();
      self->trouble_ = applied.error();
      wait = backoff.next();
    }
    const Duration pause = std::min(kLookupPause, wait);
    const Result<void> slept = co_await rt::sleep(pause);
    if (!slept) {
      co_return;
    }
    rt::Task<Result<void>> lost = wait_for(&self->names_[name]->again);
    (void)co_await rt::with_timeout(std::move(lost), wait - pause);
  }
}

// Ends the connection of an address that the name lost, after its calls.
rt::Task<void> EndpointSet::retire(std::shared_ptr<EndpointSet> self, std::size_t index) {
  (void)co_await self->at(index).close(deadline_after(self->now(), kLeaveTime));
  while (self->choice_.in_flight(index) != 0) {
    const Result<void> waited = co_await self->left_.wait();
    if (!waited) {
      co_return;
    }
  }
  const bool cancelled = co_await rt::is_cancelled();
  if (cancelled) {
    co_return;
  }
  self->sources_->remove(&self->at(index));
  self->slots_[index].client.reset();
}

bool EndpointSet::is_ready(const Slot& slot) const noexcept {
  return slot.client && !slot.leaving && slot.client->is_connected() && slot.client->connection().has_room();
}

std::optional<std::size_t> EndpointSet::choose(std::optional<std::size_t> except) {
  return choice_.choose(now(), [this](std::size_t index) { return is_ready(slots_[index]); }, except);
}

rt::Task<Result<void>> EndpointSet::wait_ready(EndpointSet* self, Instant deadline) {
  while (!self->closed_ && !self->choose(std::nullopt)) {
    const Instant now = self->now();
    if (deadline <= now) {
      co_return kLate;
    }
    rt::Task<Result<void>> waiting = wait_for(&self->changed_);
    const Result<void> waited = co_await rt::with_timeout(std::move(waiting), time_left(deadline, now));
    if (!waited && waited.error() != Errc::timed_out) {
      co_return waited.error();
    }
  }
  co_return self->closed_ ? Result<void>(kClosed) : Result<void>();
}

Error EndpointSet::why_none() const noexcept {
  const bool connected = std::any_of(slots_.begin(), slots_.end(), [](const Slot& slot) {
    return slot.client && !slot.leaving && slot.client->is_connected();
  });
  if (closed_ || connected || trouble_ == Errc::ok) {
    return (closed_ ? kClosed : connected ? kNoRoom : kNoEndpointYet).with_fate(Fate::not_sent);
  }
  return not_connected_for(trouble_);
}

std::size_t EndpointSet::size() const noexcept {
  return static_cast<std::size_t>(
      std::count_if(slots_.begin(), slots_.end(), [](const Slot& slot) { return slot.client && !slot.leaving; }));
}

Client& EndpointSet::nth(std::size_t n) noexcept {
  std::size_t index = 0;
  while (!slots_[index].client || slots_[index].leaving || n-- != 0) {
    ++index;
  }
  return *slots_[index].client;
}

void EndpointSet::shut_down() noexcept {
  closed_ = true;
  scope_.cancel();
  for (const Slot& slot : slots_) {
    if (slot.client) {
      slot.client->connection().abort();
    }
  }
  changed_.pulse();
}

rt::Task<Result<void>> EndpointSet::close(std::shared_ptr<EndpointSet> self, Instant deadline) {
  self->closed_ = true;
  self->scope_.cancel();
  self->changed_.pulse();
  Result<void> outcome;
  for (std::size_t index = 0; index < self->slots_.size(); ++index) {
    if (!self->slots_[index].client) {
      continue;
    }
    const Result<void> closed = co_await self->at(index).close(deadline);
    if (!closed && outcome) {
      outcome = closed;
    }
  }
  co_return outcome;
}

}  // namespace weft::serve::rpc
