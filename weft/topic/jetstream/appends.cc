// SPDX-License-Identifier: MIT
#include "weft/topic/jetstream/appends.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "weft/base/no_memory.h"
#include "weft/nats/jetstream/key_value.h"
#include "weft/nats/jetstream/message.h"
#include "weft/rt/task/task_time.h"
#include "weft/topic/wire/headers.h"

namespace weft::topic {

namespace {

namespace js = nats::jetstream;

constexpr Duration kLookEvery = std::chrono::milliseconds(250);  // for appends without an answer
constexpr Duration kAckMost = std::chrono::seconds(2);           // then the append leaves again; then each time after
constexpr Duration kAckMostAgain = std::chrono::seconds(5);      // so long
constexpr unsigned kCreatesMax = 5;
constexpr Error kAppendUnsent(Errc::timed_out, "no server took the message in time");
constexpr Error kAppendUnknown(Errc::outcome_unknown,
                               "the servers did not acknowledge the message in time: they may have it");
// A server keeps it as a message of the stream under another subject, which each consumer of all subjects gets at once.
constexpr Error kNoDelay(Errc::not_supported,
                         "servers of NATS deliver a message with a delay to other readers before it");
constexpr Error kHasValue(Errc::conflict, "the topic has a value");

}  // namespace

Result<std::string> join_headers(const nats::Headers& own, Bytes program) {
  std::string block(as_text(own.block()));
  if (program.empty()) {
    return block;
  }
  const std::string_view lines = as_text(program);
  const std::size_t first = lines.find("\r\n");
  if (first == std::string_view::npos || !is_header_block(lines)) {
    return Error(Errc::invalid_argument, "the headers are no block of Headers");
  }
  block.resize(block.size() - 2);  // the empty line
  block.append(lines.substr(first + 2));
  if (block.size() > nats::kHeadersMax) {
    return Error(Errc::message_too_large, "headers beyond 64 KiB");
  }
  return block;
}

Result<void> Appends::open() {
  inbox_ = WEFT_TRY(engine_.client().subscribe(engine_.inbox().filter(),
                                               [this](const nats::Message& message) { handle_reply(message); },
                                               {.group = {}, .on_ended = [this](const Error& why) {
                                                  refused_ = why;  // no acknowledgement comes
                                                  while (!waiting_.empty()) {
                                                    finish(waiting_.begin(), why);
                                                  }
                                                }}));
  return {};
}

void Appends::close() noexcept {
  engine_.loop().timers().cancel(std::exchange(timer_, {}));
  waiting_.clear();
}

// --- to the servers ---

void Appends::append(std::unique_ptr<Asked> asked) {
  const Op& op = asked->op;
  const auto stream = streams_.find(op.name);
  if (!stream || refused_ != Errc::ok) {
    return engine_.refuse(*asked, stream ? refused_ : stream.error());
  }
  if (op.has(OpFlags::delayed)) {
    return engine_.refuse(*asked, kNoDelay);
  }
  Append made;
  made.stream = *stream;
  if (const auto named = made.stream->names.append_subject(op.key, made.subject); !named) {
    return engine_.refuse(*asked, named.error());
  }
  made.asked = std::move(asked);
  std::optional<std::uint64_t> last;
  if (op.has(OpFlags::expect_last)) {
    last = op.number;
  } else if (op.has(OpFlags::expect_absent)) {
    last = 0;
  }
  if (const auto whole = make(made, last); !whole) {
    return engine_.refuse(*made.asked, whole.error());
  }
  made.give_up = deadline_after(engine_.now(), made.stream->id_window / 2);
  // Only a stream of that life counts the sequence. A stream that does not take the message may have been changed.
  made.waits = expects_life(op, op.second) || !streams_.check(*made.stream, op, op.second);
  const bool checks = made.waits;
  const std::uint64_t order = ++last_;
  const auto at = waiting_.emplace_hint(waiting_.end(), order, std::move(made));
  arm();
  if (checks) {
    return (void)engine_.spawn(check_stream(this, order));
  }
  send(order, at->second);
}

Result<void> Appends::make(Append& append, std::optional<std::uint64_t> last) const {
  const Op& op = append.asked->op;
  nats::Headers own;
  js::PublishHeaders headers;
  headers.message_id = op.message_id;
  headers.expected_stream = append.stream->names.stream();
  headers.expected_last_subject_sequence = last;
  headers.ttl = op.time_to_live();
  WEFT_TRY(headers.add_to(own));
  if (op.has(OpFlags::erased)) {
    WEFT_TRY(js::add_key_operation(js::KeyOperation::erase, own));
  }
  append.headers = WEFT_TRY(join_headers(own, op.headers));
  return {};
}

void Appends::send(std::uint64_t order, Append& append) {
  if (append.waits || append.stalled || append.sent || !engine_.client().is_connected()) {
    return;
  }
  nats::Inbox::Subject place;
  const auto published = engine_.client().publish(
      append.subject, append.asked->op.body,
      {engine_.inbox().subject(static_cast<std::uint32_t>(order), place), as_bytes(append.headers)});
  if (published) {
    append.sent = append.ever = true;
    append.sent_at = engine_.now();
  } else if (published.error() != Errc::resource_exhausted && published.error() != Errc::closed) {
    finish(waiting_.find(order), published.error());
  }
}

void Appends::send_due() {
  std::vector<std::uint64_t> due;  // send() may end one
  for (const auto& [order, append] : waiting_) {
    if (!append.sent && !append.waits && !append.stalled) {
      due.push_back(order);
    }
  }
  for (const std::uint64_t order : due) {
    if (const auto at = waiting_.find(order); at != waiting_.end()) {
      send(order, at->second);
    }
  }
}

void Appends::handle_connected() { send_due(); }

void Appends::handle_lost() noexcept {
  for (auto& [order, append] : waiting_) {
    append.sent = false;
  }
}

void Appends::handle_refused(std::string_view subject, const Error& why) {
  for (auto at = waiting_.begin(); at != waiting_.end();) {
    const auto refused = at++;
    if (refused->second.sent && refused->second.subject == subject) {
      finish(refused, why, text_of_refusal(subject, why));
    }
  }
}

void Appends::drop_client(const std::string& client) {
  std::erase_if(waiting_, [&](const auto& each) { return each.second.asked->client == client; });
}

void Appends::arm() {
  if (!timer_ && !waiting_.empty()) {
    timer_ = engine_.loop().timers().schedule(deadline_after(engine_.now(), kLookEvery), {&Appends::timer_fired, this});
  }
}

void Appends::handle_timer() {
  timer_ = {};
  const Instant now = engine_.now();
  for (auto at = waiting_.begin(); at != waiting_.end();) {
    const auto late = at++;
    Append& append = late->second;
    if (append.give_up <= now) {
      const Error& plain = append.ever ? kAppendUnknown : kAppendUnsent;
      const Error why = engine_.trouble();
      finish(late, plain,
             why == Errc::ok ? std::string() : std::string(plain.text()).append("; last: ").append(why.message()));
    } else if (append.sent && !append.asked->op.message_id.empty() &&
               deadline_after(append.sent_at, append.again ? kAckMostAgain : kAckMost) <= now) {
      append.again = true;
      stall(append);
    }
  }
  (void)or_no_memory([this]() -> Result<void> {
    send_due();
    return {};
  });
  arm();
}

// --- from the servers ---

Appends::Waiting::iterator Appends::find(std::uint32_t number) {
  std::uint64_t order = (last_ & ~std::uint64_t{0xFFFFFFFF}) | number;
  if (order > last_) {
    order -= std::uint64_t{1} << 32U;
  }
  return waiting_.find(order);
}

void Appends::handle_reply(const nats::Message& message) {
  const auto number = engine_.inbox().number_of(message.subject);
  const auto at = number ? find(*number) : waiting_.end();
  if (at == waiting_.end() || at->second.waits) {
    return;  // late, or the answer to a request without one
  }
  if (message.headers.status() == nats::kStatusNoResponders && message.body.empty()) {
    return stall(at->second);
  }
  const auto reply = js::read_publish_ack(as_text(message.body));
  if (!reply || (reply->ok() && reply->value.stream != at->second.stream->names.stream())) {
    return;  // of a subscriber, which answers a publication; the stream's comes, too
  }
  if (reply->ok()) {
    handle_ack(at, reply->value);
  } else if (!at->second.stalled) {
    handle_failure(at, reply->failure);
  }
}

void Appends::handle_ack(Waiting::iterator at, const js::PublishAck& ack) {
  KeptStream& stream = *at->second.stream;
  if (!ack.duplicate && stream.instance != 0 && ack.sequence <= stream.last) {
    // A stream that was made anew counts from 1 again.
    at->second.waits = true;
    return (void)engine_.spawn(answer_after_look(this, at->first, ack.sequence));
  }
  stream.last = std::max(stream.last, ack.sequence);
  engine_.handle_answer();
  answer(at, ack.sequence, ack.duplicate);
}

void Appends::answer(Waiting::iterator at, std::uint64_t sequence, bool duplicate) {
  const Append append = std::move(at->second);
  waiting_.erase(at);
  const std::string instance = append.stream->other_life(append.asked->op.second);
  engine_.answer(
      *append.asked,
      {.flags = duplicate ? OpFlags::duplicate : std::uint16_t{0}, .number = sequence, .message_id = instance});
}

void Appends::finish(Waiting::iterator at, const Error& error, std::string_view text) {
  const Append append = std::move(at->second);
  waiting_.erase(at);
  engine_.refuse(*append.asked, error, text);
}

void Appends::handle_failure(Waiting::iterator at, const js::ApiError& failure) {
  Append& append = at->second;
  if (failure.is_temporary() || failure.number == js::kDuplicateInProcess) {
    return stall(append);
  }
  const bool wrong = failure.number == js::kWrongLastSequence || failure.number == js::kWrongLastSequenceConstant;
  if (wrong && append.asked->op.has(OpFlags::expect_absent)) {
    append.waits = true;
    return (void)engine_.spawn(create_after_erasure(this, at->first));
  }
  if (failure.number == js::kStreamNotMatched) {
    return finish(at, Error(Errc::conflict, "another stream takes the topic"), text_of(failure));
  }
  finish(at, failure.error(), text_of(failure));
}

// No server acknowledged the message: the stream is gone, or has no leader, or the acknowledgement was lost.
void Appends::stall(Append& append) {
  append.stalled = true;
  append.sent = false;
  if (!append.stream->recovering) {
    append.stream->recovering = engine_.spawn(recover(this, append.stream));
  }
}

rt::Task<void> Appends::recover(Appends* self, std::shared_ptr<KeptStream> stream) {
  const auto stalled = [&](const auto& visit) {
    for (auto at = self->waiting_.begin(); at != self->waiting_.end();) {
      const auto each = at++;
      if (each->second.stream == stream && each->second.stalled) {
        visit(each);
      }
    }
  };
  const auto slept = co_await rt::sleep(Engine::kPause);
  if (!slept) {
    co_return;  // the session ends
  }
  const KeptStreams::Look found = co_await KeptStreams::look(&self->streams_, stream);
  stream->recovering = false;
  const bool given_up = found ? !found->ok() && !found->failure.is_temporary() : found.error() == Errc::not_supported;
  if (given_up) {
    stalled([&](Waiting::iterator at) { self->finish(at, error_of(found), text_of(found)); });
  } else {
    stalled([&](Waiting::iterator at) {
      at->second.stalled = false;
      if (!stream->takes(at->second.asked->op.key)) {
        self->finish(at, kNotOfStream);
      }
    });
    self->send_due();
  }
}

// --- appends with an expectation ---

rt::Task<void> Appends::check_stream(Appends* self, std::uint64_t order) {
  auto at = self->waiting_.find(order);
  if (at == self->waiting_.end()) {
    co_return;
  }
  const std::shared_ptr<KeptStream> stream = at->second.stream;
  const KeptStreams::Look found = co_await KeptStreams::look(&self->streams_, stream);
  at = self->waiting_.find(order);
  if (at == self->waiting_.end()) {
    co_return;
  }
  if (!found || !found->ok()) {
    self->finish(at, error_of(found), text_of(found));
    co_return;
  }
  const Op& op = at->second.asked->op;
  if (const auto taken = self->streams_.check(*stream, op, op.second); !taken) {
    self->finish(at, taken.error());
  } else {
    at->second.waits = false;
    self->send(order, at->second);
  }
}

rt::Task<void> Appends::answer_after_look(Appends* self, std::uint64_t order, std::uint64_t sequence) {
  auto at = self->waiting_.find(order);
  if (at == self->waiting_.end()) {
    co_return;
  }
  const std::shared_ptr<KeptStream> stream = at->second.stream;
  const KeptStreams::Look found = co_await KeptStreams::look(&self->streams_, stream);
  at = self->waiting_.find(order);
  if (at != self->waiting_.end()) {
    stream->last = std::max(stream->last, sequence);
    self->answer(at, sequence, false);
  }
}

// The last message of the topic may be its erasure: then it has no value, and the message takes its place.
rt::Task<void> Appends::create_after_erasure(Appends* self, std::uint64_t order) {
  auto at = self->waiting_.find(order);
  if (at == self->waiting_.end()) {
    co_return;
  }
  auto request = js::get_message(at->second.stream->names.stream(), js::Which::last_of(at->second.subject));
  const auto got = co_await Engine::call(&self->engine_, std::move(request), js::read_message);
  at = self->waiting_.find(order);
  if (at == self->waiting_.end()) {
    co_return;
  }
  const bool none = got && got->failure.number == js::kNoMessageFound;  // it has gone since
  if (!none && (!got || !got->ok())) {
    self->finish(at, error_of(got), text_of(got));
    co_return;
  }
  const bool erased = none || js::read_key_operation(got->value.headers()) != js::KeyOperation::put;
  if (!erased || ++at->second.tries > kCreatesMax) {
    self->finish(at, kHasValue);
    co_return;
  }
  const auto made = self->make(at->second, none ? 0 : got->value.sequence);
  if (!made) {
    self->finish(at, made.error());
    co_return;
  }
  at->second.waits = at->second.sent = false;
  self->send(order, at->second);
}

}  // namespace weft::topic
