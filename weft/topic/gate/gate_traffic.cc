// SPDX-License-Identifier: MIT
// Gate: operations to the fleet, and messages from it.
#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "weft/base/no_memory.h"
#include "weft/sys/clock.h"
#include "weft/topic/gate/gate.h"
#include "weft/topic/wire/control.h"
#include "weft/topic/wire/headers.h"

namespace weft::topic {

namespace {
constexpr std::size_t kUnbounded = std::numeric_limits<std::size_t>::max();
}  // namespace

// --- to the fleet ---

Result<void> Gate::append(const Outbox::Operation& operation, std::size_t bytes_max) {
  if (!WEFT_TRY(queue_.append(operation, bytes_max))) {
    return {};
  }
  try {
    runtime_->core(0).loop().post([this] { send_batch(); });
  } catch (const std::bad_alloc&) {
    queue_.not_woken();
  }
  return {};
}

void Gate::send_batch() noexcept {
  if (blocked_ || bus_ == nullptr) {
    return;
  }
  queue_.take_batch();
  while (!queue_.batch_is_empty()) {
    const Result<void> performed = or_no_memory([&] { return perform(queue_.front()); });
    if (!performed && performed.error() == Errc::would_block) {
      blocked_ = true;
      if (scope_->spawn(wait_for_room(this))) {
        return;
      }
      blocked_ = false;
    }
    const Outbox::Kind kind = queue_.front().kind;
    if (!performed && kind != Outbox::Kind::want && kind != Outbox::Kind::unwant) {
      count_dropped();
    }
    queue_.pop();
  }
  if (queue_.wake_waiters()) {
    for (const Member& each : members_) {
      each.member->handle_gate_room();
    }
  }
}

// The client's bytes for the kernel are at their bound. They are fewer when the server has answered.
rt::Task<void> Gate::wait_for_room(Gate* self) {
  (void)co_await self->bus_->flush(deadline_after(sys::now(), std::chrono::seconds(1)));
  (void)co_await self->work_->flush(deadline_after(sys::now(), std::chrono::seconds(1)));
  self->blocked_ = false;
  self->send_batch();
  if (!self->blocked_) {
    self->send_batch();  // the next one
  }
}

Result<void> Gate::perform(const Outbox::Operation& operation) {
  const bool of_work = operation.kind == Outbox::Kind::ask || operation.kind == Outbox::Kind::answer;
  if (operation.kind == Outbox::Kind::want || operation.kind == Outbox::Kind::unwant) {
    const auto kind = static_cast<FilterKind>(operation.reply.front());
    const Filter filter = WEFT_TRY(Filter::make(kind, operation.subject));
    if (operation.kind == Outbox::Kind::unwant) {
      if (const std::uint64_t number = interest_.unwant(filter); number != 0) {
        const auto found = subscriptions_.find(number);
        if (found != subscriptions_.end()) {
          bus_->unsubscribe(found->second);
          subscriptions_.erase(found);
        }
      }
      return {};
    }
    (void)WEFT_TRY(interest_.want(filter));
    const std::uint64_t number = interest_.number_of(filter);
    // Without a subscription a handle has it still, and the server refused it: it may permit it now.
    return subscriptions_.contains(number) ? Result<void>() : subscribe_filter(filter, number);
  }
  nats::Client& client = of_work ? *work_ : *bus_;
  const Result<void> sent = client.publish(operation.subject, operation.body, {operation.reply, operation.headers});
  // Without a connection there is no kernel to wait for: the message alone is larger than the bound.
  if (!sent && sent.error() == Errc::resource_exhausted && client.is_connected()) {
    return kGateFull;
  }
  return sent;
}

Result<void> Gate::subscribe_filter(const Filter& filter, std::uint64_t number) {
  std::string subject;
  WEFT_TRY(names().append_filter(filter, subject));
  nats::Subscribing how;
  how.on_ended = [this, number, filter](const Error& why) {
    subscriptions_.erase(number);
    for (const Member& each : members_) {
      each.member->handle_gate_refused(filter, why);
    }
  };
  subscriptions_[number] = WEFT_TRY(bus_->subscribe(
      subject, [this, number](const nats::Message& message) { handle_message(number, message); }, std::move(how)));
  return {};
}

Result<void> Gate::check(std::size_t size, bool keep) noexcept {
  if (size > max_payload_.load(std::memory_order_relaxed)) {
    return Error(Errc::message_too_large, "the message is larger than the server's max_payload");
  }
  return keep && !queue_.expect_room() ? Result<void>(kGateFull) : Result<void>();
}

Result<void> Gate::publish(std::string_view subject, std::string_view headers, Bytes body) {
  const Result<void> taken = append({Outbox::Kind::publish, subject, {}, as_bytes(headers), body}, queue_.bytes_max());
  if (!taken && taken.error() == Errc::would_block) {
    queue_.count_full();
    return {};
  }
  return taken;
}

void Gate::send_control(std::uint64_t to, std::string_view control) {
  const std::string subject = std::string(kControlSubject) + (to == 0 ? "all" : instance_text(to));
  (void)append({Outbox::Kind::publish, subject, {}, {}, as_bytes(control)}, 2 * queue_.bytes_max());
}

Result<void> Gate::want(const Filter& widened) {
  const char kind = static_cast<char>(widened.kind());
  return append({Outbox::Kind::want, widened.text(), {&kind, 1}, {}, {}}, kUnbounded);
}
void Gate::unwant(const Filter& widened) noexcept {
  const char kind = static_cast<char>(widened.kind());
  (void)or_no_memory([&] { return append({Outbox::Kind::unwant, widened.text(), {&kind, 1}, {}, {}}, kUnbounded); });
}

// --- requests ---

Result<void> Gate::ask(std::string_view subject, std::uint64_t instance, std::uint64_t request,
                       std::string_view headers, Bytes body) {
  if (work_state_.load(std::memory_order_acquire) == State::away) {
    return Error(Errc::unreachable, "the servers of the fleet are away");
  }
  if (headers.size() + body.size() > max_payload_.load(std::memory_order_relaxed)) {
    return Error(Errc::message_too_large, "the request is larger than the server's max_payload");
  }
  const std::string reply = std::string(kInboxSubject) + instance_text(instance) + '.' + std::to_string(request);
  return append({Outbox::Kind::ask, subject, reply, as_bytes(headers), body}, queue_.bytes_max());
}

Result<void> Gate::answer(std::string_view reply, std::string_view headers, Bytes body) {
  if (headers.size() + body.size() > max_payload_.load(std::memory_order_relaxed)) {
    return Error(Errc::message_too_large, "the reply is larger than the server's max_payload");
  }
  return append({Outbox::Kind::answer, reply, {}, as_bytes(headers), body}, queue_.bytes_max());
}

// --- from the fleet ---

void Gate::handle_message(std::uint64_t number, const nats::Message& message) noexcept {
  const Result<void> handled = or_no_memory([&]() -> Result<void> {
    WEFT_TRY(topic_of_.take(message.subject));
    if (topic_of_.name().empty() || !interest_.is_first(number, topic_of_.topic())) {
      return {};  // one of the engine's own, or the copy of another subscription
    }
    std::string_view headers = as_text(message.headers.block());
    if (!is_header_block(headers)) {
      headers = {};
    }
    if (!message.reply.empty() && !find_header(headers, kServiceHeader).empty()) {
      return {};  // a request: of those that serve it
    }
    std::string block;
    if (!message.reply.empty()) {
      block = WEFT_TRY(with_header(headers, kReplyHeader, message.reply));
      headers = block;
    }
    FleetMessage received(topic_of_.name(), message.body, headers);
    for (const Member& each : members_) {
      each.member->handle_gate_message(received);
    }
    return {};
  });
  if (!handled) {
    count_dropped();
  }
}

void Gate::refuse_control(const Error& why) noexcept {
  control_ = {};
  control_refused_ = why;
  for (const Member& each : members_) {
    each.member->handle_gate_control_refused(why);
  }
}

// The server of a new connection may permit the subscriptions that the last one refused.
void Gate::renew_control() noexcept {
  for (const Member& each : members_) {
    each.member->handle_gate_connection(true);
  }
  if (control_.value == 0) {
    control_refused_ = Error();
    if (const auto opened = or_no_memory([this] { return open_control(); }); !opened) {
      refuse_control(opened.error());
    }
  }
  for (Member& each : members_) {
    if (each.control.value == 0) {
      if (const auto opened = or_no_memory([&] { return open_control_of(each); }); !opened) {
        each.member->handle_gate_control_refused(opened.error());
      }
    }
  }
}

void Gate::renew_replies() noexcept {
  for (Member& each : members_) {
    each.member->handle_gate_requests_connected();
    if (each.replies.value == 0) {
      if (const auto opened = or_no_memory([&] { return open_replies_of(each); }); !opened) {
        each.member->handle_gate_replies_refused(opened.error());
      }
    }
  }
}

void Gate::handle_bus(const nats::ClientEvent& event) noexcept {
  using Kind = nats::ClientEvent::Kind;
  if (event.kind == Kind::refused) {
    sent_refused_.fetch_add(1, std::memory_order_relaxed);
  }
  if (event.kind == Kind::connected && bus_ != nullptr) {
    max_payload_.store(bus_->max_payload(), std::memory_order_relaxed);
    renew_control();
  }
  if (event.kind == Kind::lost) {
    for (const Member& each : members_) {
      each.member->handle_gate_connection(false);
    }
  }
}

void Gate::handle_work(const nats::ClientEvent& event) noexcept {
  using Kind = nats::ClientEvent::Kind;
  if (event.kind == Kind::refused) {
    sent_refused_.fetch_add(1, std::memory_order_relaxed);
    for (const Member& each : members_) {
      each.member->handle_gate_request_refused(event.subject, event.why);
    }
  } else if (event.kind == Kind::connected) {
    work_state_.store(State::up, std::memory_order_release);
    if (work_ != nullptr) {
      renew_replies();
    }
  } else if (event.kind == Kind::lost || event.kind == Kind::unconnected) {
    work_state_.store(State::away, std::memory_order_release);
    for (const Member& each : members_) {
      each.member->handle_gate_requests_lost();
    }
  }
}

// --- waits and counters ---

rt::Task<Result<void>> Gate::flush_clients(std::shared_ptr<Gate> self, Instant deadline) {
  for (const bool of_work : {false, true}) {
    bool again = true;
    while (again) {
      nats::Client* const client = of_work ? self->work_.get() : self->bus_.get();
      if (client == nullptr) {
        co_return kGateClosed;
      }
      const Result<void> connected = co_await client->connected(deadline);
      if (!connected) {
        co_return connected;
      }
      if (self->bus_ == nullptr) {
        co_return kGateClosed;
      }
      self->send_batch();
      const Result<void> flushed = co_await (of_work ? self->work_ : self->bus_)->flush(deadline);
      if (!flushed && flushed.error() != Errc::unreachable) {
        co_return flushed;
      }
      again = !flushed || !self->queue_.batch_is_empty();
    }
  }
  co_return Result<void>();
}

Result<void> Gate::flush(Instant deadline) {
  auto flushed = rt::spawn(runtime_->core(0).loop(), flush_clients(shared_from_this(), deadline));
  if (!flushed.wait_until(deadline_after(deadline, std::chrono::seconds(1)))) {
    return Error(Errc::timed_out, "the servers of the fleet did not answer");
  }
  return flushed.get();
}

rt::Task<Result<void>> Gate::flush_task(Instant deadline) {
  co_return co_await rt::spawn(runtime_->core(0).loop(), flush_clients(shared_from_this(), deadline));
}

GateCounts Gate::counts() noexcept {
  const sync::LockGuard lock(mutex_);
  if (ended_) {
    return last_;
  }
  GateCounts all;
  const GateQueue::Counts queue = queue_.counts();
  all.published = queue.published;
  all.dropped_full = queue.dropped_full;
  all.dropped_refused = dropped_refused_.load(std::memory_order_relaxed);
  all.queued = queue.queued;
  for (const nats::Client* const client : {bus_.get(), work_.get()}) {
    if (client == nullptr) {
      continue;
    }
    const nats::ClientCounts& of = client->counts();
    all.sent += of.sent.value();
    all.dropped_oldest += of.dropped_oldest.value();
    all.dropped_closed += of.dropped_closed.value();
    all.queued += of.published.value() - of.sent.value() - of.dropped_oldest.value() - of.dropped_closed.value();
    all.connected += of.connected.value();
    all.received += of.received.value();
  }
  const std::uint64_t refused = std::min(all.sent, sent_refused_.load(std::memory_order_relaxed));
  all.sent -= refused;
  all.dropped_refused += refused;
  return all;
}

}  // namespace weft::topic
