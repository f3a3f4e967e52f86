// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "weft/base/bytes.h"
#include "weft/base/error.h"
#include "weft/base/result.h"
#include "weft/base/time.h"
#include "weft/mem/secret.h"
#include "weft/nats/protocol/headers.h"
#include "weft/nats/protocol/limits.h"
#include "weft/net/resolver.h"
#include "weft/net/tls/tls.h"
#include "weft/sync/counter.h"
#include "weft/sys/socket.h"

namespace weft::nats {

// ClientEvent: a change of a client's connection.
struct ClientEvent {
  enum class Kind : std::uint8_t {
    connected,     // the server took the credentials, and has all subscriptions
    lost,          // a connection ended: `why`
    unconnected,   // an attempt failed: `why`
    lame_duck,     // the server announced its end; the client leaves it if there is another one
    refused,       // the server dropped a message: `why`, and `subject` if the server named it
    unsubscribed,  // the server refused the subscriptions to `subject`: `why`
  };
  Kind kind = Kind::connected;
  Error why{};
  std::string_view server{};   // "nats://host:port"; valid during the call
  std::string_view subject{};  // the same
};

struct ClientOptions {
  // Servers with commas between them, see parse_server_url(). The servers that they name in connect_urls are tried too.
  std::string servers = "nats://127.0.0.1:4222";
  bool shuffle = true;
  std::string name{};  // shown by the server's monitor
  bool echo = true;    // the server sends the client's own messages to its own subscriptions

  // One way to log in. A user and a password in a URL come before these for its server. The files are read in each
  // attempt, so a renewed one counts; reading waits for the disk.
  std::string user{};
  Secret password{};
  Secret token{};
  Secret nkey_seed{};              // "SU..."
  std::string nkey_seed_file{};    // the same, in a file
  std::string credentials_file{};  // .creds: a JWT and a seed

  // Null: TLS only if a server requires it or is tls://, with the authorities that the system trusts. Otherwise always.
  std::shared_ptr<net::TlsClient> tls{};
  std::string tls_name{};  // of the server's certificate; empty: the host
  bool tls_first = false;  // the handshake comes before INFO, as of servers with `handshake_first`

  sys::SocketOptions socket{};
  Duration lookup_timeout = std::chrono::seconds(30);  // of the host's name; negative: none
  Duration connect_timeout = std::chrono::seconds(5);  // after that, until the server took the credentials
  // Between two rounds through the servers: half of the first wait to all of it, the next ones double up to the last.
  Duration reconnect_first = std::chrono::milliseconds(100);
  Duration reconnect_max = std::chrono::seconds(5);
  Duration login_wait = std::chrono::seconds(5);  // at least this after refused credentials
  Duration ping_every = std::chrono::seconds(20);
  unsigned pings_missed_max = 2;  // with so many times ping_every without a byte, the connection is lost
  Duration lame_duck_wait = std::chrono::seconds(2);  // for the answers to requests, before the client leaves

  std::size_t pending_max = 8U << 20U;  // bytes that wait for the kernel, and bytes kept while there is no connection
  std::size_t message_max = 8U << 20U;  // bytes of a received message, headers included; at most kMessageMax
  std::uint32_t requests_max = 65'536;  // that wait for an answer
  std::uint32_t subscriptions_max = 262'144;
  std::string inbox_prefix = "_INBOX";

  // Called in the loop's thread, outside of the program's calls. The function may call and destroy the client.
  std::function<void(const ClientEvent&)> on_event{};
  net::Resolver* resolver = nullptr;  // null: Resolver::shared()

  // Sets `tls` from files of PEM; all of them empty: leaves it null. Errors: those of net::TlsClient::make().
  [[nodiscard]] Result<void> use_tls_files(std::string_view authorities, std::string_view certificate,
                                           std::string_view key);
};

// Message: a received message; views that are valid during the call of the subscription's function.
struct Message {
  std::string_view subject{};
  std::string_view reply{};  // empty: no answer is expected
  HeadersView headers{};
  Bytes body{};
};

// ClientCounts: the core counts, any thread reads. Of messages to the server:
//   published = sent + kept_now + dropped_oldest + dropped_closed, at each moment; refused ones are not published.
// The host counts the frames that a connection gave up when it ended (CoreCounters::undelivered).
struct ClientCounts {
  sync::Counter published;       // publish() returned ok
  sync::Counter sent;            // given to a connection
  sync::Counter refused;         // publish() failed for lack of room
  sync::Counter dropped_oldest;  // kept while there was no connection, and dropped for newer ones
  sync::Counter dropped_closed;  // kept when the client closed
  sync::Counter received;        // messages for subscriptions
  sync::Counter unclaimed;       // messages whose subscription had ended
  sync::Counter attempts;        // to connect
  sync::Counter connected;
  sync::Counter lost;
  sync::Counter server_errors;  // lines of -ERR
};

}  // namespace weft::nats
