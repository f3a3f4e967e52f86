// SPDX-License-Identifier: MIT
#include "weft/serve/web_client/websocket_client.h"

#include "weft/serve/web_client/websocket_client_counts.h"
#include "weft/serve/web_client/websocket_link.h"

namespace weft::serve::web {

WebSocketClient::WebSocketClient(std::shared_ptr<WebSocketLink> link) noexcept : link_(std::move(link)) {}

WebSocketClient::~WebSocketClient() {
  WebSocketLink& link = *link_;
  link.farewell.begin(link.host().core(), std::move(link_));
}

rt::Task<Result<std::unique_ptr<WebSocketClient>>> WebSocketClient::connect(std::shared_ptr<ClientHost> host,
                                                                            std::string url,
                                                                            WebSocketClientOptions options) {
  if (rt::Core::current() != &host->core()) {
    co_return Error(Errc::invalid_state, "a WebSocket is opened on the core of its host");
  }
  auto made = WebSocketLink::make(std::move(host), url, std::move(options));
  if (!made) {
    co_return made.error();
  }
  const std::shared_ptr<WebSocketLink> link = std::move(*made);
  const Result<void> connected = co_await WebSocketLink::connect(link);
  if (!connected) {
    co_return connected.error();
  }
  co_return std::make_unique<WebSocketClient>(link);
}

rt::Task<Result<void>> WebSocketClient::send(Opcode kind, Bytes body) { return WebSocketLink::send(link_, kind, body); }

rt::Task<Result<WebSocketMessage>> WebSocketClient::receive(Instant deadline) {
  return WebSocketLink::receive(link_, deadline);
}

Result<void> WebSocketClient::ping(Bytes body) { return link_->ping(body); }

rt::Task<Result<void>> WebSocketClient::close(std::uint16_t status, std::string_view reason) {
  return WebSocketLink::close(link_, status, std::string(reason));
}

bool WebSocketClient::is_open() const noexcept { return link_->is_open(); }
std::string_view WebSocketClient::protocol() const noexcept { return link_->protocol(); }
bool WebSocketClient::is_compressed() const noexcept { return link_->is_compressed(); }
std::uint16_t WebSocketClient::peer_status() const noexcept { return link_->peer_status(); }
std::size_t WebSocketClient::waiting() const noexcept { return link_->waiting(); }

CounterSource WebSocketClient::counter_source() const {
  return [weak = std::weak_ptr<const WebCounters>(link_->counts())](std::string_view name, CounterReadings& into) {
    if (const auto counts = weak.lock()) {
      into.push_back({&kWebSocketClientTable,
                      {{"websocket_client", std::string(name)}},
                      sync::read_counters(WebSocketClientReading::of(*counts))});
    }
  };
}

}  // namespace weft::serve::web
