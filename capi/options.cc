// SPDX-License-Identifier: MIT
// Socket options: one row each: number, type, and how to read and write it. Writing checks the size here and the range
// in the option's own row (weft/msg/options.h).
#include <cerrno>
#include <chrono>
#include <cstring>
#include <type_traits>

#include "capi/handles.h"

using namespace weft;        // NOLINT(google-build-using-namespace)
using namespace weft::capi;  // NOLINT(google-build-using-namespace)

namespace {

using Write = int (*)(SocketHandle&, const void*, size_t);
using Read = int (*)(SocketHandle&, void*, size_t*);

struct OptionRow {
  int id;
  Read read;    // null: write-only
  Write write;  // null: read-only
};

int answer(const Result<void>& result) noexcept { return result ? 0 : fail(result.error()); }

// --- raw values ---

template <typename T>
int put(void* value, size_t* size, T what) noexcept {
  if (*size < sizeof(T)) {
    return fail(EINVAL);
  }
  std::memcpy(value, &what, sizeof(T));
  *size = sizeof(T);
  return 0;
}
template <typename T>
bool take(const void* value, size_t size, T& what) noexcept {
  if (value == nullptr || size != sizeof(T)) {
    errno = EINVAL;
    return false;
  }
  std::memcpy(&what, value, sizeof(T));
  return true;
}

// --- options that are rows of weft::option; the C interface has int for bool and milliseconds for durations ---

template <typename T>
int to_int(const T& value) noexcept {
  if constexpr (std::is_same_v<T, Duration>) {
    return value < Duration::zero()
               ? -1
               : static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(value).count());
  } else {
    return static_cast<int>(value);
  }
}

template <const auto& kRow>
int read_row(SocketHandle& handle, void* value, size_t* size) {
  using T = std::remove_cvref_t<decltype(std::declval<Options>().*kRow.member)>;
  const Options options = handle.core->options_copy();
  if constexpr (std::is_same_v<T, std::string>) {
    const std::string& text = options.*kRow.member;
    if (*size < text.size()) {
      return fail(EINVAL);
    }
    std::memcpy(value, text.data(), text.size());
    *size = text.size();
    return 0;
  } else if constexpr (std::is_same_v<T, std::int64_t>) {
    return put(value, size, options.*kRow.member);
  } else {
    return put(value, size, to_int(options.*kRow.member));
  }
}

template <const auto& kRow>
int write_row(SocketHandle& handle, const void* value, size_t size) {
  using T = std::remove_cvref_t<decltype(std::declval<Options>().*kRow.member)>;
  T wanted{};
  if constexpr (std::is_same_v<T, std::string>) {
    if (value == nullptr || size == 0) {
      return fail(EINVAL);
    }
    wanted.assign(static_cast<const char*>(value), size);
  } else if constexpr (std::is_same_v<T, std::int64_t>) {
    if (!take(value, size, wanted)) {
      return -1;
    }
  } else {
    int number = 0;
    if (!take(value, size, number)) {
      return -1;
    }
    if constexpr (std::is_same_v<T, bool>) {
      if (number != 0 && number != 1) {
        return fail(EINVAL);
      }
      wanted = number != 0;
    } else if constexpr (std::is_same_v<T, Duration>) {
      if (number < -1 || number < kRow.min) {
        return fail(EINVAL);
      }
      wanted = number < 0 ? Duration(-1) : Duration(std::chrono::milliseconds(number));
    } else {
      wanted = number;
    }
  }
  return answer(
      handle.core->set_options([&](Options& options) { return set_option(options, kRow, std::move(wanted)); }));
}

// --- the others ---

int read_last_endpoint(SocketHandle& handle, void* value, size_t* size) {
  if (*size < handle.last_endpoint.size() + 1) {
    return fail(EINVAL);
  }
  std::memcpy(value, handle.last_endpoint.c_str(), handle.last_endpoint.size() + 1);
  *size = handle.last_endpoint.size() + 1;
  return 0;
}

int read_events(SocketHandle& handle, void* value, size_t* size) {
  const msg::Readiness ready = handle.core->readiness({true, true});
  return put(value, size, (ready.input ? ZMQ_POLLIN : 0) | (ready.output ? ZMQ_POLLOUT : 0));
}

int read_fd(SocketHandle& handle, void* value, size_t* size) {
  const auto fd = handle.core->descriptor();
  return fd ? put(value, size, *fd) : fail(fd.error());
}

template <bool kOn>
int write_subscription(SocketHandle& handle, const void* value, size_t size) {
  if (value == nullptr && size != 0) {
    return fail(EINVAL);
  }
  return answer(handle.core->subscribe(Bytes(static_cast<const std::uint8_t*>(value), size), kOn));
}

#define WEFT_ROW(id, row) {id, read_row<option::row>, write_row<option::row>}

constexpr OptionRow kOptions[] = {
    WEFT_ROW(ZMQ_ROUTING_ID, routing_id),
    {ZMQ_SUBSCRIBE, nullptr, write_subscription<true>},
    {ZMQ_UNSUBSCRIBE, nullptr, write_subscription<false>},
    WEFT_ROW(ZMQ_SNDBUF, send_buffer),
    WEFT_ROW(ZMQ_RCVBUF, receive_buffer),
    {ZMQ_RCVMORE, [](SocketHandle& s, void* v, size_t* n) { return put(v, n, int{s.more}); }, nullptr},
    {ZMQ_FD, read_fd, nullptr},
    {ZMQ_EVENTS, read_events, nullptr},
    {ZMQ_TYPE, [](SocketHandle& s, void* v, size_t* n) { return put(v, n, static_cast<int>(s.core->type())); },
     nullptr},
    WEFT_ROW(ZMQ_LINGER, linger),
    WEFT_ROW(ZMQ_RECONNECT_IVL, reconnect_interval),
    WEFT_ROW(ZMQ_BACKLOG, backlog),
    WEFT_ROW(ZMQ_RECONNECT_IVL_MAX, reconnect_interval_max),
    WEFT_ROW(ZMQ_MAXMSGSIZE, max_message_size),
    WEFT_ROW(ZMQ_SNDHWM, send_high_water_mark),
    WEFT_ROW(ZMQ_RCVHWM, receive_high_water_mark),
    WEFT_ROW(ZMQ_RCVTIMEO, receive_timeout),
    WEFT_ROW(ZMQ_SNDTIMEO, send_timeout),
    {ZMQ_LAST_ENDPOINT, read_last_endpoint, nullptr},
    WEFT_ROW(ZMQ_ROUTER_MANDATORY, router_mandatory),
    WEFT_ROW(ZMQ_TCP_KEEPALIVE, tcp_keepalive),
    WEFT_ROW(ZMQ_TCP_KEEPALIVE_CNT, tcp_keepalive_count),
    WEFT_ROW(ZMQ_TCP_KEEPALIVE_IDLE, tcp_keepalive_idle),
    WEFT_ROW(ZMQ_TCP_KEEPALIVE_INTVL, tcp_keepalive_interval),
    WEFT_ROW(ZMQ_IMMEDIATE, immediate),
    WEFT_ROW(ZMQ_XPUB_VERBOSE, xpub_verbose),
    WEFT_ROW(ZMQ_IPV6, ipv6),
    {ZMQ_MECHANISM, [](SocketHandle&, void* v, size_t* n) { return put(v, n, int{ZMQ_NULL}); }, nullptr},
    WEFT_ROW(ZMQ_ROUTER_HANDOVER, router_handover),
    WEFT_ROW(ZMQ_TOS, type_of_service),
    WEFT_ROW(ZMQ_HANDSHAKE_IVL, handshake_timeout),
    WEFT_ROW(ZMQ_HEARTBEAT_IVL, heartbeat_interval),
    WEFT_ROW(ZMQ_HEARTBEAT_TTL, heartbeat_ttl),
    WEFT_ROW(ZMQ_HEARTBEAT_TIMEOUT, heartbeat_timeout),
    {ZMQ_THREAD_SAFE, [](SocketHandle&, void* v, size_t* n) { return put(v, n, 0); }, nullptr},
};

#undef WEFT_ROW

const OptionRow* find(int id) {
  for (const OptionRow& row : kOptions) {
    if (row.id == id) {
      return &row;
    }
  }
  return nullptr;
}

}  // namespace

extern "C" {

int zmq_setsockopt(void* socket, int option, const void* optval, size_t optvallen) {
  SocketHandle* handle = socket_of(socket);
  if (handle == nullptr) {
    return -1;
  }
  const OptionRow* row = find(option);
  return row == nullptr || row->write == nullptr ? fail(EINVAL) : row->write(*handle, optval, optvallen);
}

int zmq_getsockopt(void* socket, int option, void* optval, size_t* optvallen) {
  SocketHandle* handle = socket_of(socket);
  if (handle == nullptr) {
    return -1;
  }
  const OptionRow* row = find(option);
  if (row == nullptr || row->read == nullptr || optval == nullptr || optvallen == nullptr) {
    return fail(EINVAL);
  }
  return row->read(*handle, optval, optvallen);
}
}
