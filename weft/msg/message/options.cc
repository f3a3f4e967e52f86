// SPDX-License-Identifier: MIT
#include "weft/msg/message/options.h"

#include <charconv>

namespace weft {

namespace {

constexpr AnyOption kTable[] = {
    &option::send_high_water_mark,
    &option::receive_high_water_mark,
    &option::send_timeout,
    &option::receive_timeout,
    &option::linger,
    &option::reconnect_interval,
    &option::reconnect_interval_max,
    &option::handshake_timeout,
    &option::heartbeat_interval,
    &option::heartbeat_timeout,
    &option::heartbeat_ttl,
    &option::max_message_size,
    &option::max_send_size,
    &option::message_parts_max,
    &option::subscriptions_max,
    &option::connections_max,
    &option::address_connections_max,
    &option::address_rate_max,
    &option::routing_id,
    &option::immediate,
    &option::router_mandatory,
    &option::router_handover,
    &option::router_raw,
    &option::stream_notify,
    &option::router_notify,
    &option::xpub_verbose,
    &option::xpub_verboser,
    &option::xpub_no_drop,
    &option::xpub_manual,
    &option::xpub_manual_last_value,
    &option::xsub_verbose_unsubscribe,
    &option::xpub_welcome_message,
    &option::invert_matching,
    &option::conflate,
    &option::probe_router,
    &option::hello_message,
    &option::disconnect_message,
    &option::hiccup_message,
    &option::req_correlate,
    &option::req_relaxed,
    &option::connect_routing_id,
    &option::multicast_hops,
    &option::multicast_loop,
    &option::ipv6,
    &option::connect_timeout,
    &option::tcp_max_retransmission,
    &option::socks_proxy,
    &option::socks_username,
    &option::socks_password,
    &option::reconnect_stop,
    &option::reconnect_after_fault,
    &option::bind_to_device,
    &option::tcp_accept_filter,
    &option::ipc_filter,
    &option::use_fd,
    &option::backlog,
    &option::send_buffer,
    &option::receive_buffer,
    &option::tcp_keepalive,
    &option::tcp_keepalive_count,
    &option::tcp_keepalive_idle,
    &option::tcp_keepalive_interval,
    &option::type_of_service,
    &option::priority,
    &option::busy_poll,
    &option::metadata,
    &option::plain_server,
    &option::plain_username,
    &option::plain_password,
    &option::curve_server,
    &option::curve_public_key,
    &option::curve_secret_key,
    &option::curve_server_key,
    &option::tls_certificate,
    &option::tls_key,
    &option::tls_authorities,
    &option::tls_client_required,
    &option::tls_server_name,
    &option::tls_verify,
    &option::announce_filters,
    &option::wss_certificate_pem,
    &option::wss_key_pem,
    &option::wss_trust_pem,
    &option::wss_hostname,
    &option::wss_trust_system,
    &option::zap_domain,
    &option::zap_enforce_domain,
};

Result<std::int64_t> parse_number(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (status != std::errc() || end != text.data() + text.size()) {
    return Error(Errc::invalid_argument, "the option takes a whole number");
  }
  return number;
}

Result<void> assign(Options& options, const Option<int>& row, std::string_view text) {
  const std::int64_t number = WEFT_TRY(parse_number(text));
  if (number < std::numeric_limits<int>::min() || number > std::numeric_limits<int>::max()) {
    return Error(Errc::invalid_argument, StaticText::of_immortal(row.name.data()));
  }
  return set_option(options, row, static_cast<int>(number));
}
Result<void> assign(Options& options, const Option<std::int64_t>& row, std::string_view text) {
  return set_option(options, row, WEFT_TRY(parse_number(text)));
}
Result<void> assign(Options& options, const Option<bool>& row, std::string_view text) {
  if (text == "true" || text == "1") {
    return set_option(options, row, true);
  }
  if (text == "false" || text == "0") {
    return set_option(options, row, false);
  }
  return Error(Errc::invalid_argument, "the option takes true or false");
}
Result<void> assign(Options& options, const Option<Duration>& row, std::string_view text) {
  const std::int64_t number = WEFT_TRY(parse_number(text));
  if (number < row.min || number > row.max) {
    return Error(Errc::invalid_argument, StaticText::of_immortal(row.name.data()));
  }
  return set_option(options, row, number < 0 ? Duration(-1) : Duration(std::chrono::milliseconds(number)));
}
Result<void> assign(Options& options, const Option<std::string>& row, std::string_view text) {
  return set_option(options, row, std::string(text));
}

}  // namespace

void Options::wipe_secrets() noexcept {
  for (std::string* const secret : {&plain_password, &curve_secret_key, &socks_password, &wss_key_pem}) {
    wipe(*secret);
  }
}

std::span<const AnyOption> option_table() noexcept { return kTable; }

Result<AnyOption> find_option(std::string_view name) noexcept {
  for (const AnyOption& row : kTable) {
    if (std::visit([&](const auto* candidate) { return candidate->name == name; }, row)) {
      return row;
    }
  }
  return Error(Errc::unknown_option);
}

Result<void> set_option(Options& options, std::string_view name, std::string_view value) {
  const AnyOption row = WEFT_TRY(find_option(name));
  return std::visit([&](const auto* typed) { return assign(options, *typed, value); }, row);
}

}  // namespace weft
