// SPDX-License-Identifier: MIT
#include "weft/serve/web_client/connect_web.h"

#include <utility>

#include "weft/serve/client/dial.h"
#include "weft/serve/session/shard.h"
#include "weft/sync/kept_text.h"

namespace weft::serve::web {

namespace {
constexpr Error kNotHttp1(Errc::protocol_error, "the server chose another protocol than http/1.1 by ALPN");
}  // namespace

net::Endpoint endpoint_of(const net::http::Url& url) {
  net::Endpoint endpoint;
  endpoint.transport = net::Transport::tcp;
  endpoint.host = url.host;
  endpoint.port = url.port;
  return endpoint;
}

Error error_at(std::string_view scheme, std::string_view name, const Error& why) noexcept {
  const std::string_view text = why.text();
  const StaticText kept = sync::keep_peer_text({scheme, name, text.empty() ? "" : ": ", text}, why.static_text());
  return {why.domain(), why.value(), kept, why.os_errno()};
}

Result<std::shared_ptr<net::TlsClient>> tls_of(std::shared_ptr<net::TlsClient> made) {
  if (made != nullptr) {
    return made;
  }
  net::TlsClientOptions options;
  options.protocols = {"http/1.1"};
  return net::TlsClient::make(options);
}

rt::Task<Result<std::unique_ptr<net::ByteStream>>> connect_web(Shard& shard, net::Endpoint endpoint,
                                                               std::shared_ptr<net::TlsClient> tls,
                                                               sys::SocketOptions socket, net::Resolver* resolver) {
  Dialling dialling(shard.loop(), endpoint, socket, resolver);
  const Result<void> looked_up = co_await Dialling::look_up(&dialling);
  if (!looked_up) {
    co_return looked_up.error();
  }
  auto stream = co_await Dialling::connect(&dialling);
  if (stream && tls != nullptr) {
    stream = tls->wrap(std::move(*stream), endpoint.host);
    if (stream) {
      stream = co_await shake_hands(shard, std::move(*stream));
    }
    if (stream) {
      const auto info = net::tls_info(**stream);
      if (info && !info->protocol.empty() && info->protocol != "http/1.1") {
        co_return kNotHttp1;
      }
    }
  }
  co_return stream;
}

}  // namespace weft::serve::web
