// SPDX-License-Identifier: MIT
// nng, through the functions that its library exports: https://nng.nanomsg.org/man/v1.5.0/. The program loads
// it on demand, so that no build needs it. PUB/SUB is missing: nng's PUB drops messages for which a subscriber
// has no room, and cannot wait.
#include <dlfcn.h>
#include <unistd.h>

#include <cstdint>
#include <string>

#include "bench/engine/end.h"

namespace bench {
namespace {

struct Handle {  // names a socket, a listener or a dialer
  std::uint32_t id = 0;
};

struct Api {
  const char* (*version)();
  const char* (*describe)(int);
  int (*open_pull)(Handle*);
  int (*open_push)(Handle*);
  int (*open_pair)(Handle*);
  int (*open_rep)(Handle*);
  int (*open_req)(Handle*);
  int (*close)(Handle);
  int (*set_int)(Handle, const char*, int);
  int (*set_size)(Handle, const char*, std::size_t);
  int (*listen)(Handle, const char*, Handle*, int);
  int (*dial)(Handle, const char*, Handle*, int);
  int (*listener_int)(Handle, const char*, int*);
  int (*send)(Handle, void*, std::size_t, int);
  int (*receive)(Handle, void*, std::size_t*, int);
};

void check_nng(const Api& api, int result, const char* call) {
  if (result != 0) [[unlikely]] {
    fail(std::string("nng: ") + call + ": " + api.describe(result));
  }
}

class NngEnd final : public End {
 public:
  NngEnd(const Api& api, Handle socket) : api_(api), socket_(socket) {}
  ~NngEnd() override { api_.close(socket_); }
  NngEnd(const NngEnd&) = delete;
  NngEnd& operator=(const NngEnd&) = delete;

  void send(const void* data, std::size_t size) override {
    check_nng(api_, api_.send(socket_, const_cast<void*>(data), size, 0), "send");
  }
  std::size_t receive(void* target, std::size_t capacity) override {
    std::size_t size = capacity;
    check_nng(api_, api_.receive(socket_, target, &size, 0), "receive");
    return size;
  }

 private:
  const Api& api_;
  Handle socket_;
};

class NngEngine final : public Engine {
 public:
  NngEngine() {
    library_ = dlopen("libnng.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library_ == nullptr) {
      fail(std::string("no nng: ") + dlerror());
    }
    load("nng_version", api_.version);
    load("nng_strerror", api_.describe);
    load("nng_pull0_open", api_.open_pull);
    load("nng_push0_open", api_.open_push);
    load("nng_pair0_open", api_.open_pair);
    load("nng_rep0_open", api_.open_rep);
    load("nng_req0_open", api_.open_req);
    load("nng_close", api_.close);
    load("nng_socket_set_int", api_.set_int);
    load("nng_socket_set_size", api_.set_size);
    load("nng_listen", api_.listen);
    load("nng_dial", api_.dial);
    load("nng_listener_get_int", api_.listener_int);
    load("nng_send", api_.send);
    load("nng_recv", api_.receive);
  }

  std::string version() const override { return api_.version(); }
  std::string path() const override { return "libnng.so.1"; }
  void prepare(const Cell& cell, Addresses&) override {
    const bool has = cell.pattern == Pattern::push_pull || cell.pattern == Pattern::pair || cell.trips();
    if (!has || cell.curve || cell.tls || cell.ws || cell.moved) {
      fail("nng has nothing like " + cell.name);
    }
  }

  Ends bind(const Cell& cell, Addresses& addresses) override {
    Ends ends;
    for (int lane = 0; lane < cell.lanes(Side::leader); ++lane) {
      const Handle socket = open(cell, Side::leader);
      ends.push_back(std::make_unique<NngEnd>(api_, socket));
      const std::string number = std::to_string(lane);
      std::string endpoint = "inproc://bench-" + number;
      if (cell.transport == "tcp") {
        endpoint = "tcp://127.0.0.1:0";
      } else if (cell.transport == "ipc") {
        endpoint = "abstract://weft-bench-" + std::to_string(getpid()) + "-" + number;
      }
      Handle listener;
      check_nng(api_, api_.listen(socket, endpoint.c_str(), &listener, 0), "listen");
      if (cell.transport == "tcp") {
        int port = 0;
        check_nng(api_, api_.listener_int(listener, "tcp-bound-port", &port), "tcp-bound-port");
        endpoint = "tcp://127.0.0.1:" + std::to_string(port);
      }
      endpoint.copy(addresses.endpoints[static_cast<std::size_t>(lane)].data(), addresses.endpoints[0].size() - 1);
    }
    return ends;
  }

  Ends connect(const Cell& cell, const Addresses& addresses) override {
    Ends ends;
    for (int lane = 0; lane < cell.lanes(Side::follower); ++lane) {
      const Handle socket = open(cell, Side::follower);
      ends.push_back(std::make_unique<NngEnd>(api_, socket));
      const char* const endpoint = addresses.endpoints[static_cast<std::size_t>(lane)].data();
      check_nng(api_, api_.dial(socket, endpoint, nullptr, 0), "dial");
    }
    return ends;
  }

 private:
  template <typename Function>
  void load(const char* symbol, Function*& target) {
    void* const address = dlsym(library_, symbol);
    if (address == nullptr) {
      fail(std::string("this nng has no ") + symbol);
    }
    target = reinterpret_cast<Function*>(address);
  }

  Handle open(const Cell& cell, Side side) {
    const bool leads = side == Side::leader;
    auto* maker = leads ? api_.open_pull : api_.open_push;
    if (cell.pattern == Pattern::pair) {
      maker = api_.open_pair;
    } else if (cell.pattern == Pattern::round_trip) {
      maker = leads ? api_.open_rep : api_.open_req;
    }
    Handle socket;
    check_nng(api_, maker(&socket), "open");
    // Room as in a libzmq socket; some patterns refuse because they have no such buffer.
    static_cast<void>(api_.set_int(socket, "send-buffer", 1000));
    static_cast<void>(api_.set_int(socket, "recv-buffer", 1000));
    static_cast<void>(api_.set_size(socket, "recv-size-max", 0));  // any size
    return socket;
  }

  void* library_ = nullptr;
  Api api_{};
};

}  // namespace

std::unique_ptr<Engine> make_nng() { return std::make_unique<NngEngine>(); }

}  // namespace bench
