// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/base/bytes.h"
#include "weft/base/counter_table.h"
#include "weft/base/result.h"
#include "weft/base/time.h"
#include "weft/net/resolver.h"
#include "weft/net/tls/tls.h"
#include "weft/rt/task/task.h"
#include "weft/serve/client/client_host.h"
#include "weft/serve/session/session_limits.h"
#include "weft/serve/web/websocket.h"
#include "weft/sys/socket.h"

namespace weft::serve::web {

struct WebSocketClientOptions {
  WebSocketClientOptions() {}  // NOLINT(modernize-use-equals-default): not an aggregate, see rt/task/task.h

  std::vector<std::string> protocols{};                       // sub-protocols, the best first
  std::vector<std::pair<std::string, std::string>> fields{};  // of the request, such as {"Authorization", "Bearer x"}
  std::optional<DeflateOptions> deflate{};                    // offers permessage-deflate; a build without zlib: not
  WebSocketLimits limits{};                                   // of a message that comes
  std::size_t inbox_max = 1024 * 1024;                        // bytes of messages that wait for receive()
  Duration connect_timeout = std::chrono::seconds(10);        // the name, the connection, TLS and the upgrade together
  Duration close_timeout = std::chrono::seconds(5);           // from the close frame to the end of the connection
  Duration ping_every{-1};                                    // the interval of pings; negative: none
  // Of the connection: idle_timeout (5 min) is without a sign of the server.
  SessionLimits session = websocket_limits();
  std::shared_ptr<net::TlsClient> tls{};  // for wss; null: as of HttpClientOptions
  sys::SocketOptions socket{};
  net::Resolver* resolver = nullptr;  // null: Resolver::shared()
};

struct WebSocketMessage {
  Opcode kind = Opcode::binary;  // text or binary. A text is UTF-8
  std::string body{};
};

class WebSocketLink;

// WebSocketClient: the client's end of a WebSocket (RFC 6455). Its connection is a session of the host's core. It does
// not connect again.
//   const auto feed = co_await web::WebSocketClient::connect(host, "wss://example.com/feed");
// Owner: the program. The destructor ends the connection at once. In another thread than the core's, the destructor
// posts this to the core and does not wait. The runtime must outlive the client.
// Affinity: its core's thread, which also awaits the tasks.
// Cost: each message is copied once when it comes; one that is sent is copied under its mask, then into the queue.
// Invariants:
//   1. The client reads from the server only while fewer than inbox_max bytes wait: a slow program slows the server.
//   2. Each frame that is sent has a mask of its own, from a strong source of entropy.
//   3. Messages of this end that send() took leave whole and in their order, unless the connection ends first.
class WebSocketClient {
 public:
  // Connects, and asks for a WebSocket. Errors: invalid_argument (no URL of ws or wss, or a mistake in the options);
  // invalid_state (not on the host's core); those of Dialling; timed_out (connect_timeout); handshake_refused (the
  // server answered with another status, which the text has); protocol_error (the answer does not belong to this
  // request); resource_exhausted; kCancelled.
  [[nodiscard]] static rt::Task<Result<std::unique_ptr<WebSocketClient>>> connect(std::shared_ptr<ClientHost> host,
                                                                                  std::string url,
                                                                                  WebSocketClientOptions options = {});
  explicit WebSocketClient(std::shared_ptr<WebSocketLink> link) noexcept;  // for connect()
  WebSocketClient(const WebSocketClient&) = delete;
  WebSocketClient& operator=(const WebSocketClient&) = delete;
  ~WebSocketClient();

  // Sends a message; waits while a quarter of the write budget is queued. `body` must live until the task has ended.
  // Errors: invalid_argument (not a text or binary message, or a text that is not UTF-8); message_too_large (16 MiB);
  // resource_exhausted; the reason for which the connection ended; closed; invalid_state; kCancelled.
  [[nodiscard]] rt::Task<Result<void>> send(Opcode kind, Bytes body);
  [[nodiscard]] rt::Task<Result<void>> send(std::string_view text) { return send(Opcode::text, as_bytes(text)); }
  // The next message. Errors: timed_out (the deadline); connection_closed (the server closed: peer_status(); or it left
  // without a close frame); closed (this end closed); the reason for which the connection ended; kCancelled.
  // Messages that came before an end are returned first.
  [[nodiscard]] rt::Task<Result<WebSocketMessage>> receive(Instant deadline = kNever);
  // Sends a ping of at most 125 bytes. The client answers pings of the server by itself.
  Result<void> ping(Bytes body = {});
  // Sends a close frame after all messages, and waits for the server's, and for the end of the connection. Messages
  // that still come are kept for receive(). Fails with timed_out if that took close_timeout, or with the reason for
  // which the connection ended otherwise. Idempotent.
  [[nodiscard]] rt::Task<Result<void>> close(std::uint16_t status = 1000, std::string_view reason = {});

  [[nodiscard]] bool is_open() const noexcept;
  [[nodiscard]] std::string_view protocol() const noexcept;  // the sub-protocol that the server chose; empty: none
  [[nodiscard]] bool is_compressed() const noexcept;         // both ends agreed on permessage-deflate
  [[nodiscard]] std::uint16_t peer_status() const noexcept;  // of the server's close frame; 0: none came
  [[nodiscard]] std::size_t waiting() const noexcept;        // messages that wait for receive()
  // For a page of metrics, as long as the client exists. Any thread.
  [[nodiscard]] CounterSource counter_source() const;

 private:
  std::shared_ptr<WebSocketLink> link_;
};

}  // namespace weft::serve::web
