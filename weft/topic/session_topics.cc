// SPDX-License-Identifier: MIT
#include "weft/topic/session_topics.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "weft/base/no_memory.h"
#include "weft/rt/core/core.h"
#include "weft/rt/task/task_scope.h"
#include "weft/topic/async_topics.h"
#include "weft/topic/kept/moved_from.h"
#include "weft/topic/node/node.h"
#include "weft/topic/wire/control.h"

namespace weft {

namespace {

constexpr std::string_view kSessionToken = "session";

// "session.00c4…-3.", for the third object of this process. Two objects of one handle have no topic in common.
std::string prefix_of(std::uint64_t instance, char separator) {
  static std::atomic<std::uint64_t> next{1};
  std::string prefix(kSessionToken);
  prefix += separator;
  prefix += topic::instance_text(instance);
  prefix += '-';
  prefix += std::to_string(next.fetch_add(1, std::memory_order_relaxed));  // a number alone: no partner
  prefix += separator;
  return prefix;
}

}  // namespace

struct SessionTopics::State {
  using Sessions = std::vector<serve::SessionId>;
  using Topics = std::map<std::string, Sessions, std::less<>>;

  State(std::shared_ptr<topic::Node> own, AsyncSubscription from, serve::Server& to, SessionFrame make, char separator)
      : node(std::move(own)),
        messages(std::move(from)),
        server(&to),
        encode(std::move(make)),
        prefix(prefix_of(node->instance(), separator)),
        scope(node->loop()) {}

  [[nodiscard]] Result<void> add(std::string_view topic, serve::SessionId session);
  [[nodiscard]] bool remove(std::string_view topic, serve::SessionId session) noexcept;
  void remove_all(serve::SessionId session) noexcept;
  void handle(const TopicMessage& message);
  void send(const serve::SharedFrame& frame, serve::SessionId session) noexcept;
  void end(const Error& reason) noexcept;

  const std::shared_ptr<topic::Node> node;
  AsyncSubscription messages;
  serve::Server* const server;
  const SessionFrame encode;
  const std::string prefix;  // of topic_of()
  Topics topics;
  std::unordered_map<serve::SessionId, std::vector<const std::string*>> topics_of;  // keys of `topics`
  Sessions receivers;                                                               // of the message at hand
  Error ended;                                                                      // ok: not ended
  rt::TaskScope scope;
};

Result<void> SessionTopics::State::add(std::string_view topic, serve::SessionId session) {
  if (ended != Errc::ok) {
    return ended;
  }
  rt::Core* const here = rt::Core::current();
  if (here == nullptr || &here->loop() != &node->loop() || here->index() != session.core()) {
    return Error(Errc::invalid_argument, "the session is of another core than the handle of topics");
  }
  if (topic.starts_with(prefix)) {
    return Error(Errc::invalid_argument, "the topic of one session has no other session");
  }
  WEFT_TRY(node->names().encode(topic));
  return or_no_memory([&]() -> Result<void> {
    std::vector<const std::string*>& own = topics_of[session];
    own.reserve(own.size() + 1);
    const auto [place, is_new] = topics.try_emplace(std::string(topic));
    Sessions& sessions = place->second;
    if (std::find(sessions.begin(), sessions.end(), session) != sessions.end()) {
      return {};
    }
    Result<void> added = or_no_memory([&]() -> Result<void> {
      sessions.reserve(sessions.size() + 1);
      return is_new ? messages.add(Filter::exact(topic)) : Result<void>();
    });
    if (!added) {
      if (is_new) {
        topics.erase(place);
      }
      if (own.empty()) {
        topics_of.erase(session);
      }
      return added;
    }
    sessions.push_back(session);
    own.push_back(&place->first);
    return {};
  });
}

bool SessionTopics::State::remove(std::string_view topic, serve::SessionId session) noexcept {
  const auto found = topics.find(topic);
  if (found == topics.end() || std::erase(found->second, session) == 0) {
    return false;
  }
  const auto owner = topics_of.find(session);
  std::erase(owner->second, &found->first);
  if (owner->second.empty()) {
    topics_of.erase(owner);
  }
  if (found->second.empty()) {
    (void)or_no_memory([&] { return messages.remove(Filter::exact(found->first)); });
    topics.erase(found);
  }
  return true;
}

void SessionTopics::State::remove_all(serve::SessionId session) noexcept {
  for (auto owner = topics_of.find(session); owner != topics_of.end(); owner = topics_of.find(session)) {
    if (owner->second.empty()) {  // add() without memory
      topics_of.erase(owner);
    } else {
      (void)remove(*owner->second.back(), session);
    }
  }
}

void SessionTopics::State::handle(const TopicMessage& message) {
  const std::string_view name = message.topic();
  receivers.clear();
  if (name.starts_with(prefix)) {
    receivers.push_back({topic::parse_instance(name.substr(prefix.size()))});
  } else if (const auto found = topics.find(name); found != topics.end()) {
    receivers.assign(found->second.begin(), found->second.end());  // a handler may call remove_all() meanwhile
  }
  if (receivers.empty()) {
    return;  // removed, after the message came
  }
  Result<serve::SharedFrame> frame = Errc::job_threw;
  try {
    frame = encode(message);
  } catch (...) {
    frame = Errc::job_threw;
  }
  if (!frame) {
    node->count_not_forwarded();
    return;
  }
  for (const serve::SessionId session : receivers) {
    send(*frame, session);
  }
}

void SessionTopics::State::send(const serve::SharedFrame& frame, serve::SessionId session) noexcept {
  const bool is_here = session && session.core() == rt::Core::current()->index();
  const Result<void> sent = is_here ? server->send_to(session, frame) : Result<void>(Errc::unreachable);
  if (sent) {
    return;
  }
  node->count_not_forwarded();
  if (sent.error() == Errc::unreachable) {
    remove_all(session);
  } else if (server->epoch() == 0) {
    end(Error(Errc::closed, "the server has stopped"));
  }
}

void SessionTopics::State::end(const Error& reason) noexcept {
  if (ended == Errc::ok) {
    ended = reason;
    messages.close();
    scope.cancel();
  }
}

SessionTopics::SessionTopics(std::shared_ptr<State> state) noexcept : state_(std::move(state)) {}
SessionTopics::SessionTopics(SessionTopics&&) noexcept = default;
SessionTopics& SessionTopics::operator=(SessionTopics&& other) noexcept {
  if (this != &other) {
    stop();
    state_ = std::move(other.state_);
  }
  return *this;
}
SessionTopics::~SessionTopics() { stop(); }

Result<void> SessionTopics::add(std::string_view topic, serve::SessionId session) {
  return WEFT_TRY(topic::borrow(state_))->add(topic, session);
}
Result<void> SessionTopics::remove(std::string_view topic, serve::SessionId session) {
  if (state_ == nullptr || !state_->remove(topic, session)) {
    return Error(Errc::invalid_argument, "the session is not in this topic");
  }
  return {};
}
void SessionTopics::remove_all(serve::SessionId session) noexcept {
  if (state_ != nullptr) {
    state_->remove_all(session);
  }
}
std::string SessionTopics::topic_of(serve::SessionId session) const {
  return state_ == nullptr ? std::string() : state_->prefix + topic::instance_text(session.value);
}
std::size_t SessionTopics::topics() const noexcept { return state_ == nullptr ? 0 : state_->topics.size(); }
Result<void> SessionTopics::status() const noexcept {
  const Error why = WEFT_TRY(topic::borrow(state_))->ended;
  return why == Errc::ok ? Result<void>() : Result<void>(why);
}
void SessionTopics::stop() noexcept {
  if (state_ != nullptr) {
    state_->end(Error(Errc::closed, "the topics of sessions were stopped"));
  }
}

namespace {

rt::Task<void> send_to_sessions(std::shared_ptr<SessionTopics::State> state) {
  while (true) {
    const Result<TopicMessage> message = co_await state->messages.next();
    if (!message) {
      state->end(message.error());
      co_return;
    }
    const Result<void> handled = or_no_memory([&]() -> Result<void> {
      state->handle(*message);
      return {};
    });
    if (!handled) {
      state->node->count_not_forwarded();
    }
  }
}

}  // namespace

Result<SessionTopics> AsyncTopics::session_topics(serve::Server& server, SessionFrame encode,
                                                  const SubscriptionOptions& options) {
  auto* const node = WEFT_TRY(topic::borrow(node_));
  if (!node->loop().on_loop_thread() || rt::Core::current() == nullptr ||
      &rt::Core::current()->loop() != &node->loop()) {
    return Error(Errc::invalid_state, "session_topics() on another thread than the handle's core");
  }
  return or_no_memory([&]() -> Result<SessionTopics> {
    AsyncSubscription messages = WEFT_TRY(subscribe(std::initializer_list<std::string_view>(), options));
    auto state = std::make_shared<SessionTopics::State>(node_, std::move(messages), server, std::move(encode),
                                                        node->names().separator());
    WEFT_TRY(state->messages.add(Filter::prefix(state->prefix)));
    SessionTopics made(state);
    WEFT_TRY(state->scope.spawn(send_to_sessions(std::move(state))));
    return made;
  });
}

}  // namespace weft
