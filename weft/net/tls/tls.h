// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "weft/base/result.h"
#include "weft/net/stream/byte_stream.h"
#include "weft/sync/lock.h"

namespace weft::net {

// TLS 1.3 only, over any ByteStream, by OpenSSL. In a build without OpenSSL, making a TlsServer or a TlsClient fails
// with not_supported.
//
// One thread at a time uses a stream that wrap() returned, because reading and writing share one state. read(), also a
// read of no bytes, continues the handshake until state().established; until then write() takes no bytes. If the peer's
// TLS did not announce the end, the end is `failed`. The stream holds at most one record of each direction, besides
// OpenSSL's memory for a connection.

[[nodiscard]] bool tls_available() noexcept;

struct TlsContext;  // the loaded certificates and key

struct TlsServerOptions {
  std::string certificate_file;  // PEM: the server's certificate, then the chain to its authority
  std::string key_file;          // PEM, without a pass phrase
  // PEM: the authorities of clients. Empty: the server requests no certificate. With authorities, no connection resumes
  // an earlier one, so that each client proves a currently valid certificate.
  std::string client_ca_file{};
  bool client_required = true;           // with a client_ca_file: a client without a certificate is refused
  std::vector<std::string> protocols{};  // ALPN, the best first. A client without a common one is refused
  std::string certificate_pem{};         // the contents of such files, in their place
  std::string key_pem{};
};

// TlsServer: the accepting side's certificate, and its rules for clients.
// Owner: shared by the listeners that accept, and the streams they made. Affinity: any thread.
// Invariants:
// 1. Only make() and reload() read files; adopt() does not.
// 2. If reload() fails, the certificate and rules in use stay in use.
class TlsServer {
 public:
  // Errors: invalid_argument (a file cannot be used; `why` gets its name and OpenSSL's reason); resource_exhausted (no
  // descriptor or no memory to read it).
  [[nodiscard]] static Result<std::shared_ptr<TlsServer>> make(const TlsServerOptions& options,
                                                               std::string* why = nullptr);
  TlsServer(const TlsServer&) = delete;
  TlsServer& operator=(const TlsServer&) = delete;
  ~TlsServer() = default;

  // Reads the same files again, for later connections; existing ones continue unchanged. Errors: those of make().
  [[nodiscard]] Result<void> reload(std::string* why = nullptr);
  // Later connections get the certificate and the rules of another one, and reload() then reads its files.
  void adopt(const TlsServer& other);

  // Errors: resource_exhausted (no memory; the connection is closed).
  [[nodiscard]] Result<std::unique_ptr<ByteStream>> wrap(std::unique_ptr<ByteStream> stream) const;

 private:
  TlsServer(const TlsServerOptions& options, std::shared_ptr<const TlsContext> context)
      : options_(options), context_(std::move(context)) {}

  mutable sync::StdMutex mutex_;
  TlsServerOptions options_ WEFT_GUARDED_BY(mutex_);
  std::shared_ptr<const TlsContext> context_ WEFT_GUARDED_BY(mutex_);
};

struct TlsClientOptions {
  std::string ca_file{};                 // PEM: the authorities of servers. Empty: those that the system trusts
  bool verify = true;                    // false: any server is accepted, even a man in the middle
  std::string certificate_file{};        // PEM, like TlsServerOptions; shown to a server that requests it
  std::string key_file{};                // its key
  std::vector<std::string> protocols{};  // ALPN
  std::string ca_pem{};                  // the contents of such a file, beside ca_file
  bool system_too = false;               // also with a ca_file or ca_pem, the authorities that the system trusts
  bool check_name = true;                // false: with these authorities, a certificate for any name is accepted
};

// TlsClient: the connecting side. Owner: shared by the dialers that connect. Affinity: any thread; immutable.
class TlsClient {
 public:
  // Errors: those of TlsServer::make().
  [[nodiscard]] static Result<std::shared_ptr<TlsClient>> make(const TlsClientOptions& options,
                                                               std::string* why = nullptr);

  // Begins the handshake. `server_name` is the host name or the address that the server's certificate must have in its
  // subjectAltName (parse_server_name()). With check_name off, the client only sends it to the server, if it is a valid
  // name. Errors: invalid_argument (the name is to be checked and is not valid); resource_exhausted.
  [[nodiscard]] Result<std::unique_ptr<ByteStream>> wrap(std::unique_ptr<ByteStream> stream,
                                                         const std::string& server_name) const;

 private:
  TlsClient(bool checks_name, std::shared_ptr<const TlsContext> context)
      : checks_name_(checks_name), context_(std::move(context)) {}

  const bool checks_name_;
  const std::shared_ptr<const TlsContext> context_;
};

// The results of the handshake.
struct TlsInfo {
  std::string protocol;  // ALPN; empty: none
  // of the peer's certificate (RFC 2253); empty: the peer sent none, or this end did not verify it
  std::string peer_subject;
  bool resumed = false;  // with a ticket of an earlier connection
};
// Of the stream, or of the nearest layer under it. Empty if there is no TLS, or it is not established.
[[nodiscard]] std::optional<TlsInfo> tls_info(const ByteStream& stream);

}  // namespace weft::net
