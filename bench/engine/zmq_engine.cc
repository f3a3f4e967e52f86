// SPDX-License-Identifier: MIT
// Any libzmq.so.5, through zmq.h alone; LD_LIBRARY_PATH chooses the library.
#include <dlfcn.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstring>
#include <optional>
#include <thread>

#include "bench/engine/end.h"
#include "bench/engine/zmq_sockets.h"

namespace bench {
namespace {

constexpr int kRetries = 5'000;
constexpr std::chrono::milliseconds kRetry(1);

}  // namespace

void check_zmq(bool good, const char* call) {
  if (!good) [[unlikely]] {
    fail(std::string(call) + ": " + zmq_strerror(zmq_errno()));
  }
}

ZmqContext::ZmqContext() : context_(zmq_ctx_new()) { check_zmq(context_ != nullptr, "zmq_ctx_new"); }
ZmqContext::~ZmqContext() { zmq_ctx_term(context_); }

void* ZmqContext::open_socket(int type, const Cell& cell) {
  if (cell.io2) {
    check_zmq(zmq_ctx_set(context_, ZMQ_IO_THREADS, 2) == 0, "ZMQ_IO_THREADS");
  }
  void* socket = zmq_socket(context_, type);
  for (int i = 0; socket == nullptr && zmq_errno() == EMFILE && i < kRetries; ++i) {
    std::this_thread::sleep_for(kRetry);  // a context releases closed sockets a little later
    socket = zmq_socket(context_, type);
  }
  check_zmq(socket != nullptr, "zmq_socket");
  set(socket, ZMQ_SNDHWM, cell.unlimited ? 0 : 1000);
  set(socket, ZMQ_RCVHWM, cell.unlimited ? 0 : 1000);
  set(socket, ZMQ_LINGER, 0);
  if (type == ZMQ_PUB) {
    set(socket, ZMQ_XPUB_NODROP, 1);  // a slow subscriber blocks the publisher, so that every message can be counted
  } else if (type == ZMQ_ROUTER) {
    set(socket, ZMQ_ROUTER_MANDATORY, 1);
  } else if (type == ZMQ_SUB) {
    check_zmq(zmq_setsockopt(socket, ZMQ_SUBSCRIBE, "", 0) == 0, "ZMQ_SUBSCRIBE");
  }
  return socket;
}

void ZmqContext::set(void* socket, int option, int value) {
  check_zmq(zmq_setsockopt(socket, option, &value, sizeof value) == 0, "zmq_setsockopt");
}

void ZmqContext::set_keys(void* socket, bool serves, const Addresses& addresses) {
  const auto set_key = [&](int option, const std::array<char, 41>& key) {
    check_zmq(zmq_setsockopt(socket, option, key.data(), key.size()) == 0, "a key of CURVE");
  };
  if (serves) {
    set(socket, ZMQ_CURVE_SERVER, 1);
    set_key(ZMQ_CURVE_SECRETKEY, addresses.server_secret);
  } else {
    set_key(ZMQ_CURVE_SERVERKEY, addresses.server_public);
    set_key(ZMQ_CURVE_PUBLICKEY, addresses.client_public);
    set_key(ZMQ_CURVE_SECRETKEY, addresses.client_secret);
  }
}

void ZmqContext::set_certificate(void* socket, bool serves, const Addresses& addresses) {
  const auto set_file = [&](int option, const std::array<char, 128>& file) {
    check_zmq(zmq_setsockopt(socket, option, file.data(), std::strlen(file.data())) == 0, "a file of TLS");
  };
  if (serves) {
    set_file(WEFT_TLS_CERTIFICATE, addresses.certificate);
    set_file(WEFT_TLS_KEY, addresses.key);
  } else {
    set_file(WEFT_TLS_AUTHORITIES, addresses.certificate);
  }
}

void bind_zmq(void* socket, const Cell& cell, int lane, Addresses& addresses) {
  std::string endpoint = std::string(cell.tls ? "tls+tcp" : cell.ws ? "ws" : "tcp") + "://127.0.0.1:*";
  if (cell.transport == "ipc") {  // an abstract name leaves no file
    endpoint = "ipc://@weft-bench-" + std::to_string(getpid()) + "-" + std::to_string(lane);
  } else if (cell.transport == "inproc") {
    endpoint = "inproc://bench-" + std::to_string(lane);
  }
  check_zmq(zmq_bind(socket, endpoint.c_str()) == 0, "zmq_bind");
  auto& exact = addresses.endpoints[static_cast<std::size_t>(lane)];
  std::size_t size = exact.size();
  check_zmq(zmq_getsockopt(socket, ZMQ_LAST_ENDPOINT, exact.data(), &size) == 0, "ZMQ_LAST_ENDPOINT");
}

namespace {

// The socket types of [leader, follower].
std::array<int, 2> types_of(Pattern pattern) {
  switch (pattern) {
    case Pattern::pub_sub: return {ZMQ_SUB, ZMQ_PUB};
    case Pattern::router_router: return {ZMQ_ROUTER, ZMQ_ROUTER};
    case Pattern::dealer_router: return {ZMQ_ROUTER, ZMQ_DEALER};
    case Pattern::pair: return {ZMQ_PAIR, ZMQ_PAIR};
    case Pattern::round_trip:
    case Pattern::service:
    case Pattern::broker: return {ZMQ_REP, ZMQ_REQ};
    case Pattern::push_pull:
    case Pattern::one_thread:
    case Pattern::pipeline:
    case Pattern::burst:
    case Pattern::connect_storm:
    case Pattern::idle_memory: break;
  }
  return {ZMQ_PULL, ZMQ_PUSH};
}

class ZmqEnd : public End {
 public:
  ZmqEnd(std::shared_ptr<ZmqContext> context, void* socket) : context_(std::move(context)), socket_(socket) {}
  ~ZmqEnd() override { zmq_close(socket_); }
  ZmqEnd(const ZmqEnd&) = delete;
  ZmqEnd& operator=(const ZmqEnd&) = delete;

  void send(const void* data, std::size_t size) override {
    check_zmq(zmq_send(socket_, data, size, 0) >= 0, "zmq_send");
  }
  std::size_t receive(void* target, std::size_t capacity) override {
    const int size = zmq_recv(socket_, target, capacity, 0);
    check_zmq(size >= 0, "zmq_recv");
    return static_cast<std::size_t>(size);
  }
  unsigned char* loan(std::size_t size) override {
    check_zmq(zmq_msg_init_size(&message_, size) == 0, "zmq_msg_init_size");
    return static_cast<unsigned char*>(zmq_msg_data(&message_));
  }
  void send_loan() override { check_zmq(zmq_msg_send(&message_, socket_, 0) >= 0, "zmq_msg_send"); }
  const unsigned char* receive_loan(std::size_t& size) override {
    check_zmq(zmq_msg_init(&message_) == 0 && zmq_msg_recv(&message_, socket_, 0) >= 0, "zmq_msg_recv");
    size = zmq_msg_size(&message_);
    return static_cast<const unsigned char*>(zmq_msg_data(&message_));
  }
  void give_back() override { zmq_msg_close(&message_); }

 protected:
  void* socket() const noexcept { return socket_; }

 private:
  std::shared_ptr<ZmqContext> context_;
  void* socket_;
  zmq_msg_t message_{};
};

// A ROUTER: sends a routing id before each message, and receives one before each.
class RouterEnd final : public ZmqEnd {
 public:
  RouterEnd(std::shared_ptr<ZmqContext> context, void* socket, std::string peer)
      : ZmqEnd(std::move(context), socket), peer_(std::move(peer)) {}

  void send(const void* data, std::size_t size) override {
    address();
    ZmqEnd::send(data, size);
  }
  std::size_t receive(void* target, std::size_t capacity) override {
    drop_address();
    return ZmqEnd::receive(target, capacity);
  }
  void send_loan() override {
    address();
    ZmqEnd::send_loan();
  }
  const unsigned char* receive_loan(std::size_t& size) override {
    drop_address();
    return ZmqEnd::receive_loan(size);
  }

 private:
  void address() {
    while (zmq_send(socket(), peer_.data(), peer_.size(), ZMQ_SNDMORE) < 0) {
      check_zmq(zmq_errno() == EHOSTUNREACH, "zmq_send to a peer");  // the peer has not connected yet
      std::this_thread::sleep_for(kRetry);
    }
  }
  void drop_address() {
    std::array<char, 256> id{};
    check_zmq(zmq_recv(socket(), id.data(), id.size(), 0) > 0, "zmq_recv of a routing id");
  }

  std::string peer_;
};

// Relay: the program between the two sides of a cell, with a thread of its own: a stage that passes each message on, or
// a broker. The follower connects to it, and it connects to the leader. Owner: the engine. Affinity: one thread.
class Relay {
 public:
  // Replaces the leader's endpoint in `addresses` by its own.
  Relay(const Cell& cell, std::shared_ptr<ZmqContext> context, Addresses& addresses) : context_(std::move(context)) {
    const bool brokers = cell.pattern == Pattern::broker;
    front_ = context_->open_socket(brokers ? ZMQ_ROUTER : ZMQ_PULL, cell);
    back_ = context_->open_socket(brokers ? ZMQ_DEALER : ZMQ_PUSH, cell);
    check_zmq(zmq_connect(back_, addresses.endpoints[0].data()) == 0, "zmq_connect");
    bind_zmq(front_, cell, kRelayLane, addresses);
    addresses.endpoints[0] = addresses.endpoints[kRelayLane];
    thread_ = std::thread([this, brokers, size = cell.size] {
      brokers ? static_cast<void>(zmq_proxy(front_, back_, nullptr)) : pass_on(size);
      zmq_close(front_);
      zmq_close(back_);
    });
  }
  ~Relay() {
    context_->shut_down();
    thread_.join();
  }
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

 private:
  static constexpr int kRelayLane = 1;  // of the addresses: such a cell has one leader

  void pass_on(std::size_t capacity) {
    std::vector<unsigned char> buffer(capacity);
    for (int size = 0; size >= 0;) {
      size = zmq_recv(front_, buffer.data(), buffer.size(), 0);
      if (size >= 0) {
        size = zmq_send(back_, buffer.data(), static_cast<std::size_t>(size), 0);
      }
    }
    check_zmq(zmq_errno() == ETERM, "the stage between");
  }

  std::shared_ptr<ZmqContext> context_;
  void* front_ = nullptr;
  void* back_ = nullptr;
  std::thread thread_;
};

class ZmqEngine final : public Engine {
 public:
  std::string version() const override {
    int major = 0;
    int minor = 0;
    int patch = 0;
    zmq_version(&major, &minor, &patch);
    return std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(patch);
  }
  std::string path() const override {
    // Through dlsym, because the address of a function may be the jump to it in this program.
    Dl_info info{};
    void* const symbol = dlsym(RTLD_DEFAULT, "zmq_version");
    return symbol != nullptr && dladdr(symbol, &info) != 0 ? info.dli_fname : "";
  }
  void prepare(const Cell& cell, Addresses& addresses) override {
    if (cell.curve) {
      const bool made = zmq_curve_keypair(addresses.server_public.data(), addresses.server_secret.data()) == 0 &&
                        zmq_curve_keypair(addresses.client_public.data(), addresses.client_secret.data()) == 0;
      check_zmq(made, "zmq_curve_keypair");
    }
    if (cell.tls) {
      make_certificate(addresses);
    }
  }
  Ends bind(const Cell& cell, Addresses& addresses) override {
    context_ = std::make_shared<ZmqContext>();
    Ends ends;
    for (int lane = 0; lane < cell.lanes(cell.binder()); ++lane) {
      ends.push_back(open(cell, cell.binder(), lane, context_, addresses));
      bind_zmq(last_, cell, lane, addresses);
    }
    if (cell.pattern == Pattern::pipeline || cell.pattern == Pattern::broker) {
      relay_.emplace(cell, cell.transport == "inproc" ? context_ : std::make_shared<ZmqContext>(), addresses);
    }
    return ends;
  }
  Ends connect(const Cell& cell, const Addresses& addresses) override {
    // Each side has a context of its own, as two programs would have, except for inproc.
    const auto context = cell.transport == "inproc" ? context_ : std::make_shared<ZmqContext>();
    const Side side = cell.binder() == Side::leader ? Side::follower : Side::leader;
    Ends ends;
    for (int lane = 0; lane < cell.lanes(side); ++lane) {
      ends.push_back(open(cell, side, lane, context, addresses));
      const int target = std::min(lane, cell.lanes(cell.binder()) - 1);
      check_zmq(zmq_connect(last_, addresses.endpoints[static_cast<std::size_t>(target)].data()) == 0, "zmq_connect");
    }
    return ends;
  }

 private:
  // Sets last_.
  std::unique_ptr<End> open(const Cell& cell, Side side, int lane, const std::shared_ptr<ZmqContext>& context,
                            const Addresses& addresses) {
    const int type = types_of(cell.pattern)[side == Side::leader ? 0 : 1];
    last_ = context->open_socket(type, cell);
    if (cell.curve) {
      ZmqContext::set_keys(last_, side == cell.binder(), addresses);
    }
    if (cell.tls) {
      ZmqContext::set_certificate(last_, side == cell.binder(), addresses);
    }
    if (type != ZMQ_ROUTER) {
      return std::make_unique<ZmqEnd>(context, last_);
    }
    const std::string leader = "leader" + std::to_string(lane);
    const std::string follower = "follower" + std::to_string(lane);
    const std::string& own = side == Side::leader ? leader : follower;
    check_zmq(zmq_setsockopt(last_, ZMQ_ROUTING_ID, own.data(), own.size()) == 0, "ZMQ_ROUTING_ID");
    return std::make_unique<RouterEnd>(context, last_, side == Side::leader ? follower : leader);
  }

  std::shared_ptr<ZmqContext> context_;  // of the binding side
  std::optional<Relay> relay_;
  void* last_ = nullptr;
};

}  // namespace

std::unique_ptr<Engine> make_zmq() { return std::make_unique<ZmqEngine>(); }

}  // namespace bench
