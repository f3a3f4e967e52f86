// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>

#include "weft/base/result.h"
#include "weft/net/http/url.h"
#include "weft/rt/task/async_event.h"
#include "weft/rt/task/task.h"
#include "weft/rt/task/task_scope.h"
#include "weft/serve/client/client_host.h"
#include "weft/serve/client/session_end.h"
#include "weft/serve/web/websocket_service.h"
#include "weft/serve/web_client/answer_codec.h"
#include "weft/serve/web_client/websocket_client.h"

namespace weft::serve::web {

// WebSocketLink: the connection of a WebSocketClient: a session that asks for the WebSocket, and then one that speaks
// it. Messages are made of frames by the base, as a server's.
// Owner: the client, and its coroutines. Affinity: its core.
// Invariants:
//   1. connect() has ended before any other call.
//   2. Messages that wait count as memory of the host.
//   3. A broken frame or message ends the connection after the program has taken the messages before it and asks for
//      the next: so its answers to them leave. A program that does not ask has frame_timeout.
class WebSocketLink final : public WebSocketBase {
 public:
  // Errors: invalid_argument; resource_exhausted (no memory, or no random numbers).
  [[nodiscard]] static Result<std::shared_ptr<WebSocketLink>> make(std::shared_ptr<ClientHost> host,
                                                                   std::string_view url,
                                                                   WebSocketClientOptions options);
  WebSocketLink(std::shared_ptr<WebCounters> counts, std::shared_ptr<ClientHost> host, net::http::Url url,
                WebSocketClientOptions options, std::string request_fields);
  ~WebSocketLink() override;

  [[nodiscard]] static rt::Task<Result<void>> connect(std::shared_ptr<WebSocketLink> self);
  [[nodiscard]] static rt::Task<Result<void>> send(std::shared_ptr<WebSocketLink> self, Opcode kind, Bytes body);
  [[nodiscard]] static rt::Task<Result<WebSocketMessage>> receive(std::shared_ptr<WebSocketLink> self,
                                                                  Instant deadline);
  [[nodiscard]] static rt::Task<Result<void>> close(std::shared_ptr<WebSocketLink> self, std::uint16_t status,
                                                    std::string reason);
  Result<void> ping(Bytes body);
  void shut_down() noexcept;  // ends the connection at once; idempotent

  [[nodiscard]] bool is_open() const noexcept { return opened_ && session_ != nullptr && session_->is_open(); }
  [[nodiscard]] const std::string& protocol() const noexcept { return protocol_; }
  [[nodiscard]] bool is_compressed() const noexcept { return compressed_; }
  [[nodiscard]] std::uint16_t peer_status() const noexcept { return peer_status_; }
  [[nodiscard]] std::size_t waiting() const noexcept { return inbox_.size(); }
  [[nodiscard]] ClientHost& host() noexcept { return *host_; }
  [[nodiscard]] std::shared_ptr<const WebCounters> counts() const noexcept { return counts_; }

  // --- the service of the session that speaks WebSocket ---
  void on_open(WebSocketSession& session);
  void on_frame(WebSocketSession& session, const WebSocketFrame& frame);
  void on_close(WebSocketSession& session, const Error& why);
  void drain() override {}

  Farewell<WebSocketLink> farewell;

 private:
  using AskingSession = SessionOf<AnswerCodec>;
  // The service of the session before it.
  struct Asking {
    WebSocketLink* link;
    void on_open(AskingSession& session) const noexcept { link->session_ = &session; }
    void on_frame(AskingSession& session, const AnswerFrame& frame) const {
      link->handle_answer(session, frame.header);
    }
    void on_close(AskingSession& session, const Error& why) const noexcept { link->handle_no_upgrade(session, why); }
  };

  [[nodiscard]] WebSocketSession& session() const noexcept { return *static_cast<WebSocketSession*>(session_); }
  [[nodiscard]] Error used_elsewhere() const noexcept;
  [[nodiscard]] net::ws::DeflateWish deflate_wish() const noexcept;
  [[nodiscard]] std::string request_text() const;
  static rt::Task<void> run(std::shared_ptr<WebSocketLink> self);
  static rt::Task<Result<void>> ask(WebSocketLink* self);
  static rt::Task<Result<void>> wait_open(WebSocketLink* self);
  static rt::Task<Result<void>> wait_message(WebSocketLink* self);
  static rt::Task<Result<void>> wait_ended(WebSocketLink* self);
  void handle_answer(AskingSession& session, const AnswerHeader& header);
  [[nodiscard]] Result<void> take_answer(AskingSession& session, const AnswerHeader& header);
  [[nodiscard]] Result<void> take_extensions(Session& session, std::string_view extensions);
  void handle_no_upgrade(Session& session, const Error& why) noexcept;
  void keep(WebSocketSession& session, const Content& content);
  void end_hold() noexcept;
  void note_end(const Error& why) noexcept;
  [[nodiscard]] Error named(const Error& why) const noexcept;
  [[nodiscard]] Error end_error() const noexcept;
  Result<void> send_close(std::uint16_t status, std::string_view reason);

  const std::shared_ptr<WebCounters> counts_;
  const std::shared_ptr<ClientHost> host_;
  const net::http::Url url_;
  const WebSocketClientOptions options_;
  const std::string fields_;  // of the request, as lines
  WebSocketMasker masker_;
  const std::string key_;
  const AnswerCodec asking_codec_;
  Asking asking_{this};
  ServiceSlot asking_slot_;
  Session* session_ = nullptr;
  SessionEnd* end_wait_ = nullptr;
  std::string protocol_;
  std::deque<WebSocketMessage> inbox_;
  std::size_t inbox_bytes_ = 0;
  Error why_;  // why there is no connection; ok: there is one, or connect() runs
  std::uint16_t peer_status_ = 0;
  bool opened_ = false;
  bool compressed_ = false;
  bool paused_ = false;       // inbox_max bytes wait
  bool closing_ = false;      // this end sent a close frame
  bool peer_closed_ = false;  // the server's close frame came
  rt::AsyncEvent changed_;    // pulsed when one of these has changed
  rt::TaskScope scope_;       // run()
};

}  // namespace weft::serve::web
