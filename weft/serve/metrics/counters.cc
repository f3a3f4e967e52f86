// SPDX-License-Identifier: MIT
#include "weft/serve/metrics/counters.h"

#include <numeric>

namespace weft::serve {

std::string_view describe(CloseReason reason) noexcept {
  switch (reason) {
    case CloseReason::peer_closed: return "peer closed";
    case CloseReason::peer_failed: return "peer failed";
    case CloseReason::refused_frame: return "refused frame";
    case CloseReason::refused_tls: return "refused tls";
    case CloseReason::handshake_timeout: return "handshake timeout";
    case CloseReason::idle_timeout: return "idle timeout";
    case CloseReason::slow_consumer: return "slow consumer";
    case CloseReason::close_timeout: return "close timeout";
    case CloseReason::out_of_memory: return "out of memory";
    case CloseReason::service: return "service";
    case CloseReason::service_failed: return "service failed";
    case CloseReason::server_stopped: return "server stopped";
  }
  return "unknown";
}

std::string_view describe(Rejection rejection) noexcept {
  switch (rejection) {
    case Rejection::full: return "full";
    case Rejection::admission: return "admission";
    case Rejection::no_memory: return "no memory";
    case Rejection::lane_full: return "lane full";
    case Rejection::failed: return "failed";
  }
  return "unknown";
}

std::uint64_t CounterValues::closed_total() const noexcept {
  return std::accumulate(closed.begin(), closed.end(), std::uint64_t{0});
}

void CounterValues::add(const CoreCounters& counters) noexcept {
  opened += counters.opened.value();
  for (std::size_t i = 0; i < kCloseReasons; ++i) {
    closed[i] += counters.closed[i].value();
  }
  for (std::size_t i = 0; i < kRejections; ++i) {
    rejected[i] += counters.rejected[i].value();
  }
  accept_pauses += counters.accept_pauses.value();
  rate_pauses += counters.rate_pauses.value();
  handler_pauses += counters.handler_pauses.value();
  tasks_refused += counters.tasks_refused.value();
  frames_in += counters.frames_in.value();
  bytes_in += counters.bytes_in.value();
  reads += counters.reads.value();
  frames_out += counters.frames_out.value();
  bytes_out += counters.bytes_out.value();
  writes += counters.writes.value();
  dropped_newest += counters.dropped_newest.value();
  dropped_oldest += counters.dropped_oldest.value();
  conflated += counters.conflated.value();
  undelivered += counters.undelivered.value();
  stale_ids += counters.stale_ids.value();
}

}  // namespace weft::serve
