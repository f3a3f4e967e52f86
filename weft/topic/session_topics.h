// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "weft/base/result.h"
#include "weft/serve/frame/shared_frame.h"
#include "weft/serve/server/server.h"
#include "weft/serve/session/session_id.h"
#include "weft/topic/node/topic_message.h"

namespace weft {

// Makes the frame that a session gets for a message. A message that it refuses or throws at reaches no session.
using SessionFrame = std::function<Result<serve::SharedFrame>(const TopicMessage& message)>;

// SessionTopics: topics whose messages reach single sessions of a server, whichever process of the fleet publishes
// them: `user.42` the sessions that the program added to it, and topic_of(id) the session of this id.
// Owner: a move-only value; destruction stops. The server outlives it.
// Affinity: the thread of the core of its AsyncTopics, and for the sessions of this core only. Each core with sessions
// has a handle and SessionTopics of its own.
// Cost: one subscription and one coroutine; for each topic a filter and an entry, for each session in a topic another
// entry. A message comes over one connection (on NATS two, with the server between) and crosses no core.
// Invariants:
//   1. A message reaches a session at most once, and no session that is not in its topic.
//   2. A session that has ended is in no topic after the next message to it, or after remove_all().
class SessionTopics {
 public:
  struct State;
  explicit SessionTopics(std::shared_ptr<State> state) noexcept;
  SessionTopics(SessionTopics&&) noexcept;
  SessionTopics& operator=(SessionTopics&&) noexcept;
  ~SessionTopics();

  // The session gets the messages of the topic from now on. Idempotent. Errors: invalid_argument (the topic, or a
  // session of another core); those of AsyncSubscription::add(); status().
  Result<void> add(std::string_view topic, serve::SessionId session);
  // Errors: invalid_argument (the session is not in the topic).
  Result<void> remove(std::string_view topic, serve::SessionId session);
  void remove_all(serve::SessionId session) noexcept;  // of a session that ends; idempotent

  // The topic of one session, which no add() needs. It names this object, too, so it is not known before the session
  // opens. Throws std::bad_alloc.
  [[nodiscard]] std::string topic_of(serve::SessionId session) const;
  [[nodiscard]] std::size_t topics() const noexcept;  // with a session
  // Why no message arrives any longer. Errors: closed (stopped, or the server or the handle is); not_permitted (the
  // fleet's server refuses one of the topics).
  [[nodiscard]] Result<void> status() const noexcept;
  void stop() noexcept;  // idempotent

 private:
  std::shared_ptr<State> state_;
};

}  // namespace weft
