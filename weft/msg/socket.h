// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/bytes.h"
#include "weft/base/counter_table.h"
#include "weft/base/filter.h"
#include "weft/base/result.h"
#include "weft/base/time.h"
#include "weft/msg/message/message.h"
#include "weft/msg/message/monitor.h"
#include "weft/msg/message/options.h"
#include "weft/msg/message/socket_type.h"
#include "weft/msg/message/statistics.h"

namespace weft {

namespace msg {
class SocketCore;
}

enum class More : bool { no = false, yes = true };  // whether further parts of the same message follow

struct Received {
  std::size_t size = 0;  // of the part, in bytes, even if the target was smaller
  bool more = false;
  bool truncated = false;
};

// Socket: a messaging socket. Every call on a moved-from or closed socket fails with Errc::closed.
// Owner: a move-only handle; destruction closes. The context then still delivers queued messages, for at most the time
// of the option `linger`.
// Affinity: any thread, also several at once.
// Errors of every call: closed; terminated (the context was shut down). Errors of waiting calls: also timed_out
// (options send_timeout and receive_timeout), interrupted (a signal).
class Socket {
 public:
  Socket() noexcept = default;  // closed
  explicit Socket(std::shared_ptr<msg::SocketCore> core) noexcept;
  Socket(Socket&&) noexcept = default;
  Socket& operator=(Socket&& other) noexcept;
  ~Socket();
  void close();  // idempotent; does not wait

  // Binds to tcp://host:port, ipc://path, ipc://@name, vsock://cid:port or inproc://name. With "*" or port 0 the system
  // chooses. Returns the exact endpoint. Errors: malformed_endpoint, unknown_transport, address_in_use,
  // address_unavailable, name_unresolved, resource_exhausted.
  Result<std::string> bind(std::string_view endpoint);
  // Returns at once. The I/O thread connects, and reconnects after a loss. A DEALER, SUB, PUB or REQ that is already
  // connected or bound to the endpoint does not connect to it, except over inproc.
  Result<void> connect(std::string_view endpoint);
  // PEER: connects, and returns the routing id of the peer for Message::set_routing_id. Errors: not_supported;
  // invalid_state (option immediate).
  Result<std::uint32_t> connect_peer(std::string_view endpoint);
  // SERVER, PEER: ends the connection of one peer. Its routing id is unknown from now on: the socket receives nothing
  // more from the peer, and messages that were sent to it still go out, for the time of the option `linger`. A peer
  // that dialled may come again, with another routing id. Errors: unreachable (no such peer); not_supported.
  Result<void> disconnect_peer(std::uint32_t routing_id);
  // `endpoint`: the text that bind returned. The call ends the connections that peers made to it. Errors:
  // no_such_endpoint.
  Result<void> unbind(std::string_view endpoint);
  // `endpoint`: the text that was passed to connect. The call ends every such connection: the socket receives nothing
  // more from it. Errors: no_such_endpoint.
  Result<void> disconnect(std::string_view endpoint);

  // Sends one part. On an error the caller keeps the message. Errors: invalid_state (REQ, REP out of turn), unreachable
  // (SERVER, PEER, STREAM; ROUTER with the option router_mandatory), invalid_argument (More::yes for a type whose
  // messages have one part), not_supported.
  Result<void> send(Bytes bytes, More more = More::no);
  Result<void> send(std::string_view text, More more = More::no) { return send(as_bytes(text), more); }
  Result<void> send(Message&& message, More more = More::no);
  Result<void> try_send(Bytes bytes, More more = More::no);  // never waits; fails with would_block
  Result<void> try_send(std::string_view text, More more = More::no) { return try_send(as_bytes(text), more); }
  Result<void> try_send(Message&& message, More more = More::no);
  // Sends one message of several parts. Fails with invalid_argument if there are no parts.
  Result<void> send(std::initializer_list<std::string_view> parts);  // socket.send({"topic", "body"})
  Result<void> send_all(std::span<Message> parts);

  // Receives one part. Errors: invalid_state, not_supported.
  Result<Message> recv();
  Result<Message> try_recv();              // never waits; fails with would_block
  Result<Message> recv(Duration timeout);  // fails with timed_out; a negative timeout waits for ever
  Result<Message> recv_until(Instant deadline);
  Result<Received> recv_into(MutableBytes target);
  Result<Received> try_recv_into(MutableBytes target);
  Result<std::vector<Message>> recv_all();  // one whole message

  // SUB and XSUB: subscribes to the messages whose first part begins with `prefix`.
  Result<void> subscribe(std::string_view prefix);
  Result<void> unsubscribe(std::string_view prefix);
  // Subscribes to the messages whose first part the filter matches, such as Filter::glob("news:*:de"). A Weft publisher
  // applies the filter, too; any other publisher sends the messages that begin with the filter's literal head. From its
  // first filter on, an XSUB receives only messages that match its subscriptions, like a SUB. With the option
  // invert_matching the publisher must be a Weft one. Errors: invalid_argument (unsubscribe() without subscribe()).
  Result<void> subscribe(const Filter& filter);
  Result<void> unsubscribe(const Filter& filter);
  // PUB, XPUB: returns the number of different topics to which peers subscribed; SUB, XSUB: of the socket's own.
  // Errors: not_supported.
  Result<std::size_t> topics();
  // DISH: joins or leaves a group: up to 255 bytes, none of them zero. Errors: invalid_argument, also to join twice, or
  // to leave a group that was not joined.
  Result<void> join(std::string_view group);
  Result<void> leave(std::string_view group);

  // socket.set(weft::option::linger, 1s). Earlier endpoints keep their values, except for the high-water marks, the
  // time-outs and linger. Errors: invalid_argument.
  template <typename T>
  Result<void> set(const Option<T>& row, std::type_identity_t<T> value) {
    return change([&](Options& options) { return set_option(options, row, std::move(value)); });
  }
  Result<void> set(std::string_view name, std::string_view value);  // fails with unknown_option, too
  template <typename T>
  Result<T> get(const Option<T>& row) {
    auto all = options();
    return all ? Result<T>(std::move((*all).*row.member)) : Result<T>(all.error());
  }
  Result<Options> options();

  // Reads the certificates of the bound tls+tcp endpoints again, for later connections. If it fails with
  // invalid_argument (a file cannot be used), the endpoint keeps its certificates.
  Result<void> reload_certificates();

  // Returns the next event of this socket's connections; the first call begins to collect events. Waits up to
  // `timeout`; a negative one waits for ever.
  Result<MonitorEvent> next_event(Duration timeout);
  Result<void> watch_events();  // begins to collect events without waiting
  Result<void> report_pipes();  // an event pipe_statistics for each peer; fails with would_block if there is no peer
  Result<Statistics> statistics();
  // Returns a source of the same numbers for a page of metrics. A closed socket's source is empty.
  [[nodiscard]] CounterSource counter_source() const;
  // ROUTER: whether the peer with that routing id takes a message now. Errors: unreachable; not_supported.
  Result<bool> peer_writable(std::string_view routing_id);
  [[nodiscard]] SocketType type() const noexcept;

  [[nodiscard]] const std::shared_ptr<msg::SocketCore>& core() const noexcept { return core_; }

 private:
  Result<void> change(const std::function<Result<void>(Options&)>& change);
  Result<void> send_part(Bytes bytes, Message* message, More more, bool wait);

  std::shared_ptr<msg::SocketCore> core_;
};

}  // namespace weft
