// SPDX-License-Identifier: MIT
// Monitors: which libzmq event each of ours is, and how it looks on the wire of the monitoring socket.
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string_view>

#include "capi/handles.h"
#include "weft/msg/monitor_feed.h"
#include "weft/zmtp/fault.h"

using namespace weft;        // NOLINT(google-build-using-namespace)
using namespace weft::capi;  // NOLINT(google-build-using-namespace)

namespace {

int value_fd(const MonitorEvent& event) { return event.fd; }
int value_errno(const MonitorEvent& event) {
  return event.reason.os_errno() != 0 ? event.reason.os_errno() : errno_of(event.reason);
}
int value_none(const MonitorEvent& /*event*/) { return 0; }
int value_in_progress(const MonitorEvent& /*event*/) { return EINPROGRESS; }
int value_delay(const MonitorEvent& event) {
  return static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(event.delay).count());
}

struct EventRow {
  EventKind kind;
  std::uint16_t number;
  int (*value)(const MonitorEvent& event);
};
constexpr EventRow kEvents[] = {
    {EventKind::listening, ZMQ_EVENT_LISTENING, value_fd},
    {EventKind::bind_failed, ZMQ_EVENT_BIND_FAILED, value_errno},
    {EventKind::accepted, ZMQ_EVENT_ACCEPTED, value_fd},
    {EventKind::accept_failed, ZMQ_EVENT_ACCEPT_FAILED, value_errno},
    {EventKind::connected, ZMQ_EVENT_CONNECTED, value_fd},
    {EventKind::connect_delayed, ZMQ_EVENT_CONNECT_DELAYED, value_in_progress},
    {EventKind::connect_failed, ZMQ_EVENT_CLOSED, value_fd},
    {EventKind::connect_retried, ZMQ_EVENT_CONNECT_RETRIED, value_delay},
    {EventKind::handshake_succeeded, ZMQ_EVENT_HANDSHAKE_SUCCEEDED, value_none},
    {EventKind::disconnected, ZMQ_EVENT_DISCONNECTED, value_fd},
    {EventKind::closed, ZMQ_EVENT_CLOSED, value_fd},
    {EventKind::stopped, ZMQ_EVENT_MONITOR_STOPPED, value_none},
};

// Event version 1: number and value in six bytes, then the endpoint.
void send_event(msg::MonitorFeed& feed, int mask, std::uint16_t number, int value, std::string_view endpoint) {
  if ((mask & number) == 0) {
    return;
  }
  std::array<std::uint8_t, 6> head;
  std::memcpy(head.data(), &number, sizeof number);
  std::memcpy(head.data() + sizeof number, &value, sizeof value);
  const Bytes parts[] = {head, as_bytes(endpoint)};
  feed.send(parts);
}

// libzmq tells a failed handshake in one of three events and the end of the connection in another.
void send_handshake_failed(msg::MonitorFeed& feed, int mask, const MonitorEvent& event) {
  if (event.detail >= static_cast<std::uint32_t>(zmtp::Breach::unspecified)) {
    send_event(feed, mask, ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL, static_cast<int>(event.detail), event.endpoint);
  } else if (event.detail != 0) {
    send_event(feed, mask, ZMQ_EVENT_HANDSHAKE_FAILED_AUTH, static_cast<int>(event.detail), event.endpoint);
  } else if (event.reason == Errc::protocol_error || event.reason == Errc::message_too_large) {
    send_event(feed, mask, ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL, ZMQ_PROTOCOL_ERROR_ZMTP_UNSPECIFIED, event.endpoint);
  } else {
    const bool silent = event.reason.os_errno() == 0;
    const int value = silent && event.reason == Errc::connection_closed ? EPIPE
                      : silent && event.reason == Errc::timed_out       ? ETIMEDOUT
                                                                        : value_errno(event);
    send_event(feed, mask, ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL, value, event.endpoint);
  }
  send_event(feed, mask, ZMQ_EVENT_DISCONNECTED, event.fd, event.endpoint);
}

void encode(msg::MonitorFeed& feed, int mask, const MonitorEvent& event) {
  if (event.endpoint.starts_with("inproc")) {
    return;  // libzmq tells of transports with connections only
  }
  if (event.kind == EventKind::handshake_failed) {
    send_handshake_failed(feed, mask, event);
    return;
  }
  if (event.kind == EventKind::connect_failed && event.reason == Errc::name_unresolved) {
    return;  // there was nothing to close
  }
  for (const EventRow& row : kEvents) {
    if (row.kind == event.kind) {
      send_event(feed, mask, row.number, row.value(event), event.endpoint);
      return;
    }
  }
}

}  // namespace

extern "C" int zmq_socket_monitor(void* socket, const char* endpoint, int events) {
  SocketHandle* handle = socket_of(socket);
  if (handle == nullptr) {
    return -1;
  }
  if (events < 0 || events > ZMQ_EVENT_ALL) {
    return fail(EINVAL);
  }
  const auto done = endpoint == nullptr
                        ? handle->core->stop_feed()
                        : handle->core->start_feed(endpoint, SocketType::pair,
                                                   [events](const MonitorEvent& event, msg::MonitorFeed& feed) {
                                                     encode(feed, events, event);
                                                   });
  return done ? 0 : fail(done.error());
}
