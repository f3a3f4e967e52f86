// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "weft/base/list.h"
#include "weft/base/result.h"
#include "weft/base/time.h"
#include "weft/msg/message/message.h"
#include "weft/msg/socket.h"
#include "weft/nats/client/client.h"
#include "weft/nats/jetstream/api.h"
#include "weft/nats/protocol/inbox.h"
#include "weft/rt/task/async_event.h"
#include "weft/rt/task/task_scope.h"
#include "weft/sync/lock.h"
#include "weft/topic/wire/ops.h"

namespace weft::topic {

// Asked: an op of a handle. `op` points into `bytes`, so it does not move.
struct Asked {
  Asked(std::string from, Message&& message) : client(std::move(from)), bytes(std::move(message)) {}
  Asked(const Asked&) = delete;
  Asked& operator=(const Asked&) = delete;

  const std::string client;  // its routing id
  const Message bytes;
  Op op{};
};

// The text of an error to a handle: that of the server, if there is one.
[[nodiscard]] std::string text_of(const nats::jetstream::ApiError& failure);
// "the server does not permit messages to this subject: orders.eu"
[[nodiscard]] std::string text_of_refusal(std::string_view subject, const Error& why);
// Of a call: of its own error, or of the server's; ok and empty if it has a value.
template <typename T>
[[nodiscard]] Error error_of(const Result<nats::jetstream::Reply<T>>& reply) noexcept {
  return reply ? reply->failure.error() : reply.error();
}
template <typename T>
[[nodiscard]] std::string text_of(const Result<nats::jetstream::Reply<T>>& reply) {
  return reply ? text_of(reply->failure) : std::string();
}

// ServersTrouble: why the servers carry out no request now. Owner: the server, and the handle. Affinity: the session
// writes, any thread reads.
class ServersTrouble {
 public:
  void set_connection(const Error& why) {
    const sync::LockGuard lock(mutex_);
    connection_ = why;
  }
  void set_jetstream(const Error& why) {
    const sync::LockGuard lock(mutex_);
    jetstream_ = why;
  }
  // ok: none is known.
  [[nodiscard]] Error why() const {
    const sync::LockGuard lock(mutex_);
    return connection_ != Errc::ok ? connection_ : jetstream_;
  }

 private:
  mutable sync::StdMutex mutex_;
  Error connection_ WEFT_GUARDED_BY(mutex_);
  Error jetstream_ WEFT_GUARDED_BY(mutex_);
};

// Engine: the shared part of the server: the way back to the handles, and requests to the servers of NATS.
// Owner: the session. Affinity: its core. Cost: an answer is one message; a request a coroutine.
// Invariants:
//   1. No request waits beyond kAskMost.
//   2. A request fails after kNoneMost if the account has no JetStream, or if the JetStream of the servers has never
//      answered. If it has answered before, the request is repeated until the deadline: JetStream may come back.
//   3. A request fails after kPeersMost if there are too few servers for the copies of a stream.
class Engine {
 public:
  static constexpr Duration kAskMost = std::chrono::seconds(25);    // a handle waits for 30 s
  static constexpr Duration kTryMost = std::chrono::seconds(2);     // for one answer
  static constexpr Duration kNoneMost = std::chrono::seconds(2);    // servers of a cluster may not know each other yet
  static constexpr Duration kPeersMost = std::chrono::seconds(10);  // the first moments of a cluster
  static constexpr Duration kPause = std::chrono::milliseconds(50);

  Engine(Socket router, rt::Loop& loop, std::shared_ptr<ServersTrouble> trouble)
      : router_(std::move(router)), loop_(loop), scope_(loop), trouble_(std::move(trouble)) {}
  // Errors: those of nats::Client::open().
  [[nodiscard]] Result<void> open(std::shared_ptr<serve::ClientHost> host, nats::ClientOptions options);

  [[nodiscard]] nats::Client& client() noexcept { return *client_; }
  [[nodiscard]] const nats::Inbox& inbox() const noexcept { return *inbox_; }
  [[nodiscard]] Socket& router() noexcept { return router_; }
  [[nodiscard]] rt::TaskScope& scope() noexcept { return scope_; }
  [[nodiscard]] rt::Loop& loop() noexcept { return loop_; }
  [[nodiscard]] Instant now() const noexcept { return loop_.now(); }
  void close() noexcept;
  [[nodiscard]] std::string fresh_inbox();  // with a last dot; for messages of one consumer
  [[nodiscard]] std::string fresh_name();   // of an ephemeral consumer

  // Question: one request until its answer. A server that refuses the subject of a message names it, and sends no
  // answer.
  struct Question : ListHook {
    explicit Question(std::span<const std::string_view> of) : subjects(of) {}

    const std::span<const std::string_view> subjects;  // of all messages to which the answer belongs
    std::string_view refused_subject{};                // one of `subjects`, if the server refused it
    Error refused{};
    rt::AsyncEvent ended{};
  };
  // Sends the request and waits for its answer, or for the refusal of one of the question's subjects. Errors: those of
  // nats::Client::request(), and of the refusal.
  [[nodiscard]] static rt::Task<Result<nats::Answer>> answer_to(Engine* self, Question* question,
                                                                rt::Task<Result<nats::Answer>> request);
  // `lost`: the treatment of a request whose answer is lost.
  enum class Lost : std::uint8_t { again, outcome_unknown };
  // Errors: timed_out or the reason of a missing connection; not_supported (invariant 2); not_permitted;
  // outcome_unknown; unreachable (no subscription has the subject, which is not one of the API); cancelled.
  [[nodiscard]] static rt::Task<Result<nats::Answer>> ask(Engine* self, nats::jetstream::ApiRequest request,
                                                          Lost lost = Lost::again);
  // The same, and reads the answer with `read`. A request that is not permitted has a reply that names its subject.
  // Errors: those of ask(), of `read`, and of the request.
  template <typename T>
  [[nodiscard]] static rt::Task<Result<nats::jetstream::Reply<T>>> call(
      Engine* self, Result<nats::jetstream::ApiRequest> request,
      Result<nats::jetstream::Reply<T>> (*read)(std::string_view), Lost lost = Lost::again) {
    if (!request) {
      co_return request.error();
    }
    const auto answer = co_await ask(self, *request, lost);
    if (!answer && answer.error() == Errc::not_permitted) {
      nats::jetstream::Reply<T> refused;
      refused.failure = {.code = nats::jetstream::kNotPermittedCode, .description = std::move(request->subject)};
      co_return refused;
    }
    if (!answer) {
      co_return answer.error();
    }
    co_return read(as_text(answer->body()));
  }
  // An answer of JetStream came: there is no trouble.
  void handle_answer() noexcept;
  [[nodiscard]] Error trouble() const { return trouble_->why(); }
  // Sends a request without waiting for its answer.
  void post(const Result<nats::jetstream::ApiRequest>& request);
  // Begins a task of the session. Returns false if there is no memory for it: the op has no answer then, as a lost one.
  bool spawn(rt::Task<void> task) { return static_cast<bool>(scope_.spawn(std::move(task))); }

  void send(const std::string& client, const Op& op);
  void refuse(const Asked& asked, const Error& error, std::string_view text = {});
  template <typename T>
  void refuse(const Asked& asked, const Result<nats::jetstream::Reply<T>>& reply) {
    refuse(asked, error_of(reply), text_of(reply));
  }
  void answer(const Asked& asked, Op answer);  // ok; nothing to a quiet op
  void handle_refused(std::string_view subject, const Error& why) noexcept;

 private:
  static rt::Task<Result<nats::Answer>> refusal_of(Question* question);

  void note_trouble(const Error& why) noexcept;

  Socket router_;
  rt::Loop& loop_;
  rt::TaskScope scope_;
  const std::shared_ptr<ServersTrouble> trouble_;
  bool answered_ = false;  // JetStream, at least once
  bool troubled_ = false;  // since its last answer
  std::unique_ptr<nats::Client> client_;
  std::unique_ptr<nats::Inbox> inbox_;  // of publications, and of requests without an answer
  List<Question> questions_;
  std::uint64_t fresh_ = 0;
};

}  // namespace weft::topic
