// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "weft/net/admit/accept_filter.h"
#include "weft/net/tls/tls.h"
#include "weft/rt/core/core.h"
#include "weft/serve/frame/request_number.h"
#include "weft/serve/server/live_limits.h"
#include "weft/serve/session/log.h"
#include "weft/serve/session/service.h"
#include "weft/sys/fd.h"
#include "weft/sys/socket.h"

namespace weft::serve {

enum class AcceptMode : std::uint8_t {
  automatic,   // reuse_port for tcp on several cores, otherwise hand_off
  reuse_port,  // each core has a listening socket; the kernel spreads the connections by their addresses
  hand_off,    // one listening socket; its core passes the connections to all cores in turn
};

struct ListenerOptions {
  SessionLimits limits;
  // Null: sessions have `limits`. Otherwise they have the limits of its last set(), from then on. The TCP user time-out
  // of the sockets stays that of `limits`.
  std::shared_ptr<const LiveLimits> live_limits{};
  AcceptMode accept = AcceptMode::automatic;
  // Other listeners of this user, also in other processes, may have the same tcp port: the kernel spreads the
  // connections over all of them. All of them set this flag. Without it, listening on a port that has a listener fails
  // with address_in_use.
  bool share_port = false;
  // Spare descriptors of each core of the listener, for a port that must answer although the process has no other
  // descriptor. The core gives up one for each such connection. Then it tries every 10 ms to get it back.
  std::size_t spare_descriptors = 0;
  sys::SocketOptions socket = default_socket();
  std::string name{};  // of the listener for the next process (HandOver); empty: its endpoint
  // Listening sockets of one address that another process opened (TakenListeners), in the place of opening some: each
  // core accepts from its part of them. If there are fewer than cores, the cores that have one pass the connections to
  // all cores in turn. After an error the server has closed those that listen at such an endpoint.
  std::vector<int> adopt_fds{};
  net::AcceptFilter filter{};
  // Each connection begins with a header of the PROXY protocol, version 1 or 2, that names the client's address. Only
  // the stated peers may send one: networks for tcp, processes for ipc. Any other connection, one without a header, and
  // one whose header is not whole after handshake_timeout are refused; the same time-out counts on for the session. The
  // address counts for `admission`, Session::peer_address() and the log. TLS and `wrap` begin after the header. Null:
  // no header.
  std::optional<net::AcceptFilter> proxy_protocol{};
  // Puts a layer between a session and its socket: makes a stream from the accepted one. Called on the session's core;
  // an error or an exception refuses the connection. If a read() of such a stream returns fewer bytes than it had room
  // for, the stream has no more bytes at that moment. The stream reports other changes in its state(). TLS is above it.
  std::function<Result<std::unique_ptr<net::ByteStream>>(std::unique_ptr<net::ByteStream>)> wrap{};
  // Connections use TLS 1.3, and their sessions begin after the handshake. Several listeners may share one TlsServer;
  // reload() changes the certificate of running listeners. Null: without TLS.
  std::shared_ptr<net::TlsServer> tls{};
  // Decides which addresses may connect, and how many connections each may have. Several listeners may share one. Null:
  // all connections.
  std::shared_ptr<net::Admission> admission{};

  static sys::SocketOptions default_socket() {
    sys::SocketOptions options;
    options.backlog = 1024;
    return options;
  }
};

// OpenListener: a listening socket of a server, for another process.
struct OpenListener {
  std::string name;  // ListenerOptions::name
  sys::Fd descriptor;
};

struct ServerOptions {
  std::size_t sessions_max = 100'000;                  // on all cores; more connections are closed at once, and counted
  std::size_t memory_max = std::size_t{1} << 30;       // bytes queued and half received, of all sessions
  std::size_t core_memory_max = std::size_t{1} << 29;  // the same, of the sessions of one core
  // The time in which a stop keeps sessions open for the frames that running handlers of other sessions still send to
  // them; at most half of the time to the deadline. Negative: without this bound.
  Duration settle_timeout = std::chrono::seconds(5);
  // A turn of a core that lasts this long is logged and counted, with the service and the handler that has not
  // returned. Zero or negative: no check.
  Duration stall_after = std::chrono::milliseconds(500);
  // Receives one record at each connection's end, see log.h and record_log.h. Empty: no log.
  LogSink log{};
  // Receives each exception of a service (on_open ... on_close), of its coroutines, and of the handlers of a
  // Dispatcher.
  HandlerExceptionSink on_exception{};
};

// ServiceKind: the service of a listener, without types: a codec, and the function that makes a core's service.
struct ServiceKind {
  SessionOps ops;
  std::shared_ptr<const void> codec;
  std::function<std::shared_ptr<void>(rt::Core&)> make;
  bool numbers_requests = false;  // answers may leave in any order (request_number.h)

  template <FrameCodec Codec, typename MakeService>
  [[nodiscard]] static ServiceKind of(MakeService make_service, const Codec& codec) {
    return {ops_of<Codec, MakeService>(), std::make_shared<Codec>(codec),
            [make_service = std::move(make_service)](rt::Core& core) -> std::shared_ptr<void> {
              MakeService own = make_service;  // the cores call at the same time
              return call(own, core);
            },
            kNumbersRequests<Codec>};
  }

 private:
  template <typename MakeService>
  static auto make_one(MakeService& make_service, rt::Core& core) {
    if constexpr (std::is_invocable_v<MakeService&, rt::Core&>) {
      return make_service(core);
    } else {
      return make_service();
    }
  }
  template <typename MakeService>
  using Made = decltype(make_one(std::declval<MakeService&>(), std::declval<rt::Core&>()));
  // Made in place, because a service need not be movable.
  template <typename MakeService>
  struct Holder {
    Made<MakeService> service;
    Holder(MakeService& make_service, rt::Core& core) : service(make_one(make_service, core)) {}
  };
  template <typename MakeService>
  static std::shared_ptr<void> call(MakeService& make_service, rt::Core& core) {
    auto holder = std::make_shared<Holder<MakeService>>(make_service, core);
    return std::shared_ptr<void>(holder, &holder->service);
  }
  template <typename Codec, typename MakeService>
  static constexpr SessionOps ops_of() {
    return ServiceCalls<Codec, Made<MakeService>>::ops();
  }
};

}  // namespace weft::serve
