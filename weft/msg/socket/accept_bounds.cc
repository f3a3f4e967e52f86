// SPDX-License-Identifier: MIT
#include "weft/msg/socket/accept_bounds.h"

#include <algorithm>
#include <utility>

#include "weft/sys/socket.h"

namespace weft::msg {

namespace {
constexpr std::int64_t kEntriesLeast = 64;
constexpr std::int64_t kEntriesMost = 1 << 26;
constexpr std::uint32_t kEntriesUnbound = 1 << 20;  // where the socket has no bound of its own

// An IPv6 connection has two entries: its address and its prefix.
std::uint32_t entries_for(int connections_max) noexcept {
  return connections_max == 0
             ? kEntriesUnbound
             : static_cast<std::uint32_t>(std::clamp(2 * std::int64_t{connections_max}, kEntriesLeast, kEntriesMost));
}
}  // namespace

Result<std::shared_ptr<net::Admission>> AcceptBounds::make_gate(const Options& options) {
  if (options.address_connections_max == 0 && options.address_rate_max == 0) {
    return std::shared_ptr<net::Admission>();
  }
  net::AdmissionOptions bounds;
  bounds.address_connections_max = static_cast<std::uint32_t>(options.address_connections_max);
  bounds.prefix_connections_max = bounds.address_connections_max;  // of IPv6: /64
  bounds.accept_rate = {static_cast<std::uint32_t>(options.address_rate_max),
                        static_cast<std::uint32_t>(options.address_rate_max)};
  bounds.entries_max = entries_for(options.connections_max);
  bounds.report = &AcceptBounds::count;
  bounds.report_context = this;
  bounds.report_rate = {};  // each one
  return std::shared_ptr<net::Admission>(WEFT_TRY(net::Admission::make(std::move(bounds))));
}

Result<AcceptBounds::Place> AcceptBounds::admit(const net::ByteStream& stream,
                                                const std::shared_ptr<net::Admission>& gate, int connections_max,
                                                Instant now) {
  if (connections_max != 0 && kept_.load(std::memory_order_relaxed) >= static_cast<std::size_t>(connections_max)) {
    refused_full_.fetch_add(1, std::memory_order_relaxed);  // the count stands alone, like the next two
    return Error(Errc::connection_failed, "the socket has connections_max connections");
  }
  kept_.fetch_add(1, std::memory_order_relaxed);
  Place place{decltype(Place::counted)(&kept_), gate, {}};
  if (gate != nullptr) {
    gate->set_entries_max(entries_for(connections_max));  // which may have changed since the gate was made
    const auto peer = sys::peer_address(stream.fd());
    auto lease = gate->admit(peer ? *peer : sys::SocketAddress(), now);
    if (!lease) {
      return Error(Errc::connection_failed, lease.error().static_text());
    }
    place.lease = std::move(*lease);
  }
  return place;
}

void AcceptBounds::count(void* self, const net::RejectionReport& report) {
  auto& bounds = *static_cast<AcceptBounds*>(self);
  const bool rate = report.rejection == net::AdmissionRejection::accept_rate;
  (rate ? bounds.refused_rate_ : bounds.refused_address_).fetch_add(1, std::memory_order_relaxed);
}

void AcceptBounds::report(Statistics& into) const noexcept {
  into.refused_full = refused_full_.load(std::memory_order_relaxed);
  into.refused_address = refused_address_.load(std::memory_order_relaxed);
  into.refused_rate = refused_rate_.load(std::memory_order_relaxed);
}

}  // namespace weft::msg
