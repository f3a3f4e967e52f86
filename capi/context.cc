// SPDX-License-Identifier: MIT
#include <cerrno>
#include <cstring>

#include "capi/handle_store.h"
#include "capi/handles.h"

namespace weft::capi {

ContextHandle* make_context_handle() { return HandleStore<ContextHandle>::instance().take(); }
SocketHandle* make_socket_handle() { return HandleStore<SocketHandle>::instance().take(); }
void retire(ContextHandle* handle) noexcept {
  handle->tag.store(0, std::memory_order_release);
  handle->core.reset();
  HandleStore<ContextHandle>::instance().put(handle);
}
void retire(SocketHandle* handle) noexcept {
  handle->tag.store(0, std::memory_order_release);
  handle->core.reset();
  handle->socket = Socket();
  HandleStore<SocketHandle>::instance().put(handle);
}
ContextHandle* context_of(void* pointer) noexcept { return live_handle<ContextHandle>(pointer, EFAULT); }
SocketHandle* socket_of(void* pointer) noexcept { return live_handle<SocketHandle>(pointer, ENOTSOCK); }

}  // namespace weft::capi

using namespace weft;        // NOLINT(google-build-using-namespace)
using namespace weft::capi;  // NOLINT(google-build-using-namespace)

namespace {

struct ContextOption {
  int id;
  int min;
  int max;
  int (*read)(const ContextHandle&);
  void (*write)(ContextHandle&, int);  // null: read-only
};

void make_core(ContextHandle& handle) {
  ContextOptions options;
  options.sockets_max = static_cast<std::size_t>(handle.sockets_max);
  handle.core = std::make_shared<msg::ContextCore>(options);
}

constexpr int kIntMax = INT32_MAX;
constexpr ContextOption kOptions[] = {
    {ZMQ_IO_THREADS, 0, kIntMax, [](const ContextHandle& c) { return c.io_threads; },
     [](ContextHandle& c, int v) { c.io_threads = v; }},
    {ZMQ_MAX_SOCKETS, 1, kIntMax, [](const ContextHandle& c) { return c.sockets_max; },
     [](ContextHandle& c, int v) { c.core->set_sockets_max(static_cast<std::size_t>(c.sockets_max = v)); }},
    {ZMQ_SOCKET_LIMIT, 0, 0, [](const ContextHandle&) { return 65535; }, nullptr},
    {ZMQ_MAX_MSGSZ, 0, kIntMax, [](const ContextHandle& c) { return c.max_msgsz; },
     [](ContextHandle& c, int v) { c.max_msgsz = v; }},
    {ZMQ_MSG_T_SIZE, 0, 0, [](const ContextHandle&) { return int{sizeof(zmq_msg_t)}; }, nullptr},
    {ZMQ_IPV6, 0, 1, [](const ContextHandle& c) { return int{c.ipv6}; },
     [](ContextHandle& c, int v) { c.ipv6 = v != 0; }},
    {ZMQ_BLOCKY, 0, 1, [](const ContextHandle& c) { return int{c.blocky}; },
     [](ContextHandle& c, int v) { c.blocky = v != 0; }},
};

const ContextOption* find(int id) {
  for (const ContextOption& row : kOptions) {
    if (row.id == id) {
      return &row;
    }
  }
  return nullptr;
}

}  // namespace

extern "C" {

void* zmq_ctx_new(void) {
  ContextHandle* handle = make_context_handle();
  if (handle == nullptr) {
    errno = ENOMEM;
    return nullptr;
  }
  handle->sockets_max = ZMQ_MAX_SOCKETS_DFLT;
  handle->io_threads = ZMQ_IO_THREADS_DFLT;
  handle->max_msgsz = kIntMax;
  handle->ipv6 = false;
  handle->blocky = true;
  make_core(*handle);
  handle->tag.store(ContextHandle::kTag, std::memory_order_release);
  return handle;
}

int zmq_ctx_shutdown(void* context) {
  ContextHandle* handle = context_of(context);
  if (handle == nullptr) {
    return -1;
  }
  handle->core->shut_down();
  return 0;
}

int zmq_ctx_term(void* context) {
  ContextHandle* handle = context_of(context);
  if (handle == nullptr) {
    return -1;
  }
  const auto core = handle->core;
  core->shut_down();
  core->wait_until_quiet();
  retire(handle);
  return 0;
}

int zmq_ctx_set(void* context, int option, int optval) {
  ContextHandle* handle = context_of(context);
  if (handle == nullptr) {
    return -1;
  }
  const ContextOption* row = find(option);
  if (row == nullptr || row->write == nullptr || optval < row->min || optval > row->max) {
    return fail(EINVAL);
  }
  row->write(*handle, optval);
  return 0;
}

int zmq_ctx_get(void* context, int option) {
  const ContextHandle* handle = context_of(context);
  if (handle == nullptr) {
    return -1;
  }
  const ContextOption* row = find(option);
  return row == nullptr ? fail(EINVAL) : row->read(*handle);
}

void* zmq_init(int io_threads) {
  if (io_threads < 0) {
    errno = EINVAL;
    return nullptr;
  }
  void* context = zmq_ctx_new();
  if (context != nullptr) {
    (void)zmq_ctx_set(context, ZMQ_IO_THREADS, io_threads);
  }
  return context;
}
int zmq_term(void* context) { return zmq_ctx_term(context); }
int zmq_ctx_destroy(void* context) { return zmq_ctx_term(context); }

void zmq_version(int* major, int* minor, int* patch) {
  *major = ZMQ_VERSION_MAJOR;
  *minor = ZMQ_VERSION_MINOR;
  *patch = ZMQ_VERSION_PATCH;
}
void weft_version(int* major, int* minor, int* patch) {
  *major = 0;
  *minor = 1;
  *patch = 0;
}

int zmq_has(const char* capability) { return capability != nullptr && std::strcmp(capability, "ipc") == 0 ? 1 : 0; }
}
