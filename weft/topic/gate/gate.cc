// SPDX-License-Identifier: MIT
#include "weft/topic/gate/gate.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <new>
#include <tuple>
#include <utility>

#include "weft/base/no_memory.h"
#include "weft/sys/clock.h"
#include "weft/topic/gate/on_core.h"
#include "weft/topic/wire/control.h"
#include "weft/topic/wire/headers.h"

namespace weft::topic {

namespace {

constexpr Duration kGateLinger = std::chrono::seconds(1);

// Gates: the open gates of the process.
struct Gates {
  sync::StdMutex mutex;
  std::vector<std::pair<GateOptions, std::weak_ptr<Gate>>> all WEFT_GUARDED_BY(mutex);

  static Gates& instance() {
    static Gates* const gates = new Gates();  // never destroyed: handles may outlive main()
    return *gates;
  }
};

Message block_of(const nats::Message& message) {
  Message block;
  if (!message.headers.empty() && is_header_block(as_text(message.headers.block()))) {
    (void)block.assign_copy(message.headers.block());
  }
  return block;
}

}  // namespace

bool GateOptions::same_gate(const GateOptions& other) const noexcept {
  const auto key = [](const GateOptions& of) {
    return std::tie(of.group, of.servers, of.user, of.password, of.token, of.nkey_seed_file, of.credentials_file,
                    of.tls_certificate, of.tls_key, of.tls_authorities, of.tls_server_name, of.outage_bytes_max,
                    of.ping_every);
  };
  return key(*this) == key(other);
}

const nats::SubjectNames& Gate::names() {
  static const nats::SubjectNames names = nats::SubjectNames::make().value();
  return names;
}

// --- members ---

Result<std::shared_ptr<Gate>> Gate::open(const GateOptions& options) {
  Gates& gates = Gates::instance();
  const sync::LockGuard lock(gates.mutex);
  std::erase_if(gates.all, [](const auto& each) { return each.second.expired(); });
  for (const auto& [key, weak] : gates.all) {
    if (auto gate = weak.lock(); gate != nullptr && key.same_gate(options)) {
      return gate;
    }
  }
  std::shared_ptr<Gate> gate(new Gate(options));
  WEFT_TRY(gate->start());
  gates.all.emplace_back(options, gate);
  return gate;
}

template <typename Function>
Result<void> Gate::on_core(Function function) noexcept {
  return topic::on_core(*runtime_, std::move(function));
}

Result<nats::ClientOptions> client_options(const GateOptions& options) {
  nats::ClientOptions client;
  client.servers = options.servers;
  client.name = options.name;
  client.user = options.user;
  client.password = Secret(std::string(options.password));
  client.token = Secret(std::string(options.token));
  client.nkey_seed_file = options.nkey_seed_file;
  client.credentials_file = options.credentials_file;
  client.pending_max = options.outage_bytes_max;
  client.ping_every = options.ping_every;
  client.tls_name = options.tls_server_name;
  WEFT_TRY(client.use_tls_files(options.tls_authorities, options.tls_certificate, options.tls_key));
  return client;
}

Result<void> Gate::start() {
  rt::RuntimeOptions runtime;
  runtime.cores = 1;
  runtime.pinning = rt::Pinning::never;
  runtime.wait_mode = sync::WaitMode::eco;
  runtime.thread_name = "gate";
  runtime_ = WEFT_TRY(rt::Runtime::start(runtime));
  const nats::ClientOptions client = WEFT_TRY(client_options(options_));
  return on_core([&] { return open_clients(client); });
}

Result<void> Gate::open_clients(nats::ClientOptions options) {
  rt::Core& core = *rt::Core::current();
  host_ = std::make_shared<serve::ClientHost>(core);
  scope_ = std::make_unique<rt::TaskScope>(core.loop());
  nats::ClientOptions work = options;
  work.on_event = [this](const nats::ClientEvent& event) { handle_work(event); };
  options.echo = false;
  options.on_event = [this](const nats::ClientEvent& event) { handle_bus(event); };
  bus_ = WEFT_TRY(nats::Client::open(host_, std::move(options)));
  work_ = WEFT_TRY(nats::Client::open(host_, std::move(work)));
  return open_control();
}

Result<void> Gate::open_control() {
  control_ = WEFT_TRY(bus_->subscribe(std::string(kControlSubject) + "all",
                                      [this](const nats::Message& message) {
                                        for (const Member& each : members_) {
                                          each.member->handle_gate_control(message.body);
                                        }
                                      },
                                      {.on_ended = [this](const Error& why) { refuse_control(why); }}));
  return {};
}

Result<void> Gate::open_control_of(Member& entered) {
  GateMember& member = *entered.member;
  entered.control = WEFT_TRY(bus_->subscribe(std::string(kControlSubject) + instance_text(entered.instance),
                                             [&member](const nats::Message& m) { member.handle_gate_control(m.body); },
                                             {.on_ended = [this, &member](const Error& why) {
                                               for (Member& each : members_) {
                                                 each.control =
                                                     each.member == &member ? nats::SubscriptionId() : each.control;
                                               }
                                               member.handle_gate_control_refused(why);
                                             }}));
  return {};
}

Result<void> Gate::open_replies_of(Member& entered) {
  GateMember& member = *entered.member;
  entered.replies = WEFT_TRY(work_->subscribe(
      std::string(kInboxSubject) + instance_text(entered.instance) + ".*",
      [&member](const nats::Message& m) {
        const std::size_t dot = m.subject.rfind('.');
        std::uint64_t request = 0;
        (void)std::from_chars(m.subject.data() + dot + 1, m.subject.data() + m.subject.size(), request);
        Message body;
        (void)body.assign_copy(m.body);
        member.handle_gate_reply(request, std::move(body), block_of(m),
                                 m.headers.status() == nats::kStatusNoResponders && m.body.empty());
      },
      {.on_ended = [this, &member](const Error& why) {
        for (Member& each : members_) {
          each.replies = each.member == &member ? nats::SubscriptionId() : each.replies;
        }
        member.handle_gate_replies_refused(why);
      }}));
  return {};
}

Result<void> Gate::join(GateMember& member, std::uint64_t instance) {
  return on_core([&]() -> Result<void> {
    if (left_ || bus_ == nullptr) {
      return kGateClosed;
    }
    Member entered;
    entered.member = &member;
    entered.instance = instance;
    members_.reserve(members_.size() + 1);
    WEFT_TRY(open_control_of(entered));
    if (const auto replies = open_replies_of(entered); !replies) {
      bus_->unsubscribe(entered.control);
      return replies;
    }
    members_.push_back(std::move(entered));
    if (bus_->is_connected()) {
      member.handle_gate_connection(true);
    }
    if (control_refused_ != Errc::ok) {
      member.handle_gate_control_refused(control_refused_);
    }
    return {};
  });
}

void Gate::leave(GateMember& member) noexcept {
  bool last = false;
  {
    const sync::LockGuard lock(Gates::instance().mutex);  // no handle finds it between
    (void)on_core([&]() -> Result<void> {
      send_batch();  // the member's last operations come before the end of its subscriptions
      remove(member);
      last = members_.empty();
      left_ = last;
      return {};
    });
    if (last) {
      std::erase_if(Gates::instance().all, [this](const auto& each) { return each.second.lock().get() == this; });
    }
  }
  if (last) {
    auto drained = rt::spawn(runtime_->core(0).loop(), drain_clients(this));
    (void)drained.wait_until(kNever);
    (void)on_core([&]() -> Result<void> {
      close_clients();
      return {};
    });
  }
}

void Gate::remove(GateMember& member) noexcept {
  const auto found =
      std::find_if(members_.begin(), members_.end(), [&](const Member& each) { return each.member == &member; });
  if (found == members_.end()) {
    return;
  }
  if (bus_ != nullptr) {
    bus_->unsubscribe(found->control);
    work_->unsubscribe(found->replies);
    for (const auto& [service, id] : found->services) {
      work_->unsubscribe(id);
    }
  }
  members_.erase(found);
}

rt::Task<void> Gate::drain_clients(Gate* self) {
  self->send_batch();
  const Instant deadline = deadline_after(sys::now(), kGateLinger);
  for (nats::Client* const client : {self->bus_.get(), self->work_.get()}) {
    if (client != nullptr && (client->is_connected() || client->kept_messages() != 0)) {
      (void)co_await client->drain(deadline);
    }
  }
  if (self->scope_ != nullptr) {
    self->scope_->cancel();
    (void)co_await self->scope_->join();
  }
}

// The counters of the clients outlive them in last_.
void Gate::close_clients() noexcept {
  queue_.end();
  const GateCounts before = counts();
  const sync::LockGuard lock(mutex_);
  ended_ = true;
  last_ = before;
  last_.dropped_closed += last_.queued;
  last_.queued = 0;
  bus_.reset();
  work_.reset();
  scope_.reset();
  host_.reset();
}

Gate::~Gate() {
  if (runtime_ != nullptr) {
    const Result<void> closed = on_core([&]() -> Result<void> {
      if (bus_ != nullptr || work_ != nullptr || host_ != nullptr) {
        close_clients();
      }
      return {};
    });
    if (!closed) {  // a forked child: the connections are its parent's
      (void)bus_.release();
      (void)work_.release();
      (void)scope_.release();
      (void)new (std::nothrow) std::shared_ptr<serve::ClientHost>(host_);
    }
    runtime_.reset();
  }
}

// --- services ---

Result<void> Gate::serve(GateMember& member, std::uint64_t service, std::string_view subject, std::string_view group) {
  return on_core([&]() -> Result<void> {
    const auto found =
        std::find_if(members_.begin(), members_.end(), [&](const Member& each) { return each.member == &member; });
    if (found == members_.end()) {
      return kGateClosed;
    }
    const auto handler = [to = &member, service](const nats::Message& m) {
      if (m.reply.empty()) {
        return;  // a publication, to those that subscribed
      }
      Message body;
      (void)body.assign_copy(m.body);
      to->handle_gate_request(service, m.reply, std::move(body), block_of(m));
    };
    nats::Subscribing how;
    how.group = group;
    how.on_ended = [this, to = &member, service](const Error& why) {
      for (Member& each : members_) {
        if (each.member == to && each.services.erase(service) != 0 && why != Errc::closed) {
          to->handle_gate_service_refused(service, why);
        }
      }
    };
    found->services[service] = WEFT_TRY(work_->subscribe(subject, handler, std::move(how)));
    return {};
  });
}

void Gate::stop_serving(GateMember& member, std::uint64_t service) noexcept {
  (void)on_core([&]() -> Result<void> {
    for (Member& each : members_) {
      const auto found = each.services.find(service);
      if (each.member == &member && found != each.services.end()) {
        work_->drain(found->second);  // the member refuses the requests that are on their way
      }
    }
    return {};
  });
}

}  // namespace weft::topic
