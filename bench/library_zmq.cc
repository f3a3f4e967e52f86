// SPDX-License-Identifier: MIT
#include <dlfcn.h>

#include <array>

#include "bench/library.h"

namespace bench {
namespace {

// The names, signatures and numbers of libzmq's stable C interface that a benchmark needs.
constexpr int kReq = 3, kRep = 4, kPull = 7, kPush = 8;
constexpr int kLinger = 17, kSendHighWaterMark = 23, kReceiveHighWaterMark = 24, kLastEndpoint = 32;

struct Api {
  void* (*ctx_new)();
  int (*ctx_term)(void*);
  void* (*socket)(void*, int);
  int (*close)(void*);
  int (*setsockopt)(void*, int, const void*, std::size_t);
  int (*getsockopt)(void*, int, void*, std::size_t*);
  int (*bind)(void*, const char*);
  int (*connect)(void*, const char*);
  int (*send)(void*, const void*, std::size_t, int);
  int (*receive)(void*, void*, std::size_t, int);
  int (*last_error)();
  const char* (*describe)(int);
  void (*version)(int*, int*, int*);
};

[[noreturn]] void refuse(const Api& api, const char* call) {
  fail(std::string("libzmq: ") + call + ": " + api.describe(api.last_error()));
}

void check(const Api& api, int result, const char* call) {
  if (result != 0) {
    refuse(api, call);
  }
}

int type_of(SocketType type) {
  switch (type) {
    case SocketType::push: return kPush;
    case SocketType::pull: return kPull;
    case SocketType::req: return kReq;
    case SocketType::rep: break;
  }
  return kRep;
}

class ZmqSocket final : public Socket {
 public:
  ZmqSocket(const Api& api, void* context, SocketType type) : api_(api), socket_(api.socket(context, type_of(type))) {
    if (socket_ == nullptr) {
      refuse(api_, "socket");
    }
    set(kSendHighWaterMark, 1000);
    set(kReceiveHighWaterMark, 1000);
    set(kLinger, 0);
  }
  ~ZmqSocket() override { api_.close(socket_); }

  std::string bind(const std::string& endpoint) override {
    check(api_, api_.bind(socket_, endpoint.c_str()), "bind");
    std::array<char, 256> exact{};
    std::size_t size = exact.size();
    check(api_, api_.getsockopt(socket_, kLastEndpoint, exact.data(), &size), "getsockopt");
    return exact.data();
  }
  void connect(const std::string& endpoint) override {
    check(api_, api_.connect(socket_, endpoint.c_str()), "connect");
  }
  void send(const void* data, std::size_t size) override {
    if (api_.send(socket_, data, size, 0) < 0) [[unlikely]] {
      refuse(api_, "send");
    }
  }
  std::size_t receive(void* target, std::size_t capacity) override {
    const int size = api_.receive(socket_, target, capacity, 0);
    if (size < 0) [[unlikely]] {
      refuse(api_, "receive");
    }
    return static_cast<std::size_t>(size);
  }

 private:
  void set(int option, int value) { check(api_, api_.setsockopt(socket_, option, &value, sizeof value), "setsockopt"); }

  const Api& api_;
  void* socket_;
};

class ZmqContext final : public Context {
 public:
  explicit ZmqContext(const Api& api) : api_(api), context_(api.ctx_new()) {
    if (context_ == nullptr) {
      refuse(api_, "ctx_new");
    }
  }
  ~ZmqContext() override { api_.ctx_term(context_); }
  std::unique_ptr<Socket> open_socket(SocketType type) override {
    return std::make_unique<ZmqSocket>(api_, context_, type);
  }

 private:
  const Api& api_;
  void* context_;
};

class ZmqLibrary final : public Library {
 public:
  ZmqLibrary(const std::string& path, std::string name) : name_(std::move(name)) {
    handle_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle_ == nullptr) {
      fail("cannot load " + path + ": " + dlerror());
    }
    load("zmq_ctx_new", api_.ctx_new);
    load("zmq_ctx_term", api_.ctx_term);
    load("zmq_socket", api_.socket);
    load("zmq_close", api_.close);
    load("zmq_setsockopt", api_.setsockopt);
    load("zmq_getsockopt", api_.getsockopt);
    load("zmq_bind", api_.bind);
    load("zmq_connect", api_.connect);
    load("zmq_send", api_.send);
    load("zmq_recv", api_.receive);
    load("zmq_errno", api_.last_error);
    load("zmq_strerror", api_.describe);
    load("zmq_version", api_.version);
  }
  ~ZmqLibrary() override { dlclose(handle_); }
  ZmqLibrary(const ZmqLibrary&) = delete;
  ZmqLibrary& operator=(const ZmqLibrary&) = delete;

  std::string name() const override { return name_; }
  std::string version() const override {
    int major = 0;
    int minor = 0;
    int patch = 0;
    api_.version(&major, &minor, &patch);
    return std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(patch);
  }
  std::unique_ptr<Context> open_context(WaitMode) override { return std::make_unique<ZmqContext>(api_); }

 private:
  template <typename Function>
  void load(const char* symbol, Function*& target) {
    void* const address = dlsym(handle_, symbol);
    if (address == nullptr) {
      fail(std::string("this library has no ") + symbol);
    }
    target = reinterpret_cast<Function*>(address);
  }

  std::string name_;
  void* handle_ = nullptr;
  Api api_{};
};

}  // namespace

std::unique_ptr<Library> make_zmq(const std::string& path, const std::string& name) {
  return std::make_unique<ZmqLibrary>(path, name);
}

}  // namespace bench
