// SPDX-License-Identifier: MIT
// Requests, and the tasks that wait for a change of the connection.
#include <new>
#include <utility>

#include "weft/nats/client/client_state.h"
#include "weft/rt/task/task_time.h"

namespace weft::nats {

namespace {

constexpr Error kClientEnded(Errc::closed, "the client is closed");
constexpr Error kDrained(Errc::closed, "the subscription was drained");
constexpr Error kNoAttemptEnded(Errc::timed_out, "the first attempt to connect has not ended");
constexpr Error kNobody(Errc::unreachable, "no subscription has the subject of the request");

}  // namespace

// --- requests ---

Result<void> ClientState::ask(RequestWaiter& waiter, std::string_view subject, Bytes body, Bytes headers) {
  WEFT_TRY(check(subject, body, {{}, headers}));
  if (!connection_.ready || !session_->is_open() || !kept_.frames.empty()) {
    return refusal();
  }
  if (connection_.inbox_refused != Errc::ok) {
    return connection_.inbox_refused.with_fate(Fate::not_sent);
  }
  const std::uint32_t number = WEFT_TRY(in_flight_.add(waiter, 0));
  Inbox::Subject place;
  Result<void> sent = send_message(subject, body, {inbox_.subject(number, place), headers});
  if (!sent) {
    in_flight_.take_back(waiter);
  }
  return sent;
}

rt::Task<Result<Answer>> ClientState::request(std::shared_ptr<ClientState> self, std::string_view subject, Bytes body,
                                              Instant deadline, Bytes headers) {
  if (const bool cancelled = co_await rt::is_cancelled(); cancelled) {
    co_return rt::kCancelled.with_fate(Fate::not_sent);
  }
  RequestWaiter waiter(deadline);
  if (const auto asked = self->ask(waiter, subject, body, headers); !asked) {
    co_return asked.error().with_fate(Fate::not_sent);
  }
  co_await waiter;
  if (self->in_flight_.waiting() == 0) {
    self->changed_.pulse();
  }
  if (!waiter.result()) {
    co_return waiter.result().error();
  }
  Answer answer(std::move(waiter.body()), waiter.headers_size);
  if (answer.body().empty() && answer.headers().status() == kStatusNoResponders) {
    co_return kNobody.with_fate(Fate::not_sent);
  }
  co_return Result<Answer>(std::in_place, std::move(answer));
}

// --- waiting ---

rt::Task<Result<void>> ClientState::wait_connected(ClientState* self) {
  while (!self->is_connected()) {
    if (self->life_.closing) {
      co_return kClientEnded;
    }
    const Result<void> waited = co_await self->changed_.wait();
    if (!waited) {
      co_return waited;
    }
  }
  co_return Result<void>();
}

rt::Task<Result<void>> ClientState::connected(std::shared_ptr<ClientState> self, Instant deadline) {
  if (const Error wrong = self->used_elsewhere(); wrong != Errc::ok) {
    co_return wrong;
  }
  Result<void> waited = co_await rt::with_timeout(wait_connected(self.get()), time_left(deadline, self->now()));
  if (!waited && waited.error() == Errc::timed_out) {
    waited = self->trouble_.reason == Errc::ok ? kNoAttemptEnded : self->trouble_.reason;
  }
  co_return waited;
}

bool ClientState::send_ping(Session& session) {
  const bool sent = session.send({.op = Op::ping}, {}).has_value();
  connection_.pings += sent ? 1 : 0;
  return sent;
}

rt::Task<Result<void>> ClientState::wait_pong(ClientState* self) {
  const std::uint64_t connection = self->connection_.number;
  std::uint64_t wanted = 0;  // 0: no PING was sent
  for (;;) {
    if (self->life_.closing && self->life_.ended) {
      co_return kClientEnded;
    }
    if (!self->connection_.ready || self->connection_.number != connection) {
      co_return self->refusal();
    }
    // Kept messages leave before the PING; on_writable() and each PONG go on.
    if (wanted == 0 && self->kept_.frames.empty() && !self->connection_.restoring && self->send_ping(self->typed())) {
      wanted = self->connection_.pings;
    }
    if (wanted != 0 && self->connection_.pongs >= wanted) {
      co_return Result<void>();
    }
    const Result<void> waited = co_await self->ponged_.wait();
    if (!waited) {
      co_return waited;
    }
  }
}

rt::Task<Result<void>> ClientState::flush(std::shared_ptr<ClientState> self, Instant deadline) {
  if (const Error wrong = self->used_elsewhere(); wrong != Errc::ok) {
    co_return wrong;
  }
  co_return co_await rt::with_timeout(wait_pong(self.get()), time_left(deadline, self->now()));
}

rt::Task<Result<void>> ClientState::wait_quiet(ClientState* self) {
  while (self->session_ != nullptr && self->in_flight_.waiting() != 0) {
    const Result<void> waited = co_await self->changed_.wait();
    if (!waited) {
      co_return waited;
    }
  }
  co_return Result<void>();
}

rt::Task<Result<void>> ClientState::wait_ended(ClientState* self) {
  while (!self->life_.ended) {
    const Result<void> waited = co_await self->changed_.wait();
    if (!waited) {
      co_return waited;
    }
  }
  co_return Result<void>();
}

ClientState::Subscription* ClientState::open_subscription(SlotId id) noexcept {
  Subscription* const subscription = subscriptions_.all.find(id);
  return subscription == nullptr || subscription->ended || id == subscriptions_.inbox ? nullptr : subscription;
}

void ClientState::drain(SubscriptionId wanted) noexcept {
  const SlotId id{wanted.value};
  Subscription* const subscription = open_subscription(id);
  if (subscription == nullptr || used_elsewhere() != Errc::ok) {
    return;
  }
  if (session_ != nullptr && session_->is_open() && subscription->connection == connection_.number &&
      typed().send({.op = Op::unsubscribe, .sid = id.value}, {}) && send_ping(typed())) {
    try {
      connection_.drained.push_back({id, connection_.pings});
      return;
    } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): it ends now
    }
  }
  end_drained(id);
}

void ClientState::end_drained(SlotId id) noexcept {
  Subscription* const subscription = open_subscription(id);
  if (subscription == nullptr) {
    return;
  }
  const auto on_ended = std::move(subscription->on_ended);
  unsubscribe(SubscriptionId{id.value});
  if (on_ended && !life_.silent) {
    on_ended(kDrained);
  }
}

void ClientState::end_drained_until(std::uint64_t pong) noexcept {
  while (!connection_.drained.empty() && connection_.drained.front().pong <= pong) {
    const SlotId id = connection_.drained.front().id;
    connection_.drained.pop_front();
    end_drained(id);
  }
}

rt::Task<Result<void>> ClientState::drain(std::shared_ptr<ClientState> self, Instant deadline) {
  if (const Error wrong = self->used_elsewhere(); wrong != Errc::ok) {
    co_return wrong;
  }
  const bool first = !self->life_.closing;
  self->life_.closing = true;
  Result<void> done;
  if (first && self->is_connected()) {
    // The functions stay until the PONG: the last messages come before it.
    self->subscriptions_.all.for_each([&](SlotId id, Subscription& subscription) {
      if (id != self->subscriptions_.inbox && subscription.connection == self->connection_.number &&
          !self->typed().send({.op = Op::unsubscribe, .sid = id.value}, {})) {
        self->connection_.unsubscribe_due.push_back(id.value);
      }
    });
    done = co_await rt::with_timeout(wait_quiet(self.get()), time_left(deadline, self->now()));
    const auto flushed = co_await rt::with_timeout(wait_pong(self.get()), time_left(deadline, self->now()));
    done = done ? flushed : done;
  }
  if (self->session_ != nullptr && done) {
    self->session_->close();
  } else {
    self->cancel_run();
  }
  const auto ended = co_await rt::with_timeout(wait_ended(self.get()), time_left(deadline, self->now()));
  if (!ended) {
    self->cancel_run();
  }
  co_return done ? ended : done;
}

}  // namespace weft::nats
