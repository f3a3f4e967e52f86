// SPDX-License-Identifier: MIT
#include "weft/serve/config/table.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <limits>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "weft/logging/log.h"

namespace weft::serve::config {

namespace {

constexpr std::int64_t kMillisecond = 1'000'000;
constexpr std::int64_t kDay = 86'400'000'000'000;
constexpr std::int64_t kYear = 365 * kDay;
constexpr std::int64_t kMiB = std::int64_t{1} << 20;
constexpr std::int64_t kPiB = std::int64_t{1} << 50;
constexpr std::int64_t kUint32Max = std::numeric_limits<std::uint32_t>::max();
constexpr std::int64_t kSessionsMax = 1'000'000'000;

// The words of an enumeration, in its order.
constexpr std::array kPinnings{std::string_view("automatic"), std::string_view("never"), std::string_view("always")};
constexpr std::array kWaitModes{std::string_view("adaptive"), std::string_view("latency"), std::string_view("eco")};
constexpr std::array kPollers{std::string_view("automatic"), std::string_view("epoll"), std::string_view("io_uring")};
constexpr std::array kAcceptModes{std::string_view("automatic"), std::string_view("reuse_port"),
                                  std::string_view("hand_off")};
constexpr std::array kSlowConsumers{std::string_view("disconnect"), std::string_view("drop_newest"),
                                    std::string_view("drop_oldest"), std::string_view("conflate"),
                                    std::string_view("conflate_state")};
constexpr std::array kPeerLefts{std::string_view("cancel"), std::string_view("answer")};
constexpr std::array kLevels{std::string_view("trace"),   std::string_view("debug"), std::string_view("info"),
                             std::string_view("warning"), std::string_view("error"), std::string_view("off")};
constexpr std::array kFormats{std::string_view("text"), std::string_view("json")};
constexpr std::array kReplyOrders{std::string_view("of_frames"), std::string_view("any")};

// The member that a path of pointers to members leads to: member<&Settings::server, &ServerOptions::log>(settings).
template <auto kFirst, auto... kRest, typename Of>
constexpr auto& member(Of& of) noexcept {
  if constexpr (sizeof...(kRest) == 0) {
    return of.*kFirst;
  } else {
    return member<kRest...>(of.*kFirst);
  }
}

template <typename Class, typename Member>
Class class_of(Member Class::*);
template <auto... kPath>
struct Path;
template <auto kFirst, auto... kRest>
struct Path<kFirst, kRest...> {
  using Of = decltype(class_of(kFirst));
  using Member = std::remove_cvref_t<decltype(member<kFirst, kRest...>(std::declval<Of&>()))>;
};
template <auto... kPath>
using RowOf = Row<typename Path<kPath...>::Of>;

// A row whose member holds the same type as the value.
template <typename Held, auto... kPath>
RowOf<kPath...> plain(Key key) {
  using Of = typename Path<kPath...>::Of;
  return {std::move(key), [](const Of& from) -> Value { return Held(member<kPath...>(from)); },
          [](Of& into, const Value& value, std::string& /*why*/) {
            member<kPath...>(into) = static_cast<typename Path<kPath...>::Member>(std::get<Held>(value));
            return true;
          }};
}

template <auto... kPath>
auto flag(const char* name, const char* doc, Change change = Change::at_start) {
  return plain<bool, kPath...>({name, Kind::flag, doc, change});
}
template <auto... kPath>
auto count(const char* name, std::int64_t least, std::int64_t most, const char* doc, Change change = Change::at_start) {
  return plain<std::int64_t, kPath...>({name, Kind::integer, doc, change, least, most});
}
template <auto... kPath>
auto duration(const char* name, std::int64_t least, std::int64_t most, bool takes_none, const char* doc,
              Change change = Change::at_start) {
  return plain<Duration, kPath...>({name, Kind::duration, doc, change, least, most, 0, 0, takes_none});
}
template <auto... kPath>
auto rate(const char* name, const char* doc, Change change = Change::at_start) {
  return plain<net::RateLimit, kPath...>({name, Kind::rate, doc, change, 1, kUint32Max});
}
template <auto... kPath>
auto text(const char* name, const char* doc, Change change = Change::at_start) {
  return plain<std::string, kPath...>({name, Kind::text, doc, change, 0, kTextMax});
}
template <auto... kPath>
auto texts(const char* name, const char* doc, Change change = Change::at_start) {
  return plain<std::vector<std::string>, kPath...>({name, Kind::texts, doc, change, 0, kTextsMax});
}

template <auto... kPath>
RowOf<kPath...> size(const char* name, std::int64_t least, std::int64_t most, const char* doc,
                     Change change = Change::at_start) {
  using Of = typename Path<kPath...>::Of;
  return {{name, Kind::size, doc, change, least, most},
          [](const Of& from) -> Value { return Size{member<kPath...>(from)}; },
          [](Of& into, const Value& value, std::string& /*why*/) {
            member<kPath...>(into) = static_cast<typename Path<kPath...>::Member>(std::get<Size>(value).bytes);
            return true;
          }};
}

// An enumeration whose first value is 0.
template <const auto& kWords, auto... kPath>
RowOf<kPath...> word(const char* name, const char* doc, Change change = Change::at_start) {
  using Of = typename Path<kPath...>::Of;
  Key key{name, Kind::word, doc, change};
  key.words.assign(kWords.begin(), kWords.end());
  return {
      std::move(key),
      [](const Of& from) -> Value { return std::string(kWords.at(static_cast<std::size_t>(member<kPath...>(from)))); },
      [](Of& into, const Value& value, std::string& /*why*/) {
        const auto at = std::find(kWords.begin(), kWords.end(), std::get<std::string>(value));
        member<kPath...>(into) = static_cast<typename Path<kPath...>::Member>(at - kWords.begin());
        return at != kWords.end();
      }};
}

template <auto... kPath>
RowOf<kPath...> prefixes(const char* name, const char* doc, Change change) {
  using Of = typename Path<kPath...>::Of;
  return {{name, Kind::texts, doc, change, 0, kTextsMax},
          [](const Of& from) -> Value {
            std::vector<std::string> list;
            for (const net::IpPrefix& each : member<kPath...>(from)) {
              list.push_back(each.to_text());
            }
            return list;
          },
          [](Of& into, const Value& value, std::string& why) {
            std::vector<net::IpPrefix> parsed;
            for (const std::string& each : std::get<std::vector<std::string>>(value)) {
              const auto prefix = net::IpPrefix::parse(each);
              if (!prefix) {
                why = quote(each) + R"( is not an address or a prefix, like "10.0.0.0/8")";
                return false;
              }
              parsed.push_back(*prefix);
            }
            member<kPath...>(into) = std::move(parsed);
            return true;
          }};
}

constexpr Change kLive = Change::at_run_time;

std::vector<Row<Settings>> make_settings_rows() {
  constexpr auto kRuntime = &Settings::runtime;
  constexpr auto kServer = &Settings::server;
  constexpr auto kStop = &Settings::stop;
  constexpr auto kAdmin = &Settings::admin;
  constexpr auto kAdminTls = &Settings::admin_tls;
  using rt::RuntimeOptions;
  using T = net::TlsServerOptions;
  return {
      count<kRuntime, &RuntimeOptions::cores>("server.cores", 0, rt::Runtime::kCoresMax,
                                              "Threads; 0: one for each physical core that the process may use"),
      word<kPinnings, kRuntime, &RuntimeOptions::pinning>("server.pinning",
                                                          "Whether each thread stays on its own processor"),
      word<kWaitModes, kRuntime, &RuntimeOptions::wait_mode>("server.wait_mode",
                                                             "How a thread waits: it spins first, or sleeps at once"),
      duration<kRuntime, &RuntimeOptions::latency, &rt::LatencyOptions::poll_for>(
          "server.poll_for", 0, rt::LatencyOptions::kPollForMax.count(), false,
          "With `latency`: a thread polls so long before it sleeps"),
      count<kRuntime, &RuntimeOptions::latency, &rt::LatencyOptions::cpu_percent>(
          "server.poll_percent", 0, 100, "With `latency`: the share of a thread's time that these polls may take"),
      word<kPollers, kRuntime, &RuntimeOptions::poller>("server.poller", "The kernel's interface for readiness"),
      count<kRuntime, &RuntimeOptions::lane_capacity>("server.lane_capacity", 1, rt::Runtime::kLaneCapacityMax,
                                                      "Messages under way from one core to another"),
      count<kRuntime, &RuntimeOptions::foreign_lanes>("server.foreign_lanes", 1, rt::Runtime::kForeignLanesMax,
                                                      "Lanes of each core for threads that are not cores"),
      count<kServer, &ServerOptions::sessions_max>("server.sessions_max", 1, kSessionsMax,
                                                   "Sessions on all cores; more connections are closed at once", kLive),
      size<kServer, &ServerOptions::memory_max>("server.memory_max", kMiB, kPiB,
                                                "Bytes queued and half received, of all sessions", kLive),
      size<kServer, &ServerOptions::core_memory_max>("server.core_memory_max", kMiB, kPiB,
                                                     "The same, of the sessions of one core"),
      duration<kServer, &ServerOptions::settle_timeout>(
          "server.settle_timeout", 0, kDay, true, "A stop keeps sessions open for frames of running handlers so long"),
      duration<kServer, &ServerOptions::stall_after>("server.stall_after", kMillisecond, kDay, true,
                                                     "A turn of a core that lasts so long is logged and counted"),
      duration<kStop, &StopOptions::lame_duck>("stop.lame_duck", 0, kDay, false,
                                               "After a signal: not ready, and listeners still accept"),
      duration<kStop, &StopOptions::drain>("stop.drain", 0, kDay, false,
                                           "Then sessions have so long to answer and to deliver their queues"),
      text<kAdmin, &AdminOptions::endpoint>("admin.endpoint", "The admin port; empty: there is none"),
      flag<kAdmin, &AdminOptions::remote>("admin.remote",
                                          "Permits an endpoint that other machines reach, with TLS and a token"),
      text<&Settings::admin_token_file>("admin.token_file",
                                        "The token that each request must have; a path is relative to the file"),
      texts<kAdmin, &AdminOptions::hosts>(
          "admin.hosts",
          "Names of the port besides localhost and the addresses of this machine alone; "
          "a request for another host gets status 421"),
      count<kAdmin, &AdminOptions::connections_max>("admin.connections_max", 1, 10'000,
                                                    "Connections of the admin port"),
      size<kAdmin, &AdminOptions::head_max>("admin.head_max", 1024, kMiB, "Bytes of a request"),
      duration<kAdmin, &AdminOptions::request_timeout>("admin.request_timeout", kMillisecond, kDay, false,
                                                       "Until the first request of a connection"),
      duration<kAdmin, &AdminOptions::idle_timeout>("admin.idle_timeout", kMillisecond, kDay, false,
                                                    "Between requests"),
      rate<kAdmin, &AdminOptions::scrapes>("admin.scrapes", "Answers of /metrics; more get status 429"),
      flag<kAdmin, &AdminOptions::debug_pages>("admin.debug_pages", "Whether there are /debug and the pages below it"),
      rate<kAdmin, &AdminOptions::looks>("admin.looks", "Answers of the pages of /debug; more get status 429"),
      duration<kAdmin, &AdminOptions::health_timeout>("admin.health_timeout", kMillisecond, kDay, false,
                                                      "For the answer of each core to /healthz and /debug"),
      count<kAdmin, &AdminOptions::spare_descriptors>("admin.spare_descriptors", 0, 1024,
                                                      "Descriptors kept for its connections"),
      text<kAdminTls, &T::certificate_file>(
          "admin.tls.certificate_file", "PEM: the certificate, then its chain; a path is relative to the file", kLive),
      text<kAdminTls, &T::key_file>("admin.tls.key_file", "PEM: its key, without a pass phrase", kLive),
  };
}

std::vector<Row<Settings>> logging_rows() {
  constexpr auto kLog = &Settings::log;
  constexpr auto kSettings = &logging::LogOptions::settings;
  constexpr auto kRotation = &logging::LogSettings::rotation;
  using S = logging::LogSettings;
  return {
      word<kLevels, kLog, kSettings, &S::level>("logging.level", "Lines of this level and above are written", kLive),
      texts<kLog, kSettings, &S::levels>(
          "logging.levels", "Levels of components, like \"serve.session=warning\"; the longest name decides", kLive),
      word<kFormats, kLog, kSettings, &S::format>("logging.format", "logfmt or JSON", kLive),
      text<kLog, kSettings, &S::file>(
          "logging.file", "Empty: standard error; a path is relative to the file. A reload opens it again", kLive),
      size<kLog, kSettings, kRotation, &logging::Rotation::bytes>(
          "logging.rotate_bytes", 0, kPiB, "A file that would have more becomes FILE.1; 0 B: it grows", kLive),
      count<kLog, kSettings, kRotation, &logging::Rotation::files>("logging.rotate_files", 1, 10'000,
                                                                   "Such files that are kept", kLive),
      count<kLog, kSettings, &S::repeats_max>(
          "logging.repeats_max", 0, kUint32Max,
          "Lines of one event in one second, of each core; the others are counted; 0: no bound", kLive),
      size<kLog, &logging::LogOptions::queue_bytes>("logging.queue_bytes", kMiB, std::int64_t{1} << 40,
                                                    "Lines that wait for a slow output"),
  };
}

std::vector<Row<ListenerSettings>> listener_limits() {
  constexpr auto kOptions = &ListenerSettings::options;
  constexpr auto kLimits = &ListenerOptions::limits;
  using L = SessionLimits;
  return {
      size<kOptions, kLimits, &L::write_budget>("limits.write_budget", 1, kPiB, "Bytes queued for a session", kLive),
      word<kSlowConsumers, kOptions, kLimits, &L::slow_consumer>("limits.slow_consumer",
                                                                 "The fate of a frame beyond write_budget", kLive),
      duration<kOptions, kLimits, &L::handshake_timeout>("limits.handshake_timeout", kMillisecond, kDay, true,
                                                         "From accept to the first whole frame", kLive),
      duration<kOptions, kLimits, &L::frame_timeout>("limits.frame_timeout", kMillisecond, kDay, true,
                                                     "From a frame's first byte to its last", kLive),
      duration<kOptions, kLimits, &L::body_timeout>("limits.body_timeout", kMillisecond, kDay, true,
                                                    "From a frame's head to its last byte; none: as for the frame",
                                                    kLive),
      size<kOptions, kLimits, &L::input_max>("limits.input_max", 1, kPiB, "Bytes of a half-received frame", kLive),
      duration<kOptions, kLimits, &L::idle_timeout>("limits.idle_timeout", kMillisecond, kYear, true,
                                                    "Without a byte in either direction, and no reply owed", kLive),
      duration<kOptions, kLimits, &L::reply_timeout>("limits.reply_timeout", kMillisecond, kYear, true,
                                                     "The same, while a reply is owed", kLive),
      duration<kOptions, kLimits, &L::close_timeout>("limits.close_timeout", kMillisecond, kDay, true,
                                                     "From a close until all that is queued is written", kLive),
      duration<kOptions, kLimits, &L::silence_timeout>("limits.silence_timeout", kMillisecond, kYear, true,
                                                       "Without a byte from the peer", kLive),
      word<kPeerLefts, kOptions, kLimits, &L::peer_left>("limits.peer_left",
                                                         "The fate of handlers whose peer ends its stream", kLive),
      word<kReplyOrders, kOptions, kLimits, &L::reply_order>("limits.reply_order",
                                                             "Whether frames are handled while a reply is owed", kLive),
      rate<kOptions, kLimits, &L::message_rate>("limits.message_rate",
                                                "Frames of one session; those above it are read later", kLive),
      count<kOptions, kLimits, &L::groups_max>("limits.groups_max", 0, kUint32Max, "Groups of a session", kLive),
      count<kOptions, kLimits, &L::handlers_max>("limits.handlers_max", 1, 65'536,
                                                 "Coroutines that handle frames of a session at a time"),
      count<kOptions, kLimits, &L::tasks_max>("limits.tasks_max", 0, 65'536, "Other coroutines of a session", kLive),
      count<kOptions, kLimits, &L::waits_max>("limits.waits_max", 0, 65'536,
                                              "Coroutines that wait for room in the queue of a session", kLive),
  };
}

std::vector<Row<ListenerSettings>> listener_gates() {
  constexpr auto kTls = &ListenerSettings::tls;
  constexpr auto kAdmission = &ListenerSettings::admission;
  using T = net::TlsServerOptions;
  using A = net::AdmissionOptions;
  return {
      text<kTls, &T::certificate_file>("tls.certificate_file",
                                       "PEM: the certificate, then its chain; a path is relative to the file", kLive),
      text<kTls, &T::key_file>("tls.key_file", "PEM: its key, without a pass phrase", kLive),
      text<kTls, &T::client_ca_file>("tls.client_ca_file", "PEM: the authorities of clients; empty: none is requested",
                                     kLive),
      flag<kTls, &T::client_required>("tls.client_required", "A client without a certificate is refused", kLive),
      texts<kTls, &T::protocols>("tls.protocols", "ALPN, the best first", kLive),
      count<kAdmission, &A::address_connections_max>("admission.address_connections_max", 0, kUint32Max,
                                                     "Connections of one address; 0: no bound", kLive),
      count<kAdmission, &A::prefix_connections_max>("admission.prefix_connections_max", 0, kUint32Max,
                                                    "Connections of one prefix; 0: no bound", kLive),
      count<kAdmission, &A::ipv4_prefix_bits>("admission.ipv4_prefix_bits", 0, 32, "The length of a prefix of IPv4"),
      count<kAdmission, &A::ipv6_prefix_bits>("admission.ipv6_prefix_bits", 0, 128, "The length of a prefix of IPv6"),
      rate<kAdmission, &A::accept_rate>("admission.accept_rate", "Connections of one prefix over time", kLive),
      count<kAdmission, &A::entries_max>("admission.entries_max", 32, std::int64_t{1} << 26,
                                         "Addresses and prefixes in the table", kLive),
      prefixes<kAdmission, &A::allowed>("admission.allowed", "Prefixes that may connect; empty: every address", kLive),
      prefixes<kAdmission, &A::exempt>("admission.exempt", "Prefixes that are allowed and not bounded", kLive),
  };
}

std::vector<Row<ListenerSettings>> make_listener_rows() {
  constexpr auto kOptions = &ListenerSettings::options;
  std::vector<Row<ListenerSettings>> rows = {
      text<&ListenerSettings::name>("name", "A name for the program; each once"),
      text<&ListenerSettings::endpoint>("endpoint", "tcp://host:port or ipc://path; required"),
      word<kAcceptModes, kOptions, &ListenerOptions::accept>("accept", "How the cores share the connections"),
      flag<kOptions, &ListenerOptions::share_port>("share_port", "Other listeners of this user may have the same port"),
      count<kOptions, &ListenerOptions::spare_descriptors>("spare_descriptors", 0, 1024,
                                                           "Descriptors of each core kept for this port"),
      count<kOptions, &ListenerOptions::socket, &sys::SocketOptions::backlog>(
          "backlog", 1, 65'535, "Connections that wait in the kernel until they are accepted"),
      text<&ListenerSettings::processes>("processes",
                                         "For ipc: the peers' users, groups and processes, like \"uid:1000\""),
  };
  for (auto* const make : {&listener_limits, &listener_gates}) {
    std::vector<Row<ListenerSettings>> more = make();
    std::move(more.begin(), more.end(), std::back_inserter(rows));
  }
  return rows;
}

}  // namespace

std::span<const Row<Settings>> settings_rows() {
  static const std::vector<Row<Settings>> rows = [] {
    std::vector<Row<Settings>> all = make_settings_rows();
    std::vector<Row<Settings>> more = logging_rows();
    std::move(more.begin(), more.end(), std::back_inserter(all));
    return all;
  }();
  return rows;
}

std::span<const Row<ListenerSettings>> listener_rows() {
  static const std::vector<Row<ListenerSettings>> rows = make_listener_rows();
  return rows;
}

}  // namespace weft::serve::config
