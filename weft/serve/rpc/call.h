// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "weft/base/error.h"
#include "weft/base/time.h"
#include "weft/serve/rpc/rpc_codec.h"
#include "weft/serve/rpc/status.h"
#include "weft/serve/session/service.h"
#include "weft/trace/trace_context.h"

namespace weft::serve::rpc {

using Session = SessionOf<Codec>;

// Call: the call that a handler serves. A handler that calls another server passes it on (CallOptions::within): the
// other call then has the time that is left, and the trace.
// Owner: the server. It lives until the handler returns; if that is a coroutine, until the coroutine has ended.
// Affinity: the session's core.
class Call {
 public:
  Call(Session& session, const Header& header, std::string_view method, Instant deadline) noexcept
      : session_(session), header_(header), method_(method), deadline_(deadline) {}
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  [[nodiscard]] std::string_view method() const noexcept { return method_; }
  [[nodiscard]] std::uint64_t id() const noexcept { return header_.id; }
  [[nodiscard]] Session& session() const noexcept { return session_; }
  // The time at which the server cancels the handler's coroutine; kNever: the caller waits for any time.
  [[nodiscard]] Instant deadline() const noexcept { return deadline_; }
  // The caller's place in its trace; empty: the request has none, or none that is valid.
  [[nodiscard]] trace::TraceContext trace() const {
    return {header_.trace, header_.span, header_.sampled, std::string(header_.state)};
  }

  // Returns the error of `co_return call.refuse(17, "no account " + name);`: the caller gets the code and the text,
  // which is cut at kTextMax bytes. An Error's own text is a constant.
  [[nodiscard]] Error refuse(std::uint16_t code, std::string_view text) {
    text_ = text.substr(0, kTextMax);
    return Error(kServiceDomain, code, "the handler refused, with a text of its own");
  }

 protected:
  ~Call() = default;

  [[nodiscard]] const Header& header() const noexcept { return header_; }
  [[nodiscard]] const std::string& text() const noexcept { return text_; }

 private:
  Session& session_;
  Header header_;
  std::string_view method_;
  Instant deadline_;
  std::string text_;  // of refuse()
};

}  // namespace weft::serve::rpc
