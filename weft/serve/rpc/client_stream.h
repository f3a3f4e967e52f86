// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>

#include "weft/base/result.h"
#include "weft/rt/task/async_event.h"
#include "weft/rt/task/task.h"
#include "weft/rt/task/task_scope.h"
#include "weft/serve/client/client.h"
#include "weft/serve/client/client_host.h"
#include "weft/serve/rpc/body.h"
#include "weft/serve/rpc/method.h"
#include "weft/serve/rpc/rpc_codec.h"
#include "weft/serve/rpc/stream.h"
#include "weft/serve/rpc/stream_end.h"

namespace weft::serve::rpc {

class ClientStreamState;

// StreamTable: the streams of a client whose calls are in flight, by id. Owner: the client and its streams. Affinity:
// the client's core.
struct StreamTable {
  std::unordered_map<std::uint64_t, ClientStreamState*> streams{};
  serve::Client<Codec>* connection = nullptr;  // null: the client has ended
  bool listens = false;                        // to the frames that the connection pushes

  // A frame of the server. Throws if it breaks the protocol, which ends the connection.
  void handle(const Codec::Frame& frame);
};

// ClientStreamState: a stream at its client. Owner: the Stream, and its call's task. Affinity: the client's core.
class ClientStreamState : private IdReceiver {
 public:
  ClientStreamState(std::shared_ptr<StreamTable> table, std::shared_ptr<ClientHost> host, bool receives, bool sends);
  ClientStreamState(const ClientStreamState&) = delete;
  ClientStreamState& operator=(const ClientStreamState&) = delete;
  ~ClientStreamState() { leave(); }

  [[nodiscard]] IdReceiver& receiver() noexcept { return *this; }
  [[nodiscard]] StreamEnd& end() noexcept { return end_; }
  [[nodiscard]] rt::TaskScope& scope() noexcept { return scope_; }
  void finish(const Error& why, OwnedBytes response) noexcept;  // the call has ended
  // Waits for the answer, and returns its body.
  [[nodiscard]] static rt::Task<Result<OwnedBytes>> answer(std::shared_ptr<ClientStreamState> self);

 private:
  static void note_id(IdReceiver& self, std::uint64_t id) noexcept;
  void leave() noexcept;

  const std::shared_ptr<StreamTable> table_;
  const std::shared_ptr<ClientHost> host_;
  StreamEnd end_;
  std::uint64_t id_ = 0;  // in the table
  std::optional<Error> over_;
  OwnedBytes response_;
  rt::AsyncEvent answered_;
  rt::TaskScope scope_;
};

// Stream: a call with messages, at its client.
//   WEFT_CO_TRY(const auto prices, client->stream<Watch>(names));
//   for (;;) { WEFT_CO_TRY(const auto price, co_await prices->next()); ...
// Owner: the program, on the client's core; the client outlives it. The destructor cancels the call, if it has not
// ended.
template <IsStream M>
class Stream {
 public:
  explicit Stream(std::shared_ptr<ClientStreamState> state) noexcept : state_(std::move(state)) {}
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() { state_->scope().cancel(); }

  // The next message of the server; nullopt: it sends no more, and finish() has its answer. Errors: those of call().
  [[nodiscard]] auto next()
    requires GetsItems<M>
  {
    return NextMessage<typename M::Out>(state_->end(), state_);
  }
  // Sends a message at once, or the await waits until the server takes it. Errors: those of call(); closed (end() was
  // called, or the server has answered).
  template <typename Item>
    requires SendsItems<M>
  [[nodiscard]] SentMessage send(const Item& item) {
    return send_message<typename M::In>(state_->end(), item, state_);
  }
  // Sends no more messages. Errors: those of the connection. Idempotent.
  Result<void> end()
    requires SendsItems<M>
  {
    return state_->end().end_sending();
  }
  // Waits for the answer of the server. Errors: those of call().
  [[nodiscard]] rt::Task<Result<typename M::Response>> finish() { return decode(ClientStreamState::answer(state_)); }
  void cancel() noexcept { state_->scope().cancel(); }

 private:
  static rt::Task<Result<typename M::Response>> decode(rt::Task<Result<OwnedBytes>> answer) {
    const Result<OwnedBytes> body = co_await std::move(answer);
    if (!body) {
      co_return body.error();
    }
    co_return Body<typename M::Response>::decode(body->bytes());
  }

  std::shared_ptr<ClientStreamState> state_;
};

}  // namespace weft::serve::rpc
