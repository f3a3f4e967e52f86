// SPDX-License-Identifier: MIT
#include "weft/serve/server/server.h"

#include "weft/serve/server/server_run.h"
#include "weft/serve/server/stall_watch.h"

namespace weft::serve {

namespace {
constexpr Error kStopped(Errc::closed, "the server is stopped");
constexpr Error kGone(Errc::closed, "the runtime ended before its server: destroy the server first");
constexpr Error kAdopted(Errc::not_supported, "stop() closed the descriptor that a listener had adopted");
constexpr Error kHandedOver(Errc::not_supported, "another process has the listeners");
constexpr Error kOnCore(Errc::invalid_state, "a core cannot wait for the others");
constexpr Error kUnnumbered(Errc::invalid_argument,
                            "handlers_max above 1 needs a codec with request numbers, such as NumberedCodec");
}  // namespace

Server::Server(rt::Runtime& runtime, const ServerOptions& options)
    : runtime_(runtime),
      cores_(runtime.size()),
      runtime_gone_(runtime.gone()),
      counters_(new CoreCounters[runtime.size()]),
      presence_(std::make_shared<GroupPresence>(runtime.size())),
      options_(options) {}

Server::~Server() {
  begin_stop(Instant());
  (void)stop(kNever);
}

Result<std::unique_ptr<Server>> Server::make(rt::Runtime& runtime, const ServerOptions& options) {
  if (runtime.size() > SessionId::kCores) {
    return Error(Errc::invalid_argument, "a server has at most 256 cores");
  }
  std::unique_ptr<Server> server(new Server(runtime, options));
  if (options.stall_after > Duration::zero()) {
    server->stall_watch_ = WEFT_TRY(StallWatch::make(runtime, options.stall_after, options.log, [at = server.get()] {
      if (const auto run = at->run()) {
        run->stand_in();
      }
    }));
  }
  server->start();
  return server;
}

void Server::start() {
  const sync::LockGuard lock(mutex_);  // set_bounds() changes these options, or those of this run
  auto run = std::make_shared<ServerRun>(runtime_, options_, counters_, presence_);
  run->start();
  epoch_.store(run->epoch(), std::memory_order_relaxed);
  run_ = std::move(run);
}

std::shared_ptr<ServerRun> Server::run() const noexcept {
  const sync::LockGuard lock(mutex_);
  return run_;
}

Result<std::string> Server::listen_with(std::string_view endpoint, const ListenerOptions& options, ServiceKind kind) {
  if (runtime_gone()) {
    return kGone;
  }
  if (rt::Core::current() != nullptr) {
    return kOnCore;
  }
  if (options.limits.handlers_max > 1 && !kind.numbers_requests) {
    return kUnnumbered;
  }
  const auto run = this->run();
  if (run == nullptr) {
    return kStopped;
  }
  const net::Endpoint parsed = WEFT_TRY(net::parse_endpoint(endpoint, true));
  std::string bound = WEFT_TRY(run->add_listener(parsed, options, kind));
  net::Endpoint same = WEFT_TRY(net::parse_endpoint(bound, true));
  const sync::LockGuard lock(mutex_);
  specs_.push_back({std::move(same), bound, options, std::move(kind)});
  return bound;
}

void Server::set_bounds(std::size_t sessions_max, std::size_t memory_max) noexcept {
  const sync::LockGuard lock(mutex_);
  options_.sessions_max = sessions_max;
  options_.memory_max = memory_max;
  if (run_ != nullptr) {
    run_->set_bounds(sessions_max, memory_max);
  }
}

Session* Server::find(SessionId id) noexcept {
  if (Shard* const shard = Shard::here(id.epoch())) {
    return shard->find_or_count(id);
  }
  rt::Core::current()->note_resident_missed();
  return nullptr;
}

Session* Server::find(SessionId id, const void* codec_tag) noexcept {
  Session* const session = find(id);
  if (session != nullptr && session->codec_tag() != codec_tag) {
    session->shard().counters().stale_ids.add();
    return nullptr;
  }
  return session;
}

Result<void> Server::route(SessionId id) const noexcept {
  const std::uint16_t epoch = this->epoch();
  if (runtime_gone()) {
    return kGone;
  }
  if (epoch == 0) {
    return kStopped;
  }
  if (!id || id.epoch() != epoch || id.core() >= cores_) {
    return Error(Errc::unreachable, "a session of another server or another start");
  }
  return {};
}

Result<void> Server::send_to(SessionId id, const SharedFrame& frame) {
  WEFT_TRY(route(id));
  if (rt::Core::current() == &runtime_.core(id.core())) {
    Session* const session = find(id);
    return session != nullptr ? session->send_shared(frame) : Error(Errc::unreachable, "the session has ended");
  }
  return runtime_.post(id.core(), [id, frame] {
    if (Session* const session = find(id)) {
      (void)session->send_shared(frame);
    }
  });
}

template <typename Function>
Result<void> Server::on_shard(unsigned core, std::uint16_t epoch, const Function& function) {
  const auto run_here = [epoch, function] {
    if (Shard* const shard = Shard::here(epoch)) {
      function(*shard);
    }
  };
  if (rt::Core::current() == &runtime_.core(core)) {
    run_here();
    return {};
  }
  return runtime_.post(core, run_here);
}

Result<void> Server::publish(GroupId group, const SharedFrame& frame) {
  const std::uint16_t epoch = this->epoch();
  if (runtime_gone()) {
    return kGone;
  }
  if (epoch == 0) {
    return kStopped;
  }
  Result<void> result;
  presence_->for_each_core(group, [&](unsigned core) {
    const auto sent = on_shard(core, epoch, [group, frame](Shard& shard) { shard.publish(group, frame); });
    result = sent ? result : sent;
  });
  return result;
}

Result<void> Server::broadcast(const SharedFrame& frame) {
  const std::uint16_t epoch = this->epoch();
  if (runtime_gone()) {
    return kGone;
  }
  if (epoch == 0) {
    return kStopped;
  }
  Result<void> result;
  for (unsigned core = 0; core < cores_; ++core) {
    const auto sent = on_shard(core, epoch, [frame](Shard& shard) {
      shard.for_each([&frame](Session& session) { (void)session.send_shared(frame); });
    });
    result = sent ? result : sent;
  }
  return result;
}

void Server::begin_stop(Instant deadline) {
  if (const auto run = this->run()) {
    run->begin_stop(deadline);
  }
}

Result<void> Server::stop(Instant deadline) {
  const auto run = this->run();
  if (run == nullptr) {
    return {};
  }
  if (rt::Core::current() != nullptr) {
    run->begin_stop(deadline);
    return {};
  }
  const auto result = run->stop(deadline);
  const sync::LockGuard lock(mutex_);
  if (run_ == run && run->down()) {  // no other thread stopped and restarted the server meanwhile
    epoch_.store(0, std::memory_order_relaxed);
    run_.reset();
  }
  return result;
}

Result<std::vector<OpenListener>> Server::listeners(Instant deadline) {
  const auto run = this->run();
  if (runtime_gone() || run == nullptr) {
    return runtime_gone() ? kGone : kStopped;
  }
  if (rt::Core::current() != nullptr) {
    return kOnCore;
  }
  return run->listeners(deadline);
}

Result<void> Server::release_listeners(Instant deadline) {
  const auto run = this->run();
  if (runtime_gone() || run == nullptr) {
    return runtime_gone() ? kGone : kStopped;
  }
  if (rt::Core::current() != nullptr) {
    return kOnCore;
  }
  released_.store(true, std::memory_order_relaxed);
  announce_stop();
  return run->release_listeners(deadline);
}

Result<void> Server::restart() {
  if (runtime_gone()) {
    return kGone;
  }
  if (rt::Core::current() != nullptr) {
    return kOnCore;
  }
  if (run() != nullptr) {
    return Error(Errc::invalid_state, "restart() needs a stopped server");
  }
  if (released_.load(std::memory_order_relaxed)) {
    return kHandedOver;
  }
  std::vector<Spec> specs;
  {
    const sync::LockGuard lock(mutex_);
    specs = specs_;
  }
  for (const Spec& spec : specs) {
    if (spec.options.socket.adopt_fd >= 0 || !spec.options.adopt_fds.empty()) {
      return kAdopted;
    }
  }
  leaving_.store(false, std::memory_order_relaxed);
  start();
  const auto run = this->run();
  for (const Spec& spec : specs) {
    if (auto bound = run->add_listener(spec.endpoint, spec.options, spec.kind); !bound) {
      (void)stop(Instant());
      return bound.error();
    }
  }
  return {};
}

Result<void> Server::ready() const noexcept {
  if (runtime_gone()) {
    return kGone;
  }
  const auto run = this->run();
  if (run == nullptr) {
    return kStopped;
  }
  switch (run->phase()) {
    case ServerRun::Phase::starting: return Error(Errc::invalid_state, "the server has no listener yet");
    case ServerRun::Phase::draining: return Error(Errc::terminated, "the server is draining");
    case ServerRun::Phase::serving: break;
  }
  if (leaving_.load(std::memory_order_relaxed)) {
    return Error(Errc::terminated, "the server stops soon");
  }
  if (run->full()) {
    return Error(Errc::resource_exhausted, "the server is full");
  }
  if (!run->accepts()) {
    return Error(Errc::resource_exhausted, "no descriptors or no memory for more connections");
  }
  return {};
}

CounterValues Server::counters() const noexcept {
  CounterValues values;
  for (unsigned core = 0; core < cores_; ++core) {
    values.add(counters_[core]);
  }
  return values;
}

CounterValues Server::counters(unsigned core) const noexcept {
  CounterValues values;
  if (core < cores_) {
    values.add(counters_[core]);
  }
  return values;
}

std::size_t Server::sessions() const noexcept {
  const auto run = this->run();
  return run == nullptr ? 0 : run->sessions();
}

CounterSource Server::counter_source() const {
  return [this](std::string_view name, CounterReadings& into) {
    const ServerReading reading{sessions(), counters()};
    into.push_back({&kServerTable, {{"server", std::string(name)}}, sync::read_counters(reading)});
    add_listener_info(name, into);
  };
}

void Server::add_listener_info(std::string_view name, CounterReadings& into) const {
  const sync::LockGuard lock(mutex_);
  for (const Spec& spec : specs_) {
    if (run_ != nullptr) {
      const char* const tls = spec.options.tls != nullptr ? "1.3" : "none";
      into.push_back({&kListenerTable, {{"endpoint", spec.bound}, {"server", std::string(name)}, {"tls", tls}}, {1}});
    }
  }
}

}  // namespace weft::serve
