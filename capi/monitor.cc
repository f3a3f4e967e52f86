// SPDX-License-Identifier: MIT
// Monitors: translates Weft's events to libzmq's, and writes them to the monitoring socket in libzmq's format.
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <span>
#include <vector>

#include "capi/handles.h"
#include "weft/msg/socket/monitor_feed.h"
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
  std::uint32_t number;
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
    {EventKind::closed, ZMQ_EVENT_CLOSED, value_fd},
    {EventKind::bound_exceeded, WEFT_EVENT_BOUND_EXCEEDED, value_errno},
    {EventKind::stopped, ZMQ_EVENT_MONITOR_STOPPED, value_none},
};

// One event on its way to the monitor's reader.
class Report {
 public:
  Report(msg::MonitorFeed& feed, std::uint64_t mask, int version, const MonitorEvent& event) noexcept
      : feed_(feed), mask_(mask), version_(version), event_(event) {}

  void send(std::uint64_t number, int value) {
    const std::uint64_t values[] = {static_cast<std::uint64_t>(value)};
    send(number, values);
  }
  void send(std::uint64_t number, std::span<const std::uint64_t> values) {
    if ((mask_ & number) == 0) {
      return;
    }
    version_ == 1 ? send_first(number, values[0]) : send_second(number, values);
  }

 private:
  // Writes number and value in six bytes, then the endpoint.
  void send_first(std::uint64_t number, std::uint64_t value) {
    const auto short_number = static_cast<std::uint16_t>(number);
    const auto short_value = static_cast<std::uint32_t>(value);
    std::array<std::uint8_t, 6> head;
    std::memcpy(head.data(), &short_number, sizeof short_number);
    std::memcpy(head.data() + sizeof short_number, &short_value, sizeof short_value);
    const Bytes parts[] = {head, as_bytes(event_.endpoint)};
    feed_.send(parts);
  }
  // Writes one part each: the number, the count of values, the values, the local endpoint, the remote one.
  void send_second(std::uint64_t number, std::span<const std::uint64_t> values) {
    const std::uint64_t count = values.size();
    std::vector<Bytes> parts = {bytes_of(number), bytes_of(count)};
    for (const std::uint64_t& value : values) {
      parts.push_back(bytes_of(value));
    }
    parts.push_back(as_bytes(event_.outgoing ? event_.other : event_.endpoint));
    parts.push_back(as_bytes(event_.outgoing ? far_end() : event_.other));
    feed_.send(parts);
  }
  // Of a host's name its address.
  [[nodiscard]] const std::string& far_end() const noexcept {
    return event_.address.empty() ? event_.endpoint : event_.address;
  }
  static Bytes bytes_of(const std::uint64_t& number) noexcept {
    return {reinterpret_cast<const std::uint8_t*>(&number), sizeof number};
  }

  msg::MonitorFeed& feed_;
  const std::uint64_t mask_;
  const int version_;
  const MonitorEvent& event_;
};

// libzmq reports a failed handshake with one of three events, or with none, and the end of the connection with
// ZMQ_EVENT_DISCONNECTED. A broken seal after the handshake is reported in the same way.
void report_end(Report& report, const MonitorEvent& event) {
  const bool unanswered = event.reason == Errc::no_such_endpoint;  // the authenticator was missing
  const bool untold = event.reason == Errc::protocol_error || event.reason == Errc::message_too_large ||
                      event.reason == Errc::incompatible_peer || event.reason == Errc::handshake_refused;
  if (event.detail >= static_cast<std::uint32_t>(zmtp::Breach::unspecified)) {
    report.send(ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL, static_cast<int>(event.detail));
  } else if (event.detail != 0) {
    report.send(ZMQ_EVENT_HANDSHAKE_FAILED_AUTH, static_cast<int>(event.detail));
  } else if (event.kind == EventKind::handshake_failed && !untold) {
    const bool silent = event.reason.os_errno() == 0;
    const int value = unanswered                                          ? EFAULT
                      : silent && event.reason == Errc::connection_closed ? EPIPE
                      : silent && event.reason == Errc::timed_out         ? ETIMEDOUT
                                                                          : value_errno(event);
    report.send(ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL, value);
  }
  if (event.fd >= 0) {
    report.send(ZMQ_EVENT_DISCONNECTED, event.fd);
  }
}

void encode(Report report, const MonitorEvent& event) {
  if (event.kind == EventKind::pipe_statistics) {
    const std::uint64_t values[] = {event.queued_out, event.queued_in};
    report.send(ZMQ_EVENT_PIPES_STATS, values);
    return;
  }
  if (event.endpoint.starts_with("inproc")) {
    return;  // libzmq monitors transports with connections only
  }
  if (event.kind == EventKind::handshake_failed || event.kind == EventKind::disconnected) {
    report_end(report, event);
    return;
  }
  if (event.kind == EventKind::connect_failed && event.reason == Errc::name_unresolved) {
    return;  // there was no descriptor to close
  }
  for (const EventRow& row : kEvents) {
    if (row.kind == event.kind) {
      report.send(row.number, row.value(event));
      return;
    }
  }
}

}  // namespace

extern "C" {

int zmq_socket_monitor(void* socket, const char* endpoint, int events) {
  return zmq_socket_monitor_versioned(socket, endpoint, static_cast<std::uint64_t>(events), 1, ZMQ_PAIR);
}

int zmq_socket_monitor_versioned(void* socket, const char* endpoint, uint64_t events, int event_version, int type) {
  SocketHandle* handle = socket_of(socket);
  if (handle == nullptr) {
    return -1;
  }
  const bool valid_type = type == ZMQ_PAIR || type == ZMQ_PUB || type == ZMQ_PUSH;
  if (!valid_type || event_version < 1 || event_version > 2 || (event_version == 1 && events > ZMQ_EVENT_ALL_V1)) {
    return fail(EINVAL);
  }
  if (endpoint == nullptr) {
    handle->monitors_pipes.store(false, std::memory_order_relaxed);
    const auto stopped = handle->core->stop_feed();
    return stopped ? 0 : fail(stopped.error());
  }
  const auto started = msg::set_up(*handle->core, &msg::SocketCore::start_feed, endpoint, static_cast<SocketType>(type),
                                   [events, event_version](const MonitorEvent& event, msg::MonitorFeed& feed) {
                                     encode(Report(feed, events, event_version, event), event);
                                   });
  if (!started) {
    return fail(started.error());
  }
  handle->monitors_pipes.store((events & ZMQ_EVENT_PIPES_STATS) != 0, std::memory_order_relaxed);
  return 0;
}

int zmq_socket_monitor_pipes_stats(void* socket) {
  SocketHandle* handle = socket_of(socket);
  if (handle == nullptr) {
    return -1;
  }
  if (!handle->monitors_pipes.load(std::memory_order_relaxed)) {
    return fail(EINVAL);
  }
  const auto reported = handle->core->report_pipes();
  return reported ? 0 : fail(reported.error());
}
}
