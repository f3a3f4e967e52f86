// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "weft/base/result.h"
#include "weft/base/time.h"
#include "weft/net/http/url.h"
#include "weft/rt/task/async_event.h"
#include "weft/rt/task/task.h"
#include "weft/serve/web/body_stream.h"
#include "weft/serve/web_client/client_request.h"
#include "weft/serve/web_client/http_link.h"

namespace weft::serve::web {

// HttpExchange: one request on one connection, and its answer.
// Owner: the coroutine of the request, then the ClientResponse of an answer in pieces. Affinity: the pool's core.
// Cost: a copy of the head of the answer, and of a body that is collected.
// Invariants:
//   (1) A connection has one exchange at a time. After the last byte of both directions it serves the next one.
//   (2) An exchange that ends before the last byte of its answer ends its connection.
//   (3) A body that is collected counts as memory of the host, up to the exchange's end.
class HttpExchange {
 public:
  HttpExchange(std::shared_ptr<HttpPool> pool, std::shared_ptr<HttpLink> link) noexcept;
  HttpExchange(const HttpExchange&) = delete;
  HttpExchange& operator=(const HttpExchange&) = delete;
  ~HttpExchange();

  // Sends the request. `whole`: the answer's body is collected. Errors: connection_closed (the connection had ended:
  // nothing was sent); those of Session::send_bytes().
  [[nodiscard]] Result<void> begin(const ClientRequest& request, const net::http::Url& url, bool whole);
  // Waits for the head of the answer, or for all of it. Errors: timed_out; why the connection ended; protocol_error;
  // message_too_large; kCancelled; the error of the coroutine that writes the request's body. Each has its fate.
  [[nodiscard]] rt::Task<Result<void>> wait(Instant deadline);

  // Whether the connection had served another request, and ended before it sent a byte of the answer.
  [[nodiscard]] bool died_unheard() const noexcept { return reused_ && unheard_; }
  [[nodiscard]] bool reused() const noexcept { return reused_; }
  [[nodiscard]] unsigned status() const noexcept { return status_; }
  [[nodiscard]] const std::vector<char>& head_text() const noexcept { return head_; }
  [[nodiscard]] std::vector<char> take_head_text() noexcept { return std::move(head_); }
  [[nodiscard]] std::string take_body() noexcept;
  [[nodiscard]] BodyReader& reader() noexcept { return *reader_; }  // of an answer that is not collected

  // --- for the pool ---
  void take_head(AnswerSession& session, const AnswerHeader& header);
  void take_piece(AnswerSession& session, Bytes piece, bool last);
  // The last byte of the answer came. Returns whether the request was sent whole, too.
  [[nodiscard]] bool finish(const AnswerSession& session) noexcept;
  // `heard`: a byte of the answer came. `answered`: its head was one.
  void fail(const Error& why, bool heard, bool answered = false) noexcept;

 private:
  struct Upload;

  static rt::Task<void> run_upload(AnswerSession* session, std::shared_ptr<Upload> upload);
  [[nodiscard]] Result<void> start_upload(AnswerSession& session, Upload upload);
  void end_upload(const Result<void>& outcome) noexcept;
  [[nodiscard]] rt::Task<Result<void>> wait_changed();
  [[nodiscard]] bool is_done() const noexcept { return ended_ || failed_ || (!whole_ && status_ != 0); }
  [[nodiscard]] bool uploads() const noexcept { return upload_ != nullptr; }
  [[nodiscard]] Error give_up(const Error& waited, bool at_deadline) noexcept;
  void leave_pool() noexcept;
  void detach() noexcept;

  const std::shared_ptr<HttpPool> pool_;
  std::shared_ptr<HttpLink> link_;  // null: the exchange has left it
  std::shared_ptr<Upload> upload_;  // of the coroutine that writes the request's body
  std::vector<char> head_;          // of the answer
  std::string body_;
  std::optional<BodyReader> reader_;
  Error failure_;
  Instant deadline_ = kNever;  // of the body, if it is not collected
  rt::AsyncEvent changed_;
  std::uint16_t status_ = 0;  // 0: the head has not come
  bool whole_ = true;
  bool counted_ = true;  // as one under way, by the pool
  bool reused_ = false;
  bool sent_ = false;
  bool ended_ = false;  // the answer came whole
  bool failed_ = false;
  bool unheard_ = false;
};

}  // namespace weft::serve::web
