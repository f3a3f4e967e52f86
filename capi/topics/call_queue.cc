// SPDX-License-Identifier: MIT
#include "capi/topics/call_queue.h"

#include <algorithm>
#include <chrono>
#include <new>
#include <utility>

#include "weft/msg/socket/thread_batches.h"
#include "weft/sys/clock.h"
#include "weft/sys/poll.h"

namespace weft::capi::topics {

namespace {

constexpr Error kQueueClosed(Errc::closed, "the queue of calls was closed");
constexpr Error kNobodyKnown(Errc::unreachable, "nobody is known to serve this topic");
// The longest time for which the thread waits for the fleet before it looks at deadlines again.
constexpr Duration kFleetWait = std::chrono::milliseconds(50);

}  // namespace

CallQueue::CallQueue(std::shared_ptr<topic::Node> node, sys::EventFd event)
    : node_(std::move(node)), event_(std::move(event)), thread_([this] { run(); }) {}

CallQueue::~CallQueue() {
  close();
  thread_.join();
}

void CallQueue::close() noexcept {
  const sync::LockGuard lock(mutex_);
  if (closed_) {
    return;
  }
  closed_ = true;
  for (Asked& asked : asked_) {
    forget(asked);
  }
  asked_.clear();
  for (const Started& started : started_) {
    const sync::LockGuard of_link(started.link->mutex());
    started.call->changed.bell = nullptr;
  }
  started_.clear();
  waiting_.clear();
  outcomes_.clear();
  changed_.notify_all();
  event_.signal();  // and is never drained again
}

Result<void> CallQueue::check_room() const {
  if (closed_) {
    return kQueueClosed;
  }
  const std::size_t calls = asked_.size() + waiting_.size() + started_.size() + outcomes_.size();
  return calls < kCallsMax ? Result<void>() : Error(Errc::resource_exhausted, "65,536 calls are under way");
}

// --- beginning ---

Result<void> CallQueue::request(std::uint64_t tag, std::string_view topic, Bytes body, Instant deadline,
                                const Headers& headers) {
  const Result<void> begun = begin(tag, topic, body, deadline, headers.block());
  msg::flush_this_threads_batches();  // no wait follows that would send them
  return begun;
}

Result<void> CallQueue::begin(std::uint64_t tag, std::string_view topic, Bytes body, Instant deadline,
                              std::string_view headers) {
  const sync::LockGuard lock(mutex_);
  WEFT_TRY(check_room());
  auto sent = node_->begin_request(topic, body, headers);
  if (sent) {
    add_asked(tag, *std::move(sent), deadline);
    return {};
  }
  if (sent.error() != Errc::would_block) {
    return sent.error();
  }
  Waiting waits{tag, std::string(topic), std::string(as_text(body)), std::string(headers), deadline};
  if (waiting_bytes_ + waits.bytes() > kWaitingBytesMax && waiting_bytes_ != 0) {
    return Error(Errc::resource_exhausted, "too many requests wait for the rosters of the fleet");
  }
  const std::size_t bytes = waits.bytes();
  waiting_.push_back(std::move(waits));
  waiting_bytes_ += bytes;
  changed_.notify_all();
  return {};
}

void CallQueue::add_asked(std::uint64_t tag, topic::Node::Request&& sent, Instant deadline) {
  const std::uint64_t id = sent.id;
  try {
    asked_.emplace_back(tag, std::move(sent), deadline, event_);
  } catch (const std::bad_alloc&) {
    node_->end_request(id);
    throw;
  }
  topic::SubscriptionCore& replies = *asked_.back().request.replies;
  replies.add_sleeper(asked_.back().sleeper);
  if (replies.has_input()) {  // it came before the sleeper
    event_.signal();
  }
  if (deadline < next_deadline_) {
    next_deadline_ = deadline;
    changed_.notify_all();
  }
}

Result<void> CallQueue::start(std::uint64_t tag, std::shared_ptr<topic::HubLink> link,
                              IntrusivePtr<topic::HubCall> call, Reading reading) {
  const sync::LockGuard lock(mutex_);
  WEFT_TRY(check_room());
  started_.push_back({tag, std::move(link), std::move(call), std::move(reading)});
  const Result<void> sent = send(started_.back());
  if (!sent) {
    started_.pop_back();
  }
  return sent;
}

Result<void> CallQueue::send(Started& started) {
  topic::HubLink& link = *started.link;
  const sync::LockGuard lock(link.mutex());
  WEFT_TRY(link.start(started.call));
  started.call->changed.bell = &event_;
  if (started.call->done) {  // before the bell was there
    event_.signal();
  }
  link.flush_sent();
  return {};
}

// --- outcomes ---

void CallQueue::forget(Asked& asked) noexcept {
  asked.request.replies->remove_sleeper(asked.sleeper);
  node_->end_request(asked.request.id);
}

// Takes the answer. Each call has its outcome's place before: without memory the answer stays.
Result<void> CallQueue::read_answer(Started& started, Outcome& outcome) {
  topic::HubCall& call = *started.call;
  const Reading& reading = started.reading;
  const Result<void> result = topic::HubLink::outcome(call);
  if (reading.answer == Answer::removed) {
    return topic::StreamCore::removed(call, result);
  }
  if (reading.answer == Answer::confirmed) {
    return topic::DeliveryBase::confirmed(call, result);
  }
  WEFT_TRY(result);
  switch (reading.answer) {
    case Answer::published: outcome.published = topic::StreamCore::published(call); break;
    case Answer::message: outcome.content = WEFT_TRY(topic::StreamCore::message(call, started.link->names())); break;
    case Answer::entry: outcome.content = WEFT_TRY(reading.bucket->entry(call)); break;
    case Answer::info: outcome.content = StreamNumbers(WEFT_TRY(reading.stream->read_info(call))); break;
    case Answer::keys: {
      KeysPage page;
      page.after = WEFT_TRY(reading.bucket->add_keys(call, *reading.filter, page.keys));
      outcome.content = std::move(page);
      break;
    }
    default: break;
  }
  return {};
}

void CallQueue::harvest_replies() {
  for (auto each = asked_.begin(); each != asked_.end();) {
    if (!each->request.replies->has_input()) {
      ++each;
      continue;
    }
    Outcome& outcome = outcomes_.emplace_back();
    Result<TopicMessage> reply = each->request.replies->try_pop();
    if (!reply && reply.error() == Errc::would_block) {
      outcomes_.pop_back();
      each->request.replies->add_sleeper(each->sleeper);
      ++each;
      continue;
    }
    outcome.tag = each->tag;
    reply = topic::Node::reply_of(std::move(reply));
    if (reply) {
      outcome.content = *std::move(reply);
    } else {
      outcome.error = reply.error();
    }
    forget(*each);
    each = asked_.erase(each);
  }
}

void CallQueue::harvest_answers() {
  for (auto each = started_.begin(); each != started_.end();) {
    bool done = false;
    {
      const sync::LockGuard of_link(each->link->mutex());
      done = each->call->done;
      each->call->changed.bell = done ? nullptr : &event_;
    }
    if (!done) {
      ++each;
      continue;
    }
    Outcome& outcome = outcomes_.emplace_back();
    outcome.tag = each->tag;
    Result<void> read = Errc::resource_exhausted;
    try {
      read = read_answer(*each, outcome);
    } catch (const std::bad_alloc&) {
      read = Error(Errc::resource_exhausted, "no memory for the answer");
    }
    outcome.error = read ? Error() : read.error();
    each = started_.erase(each);
  }
}

Result<CallQueue::Outcome> CallQueue::try_next() {
  const sync::LockGuard lock(mutex_);
  if (closed_) {
    return kQueueClosed;
  }
  if (outcomes_.empty()) {
    event_.drain();  // before the look: a later answer makes it readable again
    try {
      harvest_replies();
      harvest_answers();
    } catch (const std::bad_alloc&) {
      event_.signal();
      throw;
    }
    if (outcomes_.empty()) {
      return Errc::would_block;
    }
    event_.signal();  // for the other outcomes, and for other threads
  }
  Outcome outcome = std::move(outcomes_.front());
  outcomes_.pop_front();
  return outcome;
}

Result<CallQueue::Outcome> CallQueue::next_until(Instant deadline) {
  for (;;) {
    Result<Outcome> outcome = try_next();
    if (outcome || outcome.error() != Errc::would_block) {
      return outcome;
    }
    const Instant now = sys::now();
    if (deadline <= now) {
      return Error(Errc::timed_out, "no call ended in time");
    }
    sys::PollFd entry{event_.fd(), sys::Interest::readable};
    (void)sys::poll_fds({&entry, 1}, time_left(deadline, now));
  }
}

// --- the thread ---

Instant CallQueue::end_overdue() {
  const Instant now = sys::now();
  Instant next = kNever;
  for (auto each = asked_.begin(); each != asked_.end();) {
    if (each->deadline > now || each->request.replies->has_input()) {
      next = each->deadline > now ? std::min(next, each->deadline) : next;
      ++each;
      continue;
    }
    outcomes_.push_back({.tag = each->tag, .error = Error(Errc::timed_out, "no reply came in time")});
    forget(*each);
    each = asked_.erase(each);
    event_.signal();
  }
  return next;
}

// Begins each waiting request whose service is known by now. The others end if all services are known, or at their
// deadline.
void CallQueue::begin_waiting() {
  const Instant now = sys::now();
  for (auto each = waiting_.begin(); each != waiting_.end();) {
    auto sent = node_->begin_request(each->topic, as_bytes(each->body), each->headers);
    if (!sent && sent.error() == Errc::would_block && each->deadline > now) {
      ++each;
      continue;
    }
    if (sent) {
      add_asked(each->tag, *std::move(sent), each->deadline);
    } else {
      outcomes_.push_back({.tag = each->tag, .error = sent.error() == Errc::would_block ? kNobodyKnown : sent.error()});
      event_.signal();
    }
    waiting_bytes_ -= each->bytes();
    each = waiting_.erase(each);
  }
}

void CallQueue::run() {
  sync::UniqueLock lock(mutex_);
  while (!closed_) {
    const Instant soon = sys::now() + kFleetWait;
    try {
      begin_waiting();
      next_deadline_ = end_overdue();
    } catch (const std::bad_alloc&) {
      next_deadline_ = soon;  // and tries again
    }
    if (!waiting_.empty()) {
      // No lock of this queue while it waits for the fleet.
      const auto wire = node_->names().encode(waiting_.front().topic);
      const Instant until = std::min(std::min(soon, next_deadline_), waiting_.front().deadline);
      lock.unlock();
      msg::flush_this_threads_batches();
      (void)node_->wait_mesh(
          until, [&](const topic::MeshState& mesh) { return mesh.services_known() || (wire && mesh.served(*wire)); });
      lock.lock();
    } else {
      (void)sync::sleep_until(changed_, lock, next_deadline_);
    }
  }
}

}  // namespace weft::capi::topics
