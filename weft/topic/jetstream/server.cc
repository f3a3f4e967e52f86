// SPDX-License-Identifier: MIT
#include "weft/topic/jetstream/server.h"

#include <chrono>
#include <new>
#include <string>
#include <utility>

#include "weft/base/no_memory.h"
#include "weft/msg/socket/socket_core.h"
#include "weft/rt/core/runtime.h"
#include "weft/rt/task/task_scope.h"
#include "weft/sys/clock.h"
#include "weft/topic/gate/on_core.h"
#include "weft/topic/jetstream/appends.h"
#include "weft/topic/jetstream/batches.h"
#include "weft/topic/jetstream/channels.h"
#include "weft/topic/jetstream/engine.h"
#include "weft/topic/jetstream/kept_streams.h"
#include "weft/topic/jetstream/keys.h"

namespace weft::topic {

namespace {
constexpr Duration kServerLinger = std::chrono::seconds(1);
constexpr unsigned kOpsMost = 256;                          // ops a turn
constexpr std::size_t kPendingMax = std::size_t{32} << 20;  // bytes; a handle has fewer in flight
constexpr Error kLeases(Errc::not_supported, "leases on NATS: its fleet has presence and owners without them");
}  // namespace

// Session: the server on its core.
class JetStreamServer::Session final : public rt::Watcher {
 public:
  Session(Socket router, std::shared_ptr<ServersTrouble> trouble)
      : trouble_(std::move(trouble)),
        engine_(std::move(router), rt::Core::current()->loop(), trouble_),
        streams_(engine_),
        appends_(engine_, streams_),
        batches_(engine_, streams_),
        channels_(engine_, streams_),
        keys_(engine_, streams_) {}
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session() = default;

  [[nodiscard]] Result<void> open(const GateOptions& gate) {
    nats::ClientOptions options = WEFT_TRY(client_options(gate));
    options.pending_max = kPendingMax;
    options.echo = false;
    options.on_event = [this](const nats::ClientEvent& event) { handle_connection(event); };
    WEFT_TRY(engine_.open(std::make_shared<serve::ClientHost>(*rt::Core::current()), std::move(options)));
    WEFT_TRY(appends_.open());
    const int fd = WEFT_TRY(engine_.router().core()->descriptor());
    watch_ = WEFT_TRY(engine_.loop().watch(fd, sys::Interest::readable, false, this));
    return {};
  }

  static rt::Task<void> drain(Session* self) {
    self->unwatch();
    self->channels_.close();
    if (self->engine_.client().is_connected()) {
      (void)co_await self->engine_.client().drain(deadline_after(sys::now(), kServerLinger));
    }
    self->appends_.close();
    self->engine_.scope().cancel();
    (void)co_await self->engine_.scope().join();
    self->engine_.close();
  }

  void handle_event(const sys::PollEvent& /*event*/) override { handle_input(); }

 private:
  void unwatch() noexcept { engine_.loop().unwatch(std::exchange(watch_, 0)); }
  void handle_input();
  unsigned take_ops();
  [[nodiscard]] bool take_op();
  void handle(std::unique_ptr<Asked> asked);
  void handle_connection(const nats::ClientEvent& event);

  const std::shared_ptr<ServersTrouble> trouble_;
  Engine engine_;
  KeptStreams streams_;
  Appends appends_;
  Batches batches_;
  Channels channels_;
  Keys keys_;
  rt::Loop::WatchId watch_ = 0;
};

// A turn that ends before the socket is empty may leave ops of which a cleared descriptor has no sign. So another turn
// follows.
void JetStreamServer::Session::handle_input() {
  while (watch_ != 0 && take_ops() == kOpsMost) {
    try {
      engine_.loop().post([this] { handle_input(); });
      return;
    } catch (const std::bad_alloc&) {  // no memory for a later turn: go on in this one
    }
  }
}

unsigned JetStreamServer::Session::take_ops() {
  unsigned taken = 0;
  while (taken < kOpsMost && take_op()) {
    ++taken;
  }
  msg::SocketCore& core = *engine_.router().core();
  if (core.closed() || core.terminated()) {
    unwatch();  // the descriptor would stay readable for ever
  }
  return taken;
}

// One message of a handle: its routing id, and the op. Returns false if none waits.
bool JetStreamServer::Session::take_op() {
  auto id = engine_.router().try_recv();
  if (!id) {
    return false;
  }
  Message bytes;
  std::size_t parts = 0;
  for (bool more = id->more(); more; ++parts) {
    auto part = engine_.router().try_recv();
    if (!part) {
      return false;
    }
    more = part->more();
    bytes = *std::move(part);
  }
  const auto handled = or_no_memory([&]() -> Result<void> {
    std::string client(id->text());
    if (parts == 1 && bytes.empty()) {  // the router's notice: the connection is gone
      appends_.drop_client(client);
      channels_.drop_client(client);
      keys_.drop_client(client);
    } else if (parts == 1) {
      handle(std::make_unique<Asked>(std::move(client), std::move(bytes)));
    }
    return {};
  });
  (void)handled;  // no memory: the op has no answer, and its deadline ends it
  return true;
}

void JetStreamServer::Session::handle(std::unique_ptr<Asked> asked) {
  const auto op = parse_op(asked->bytes.bytes());
  if (!op) {
    asked->op.id = op_id(asked->bytes.bytes());
    return engine_.refuse(*asked, op.error());
  }
  asked->op = *op;
  switch (op->kind) {
    case OpKind::declare: engine_.spawn(KeptStreams::declare(&streams_, std::move(asked))); return;
    case OpKind::info:
      engine_.spawn(op->name.empty() ? KeptStreams::names(&streams_, std::move(asked))
                                     : KeptStreams::info(&streams_, std::move(asked)));
      return;
    case OpKind::remove: engine_.spawn(KeptStreams::remove(&streams_, std::move(asked))); return;
    case OpKind::purge: engine_.spawn(KeptStreams::purge(&streams_, std::move(asked))); return;
    case OpKind::append: return appends_.append(std::move(asked));
    case OpKind::append_all: engine_.spawn(Batches::append(&batches_, std::move(asked))); return;
    case OpKind::get: engine_.spawn(KeptStreams::get(&streams_, std::move(asked))); return;
    case OpKind::consume:
    case OpKind::read: return channels_.open(std::move(asked));
    case OpKind::credit: return channels_.credit(*asked);
    case OpKind::end: return channels_.end(std::move(asked));
    case OpKind::begin:
    case OpKind::ack:
    case OpKind::nak:
    case OpKind::work:
    case OpKind::reject: return channels_.settle(std::move(asked));
    case OpKind::probe: return engine_.answer(*asked, {.number = 1, .second = 1});
    case OpKind::list: engine_.spawn(Keys::list(&keys_, std::move(asked))); return;
    case OpKind::lease:
    case OpKind::release:
    case OpKind::leases: return engine_.refuse(*asked, kLeases);
    case OpKind::answer:
    case OpKind::delivery:
    case OpKind::caught_up:
    case OpKind::ended:
    case OpKind::recall:
    case OpKind::lease_changed: break;
  }
  engine_.refuse(*asked, Error(Errc::invalid_argument, "an op that only a server sends"));
}

void JetStreamServer::Session::handle_connection(const nats::ClientEvent& event) {
  using Kind = nats::ClientEvent::Kind;
  if (event.kind == Kind::connected || event.kind == Kind::lost || event.kind == Kind::unconnected) {
    trouble_->set_connection(event.kind == Kind::connected ? Error() : event.why);
  }
  if (event.kind == Kind::connected) {
    appends_.handle_connected();
    channels_.handle_connected();
  } else if (event.kind == Kind::lost) {
    appends_.handle_lost();
    channels_.handle_lost();
  } else if (event.kind == Kind::refused && !event.subject.empty()) {
    engine_.handle_refused(event.subject, event.why);
    appends_.handle_refused(event.subject, event.why);
    channels_.handle_refused(event.subject, event.why);
  }
}

JetStreamServer::JetStreamServer() : trouble_(std::make_shared<ServersTrouble>()) {}

std::function<Error()> JetStreamServer::missing() const {
  return [trouble = trouble_] { return trouble->why(); };
}

Result<std::unique_ptr<JetStreamServer>> JetStreamServer::start(Socket router, const GateOptions& options) {
  rt::RuntimeOptions runtime;
  runtime.cores = 1;
  runtime.pinning = rt::Pinning::never;
  runtime.wait_mode = sync::WaitMode::eco;
  runtime.thread_name = "jetstream";
  std::unique_ptr<JetStreamServer> server(new JetStreamServer());
  server->runtime_ = WEFT_TRY(rt::Runtime::start(runtime));
  WEFT_TRY(on_core(*server->runtime_, [&]() -> Result<void> {
    server->session_ = std::make_unique<Session>(std::move(router), server->trouble_);
    const auto opened = server->session_->open(options);
    if (!opened) {
      server->session_.reset();
    }
    return opened;
  }));
  return server;
}

JetStreamServer::~JetStreamServer() {
  if (runtime_ == nullptr) {
    return;
  }
  if (session_ != nullptr) {
    const Result<void> there = on_core(*runtime_, [] { return Result<void>(); });
    if (!there) {  // a forked child: the connection is its parent's
      (void)session_.release();
    } else {
      auto drained = rt::spawn(runtime_->core(0).loop(), Session::drain(session_.get()));
      (void)drained.wait_until(kNever);
      (void)on_core(*runtime_, [&]() -> Result<void> {
        session_.reset();
        return {};
      });
    }
  }
  runtime_.reset();
}

}  // namespace weft::topic
