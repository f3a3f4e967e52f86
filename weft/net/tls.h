// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "weft/base/result.h"
#include "weft/net/stream.h"

namespace weft::net {

// TLS 1.3, and nothing older, over any Stream, by OpenSSL. A build without OpenSSL has none of it: making a TlsServer
// or a TlsClient says not_supported.
//
// A stream that wrap() gives is used like any other, by one thread at a time: reading and writing are one state. Its
// handshake goes on in read(), also in a read into nothing, until state().established; before, write() takes nothing.
// An end that the peer's TLS did not announce is `failed`. It holds at most one record of each direction beside what
// OpenSSL needs for a connection.

[[nodiscard]] bool tls_available() noexcept;

struct TlsContext;  // what a file of certificates and a key became

struct TlsServerOptions {
  std::string certificate_file;          // PEM: the server's certificate, then those up to its authority's
  std::string key_file;                  // PEM, without a pass phrase
  std::string client_ca_file{};          // PEM: who vouches for clients. Empty: clients are not asked for a certificate
  bool client_required = true;           // with a client_ca_file: without a certificate nobody comes in
  std::vector<std::string> protocols{};  // ALPN, the best first. A client that asks for others alone is refused
};

// TlsServer: what the accepting side shows of itself, and whom it takes.
// Owner: shared among those who accept, and the streams they made. Affinity: any thread.
// Invariants: 1. files are read by make() and reload() alone. 2. when reload() fails, what was in use stays in use.
class TlsServer {
 public:
  // invalid_argument: a file that cannot be used; `why` gets its name and OpenSSL's reason.
  [[nodiscard]] static Result<std::shared_ptr<TlsServer>> make(const TlsServerOptions& options,
                                                               std::string* why = nullptr);
  TlsServer(const TlsServer&) = delete;
  TlsServer& operator=(const TlsServer&) = delete;
  ~TlsServer() = default;

  // Reads the same files again, for the connections that come from now on; those that are there go on. As make().
  [[nodiscard]] Result<void> reload(std::string* why = nullptr);

  // resource_exhausted: no memory; the connection is closed.
  [[nodiscard]] Result<std::unique_ptr<Stream>> wrap(std::unique_ptr<Stream> stream) const;

 private:
  TlsServer(const TlsServerOptions& options, std::shared_ptr<const TlsContext> context)
      : options_(options), context_(std::move(context)) {}

  const TlsServerOptions options_;
  mutable std::mutex mutex_;
  std::shared_ptr<const TlsContext> context_;  // guarded by mutex_
};

struct TlsClientOptions {
  std::string ca_file{};                 // PEM: who vouches for servers. Empty: those whom the system trusts
  bool verify = true;                    // off: anybody may be the server, also somebody in between
  std::string certificate_file{};        // shown to a server that asks; PEM, as TlsServerOptions
  std::string key_file{};                // its key
  std::vector<std::string> protocols{};  // ALPN
};

// TlsClient: the connecting side. Owner: shared among those who connect. Affinity: any thread; immutable.
class TlsClient {
 public:
  [[nodiscard]] static Result<std::shared_ptr<TlsClient>> make(const TlsClientOptions& options,
                                                               std::string* why = nullptr);

  // Begins the handshake. `server_name` is the host name or the address that the server's certificate must be for.
  // invalid_argument: verification is on and there is none; resource_exhausted.
  [[nodiscard]] Result<std::unique_ptr<Stream>> wrap(std::unique_ptr<Stream> stream,
                                                     const std::string& server_name) const;

 private:
  TlsClient(bool verify, std::shared_ptr<const TlsContext> context) : verify_(verify), context_(std::move(context)) {}

  const bool verify_;
  const std::shared_ptr<const TlsContext> context_;
};

// What the handshake brought.
struct TlsInfo {
  std::string protocol;      // ALPN; empty: none
  std::string peer_subject;  // of the peer's verified certificate (RFC 2253); empty: it showed none
  bool resumed = false;      // with a ticket of an earlier connection
};
[[nodiscard]] std::optional<TlsInfo> tls_info(const Stream& stream);  // nothing: not TLS, or not established

}  // namespace weft::net
