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

// TLS 1.3, and nothing older, over any Stream, by OpenSSL. A build without OpenSSL has no TLS: making a
// TlsServer or a TlsClient returns not_supported.
//
// One thread at a time uses a stream that wrap() returned, since reading and writing share one state. read(),
// also a read into nothing, continues the handshake until state().established; until then write() takes
// nothing. An end that the peer's TLS did not announce is `failed`. The stream holds at most one record of
// each direction, beside OpenSSL's memory for a connection.

[[nodiscard]] bool tls_available() noexcept;

struct TlsContext;  // the loaded certificates and key

struct TlsServerOptions {
  std::string certificate_file;  // PEM: the server's certificate, then the chain to its authority
  std::string key_file;          // PEM, without a pass phrase
  // PEM: the authorities of clients. Empty: no certificate is requested. With it no connection resumes an earlier one,
  // so that each proves a certificate that is valid today.
  std::string client_ca_file{};
  bool client_required = true;           // with a client_ca_file: a client without a certificate is refused
  std::vector<std::string> protocols{};  // ALPN, the best first. A client without a common one is refused
  std::string certificate_pem{};         // the contents of such files, in their place
  std::string key_pem{};
};

// TlsServer: the accepting side's certificate, and its rules for clients.
// Owner: shared by the listeners that accept, and the streams they made. Affinity: any thread.
// Invariants:
// 1. Only make() and reload() read files.
// 2. When reload() fails, the certificate and rules in use stay in use.
class TlsServer {
 public:
  // invalid_argument: a file cannot be used; `why` gets its name and OpenSSL's reason. resource_exhausted: there was no
  // descriptor or no memory to read it.
  [[nodiscard]] static Result<std::shared_ptr<TlsServer>> make(const TlsServerOptions& options,
                                                               std::string* why = nullptr);
  TlsServer(const TlsServer&) = delete;
  TlsServer& operator=(const TlsServer&) = delete;
  ~TlsServer() = default;

  // Reads the same files again, for later connections; existing ones continue unchanged. Errors as make().
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
  std::string ca_file{};                 // PEM: the authorities of servers. Empty: those that the system trusts
  bool verify = true;                    // off: any server is accepted, even a man in the middle
  std::string certificate_file{};        // PEM, as TlsServerOptions; shown to a server that requests it
  std::string key_file{};                // its key
  std::vector<std::string> protocols{};  // ALPN
  std::string ca_pem{};                  // the contents of such a file, beside ca_file
  bool system_too = false;               // also with a ca_file or ca_pem, the authorities that the system trusts
  bool check_name = true;                // off: of these authorities, a certificate for any name is accepted
};

// TlsClient: the connecting side. Owner: shared by the dialers that connect. Affinity: any thread; immutable.
class TlsClient {
 public:
  // Errors as TlsServer::make().
  [[nodiscard]] static Result<std::shared_ptr<TlsClient>> make(const TlsClientOptions& options,
                                                               std::string* why = nullptr);

  // Begins the handshake. `server_name` is the host name or the address that the server's certificate must be
  // for, in its subjectAltName (parse_server_name()); with check_name off it is only told to the server, if it is one.
  // invalid_argument: it is to be checked and is none; resource_exhausted.
  [[nodiscard]] Result<std::unique_ptr<Stream>> wrap(std::unique_ptr<Stream> stream,
                                                     const std::string& server_name) const;

 private:
  TlsClient(bool checks_name, std::shared_ptr<const TlsContext> context)
      : checks_name_(checks_name), context_(std::move(context)) {}

  const bool checks_name_;
  const std::shared_ptr<const TlsContext> context_;
};

// The results of the handshake.
struct TlsInfo {
  std::string protocol;      // ALPN; empty: none
  std::string peer_subject;  // of the peer's certificate (RFC 2253); empty: the peer sent none, or nobody verified it
  bool resumed = false;      // with a ticket of an earlier connection
};
// Of the stream, or of the nearest layer under it. Empty: no TLS, or not established.
[[nodiscard]] std::optional<TlsInfo> tls_info(const Stream& stream);

}  // namespace weft::net
