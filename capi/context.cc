// SPDX-License-Identifier: MIT
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "capi/handle_store.h"
#include "capi/handles.h"
#include "weft/base/version.h"
#include "weft/net/tls/tls.h"
#include "weft/sys/call.h"
#include "weft/zmtp/curve.h"

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

}  // namespace weft::capi

using namespace weft;        // NOLINT(google-build-using-namespace)
using namespace weft::capi;  // NOLINT(google-build-using-namespace)

namespace {

struct ContextOption {
  int id;
  int min;
  int max;
  int (*read)(const ContextHandle&);         // null: write-only
  bool (*write)(ContextHandle&, int value);  // null: read-only; false: EINVAL
};

// Returns false if there is no memory.
bool make_core(ContextHandle& handle) noexcept {
  ContextOptions options;
  options.sockets_max = static_cast<std::size_t>(handle.sockets_max);
  try {
    handle.core = std::make_shared<msg::ContextCore>(options);
  } catch (const std::bad_alloc&) {
    return false;
  }
  return true;
}

template <typename Change>
bool change_io_thread(ContextHandle& handle, Change&& change) {
  change(handle.io_thread);
  handle.core->set_io_thread(handle.io_thread);
  return true;
}

template <bool kOn>
bool write_cpu(ContextHandle& handle, int cpu) {
  const auto index = static_cast<std::size_t>(cpu);
  if (!kOn && !handle.io_thread.cpus[index]) {
    return false;
  }
  return change_io_thread(handle, [&](ThreadOptions& thread) { thread.cpus.set(index, kOn); });
}

bool write_name_prefix(ContextHandle& handle, std::string_view prefix) {
  return change_io_thread(handle, [&](ThreadOptions& thread) {
    std::memset(thread.name_prefix, 0, sizeof thread.name_prefix);
    std::memcpy(thread.name_prefix, prefix.data(), std::min(prefix.size(), ThreadOptions::kNamePrefixMax));
  });
}

constexpr int kIntMax = INT32_MAX;
constexpr int kCpuMax = static_cast<int>(ThreadOptions::kCpusMax) - 1;
constexpr ContextOption kContextOptions[] = {
    {ZMQ_IO_THREADS, 0, kIntMax, [](const ContextHandle& c) { return c.io_threads; },
     [](ContextHandle& c, int v) { return c.io_threads = v, true; }},
    {ZMQ_MAX_SOCKETS, 1, kIntMax, [](const ContextHandle& c) { return c.sockets_max; },
     [](ContextHandle& c, int v) {
       c.core->set_sockets_max(static_cast<std::size_t>(c.sockets_max = v));
       return true;
     }},
    // One number, two options: the limit of sockets to read, the priority to write.
    {ZMQ_THREAD_PRIORITY, 0, kIntMax, [](const ContextHandle&) { return 65535; },
     [](ContextHandle& c, int v) { return change_io_thread(c, [v](ThreadOptions& t) { t.priority = v; }); }},
    {ZMQ_THREAD_SCHED_POLICY, 0, kIntMax, [](const ContextHandle& c) { return c.io_thread.policy; },
     [](ContextHandle& c, int v) { return change_io_thread(c, [v](ThreadOptions& t) { t.policy = v; }); }},
    {ZMQ_MAX_MSGSZ, 0, kIntMax, [](const ContextHandle& c) { return c.max_msgsz; },
     [](ContextHandle& c, int v) { return c.max_msgsz = v, true; }},
    {ZMQ_MSG_T_SIZE, 0, 0, [](const ContextHandle&) { return int{sizeof(zmq_msg_t)}; }, nullptr},
    {ZMQ_THREAD_AFFINITY_CPU_ADD, 0, kCpuMax, nullptr, write_cpu<true>},
    {ZMQ_THREAD_AFFINITY_CPU_REMOVE, 0, kCpuMax, nullptr, write_cpu<false>},
    {ZMQ_THREAD_NAME_PREFIX, INT32_MIN, kIntMax,
     [](const ContextHandle& c) { return std::atoi(c.io_thread.name_prefix); },
     [](ContextHandle& c, int v) { return write_name_prefix(c, std::to_string(v)); }},
    // libzmq takes any positive number for true.
    {ZMQ_ZERO_COPY_RECV, 0, kIntMax, [](const ContextHandle& c) { return int{c.zero_copy_receive}; },
     [](ContextHandle& c, int v) { return c.zero_copy_receive = v != 0, true; }},
    {ZMQ_IPV6, 0, kIntMax, [](const ContextHandle& c) { return int{c.ipv6}; },
     [](ContextHandle& c, int v) { return c.ipv6 = v != 0, true; }},
    {ZMQ_BLOCKY, 0, kIntMax, [](const ContextHandle& c) { return int{c.blocky}; },
     [](ContextHandle& c, int v) { return c.blocky = v != 0, true; }},
};

const ContextOption* find(int id) {
  for (const ContextOption& row : kContextOptions) {
    if (row.id == id) {
      return &row;
    }
  }
  return nullptr;
}

// The capabilities of this build, for zmq_has(). The names are libzmq's: the transports and mechanisms that are
// optional.
struct Capability {
  std::string_view name;
  bool (*available)() noexcept;
};
constexpr Capability kCapabilities[] = {
    {"ipc", []() noexcept { return true; }},   {"vsock", []() noexcept { return true; }},
    {"draft", []() noexcept { return true; }}, {"curve", zmtp::curve_available},
    {"ws", []() noexcept { return true; }},    {"wss", net::tls_available},
};

void put_version(int* major, int* minor, int* patch, const std::array<int, 3>& version) noexcept {
  std::size_t part = 0;
  for (int* const target : {major, minor, patch}) {
    if (target != nullptr) {
      *target = version[part];
    }
    ++part;
  }
}

}  // namespace

extern "C" {

void* zmq_ctx_new(void) {
  ContextHandle* handle = make_context_handle();
  if (handle == nullptr) {
    (void)fail(ENOMEM);
    return nullptr;
  }
  handle->sockets_max = ZMQ_MAX_SOCKETS_DFLT;
  handle->io_threads = ZMQ_IO_THREADS_DFLT;
  handle->io_threads_started.store(-1, std::memory_order_relaxed);
  handle->max_msgsz = kIntMax;
  handle->ipv6 = false;
  handle->blocky = true;
  handle->zero_copy_receive = true;
  handle->io_thread = ThreadOptions();
  if (!make_core(*handle)) {
    retire(handle);
    (void)fail(ENOMEM);
    return nullptr;
  }
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
  if (const auto quiet = core->wait_until_quiet(); !quiet) {
    return fail(quiet.error());
  }
  retire(handle);
  return 0;
}

int zmq_ctx_set(void* context, int option, int optval) {
  ContextHandle* handle = context_of(context);
  if (handle == nullptr) {
    return -1;
  }
  const ContextOption* row = find(option);
  const bool valid = row != nullptr && row->write != nullptr && optval >= row->min && optval <= row->max;
  return valid && row->write(*handle, optval) ? 0 : fail(EINVAL);
}

int zmq_ctx_get(void* context, int option) {
  const ContextHandle* handle = context_of(context);
  if (handle == nullptr) {
    return -1;
  }
  const ContextOption* row = find(option);
  return row == nullptr || row->read == nullptr ? fail(EINVAL) : row->read(*handle);
}

// As libzmq: a value with the size of an int is an int, even a prefix of four letters.
int zmq_ctx_set_ext(void* context, int option, const void* optval, size_t optvallen) {
  ContextHandle* handle = context_of(context);
  if (handle == nullptr) {
    return -1;
  }
  if (optval == nullptr) {
    return fail(EINVAL);
  }
  if (optvallen == sizeof(int)) {
    int number = 0;
    std::memcpy(&number, optval, sizeof number);
    return zmq_ctx_set(context, option, number);
  }
  if (option != ZMQ_THREAD_NAME_PREFIX || optvallen == 0 || optvallen > ThreadOptions::kNamePrefixMax) {
    return fail(EINVAL);
  }
  return write_name_prefix(*handle, {static_cast<const char*>(optval), optvallen}) ? 0 : fail(EINVAL);
}

int zmq_ctx_get_ext(void* context, int option, void* optval, size_t* optvallen) {
  const ContextHandle* handle = context_of(context);
  if (handle == nullptr) {
    return -1;
  }
  if (optval == nullptr || optvallen == nullptr) {
    return fail(EINVAL);
  }
  if (*optvallen == sizeof(int)) {
    const ContextOption* row = find(option);
    if (row == nullptr || row->read == nullptr) {
      return fail(EINVAL);
    }
    const int number = row->read(*handle);
    std::memcpy(optval, &number, sizeof number);
    return 0;
  }
  const std::string_view prefix(handle->io_thread.name_prefix);
  if (option != ZMQ_THREAD_NAME_PREFIX || *optvallen < prefix.size()) {
    return fail(EINVAL);
  }
  std::memcpy(optval, prefix.data(), prefix.size());
  *optvallen = prefix.size();
  return 0;
}

void* zmq_init(int io_threads) {
  if (io_threads < 0) {
    (void)fail(EINVAL);
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
  put_version(major, minor, patch, {ZMQ_VERSION_MAJOR, ZMQ_VERSION_MINOR, ZMQ_VERSION_PATCH});
}
void weft_version(int* major, int* minor, int* patch) {
  put_version(major, minor, patch, {WEFT_VERSION_MAJOR, WEFT_VERSION_MINOR, WEFT_VERSION_PATCH});
}

int zmq_has(const char* capability) {
  if (capability == nullptr) {
    return 0;
  }
  const auto row = std::find_if(std::begin(kCapabilities), std::end(kCapabilities),
                                [&](const Capability& known) { return known.name == capability; });
  const sys::CancellationOff off;  // a library starts
  return row != std::end(kCapabilities) && row->available() ? 1 : 0;
}
}
