// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "weft/base/result.h"
#include "weft/base/time.h"
#include "weft/mem/secret.h"

namespace weft {

// The mechanism that authenticates peers and encrypts the traffic: null does neither, plain only authenticates, curve
// does both. The numbers are those of the C interface.
enum class Security : std::uint8_t { null = 0, plain = 1, curve = 2 };

// Options of one socket. Durations are rounded to the operating system's units; a negative one means "no limit". The
// defaults are the C++ API's: heartbeats notice dead peers, closing is bounded, reconnecting backs off. A bind and a
// connect freeze the options. Each connection of that endpoint uses the frozen ones as long as the endpoint exists. A
// change acts on later binds and connects. As in libzmq, these act on the whole socket, at once:
//   - send_timeout, receive_timeout, linger, and Weft's connections_max;
//   - router_mandatory, router_handover, probe_router, req_correlate, req_relaxed, invert_matching, and xpub_*;
//   - the high-water marks, for all connected peers: a later peer of an older bind gets the marks of the bind.
// The destructor overwrites the passwords and the secret key, so that freed memory has no copy of them.
struct Options {
  Options() = default;
  Options(const Options&) = default;
  Options(Options&&) = default;
  Options& operator=(const Options&) = default;
  Options& operator=(Options&&) = default;
  ~Options() { wipe_secrets(); }
  void wipe_secrets() noexcept;

  int send_high_water_mark = 1000;  // messages queued per peer; 0: as many as fit into 1 GiB
  int receive_high_water_mark = 1000;
  Duration send_timeout{-1};
  Duration receive_timeout{-1};
  Duration linger = std::chrono::seconds(10);  // time in which a closed socket still delivers queued messages
  Duration reconnect_interval = std::chrono::milliseconds(100);
  Duration reconnect_interval_max = std::chrono::seconds(5);  // 0: constant
  Duration handshake_timeout = std::chrono::seconds(5);
  Duration heartbeat_interval = std::chrono::seconds(15);  // 0: no heartbeats
  Duration heartbeat_timeout{-1};                          // 0: none; negative: the interval
  Duration heartbeat_ttl{0};                               // 0: not announced
  std::int64_t max_message_size = 64 << 20;                // bytes in one part; -1: no limit
  std::int64_t max_send_size = 64 << 20;                   // bytes in one part that is sent; -1: no limit
  // Bounds on a peer's messages and subscriptions. The same bounds hold for this socket's own, so that a call fails if
  // a peer with these defaults would drop its message or subscription. 0: none.
  int message_parts_max = 262'144;    // of one message
  int subscriptions_max = 1'048'576;  // of one peer; of a SUB, XSUB or DISH itself
  // Bounds on connections to bound endpoints; 0: none. A connection beyond a bound is closed at once and counted.
  int connections_max = 65'536;         // of the socket, until the application has received all of their messages
  int address_connections_max = 8'192;  // of one address to one endpoint; of IPv6, the first 64 bits are the address
  int address_rate_max = 2'000;         // new ones of one address in a second: each is a handshake
  std::string routing_id;               // up to 255 bytes, the first not zero; empty: the peer chooses one
  bool immediate = false;               // queue only for peers that are connected
  bool router_mandatory = false;  // fail a send to an unknown routing id, instead of dropping and counting the message
  bool router_handover = false;   // a new peer takes over a routing id that is in use
  bool router_raw = false;        // ROUTER: peers are plain byte streams, as of STREAM; before bind and connect
  bool stream_notify = true;      // STREAM, raw ROUTER: an empty message when a peer comes and when it goes
  int router_notify = 0;          // ROUTER: the same; the sum of 1, when a peer comes, and 2, when it goes
  bool xpub_verbose = false;      // pass on subscriptions that are already known
  bool xpub_verboser = false;     // the same, and unsubscriptions from topics that other peers still have
  bool xpub_no_drop = false;      // PUB, XPUB, RADIO: wait for a full peer instead of dropping its message
  bool xpub_manual = false;       // XPUB: subscriptions are only passed on; the application subscribes for the peers
  std::string xpub_welcome_message;  // PUB, XPUB: the first message to every new peer; empty: none
  bool invert_matching = false;      // PUB, XPUB, SUB: send, or receive, the messages that match no subscription
  bool conflate = false;             // queue only the newest message, of one part; not for XPUB, XSUB and request-reply
  bool probe_router = false;         // DEALER, REQ, ROUTER: the first message to every new peer is empty
  std::string hello_message;         // DEALER, ROUTER, CLIENT, SERVER, PEER: the first message to every new peer
  std::string disconnect_message;    // ROUTER, SERVER, PEER: received as the last message of a peer that connected here
  std::string hiccup_message;        // DEALER, CLIENT, PEER: the same for a peer that this socket connected to
  bool req_correlate = false;        // REQ: number requests, and take only the reply with the request's number
  bool req_relaxed = false;          // REQ: a new request may be sent before the reply to the last one
  std::string connect_routing_id;    // ROUTER, STREAM: the routing id for the peer of the next connect, once
  // XPUB with xpub_manual: the next message after a received subscription goes only to the peer that subscribed.
  bool xpub_manual_last_value = false;
  // XSUB: pass on every unsubscription, not only the last one of a topic.
  bool xsub_verbose_unsubscribe = false;
  int multicast_hops = 1;      // udp: routers take one off
  bool multicast_loop = true;  // udp: messages to a group also reach the group's members on this host
  bool ipv6 = false;
  Duration connect_timeout{0};         // of an attempt, for each address of the host; 0: the system's
  Duration tcp_max_retransmission{0};  // unacknowledged data ends a connection after this time; 0: the system's
  std::string socks_proxy;             // tcp connections go through this SOCKS5 proxy, "host:port"; empty: directly
  std::string socks_username;          // for the proxy; empty: the proxy gets no name
  std::string socks_password;
  bool reconnect_after_fault = true;  // reconnect also to a peer that refused this end, or broke the protocol
  int reconnect_stop = 0;             // never reconnect: 1 when refused, 2 after a failed handshake, 4 once closing
  std::string bind_to_device;         // tcp: the network interface to use; empty: any
  std::string tcp_accept_filter;      // networks to accept from, "10.0.0.0/8,::1"; empty: any
  std::string ipc_filter;             // processes to accept from, "uid:1000,gid:100,pid:1"; empty: any
  int use_fd = -1;                    // the next tcp or ipc bind takes this listening descriptor over; -1: opens one
  int backlog = 100;
  int send_buffer = -1;     // bytes; -1: the system's
  int receive_buffer = -1;  // bytes
  int tcp_keepalive = -1;   // -1: the system's, 0 off, 1 on
  int tcp_keepalive_count = -1;
  int tcp_keepalive_idle = -1;
  int tcp_keepalive_interval = -1;
  int type_of_service = 0;
  int priority = 0;              // of tcp packets in the queues of the system, SO_PRIORITY; 0: its default
  int busy_poll = 0;             // us for which a read may poll the network card, SO_BUSY_POLL; 0: the system's
  std::string metadata;          // goes to every peer: "X-name:value", a zero byte between two (own_properties.h)
  bool plain_server = false;     // clients must present a name and a password, which an authenticator checks (ZAP)
  std::string plain_username;    // as a client
  std::string plain_password;    // as a client
  bool curve_server = false;     // clients must have this server's public key; curve_secret_key is the server's
  std::string curve_public_key;  // keys: 32 bytes, or empty
  std::string curve_secret_key;
  std::string curve_server_key;     // as a client: the server's public key
  std::string tls_certificate;      // PEM file for tls+tcp: our certificate, then the chain to its authority
  std::string tls_key;              // PEM file: its key, without a pass phrase
  std::string tls_authorities;      // PEM file: the authorities of peers; empty: servers the system's, clients none
  bool tls_client_required = true;  // bind, with tls_authorities: a client without a certificate is refused
  std::string tls_server_name;      // connect: the name in the server's certificate; empty: the endpoint's host
  bool tls_verify = true;           // connect: false accepts any server, even a man in the middle; for tests
  bool announce_filters = true;     // PUB, SUB and X forms: READY has X-Weft-Filter, so that filters cross the wire
  std::string wss_certificate_pem;  // bind wss: the contents of such a file, in place of tls_certificate
  std::string wss_key_pem;          // its key
  std::string wss_trust_pem;        // connect wss: the contents of such a file, beside tls_authorities
  // connect wss: in place of tls_server_name. With only a wss_trust_pem and both names empty: a certificate for any
  // name, like libzmq
  std::string wss_hostname;
  bool wss_trust_system = false;       // connect wss: also with authorities of ours, those that the system trusts
  std::string zap_domain;              // goes to the authenticator; not empty: it also checks peers without a mechanism
  bool zap_enforce_domain = false;     // with a domain but no authenticator, every peer is refused
  Security security = Security::null;  // not a row: the last option of a mechanism that was set decides it
};

// Option<T>: one row: the option's name, its member of Options, and the range of its values (durations: in
// milliseconds; strings: their size). The constants in weft::option are the rows; option_table() lists them all.
template <typename T>
struct Option {
  std::string_view name;
  T Options::* member;
  std::int64_t min;
  std::int64_t max;
  void (*then)(Options&) = nullptr;           // runs after the option was set, and sets the dependent members
  bool (*accepts)(const T& value) = nullptr;  // a rule for values within the range
};

namespace msg {
[[nodiscard]] bool are_properties(std::string_view text) noexcept;  // own_properties.h
}
namespace net {
[[nodiscard]] bool is_server_name(std::string_view name) noexcept;  // server_name.h
}

namespace option {
inline constexpr std::int64_t kIntMax = std::numeric_limits<int>::max();

inline constexpr Option<int> send_high_water_mark{"send_high_water_mark", &Options::send_high_water_mark, 0, kIntMax};
inline constexpr Option<int> receive_high_water_mark{"receive_high_water_mark", &Options::receive_high_water_mark, 0,
                                                     kIntMax};
inline constexpr Option<Duration> send_timeout{"send_timeout", &Options::send_timeout, -1, kIntMax};
inline constexpr Option<Duration> receive_timeout{"receive_timeout", &Options::receive_timeout, -1, kIntMax};
inline constexpr Option<Duration> linger{"linger", &Options::linger, -1, kIntMax};
inline constexpr Option<Duration> reconnect_interval{"reconnect_interval", &Options::reconnect_interval, -1, kIntMax};
inline constexpr Option<Duration> reconnect_interval_max{"reconnect_interval_max", &Options::reconnect_interval_max, 0,
                                                         kIntMax};
inline constexpr Option<Duration> handshake_timeout{"handshake_timeout", &Options::handshake_timeout, 0, kIntMax};
inline constexpr Option<Duration> heartbeat_interval{"heartbeat_interval", &Options::heartbeat_interval, 0, kIntMax};
inline constexpr Option<Duration> heartbeat_timeout{"heartbeat_timeout", &Options::heartbeat_timeout, -1, kIntMax};
inline constexpr Option<Duration> heartbeat_ttl{"heartbeat_ttl", &Options::heartbeat_ttl, 0,
                                                6'553'599};  // 16 bits of 100 ms
inline constexpr Option<std::int64_t> max_message_size{"max_message_size", &Options::max_message_size, -1,
                                                       std::numeric_limits<std::int64_t>::max()};
inline constexpr Option<std::int64_t> max_send_size{"max_send_size", &Options::max_send_size, -1,
                                                    std::numeric_limits<std::int64_t>::max()};
inline constexpr Option<int> message_parts_max{"message_parts_max", &Options::message_parts_max, 0, 1 << 30};
inline constexpr Option<int> subscriptions_max{"subscriptions_max", &Options::subscriptions_max, 0, 1 << 30};
inline constexpr Option<int> connections_max{"connections_max", &Options::connections_max, 0, 1 << 24};
inline constexpr Option<int> address_connections_max{"address_connections_max", &Options::address_connections_max, 0,
                                                     1 << 24};
inline constexpr Option<int> address_rate_max{"address_rate_max", &Options::address_rate_max, 0, 1 << 24};
inline constexpr Option<std::string> routing_id{
    "routing_id", &Options::routing_id, 0, 255, nullptr, [](const std::string& id) {
      return !id.starts_with('\0');
    }};  // like the names that a ROUTER gives to its anonymous peers
inline constexpr Option<bool> immediate{"immediate", &Options::immediate, 0, 1};
inline constexpr Option<bool> router_mandatory{"router_mandatory", &Options::router_mandatory, 0, 1};
inline constexpr Option<bool> router_handover{"router_handover", &Options::router_handover, 0, 1};
inline constexpr Option<bool> router_raw{"router_raw", &Options::router_raw, 0, 1};
inline constexpr Option<bool> stream_notify{"stream_notify", &Options::stream_notify, 0, 1};
inline constexpr Option<int> router_notify{"router_notify", &Options::router_notify, 0, 3};
inline constexpr Option<bool> xpub_verbose{"xpub_verbose", &Options::xpub_verbose, 0, 1};
inline constexpr Option<bool> xpub_verboser{"xpub_verboser", &Options::xpub_verboser, 0, 1};
inline constexpr Option<bool> xpub_no_drop{"xpub_no_drop", &Options::xpub_no_drop, 0, 1};
inline constexpr Option<bool> xpub_manual{"xpub_manual", &Options::xpub_manual, 0, 1};
inline constexpr Option<bool> xpub_manual_last_value{"xpub_manual_last_value", &Options::xpub_manual_last_value, 0, 1};
inline constexpr Option<bool> xsub_verbose_unsubscribe{"xsub_verbose_unsubscribe", &Options::xsub_verbose_unsubscribe,
                                                       0, 1};
inline constexpr Option<std::string> xpub_welcome_message{"xpub_welcome_message", &Options::xpub_welcome_message, 0,
                                                          1 << 20};
inline constexpr Option<bool> invert_matching{"invert_matching", &Options::invert_matching, 0, 1};
inline constexpr Option<bool> conflate{"conflate", &Options::conflate, 0, 1};
inline constexpr Option<bool> probe_router{"probe_router", &Options::probe_router, 0, 1};
inline constexpr Option<std::string> hello_message{"hello_message", &Options::hello_message, 0, 1 << 20};
inline constexpr Option<std::string> disconnect_message{"disconnect_message", &Options::disconnect_message, 0, 1 << 20};
inline constexpr Option<std::string> hiccup_message{"hiccup_message", &Options::hiccup_message, 0, 1 << 20};
inline constexpr Option<bool> req_correlate{"req_correlate", &Options::req_correlate, 0, 1};
inline constexpr Option<bool> req_relaxed{"req_relaxed", &Options::req_relaxed, 0, 1};
inline constexpr Option<std::string> connect_routing_id{"connect_routing_id", &Options::connect_routing_id, 0, 255};
inline constexpr Option<int> multicast_hops{"multicast_hops", &Options::multicast_hops, 1, kIntMax};
inline constexpr Option<bool> multicast_loop{"multicast_loop", &Options::multicast_loop, 0, 1};
inline constexpr Option<bool> ipv6{"ipv6", &Options::ipv6, 0, 1};
inline constexpr Option<Duration> connect_timeout{"connect_timeout", &Options::connect_timeout, 0, kIntMax};
inline constexpr Option<Duration> tcp_max_retransmission{"tcp_max_retransmission", &Options::tcp_max_retransmission, 0,
                                                         kIntMax};
inline constexpr Option<std::string> socks_proxy{"socks_proxy", &Options::socks_proxy, 0, 512};
inline constexpr Option<std::string> socks_username{"socks_username", &Options::socks_username, 0, 255};
inline constexpr Option<std::string> socks_password{"socks_password", &Options::socks_password, 0, 255};
inline constexpr Option<int> reconnect_stop{"reconnect_stop", &Options::reconnect_stop, 0, 7};
inline constexpr Option<bool> reconnect_after_fault{"reconnect_after_fault", &Options::reconnect_after_fault, 0, 1};
inline constexpr Option<std::string> bind_to_device{"bind_to_device", &Options::bind_to_device, 0, 16};
inline constexpr Option<std::string> tcp_accept_filter{"tcp_accept_filter", &Options::tcp_accept_filter, 0, 65'536};
inline constexpr Option<std::string> ipc_filter{"ipc_filter", &Options::ipc_filter, 0, 65'536};
inline constexpr Option<int> use_fd{"use_fd", &Options::use_fd, -1, kIntMax};
inline constexpr Option<int> backlog{"backlog", &Options::backlog, 0, kIntMax};
inline constexpr Option<int> send_buffer{"send_buffer", &Options::send_buffer, -1, kIntMax};
inline constexpr Option<int> receive_buffer{"receive_buffer", &Options::receive_buffer, -1, kIntMax};
inline constexpr Option<int> tcp_keepalive{"tcp_keepalive", &Options::tcp_keepalive, -1, 1};
inline constexpr Option<int> tcp_keepalive_count{"tcp_keepalive_count", &Options::tcp_keepalive_count, -1, kIntMax};
inline constexpr Option<int> tcp_keepalive_idle{"tcp_keepalive_idle", &Options::tcp_keepalive_idle, -1, kIntMax};
inline constexpr Option<int> tcp_keepalive_interval{"tcp_keepalive_interval", &Options::tcp_keepalive_interval, -1,
                                                    kIntMax};
inline constexpr Option<int> type_of_service{"type_of_service", &Options::type_of_service, 0, kIntMax};
inline constexpr Option<int> priority{"priority", &Options::priority, 0, kIntMax};
inline constexpr Option<int> busy_poll{"busy_poll", &Options::busy_poll, 0, kIntMax};
inline constexpr auto kAreProperties = [](const std::string& text) { return msg::are_properties(text); };
inline constexpr Option<std::string> metadata{"metadata", &Options::metadata, 0, 8192, nullptr, kAreProperties};

// Of these options, the last one that was set decides the mechanism and its side.
inline constexpr Option<bool> plain_server{"plain_server", &Options::plain_server, 0, 1, [](Options& o) {
                                             o.security = o.plain_server ? Security::plain : Security::null;
                                           }};
inline constexpr auto kPlainClient = [](Options& o) {
  o.security = Security::plain;
  o.plain_server = false;
};
inline constexpr Option<std::string> plain_username{"plain_username", &Options::plain_username, 0, 255, kPlainClient};
inline constexpr Option<std::string> plain_password{"plain_password", &Options::plain_password, 0, 255, kPlainClient};
inline constexpr Option<bool> curve_server{"curve_server", &Options::curve_server, 0, 1, [](Options& o) {
                                             o.security = o.curve_server ? Security::curve : Security::null;
                                           }};
inline constexpr auto kCurve = [](Options& o) { o.security = Security::curve; };
inline constexpr Option<std::string> curve_public_key{"curve_public_key", &Options::curve_public_key, 0, 32, kCurve};
inline constexpr Option<std::string> curve_secret_key{"curve_secret_key", &Options::curve_secret_key, 0, 32, kCurve};
inline constexpr Option<std::string> curve_server_key{"curve_server_key", &Options::curve_server_key, 0, 32,
                                                      [](Options& o) {
                                                        o.security = Security::curve;
                                                        o.curve_server = false;
                                                      }};
inline constexpr Option<std::string> tls_certificate{"tls_certificate", &Options::tls_certificate, 0, 4096};
inline constexpr Option<std::string> tls_key{"tls_key", &Options::tls_key, 0, 4096};
inline constexpr Option<std::string> tls_authorities{"tls_authorities", &Options::tls_authorities, 0, 4096};
inline constexpr Option<bool> tls_client_required{"tls_client_required", &Options::tls_client_required, 0, 1};
inline constexpr auto kIsServerName = [](const std::string& name) { return name.empty() || net::is_server_name(name); };
inline constexpr Option<std::string> tls_server_name{"tls_server_name", &Options::tls_server_name, 0, 253, nullptr,
                                                     kIsServerName};
inline constexpr Option<bool> tls_verify{"tls_verify", &Options::tls_verify, 0, 1};
inline constexpr Option<bool> announce_filters{"announce_filters", &Options::announce_filters, 0, 1};
inline constexpr Option<std::string> wss_certificate_pem{"wss_certificate_pem", &Options::wss_certificate_pem, 0,
                                                         262144};
inline constexpr Option<std::string> wss_key_pem{"wss_key_pem", &Options::wss_key_pem, 0, 262144};
inline constexpr Option<std::string> wss_trust_pem{"wss_trust_pem", &Options::wss_trust_pem, 0, 262144};
inline constexpr Option<std::string> wss_hostname{"wss_hostname", &Options::wss_hostname, 0, 253,
                                                  nullptr,        kIsServerName};
inline constexpr Option<bool> wss_trust_system{"wss_trust_system", &Options::wss_trust_system, 0, 1};

inline constexpr Option<bool> zap_enforce_domain{"zap_enforce_domain", &Options::zap_enforce_domain, 0, 1};
inline constexpr Option<std::string> zap_domain{"zap_domain", &Options::zap_domain, 0, 255};
}  // namespace option

using AnyOption = std::variant<const Option<int>*, const Option<std::int64_t>*, const Option<bool>*,
                               const Option<Duration>*, const Option<std::string>*>;

[[nodiscard]] std::span<const AnyOption> option_table() noexcept;
// Finds a row by name, for configuration files and tools. Fails with unknown_option if there is no such row.
[[nodiscard]] Result<AnyOption> find_option(std::string_view name) noexcept;

// Sets one option. Fails with invalid_argument, with nothing changed, if `value` is outside the row's range.
template <typename T>
[[nodiscard]] Result<void> set_option(Options& options, const Option<T>& row, T value) {
  std::int64_t measure = 0;
  if constexpr (std::is_same_v<T, std::string>) {
    measure = static_cast<std::int64_t>(value.size());
  } else if constexpr (std::is_same_v<T, Duration>) {
    measure = value < Duration::zero() ? -1 : std::chrono::duration_cast<std::chrono::milliseconds>(value).count();
  } else {
    measure = static_cast<std::int64_t>(value);
  }
  if (measure < row.min || measure > row.max || (row.accepts != nullptr && !row.accepts(value))) {
    return Error(Errc::invalid_argument, StaticText::of_immortal(row.name.data()));
  }
  if constexpr (std::is_same_v<T, std::string>) {
    wipe(options.*row.member);
    options.*row.member = std::move(value);
    wipe(value);  // a short text was copied
  } else {
    options.*row.member = std::move(value);
  }
  if (row.then != nullptr) {
    row.then(options);
  }
  return {};
}

// Parses `value` by the row's type: a number, true/false, milliseconds, or the text itself.
[[nodiscard]] Result<void> set_option(Options& options, std::string_view name, std::string_view value);

}  // namespace weft
