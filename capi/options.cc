// SPDX-License-Identifier: MIT
// Socket options, one row each: number, reader, writer, socket types. A writer checks the size here, and the range
// in the option's own row (weft/msg/message/options.h).
#include <cerrno>
#include <concepts>
#include <cstring>
#include <span>

#include "capi/handles.h"
#include "capi/option_values.h"
#include "weft/net/admit/accept_filter.h"
#include "weft/zmtp/curve.h"
#include "weft/zmtp/z85.h"

using namespace weft;        // NOLINT(google-build-using-namespace)
using namespace weft::capi;  // NOLINT(google-build-using-namespace)

namespace {

using Write = int (*)(SocketHandle&, const void*, size_t);
using Read = int (*)(SocketHandle&, void*, size_t*);

struct OptionRow {
  int id;
  Read read;                  // null: write-only
  Write write;                // null: read-only
  std::uint32_t types = ~0U;  // one bit for each socket type that takes the option
};

constexpr std::uint32_t types(std::same_as<int> auto... type) { return ((1U << type) | ...); }
constexpr std::uint32_t kPublishers = types(ZMQ_PUB, ZMQ_XPUB);
constexpr std::uint32_t kRouters = types(ZMQ_ROUTER, ZMQ_REP);  // REP accepts a router's options, without an effect

// Flags of one pattern: any number from 0 on is allowed, where other flags insist on 0 or 1.
template <const auto&... kRows>
int write_flag(SocketHandle& handle, const void* value, size_t size) {
  int number = 0;
  if (!take(value, size, number)) {
    return -1;
  }
  return number < 0 ? fail(EINVAL)
                    : change(handle, [&](Options& options) { ((options.*kRows.member = number != 0), ...); });
}

// Every number except zero switches the option on.
template <const auto& kRow>
int write_any(SocketHandle& handle, const void* value, size_t size) {
  int number = 0;
  return !take(value, size, number) ? -1
                                    : change(handle, [&](Options& options) { options.*kRow.member = number != 0; });
}

int write_xpub_verbose(SocketHandle& handle, const void* value, size_t size) {
  const int result = write_flag<option::xpub_verbose>(handle, value, size);
  return result != 0 ? result : change(handle, [](Options& options) { options.xpub_verboser = false; });
}

// An empty value is allowed: no message.
template <const auto& kRow>
int write_message(SocketHandle& handle, const void* value, size_t size) {
  return size == 0 ? change(handle, [](Options& options) { (options.*kRow.member).clear(); })
                   : write_row<kRow>(handle, value, size);
}

// A part after a first one that is not a subscription never subscribes here, whatever the option is.
int check_flag(SocketHandle& /*handle*/, const void* value, size_t size) {
  int number = 0;
  return !take(value, size, number) ? -1 : number < 0 ? fail(EINVAL) : 0;
}

int read_topics(SocketHandle& handle, void* value, size_t* size) {
  const auto count = handle.core->topics();
  return count ? put_exactly(value, size, clamped(*count)) : fail(count.error());
}

// Every type reads it. A REP accepts it, as all options of a ROUTER, without an effect.
int write_router_notify(SocketHandle& handle, const void* value, size_t size) {
  const bool takes = (kRouters >> static_cast<unsigned>(handle.core->wire_type()) & 1U) != 0;
  return takes ? write_row<option::router_notify>(handle, value, size) : fail(EINVAL);
}

// A negative number is the system's default.
int write_busy_poll(SocketHandle& handle, const void* value, size_t size) {
  int number = 0;
  return !take(value, size, number) ? -1 : change(handle, [&](Options& options) { options.busy_poll = number; });
}

// Adds one property to those that were set before.
int write_metadata(SocketHandle& handle, const void* value, size_t size) {
  const std::string_view text(static_cast<const char*>(value), value == nullptr ? 0 : size);
  if (text.empty() || text.find('\0') != std::string_view::npos) {
    return fail(EINVAL);
  }
  return answer(msg::set_up(*handle.core, &msg::SocketCore::set_options, [&](Options& options) {
    std::string all = options.metadata;
    return set_option(options, option::metadata, all.append(all.empty() ? 0 : 1, '\0').append(text));
  }));
}

// Rounds down to tenths of a second, the unit in which the peer receives it.
int write_heartbeat_ttl(SocketHandle& handle, const void* value, size_t size) {
  int number = 0;
  if (!take(value, size, number)) {
    return -1;
  }
  number = number / 100 * 100;
  return write_row<option::heartbeat_ttl>(handle, &number, sizeof number);
}

// A program cannot set the default, -1.
int write_heartbeat_timeout(SocketHandle& handle, const void* value, size_t size) {
  int number = 0;
  if (!take(value, size, number)) {
    return -1;
  }
  return number < 0 ? fail(EINVAL) : write_row<option::heartbeat_timeout>(handle, value, size);
}

// Every negative number means no limit, and is read back unchanged.
int write_max_message_size(SocketHandle& handle, const void* value, size_t size) {
  std::int64_t number = 0;
  return !take(value, size, number) ? -1 : change(handle, [&](Options& options) { options.max_message_size = number; });
}

int read_ipv4_only(SocketHandle& handle, void* value, size_t* size) {
  return put_exactly(value, size, handle.core->options_copy().ipv6 ? 0 : 1);
}
int write_ipv4_only(SocketHandle& handle, const void* value, size_t size) {
  int number = 0;
  if (!take(value, size, number)) {
    return -1;
  }
  return number != 0 && number != 1 ? fail(EINVAL)
                                    : change(handle, [&](Options& options) { options.ipv6 = number == 0; });
}

// --- values that are kept and read back. The affinity may leave a socket no I/O thread. The others have no
// effect: options of transports that Weft lacks, and hints (Weft's batches grow and shrink with the traffic) ---

struct StoredRow {
  int id;
  bool wide;  // 64 bits
  std::int64_t initial;
  std::int64_t min;
  std::int64_t max;  // kAny: every number except zero switches the option on
};
constexpr std::int64_t kAny = 1;
constexpr StoredRow kStored[] = {
    {ZMQ_AFFINITY, true, 0, INT64_MIN, INT64_MAX},   {ZMQ_RATE, false, 100, 1, INT32_MAX},
    {ZMQ_RECOVERY_IVL, false, 10'000, 0, INT32_MAX}, {ZMQ_MULTICAST_MAXTPDU, false, 1500, 1, INT32_MAX},
    {ZMQ_LOOPBACK_FASTPATH, false, 0, 0, kAny},      {ZMQ_IN_BATCH_SIZE, false, 8192, 1, INT32_MAX},
    {ZMQ_OUT_BATCH_SIZE, false, 8192, 1, INT32_MAX},
};
static_assert(std::size(kStored) == SocketHandle::kStoredCount);

template <std::size_t kIndex>
int read_stored(SocketHandle& handle, void* value, size_t* size) {
  const std::int64_t number = handle.stored[kIndex];
  return kStored[kIndex].wide ? put_exactly(value, size, number) : put_exactly(value, size, static_cast<int>(number));
}
template <std::size_t kIndex>
int write_stored(SocketHandle& handle, const void* value, size_t size) {
  constexpr const StoredRow& row = kStored[kIndex];
  std::int64_t number = 0;
  int narrow = 0;
  if (row.wide ? !take(value, size, number) : !take(value, size, narrow)) {
    return -1;
  }
  number = row.wide ? number : row.max == kAny ? static_cast<std::int64_t>(narrow != 0) : narrow;
  if (number < row.min || number > row.max) {
    return fail(EINVAL);
  }
  handle.stored[kIndex] = number;
  return 0;
}

// --- from which peers connections are accepted ---

int write_tcp_accept_filter(SocketHandle& handle, const void* value, size_t size) {
  if (value == nullptr && size == 0) {
    return change(handle, [](Options& options) { options.tcp_accept_filter.clear(); });
  }
  const std::string_view text(static_cast<const char*>(value), value == nullptr ? 0 : size);
  if (text.empty() || text.size() > 255 || text.find(',') != std::string_view::npos ||
      !net::AcceptFilter::parse(text, {})) {
    return fail(EINVAL);
  }
  return answer(msg::set_up(*handle.core, &msg::SocketCore::set_options, [&](Options& options) {
    std::string list = options.tcp_accept_filter;
    return set_option(options, option::tcp_accept_filter, list.append(list.empty() ? "" : ",").append(text));
  }));
}

// `kind`: "pid:", "uid:", "gid:".
int write_ipc_filter(SocketHandle& handle, std::string_view kind, const void* value, size_t size) {
  std::uint32_t number = 0;
  const bool clears = value == nullptr && size == 0;
  if (!clears && !take(value, size, number)) {
    return -1;
  }
  return answer(msg::set_up(*handle.core, &msg::SocketCore::set_options, [&](Options& options) {
    std::string list = options.ipc_filter;
    for (std::size_t at = 0; clears && (at = list.find(kind)) != std::string::npos;) {
      const std::size_t end = list.find(',', at);
      list.erase(at, end == std::string::npos ? end : end - at + 1);
    }
    if (!clears) {
      list.append(kind).append(std::to_string(number)).append(",");
    }
    return set_option(options, option::ipc_filter, std::move(list));
  }));
}

int write_device(SocketHandle& handle, const void* value, size_t size) {
  return value == nullptr && size == 0 ? change(handle, [](Options& options) { options.bind_to_device.clear(); })
                                       : write_row<option::bind_to_device>(handle, value, size);
}

// Unknown bits are kept.
int write_reconnect_stop(SocketHandle& handle, const void* value, size_t size) {
  int number = 0;
  return !take(value, size, number) ? -1 : change(handle, [&](Options& options) { options.reconnect_stop = number; });
}

// Only a null pointer takes the proxy away. The next connect finds out whether the text names one.
int write_socks_proxy(SocketHandle& handle, const void* value, size_t size) {
  if ((value == nullptr) != (size == 0)) {
    return fail(EINVAL);
  }
  return value == nullptr ? change(handle, [](Options& options) { options.socks_proxy.clear(); })
                          : write_row<option::socks_proxy>(handle, value, size);
}

// An empty value is the default. The next bind or connect finds out whether it can use the text.
template <const auto& kRow>
int write_filled(SocketHandle& handle, const void* value, size_t size) {
  return value == nullptr || size == 0 ? change(handle, [](Options& options) { (options.*kRow.member).clear(); })
                                       : write_row<kRow>(handle, value, size);
}

// --- the others ---

int read_last_endpoint(SocketHandle& handle, void* value, size_t* size) {
  return put_bytes(value, size, handle.last_endpoint.c_str(), handle.last_endpoint.size() + 1);
}

int read_events(SocketHandle& handle, void* value, size_t* size) {
  if (handle.core->terminated()) {
    return fail(ETERM);
  }
  const msg::Readiness ready = handle.core->readiness({true, true});
  return put(value, size, (ready.input ? ZMQ_POLLIN : 0) | (ready.output ? ZMQ_POLLOUT : 0));
}

int read_fd(SocketHandle& handle, void* value, size_t* size) {
  if (handle.core->terminated()) {
    return fail(ETERM);
  }
  const auto fd = handle.core->descriptor();
  return fd ? put(value, size, *fd) : fail(fd.error());
}

// --- security ---

int read_mechanism(SocketHandle& handle, void* value, size_t* size) {
  return put_exactly(value, size, static_cast<int>(handle.core->options_copy().security));
}

template <const auto& kRow, Security kMechanism>
int read_server(SocketHandle& handle, void* value, size_t* size) {
  const Options options = handle.core->options_copy();
  return put_exactly(value, size, options.*kRow.member && options.security == kMechanism ? 1 : 0);
}

// Text with a terminating zero.
template <const auto& kRow>
int read_text(SocketHandle& handle, void* value, size_t* size) {
  const std::string text = handle.core->options_copy().*kRow.member;
  return put_bytes(value, size, text.c_str(), text.size() + 1);
}

template <const auto& kRow>
int write_text(SocketHandle& handle, const void* value, size_t size) {
  if (value == nullptr && size == 0) {
    return answer(msg::set_up(*handle.core, &msg::SocketCore::set_options, [](Options& options) -> Result<void> {
      WEFT_TRY(set_option(options, kRow, std::string()));
      if (kRow.then != nullptr) {
        options.security = Security::null;  // without name and password there is no PLAIN
      }
      return {};
    }));
  }
  return write_row<kRow>(handle, value, size);
}

constexpr size_t kKeySize = 32;
constexpr size_t kKeyTextSize = 40;

template <const auto& kRow>
int read_key(SocketHandle& handle, void* value, size_t* size) {
  std::string key = handle.core->options_copy().*kRow.member;
  key.resize(kKeySize);  // a key that was never set is all zeros
  if (*size == kKeySize) {
    std::memcpy(value, key.data(), kKeySize);
    return 0;
  }
  char text[kKeyTextSize + 1] = {};
  if (*size != sizeof(text) || !z85_encode(as_bytes(key), std::span(text, kKeyTextSize))) {
    return fail(EINVAL);
  }
  std::memcpy(value, text, sizeof(text));
  return 0;
}

template <const auto& kRow>
int write_key(SocketHandle& handle, const void* value, size_t size) {
  const auto* text = static_cast<const char*>(value);
  const bool is_text = size == kKeyTextSize || (size == kKeyTextSize + 1 && text != nullptr && text[size - 1] == '\0');
  if (text == nullptr || !(is_text || size == kKeySize)) {
    return fail(EINVAL);
  }
  std::string key(text, kKeySize);
  if (is_text && !z85_decode(std::string_view(text, kKeyTextSize),
                             MutableBytes(reinterpret_cast<std::uint8_t*>(key.data()), key.size()))) {
    return fail(EINVAL);
  }
  if (!zmtp::curve_available()) {
    return fail(ENOTSUP);
  }
  return answer(msg::set_up(*handle.core, &msg::SocketCore::set_options,
                            [&](Options& options) { return set_option(options, kRow, std::move(key)); }));
}

int write_curve_server(SocketHandle& handle, const void* value, size_t size) {
  return zmtp::curve_available() ? write_row<option::curve_server>(handle, value, size) : fail(ENOTSUP);
}

template <bool kOn>
int write_subscription(SocketHandle& handle, const void* value, size_t size) {
  if (value == nullptr && size != 0) {
    return fail(EINVAL);
  }
  const auto done = msg::set_up(*handle.core, &msg::SocketCore::subscribe,
                                FilterView{FilterKind::prefix, {static_cast<const char*>(value), size}}, kOn);
  if (!done && done.error() == Errc::not_supported) {
    return fail(EINVAL);  // an XPUB without ZMQ_XPUB_MANUAL
  }
  // Unsubscribing a topic without a subscription is not an error.
  return !kOn && !done && done.error() == Errc::invalid_argument ? 0 : answer(done);
}

int write_tls_reload(SocketHandle& handle, const void* value, size_t size) {
  int number = 0;
  if (!take(value, size, number)) {
    return -1;
  }
  return number != 1 ? fail(EINVAL) : answer(msg::set_up(*handle.core, &msg::SocketCore::reload_certificates));
}

#define WEFT_ROW(id, row) {id, read_row<option::row>, write_row<option::row>}
#define WEFT_FLAG(id, row, types) {id, nullptr, write_flag<option::row>, types}
#define WEFT_STORED(index) {kStored[index].id, read_stored<index>, write_stored<index>}

constexpr OptionRow kOptions[] = {
    WEFT_ROW(ZMQ_ROUTING_ID, routing_id),
    {ZMQ_SUBSCRIBE, nullptr, write_subscription<true>, types(ZMQ_SUB, ZMQ_XPUB)},
    {ZMQ_UNSUBSCRIBE, nullptr, write_subscription<false>, types(ZMQ_SUB, ZMQ_XPUB)},
    WEFT_ROW(ZMQ_SNDBUF, send_buffer),
    WEFT_ROW(ZMQ_RCVBUF, receive_buffer),
    {ZMQ_RCVMORE, [](SocketHandle& s, void* v, size_t* n) { return put(v, n, int{s.more}); }, nullptr},
    {ZMQ_FD, read_fd, nullptr},
    {ZMQ_EVENTS, read_events, nullptr},
    {ZMQ_TYPE, [](SocketHandle& s, void* v, size_t* n) { return put_exactly(v, n, static_cast<int>(s.core->type())); },
     nullptr},
    WEFT_ROW(ZMQ_LINGER, linger),
    WEFT_ROW(ZMQ_RECONNECT_IVL, reconnect_interval),
    WEFT_ROW(ZMQ_BACKLOG, backlog),
    WEFT_ROW(ZMQ_RECONNECT_IVL_MAX, reconnect_interval_max),
    {ZMQ_MAXMSGSIZE, read_row<option::max_message_size>, write_max_message_size},
    WEFT_ROW(WEFT_CONNECTIONS_MAX, connections_max),
    WEFT_ROW(WEFT_ADDRESS_CONNECTIONS_MAX, address_connections_max),
    WEFT_ROW(WEFT_ADDRESS_RATE_MAX, address_rate_max),
    {WEFT_TLS_CERTIFICATE, read_text<option::tls_certificate>, write_filled<option::tls_certificate>},
    {WEFT_TLS_KEY, read_text<option::tls_key>, write_filled<option::tls_key>},
    {WEFT_TLS_AUTHORITIES, read_text<option::tls_authorities>, write_filled<option::tls_authorities>},
    WEFT_ROW(WEFT_TLS_CLIENT_REQUIRED, tls_client_required),
    {WEFT_TLS_SERVER_NAME, read_text<option::tls_server_name>, write_filled<option::tls_server_name>},
    WEFT_ROW(WEFT_TLS_VERIFY, tls_verify),
    WEFT_ROW(WEFT_ANNOUNCE_FILTERS, announce_filters),
    WEFT_ROW(WEFT_RECONNECT_AFTER_FAULT, reconnect_after_fault),
    WEFT_ROW(WEFT_SUBSCRIPTIONS_MAX, subscriptions_max),
    WEFT_ROW(WEFT_MESSAGE_PARTS_MAX, message_parts_max),
    {WEFT_TLS_RELOAD, nullptr, write_tls_reload},
    {ZMQ_WSS_KEY_PEM, nullptr, write_filled<option::wss_key_pem>},
    {ZMQ_WSS_CERT_PEM, nullptr, write_filled<option::wss_certificate_pem>},
    {ZMQ_WSS_TRUST_PEM, nullptr, write_filled<option::wss_trust_pem>},
    {ZMQ_WSS_HOSTNAME, nullptr, write_filled<option::wss_hostname>},
    {ZMQ_WSS_TRUST_SYSTEM, nullptr, write_row<option::wss_trust_system>},
    WEFT_ROW(ZMQ_SNDHWM, send_high_water_mark),
    WEFT_ROW(ZMQ_RCVHWM, receive_high_water_mark),
    WEFT_ROW(ZMQ_RCVTIMEO, receive_timeout),
    WEFT_ROW(ZMQ_SNDTIMEO, send_timeout),
    {ZMQ_LAST_ENDPOINT, read_last_endpoint, nullptr},
    WEFT_FLAG(ZMQ_ROUTER_MANDATORY, router_mandatory, kRouters),
    WEFT_ROW(ZMQ_TCP_KEEPALIVE, tcp_keepalive),
    WEFT_ROW(ZMQ_TCP_KEEPALIVE_CNT, tcp_keepalive_count),
    WEFT_ROW(ZMQ_TCP_KEEPALIVE_IDLE, tcp_keepalive_idle),
    WEFT_ROW(ZMQ_TCP_KEEPALIVE_INTVL, tcp_keepalive_interval),
    WEFT_ROW(ZMQ_IMMEDIATE, immediate),
    {ZMQ_XPUB_VERBOSE, nullptr, write_xpub_verbose, kPublishers},
    {ZMQ_XPUB_VERBOSER, nullptr, write_flag<option::xpub_verbose, option::xpub_verboser>, kPublishers},
    WEFT_FLAG(ZMQ_XPUB_NODROP, xpub_no_drop, kPublishers | types(ZMQ_RADIO)),
    WEFT_FLAG(ZMQ_XPUB_MANUAL, xpub_manual, kPublishers),
    {ZMQ_XPUB_MANUAL_LAST_VALUE, nullptr, write_flag<option::xpub_manual, option::xpub_manual_last_value>, kPublishers},
    {ZMQ_ONLY_FIRST_SUBSCRIBE, nullptr, check_flag, kPublishers | types(ZMQ_XSUB)},
    {ZMQ_XSUB_VERBOSE_UNSUBSCRIBE, nullptr, write_any<option::xsub_verbose_unsubscribe>, types(ZMQ_XSUB)},
    {ZMQ_TOPICS_COUNT, read_topics, nullptr, kPublishers | types(ZMQ_SUB, ZMQ_XSUB)},
    {ZMQ_XPUB_WELCOME_MSG, nullptr, write_message<option::xpub_welcome_message>, kPublishers},
    {ZMQ_HELLO_MSG, nullptr, write_message<option::hello_message>},
    {ZMQ_DISCONNECT_MSG, nullptr, write_message<option::disconnect_message>},
    {ZMQ_HICCUP_MSG, nullptr, write_message<option::hiccup_message>},
    {ZMQ_INVERT_MATCHING, read_row<option::invert_matching>, write_any<option::invert_matching>},
    WEFT_ROW(ZMQ_CONFLATE, conflate),
    WEFT_FLAG(ZMQ_PROBE_ROUTER, probe_router, kRouters | types(ZMQ_DEALER, ZMQ_REQ)),
    WEFT_FLAG(ZMQ_REQ_CORRELATE, req_correlate, types(ZMQ_REQ)),
    WEFT_FLAG(ZMQ_REQ_RELAXED, req_relaxed, types(ZMQ_REQ)),
    {ZMQ_CONNECT_ROUTING_ID, nullptr, write_row<option::connect_routing_id>, kRouters | types(ZMQ_STREAM)},
    {ZMQ_IPV4ONLY, read_ipv4_only, write_ipv4_only},
    WEFT_ROW(ZMQ_IPV6, ipv6),
    WEFT_ROW(ZMQ_MULTICAST_HOPS, multicast_hops),
    {ZMQ_MULTICAST_LOOP, read_row<option::multicast_loop>, write_any<option::multicast_loop>},
    {ZMQ_MECHANISM, read_mechanism, nullptr},
    {ZMQ_PLAIN_SERVER, read_server<option::plain_server, Security::plain>, write_row<option::plain_server>},
    {ZMQ_PLAIN_USERNAME, read_text<option::plain_username>, write_text<option::plain_username>},
    {ZMQ_PLAIN_PASSWORD, read_text<option::plain_password>, write_text<option::plain_password>},
    {ZMQ_CURVE_SERVER, read_server<option::curve_server, Security::curve>, write_curve_server},
    {ZMQ_CURVE_PUBLICKEY, read_key<option::curve_public_key>, write_key<option::curve_public_key>},
    {ZMQ_CURVE_SECRETKEY, read_key<option::curve_secret_key>, write_key<option::curve_secret_key>},
    {ZMQ_CURVE_SERVERKEY, read_key<option::curve_server_key>, write_key<option::curve_server_key>},
    {ZMQ_ZAP_ENFORCE_DOMAIN, read_row<option::zap_enforce_domain>, write_any<option::zap_enforce_domain>},
    {ZMQ_ZAP_DOMAIN, read_text<option::zap_domain>, write_text<option::zap_domain>},
    WEFT_FLAG(ZMQ_ROUTER_HANDOVER, router_handover, kRouters),
    WEFT_FLAG(ZMQ_ROUTER_RAW, router_raw, kRouters),
    {ZMQ_ROUTER_NOTIFY, read_row<option::router_notify>, write_router_notify},
    {ZMQ_STREAM_NOTIFY, nullptr, write_row<option::stream_notify>, types(ZMQ_STREAM)},
    WEFT_ROW(ZMQ_TOS, type_of_service),
    WEFT_ROW(ZMQ_PRIORITY, priority),
    {ZMQ_BUSY_POLL, read_row<option::busy_poll>, write_busy_poll},
    {ZMQ_METADATA, nullptr, write_metadata},
    WEFT_ROW(ZMQ_HANDSHAKE_IVL, handshake_timeout),
    WEFT_ROW(ZMQ_HEARTBEAT_IVL, heartbeat_interval),
    {ZMQ_HEARTBEAT_TTL, read_row<option::heartbeat_ttl>, write_heartbeat_ttl},
    {ZMQ_HEARTBEAT_TIMEOUT, read_row<option::heartbeat_timeout>, write_heartbeat_timeout},
    // Every socket of Weft is thread-safe; the option is 1 for the types for which libzmq returns 1.
    {ZMQ_THREAD_SAFE, [](SocketHandle& s, void* v, size_t* n) { return put(v, n, int{s.core->single_part()}); },
     nullptr},
    WEFT_ROW(ZMQ_CONNECT_TIMEOUT, connect_timeout),
    WEFT_ROW(ZMQ_TCP_MAXRT, tcp_max_retransmission),
    {ZMQ_RECONNECT_STOP, read_row<option::reconnect_stop>, write_reconnect_stop},
    WEFT_ROW(ZMQ_USE_FD, use_fd),
    {ZMQ_BINDTODEVICE, read_text<option::bind_to_device>, write_device},
    {ZMQ_TCP_ACCEPT_FILTER, nullptr, write_tcp_accept_filter},
    {ZMQ_IPC_FILTER_PID, nullptr,
     [](SocketHandle& s, const void* v, size_t n) { return write_ipc_filter(s, "pid:", v, n); }},
    {ZMQ_IPC_FILTER_UID, nullptr,
     [](SocketHandle& s, const void* v, size_t n) { return write_ipc_filter(s, "uid:", v, n); }},
    {ZMQ_IPC_FILTER_GID, nullptr,
     [](SocketHandle& s, const void* v, size_t n) { return write_ipc_filter(s, "gid:", v, n); }},
    WEFT_STORED(0),
    WEFT_STORED(1),
    WEFT_STORED(2),
    WEFT_STORED(3),
    WEFT_STORED(4),
    WEFT_STORED(5),
    WEFT_STORED(6),
    {ZMQ_SOCKS_PROXY, read_text<option::socks_proxy>, write_socks_proxy},
    {ZMQ_SOCKS_USERNAME, read_text<option::socks_username>, write_filled<option::socks_username>},
    {ZMQ_SOCKS_PASSWORD, read_text<option::socks_password>, write_filled<option::socks_password>},
};

#undef WEFT_ROW
#undef WEFT_FLAG
#undef WEFT_STORED

const OptionRow* find(int id, zmtp::WireType type) {
  for (const OptionRow& row : kOptions) {
    if (row.id == id) {
      return (row.types >> static_cast<unsigned>(type) & 1U) != 0 ? &row : nullptr;
    }
  }
  return nullptr;
}

}  // namespace

bool weft::capi::has_io_thread(const SocketHandle& handle) noexcept {
  static_assert(kStored[0].id == ZMQ_AFFINITY);
  constexpr int kMaskBits = 64;
  const auto mask = static_cast<std::uint64_t>(handle.stored[0]);
  const bool any = mask == 0 || handle.io_threads >= kMaskBits;
  return handle.io_threads > 0 && (any || (mask & ((std::uint64_t{1} << handle.io_threads) - 1)) != 0);
}

void weft::capi::reset_stored_options(SocketHandle& handle) noexcept {
  for (std::size_t i = 0; i < std::size(kStored); ++i) {
    handle.stored[i] = kStored[i].initial;
  }
}

extern "C" {

int zmq_setsockopt(void* socket, int option, const void* optval, size_t optvallen) {
  SocketHandle* handle = socket_of(socket);
  if (handle == nullptr) {
    return -1;
  }
  const OptionRow* row = find(option, handle->core->wire_type());
  return row == nullptr || row->write == nullptr ? fail(EINVAL)
                                                 : or_enomem([&] { return row->write(*handle, optval, optvallen); });
}

int zmq_getsockopt(void* socket, int option, void* optval, size_t* optvallen) {
  SocketHandle* handle = socket_of(socket);
  if (handle == nullptr) {
    return -1;
  }
  const OptionRow* row = find(option, handle->core->wire_type());
  if (row == nullptr || row->read == nullptr || optval == nullptr || optvallen == nullptr) {
    return fail(EINVAL);
  }
  return or_enomem([&] { return row->read(*handle, optval, optvallen); });
}
}
