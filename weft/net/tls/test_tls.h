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
#include "weft/net/stream/byte_stream.h"
#include "weft/net/stream/test_pipe.h"
#include "weft/net/tls/test_certificates.h"
#include "weft/net/tls/tls.h"
#include <gtest/gtest.h>

// A TlsServer and a TlsClient whose streams are joined by two strings instead of a kernel.
namespace weft::net::test {

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
    server_.reset();  // each still writes its end
    client_.reset();
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
  std::unique_ptr<ByteStream> server_, client_;
};

}  // namespace weft::net::test
