// SPDX-License-Identifier: MIT
#include <cerrno>
#include <string_view>

#include "capi/handles.h"
#include "weft/net/stream/endpoint.h"

using namespace weft;        // NOLINT(google-build-using-namespace)
using namespace weft::capi;  // NOLINT(google-build-using-namespace)

namespace {

// Sets libzmq's defaults where those of the C++ interface differ.
void set_compatible_defaults(Options& options, const ContextHandle& context, int type) {
  const bool subscribes = type == ZMQ_SUB || type == ZMQ_XSUB;  // a subscriber has only subscriptions to deliver
  options.linger = context.blocky && !subscribes ? Duration(-1) : Duration::zero();
  options.reconnect_interval_max = Duration::zero();
  options.reconnect_after_fault = false;
  options.handshake_timeout = std::chrono::seconds(30);
  options.heartbeat_interval = Duration::zero();
  options.heartbeat_timeout = Duration(-1);
  options.max_message_size = options.max_send_size = -1;
  options.announce_filters = false;  // READY as libzmq sends it
  options.connections_max = options.address_connections_max = options.address_rate_max = 0;
  options.ipv6 = context.ipv6;
}

// Weft has one I/O thread, whatever number the program sets. A call that libzmq refuses for lack of an I/O thread is
// refused too.
bool lacks_io_thread(const SocketHandle& handle, const char* endpoint, bool binds) {
  if (has_io_thread(handle)) [[likely]] {
    return false;
  }
  const auto parsed = net::parse_endpoint(endpoint, binds);
  return parsed && parsed->transport != net::Transport::inproc;
}

// The number of I/O threads is fixed by the context's first socket.
int count_io_threads(ContextHandle& context) noexcept {
  int count = -1;
  return context.io_threads_started.compare_exchange_strong(count, context.io_threads, std::memory_order_relaxed)
             ? context.io_threads
             : count;
}

int change_group(void* socket, const char* group, bool join) {
  SocketHandle* handle = socket_of(socket);
  if (handle == nullptr) {
    return -1;
  }
  const auto done = group == nullptr
                        ? Result<void>(Errc::invalid_argument)
                        : msg::set_up(*handle->core, &msg::SocketCore::join, as_bytes(std::string_view(group)), join);
  return done ? 0 : fail(done.error());
}

int send_bytes(void* socket, const void* buf, size_t len, int flags) {
  SocketHandle* handle = socket_of(socket);
  if (handle == nullptr) {
    return -1;
  }
  if (buf == nullptr && len != 0) {
    return fail(EFAULT);
  }
  msg::Outbound part{Bytes(static_cast<const std::uint8_t*>(buf), len), nullptr, (flags & ZMQ_SNDMORE) != 0};
  const auto sent = handle->core->send(part, timeout_of(flags));
  return sent ? clamped(len) : fail(sent.error());
}

// As in libzmq, zmq_unbind() and zmq_disconnect() each end both kinds of endpoint.
using EndEndpoint = Result<void> (msg::SocketCore::*)(std::string_view);
int end_endpoint(SocketHandle& handle, const char* endpoint, EndEndpoint first, EndEndpoint second) {
  if (handle.core->terminated()) {
    return fail(ETERM);
  }
  if (endpoint == nullptr) {
    return fail(EINVAL);
  }
  auto done = msg::set_up(*handle.core, first, endpoint);
  if (!done && done.error() == Errc::no_such_endpoint) {
    done = msg::set_up(*handle.core, second, endpoint);
  }
  return done ? 0 : fail(done.error());
}

}  // namespace

extern "C" {

void* zmq_socket(void* context, int type) {
  ContextHandle* owner = context_of(context);
  if (owner == nullptr) {
    return nullptr;
  }
  if (type < 0 || type > UINT8_MAX) {
    (void)fail(EINVAL);
    return nullptr;
  }
  auto core = owner->core->make_socket(static_cast<SocketType>(type));
  if (!core) {
    (void)fail(core.error(), core.error() == Errc::not_supported ? EINVAL : errno_of(core.error()));
    return nullptr;
  }
  SocketHandle* handle = make_socket_handle();
  if (handle == nullptr) {
    (*core)->close();
    (void)fail(ENOMEM);
    return nullptr;
  }
  const auto set = msg::set_up(**core, &msg::SocketCore::set_options, [&](Options& options) {
    set_compatible_defaults(options, *owner, type);
    return Result<void>();
  });
  if (!set) {
    (*core)->close();
    retire(handle);
    (void)fail(set.error());
    return nullptr;
  }
  handle->core = std::move(*core);
  handle->socket = Socket(handle->core);
  handle->last_endpoint.clear();
  handle->io_threads = count_io_threads(*owner);
  handle->more = false;
  handle->monitors_pipes.store(false, std::memory_order_relaxed);
  reset_stored_options(*handle);
  handle->tag.store(SocketHandle::kTag, std::memory_order_release);
  return handle;
}

int zmq_close(void* socket) {
  SocketHandle* handle = socket_of(socket);
  if (handle == nullptr) {
    return -1;
  }
  handle->core->close();
  retire(handle);
  return 0;
}

int zmq_bind(void* socket, const char* endpoint) {
  SocketHandle* handle = socket_of(socket);
  if (handle == nullptr) {
    return -1;
  }
  if (endpoint == nullptr) {
    return fail(EINVAL);
  }
  return or_enomem([&] {
    if (lacks_io_thread(*handle, endpoint, true)) {
      return fail(EMTHREAD);
    }
    auto bound = msg::set_up(*handle->core, &msg::SocketCore::bind, endpoint);
    if (!bound) {
      return fail(bound.error());
    }
    handle->last_endpoint = std::move(*bound);
    return 0;
  });
}

int zmq_connect(void* socket, const char* endpoint) {
  SocketHandle* handle = socket_of(socket);
  if (handle == nullptr) {
    return -1;
  }
  if (endpoint == nullptr) {
    return fail(EINVAL);
  }
  return or_enomem([&] {
    if (lacks_io_thread(*handle, endpoint, false)) {
      return fail(EMTHREAD);
    }
    std::string text = endpoint;
    if (auto connected = msg::set_up(*handle->core, &msg::SocketCore::connect, endpoint); !connected) {
      return fail(connected.error());
    }
    handle->last_endpoint = std::move(text);
    return 0;
  });
}

uint32_t zmq_connect_peer(void* socket, const char* endpoint) {
  SocketHandle* handle = socket_of(socket);
  if (handle == nullptr) {
    return 0;
  }
  return or_enomem(
      [&]() -> std::uint32_t {
        if (endpoint != nullptr && lacks_io_thread(*handle, endpoint, false)) {
          (void)fail(EMTHREAD);
          return 0;
        }
        std::string text = endpoint == nullptr ? "" : endpoint;
        const auto peer = endpoint == nullptr ? Result<std::uint32_t>(Errc::invalid_argument)
                                              : msg::set_up(*handle->core, &msg::SocketCore::connect_peer, endpoint);
        if (!peer) {
          (void)fail(peer.error(), peer.error() == Errc::invalid_state ? EFAULT : errno_of(peer.error()));
          return 0;
        }
        handle->last_endpoint = std::move(text);
        return *peer;
      },
      0);
}

int zmq_disconnect_peer(void* socket, uint32_t routing_id) {
  SocketHandle* handle = socket_of(socket);
  if (handle == nullptr) {
    return -1;
  }
  const auto done = msg::set_up(*handle->core, &msg::SocketCore::disconnect_peer, routing_id);
  return done ? 0 : fail(done.error());
}

int zmq_join(void* socket, const char* group) { return change_group(socket, group, true); }
int zmq_leave(void* socket, const char* group) { return change_group(socket, group, false); }

int zmq_socket_get_peer_state(void* socket, const void* routing_id, size_t routing_id_size) {
  SocketHandle* handle = socket_of(socket);
  if (handle == nullptr) {
    return -1;
  }
  if (routing_id == nullptr && routing_id_size != 0) {
    return fail(EFAULT);
  }
  const auto writable =
      handle->core->peer_writable(Bytes(static_cast<const std::uint8_t*>(routing_id), routing_id_size));
  return writable ? (*writable ? ZMQ_POLLOUT : 0) : fail(writable.error());
}

int zmq_unbind(void* socket, const char* endpoint) {
  SocketHandle* handle = socket_of(socket);
  if (handle == nullptr) {
    return -1;
  }
  return end_endpoint(*handle, endpoint, &msg::SocketCore::unbind, &msg::SocketCore::disconnect);
}

int zmq_disconnect(void* socket, const char* endpoint) {
  SocketHandle* handle = socket_of(socket);
  if (handle == nullptr) {
    return -1;
  }
  return end_endpoint(*handle, endpoint, &msg::SocketCore::disconnect, &msg::SocketCore::unbind);
}

int zmq_send(void* socket, const void* buf, size_t len, int flags) { return send_bytes(socket, buf, len, flags); }
int zmq_send_const(void* socket, const void* buf, size_t len, int flags) { return send_bytes(socket, buf, len, flags); }

int zmq_recv(void* socket, void* buf, size_t len, int flags) {
  SocketHandle* handle = socket_of(socket);
  if (handle == nullptr) {
    return -1;
  }
  msg::Inbound part{nullptr, MutableBytes(static_cast<std::uint8_t*>(buf), buf == nullptr ? 0 : len)};
  return recv_part(*handle, part, flags);
}
}
