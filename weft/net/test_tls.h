// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/base/bytes.h"
#include "weft/base/random.h"
#include "weft/net/stream.h"
#include "weft/net/test_certificates.h"
#include "weft/net/tls.h"
#include <gtest/gtest.h>

// A TlsServer and a TlsClient whose streams are joined by two strings instead of a kernel.
namespace weft::net::test {

using Status = sys::IoResult::Status;

// One direction between two streams, in place of a kernel.
struct Pipe {
  std::string bytes;
  std::size_t room = 1 << 20;  // bytes that still fit in
  bool ended = false;
  bool broken = false;
};

class PipeStream final : public Stream {
 public:
  PipeStream(Pipe& in, Pipe& out, Random* random) : in_(in), out_(out), random_(random) {}

  [[nodiscard]] int fd() const override { return -1; }
  [[nodiscard]] sys::IoResult read(std::span<MutableBytes> into) override {
    if (in_.broken) {
      return {Status::failed, 0, ECONNRESET};
    }
    if (in_.bytes.empty()) {
      return {in_.ended ? Status::end_of_stream : Status::would_block, 0, 0};
    }
    const std::size_t size = cut(std::min(into[0].size(), in_.bytes.size()));
    copy_bytes(into[0].data(), as_bytes(in_.bytes).first(size));
    in_.bytes.erase(0, size);
    return {Status::done, size, 0};
  }
  [[nodiscard]] sys::IoResult write(std::span<const Bytes> from) override {
    if (out_.broken) {
      return {Status::failed, 0, EPIPE};
    }
    const std::size_t free = out_.room - std::min(out_.room, out_.bytes.size());
    if (free == 0) {
      return {};
    }
    const std::size_t size = cut(std::min(free, from[0].size()));
    out_.bytes += as_text(from[0].first(size));
    return {Status::done, size, 0};
  }
  void shutdown_write() override { out_.ended = true; }
  [[nodiscard]] std::string peer_address() const override { return "pipe"; }

 private:
  std::size_t cut(std::size_t size) { return random_ == nullptr || size == 0 ? size : 1 + random_->below(size); }

  Pipe& in_;
  Pipe& out_;
  Random* random_;
};

inline std::string read_all(Stream& stream, Status* last = nullptr, std::size_t room = 20 * 1024) {
  std::string bytes;
  std::vector<std::uint8_t> block(room);
  for (;;) {
    MutableBytes into(block);
    const sys::IoResult result = stream.read({&into, 1});
    if (last != nullptr) {
      *last = result.status;
    }
    if (result.status != Status::done) {
      return bytes;
    }
    bytes += as_text(Bytes(block).first(result.bytes));
  }
}
inline sys::IoResult write(Stream& stream, std::string_view bytes) {
  const Bytes from = as_bytes(bytes);
  return stream.write({&from, 1});
}
inline Status touch(Stream& stream) { return stream.read({}).status; }
inline std::string numbered(std::size_t size) {
  std::string bytes;
  while (bytes.size() < size) {
    bytes += std::to_string(bytes.size()) + ",";
  }
  bytes.resize(size);
  return bytes;
}

class TlsTest : public testing::Test {
 protected:
  TlsServerOptions server_options() {
    const auto files = authority_.issue("server");
    return {.certificate_file = files.certificate, .key_file = files.key};
  }
  TlsClientOptions client_options() { return {.ca_file = authority_.file()}; }
  void make(const TlsServerOptions& server, const TlsClientOptions& client) {
    std::string why;
    auto made = TlsServer::make(server, &why);
    ASSERT_TRUE(made) << why;
    tls_ = std::move(*made);
    auto connector = TlsClient::make(client, &why);
    ASSERT_TRUE(connector) << why;
    connector_ = std::move(*connector);
  }
  void begin(const std::string& name = "localhost", Random* random = nullptr) {
    up_ = down_ = {};
    server_ = *tls_->wrap(std::make_unique<PipeStream>(up_, down_, random));
    client_ = *connector_->wrap(std::make_unique<PipeStream>(down_, up_, random), name);
  }
  void shake_hands() {
    for (int i = 0; i < 10'000 && !(server_->state().established && client_->state().established); ++i) {
      (void)server_->write({});
      (void)client_->write({});
      if (touch(*server_) == Status::failed || touch(*client_) == Status::failed) {
        return;
      }
    }
  }
  void connect() {
    make(server_options(), client_options());
    begin();
    shake_hands();
    ASSERT_TRUE(server_->state().established);
    (void)read_all(*client_);  // takes the tickets
  }
  // Whether the server admits a client with such a certificate.
  bool comes_in(const TlsClientOptions& options) {
    connector_ = *TlsClient::make(options);
    begin();
    shake_hands();
    return server_->state().established;
  }
  // The client's reason for refusing the server.
  std::string complaint(const std::string& name = "localhost") {
    begin(name);
    shake_hands();
    return client_->state().failure.text();
  }

  TestAuthority authority_;
  std::shared_ptr<TlsServer> tls_;
  std::shared_ptr<TlsClient> connector_;
  Pipe up_, down_;
  std::unique_ptr<Stream> server_, client_;
};

}  // namespace weft::net::test
