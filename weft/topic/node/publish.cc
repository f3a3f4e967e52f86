// SPDX-License-Identifier: MIT
// Node: publishing.
#include <span>
#include <utility>

#include "weft/base/no_memory.h"
#include "weft/msg/socket/socket_core.h"
#include "weft/rt/core/core.h"
#include "weft/sync/lock.h"
#include "weft/sync/wake_list.h"
#include "weft/sys/call.h"
#include "weft/sys/clock.h"
#include "weft/sys/poll.h"
#include "weft/topic/node/node.h"

namespace weft::topic {

namespace {
constexpr Error kClosed(Errc::closed, "the handle of topics was closed");
constexpr std::size_t kBodyMax = std::size_t{64} << 20;  // the bound of the sockets of other processes
}  // namespace

Result<IntrusivePtr<PublisherCore>> Node::make_publisher(std::string_view name) {
  return or_no_memory([&]() -> Result<IntrusivePtr<PublisherCore>> {
    std::string wire = WEFT_TRY(names_.encode(name));
    const bool inside = sockets_.stays_inside(wire);
    return make_wire_publisher(std::move(wire), inside);
  });
}

Result<IntrusivePtr<PublisherCore>> Node::make_wire_publisher(std::string wire, bool inside) {
  auto publisher = make_intrusive<PublisherCore>();
  publisher->name = WEFT_TRY(Message::copy_of(names_.decode(wire)));
  publisher->wire = std::move(wire);
  publisher->inside = inside;
  if (gate_ != nullptr && !inside) {
    WEFT_TRY(Gate::names().append_subject(publisher->wire, publisher->subject));
  }
  return publisher;
}

Result<void> Node::publish(PublisherCore& publisher, Bytes body, std::string_view headers, bool keep) {
  if (headers.size() > Headers::kBytesMax) {
    return Error(Errc::message_too_large, "the headers exceed 64 KiB");
  }
  if (body.size() > kBodyMax) {
    return Error(Errc::message_too_large, "a message of topics exceeds 64 MiB");
  }
  return or_no_memory([&]() -> Result<void> {
    const sync::LockGuard lock(publish_mutex_);
    if (closed()) [[unlikely]] {
      return kClosed;
    }
    interest_.match_only(publisher.wire, publisher.memo);
    const bool to_gate = !publisher.subject.empty();
    if (to_gate) {
      WEFT_TRY(gate_->check(body.size() + headers.size(), keep));
    }
    WEFT_TRY(send_out(publisher, body, headers, keep));
    if (to_gate) {
      WEFT_TRY(gate_->publish(publisher.subject, headers, body));
    }
    counters_.published.store(counters_.published.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    if (!publisher.memo.matches.empty()) {
      offer_own(publisher, body, headers);
    }
    return {};
  });
}

void Node::offer_own(PublisherCore& publisher, Bytes body, std::string_view headers) {
  if (publisher.memo.matches.size() == 1) {
    const Match& only = publisher.memo.matches.front();
    if (only.subscription->offer_copy(publisher.name, body, headers, only.filter)) {
      return;
    }
  }
  Message owned;
  Message block;
  if (!owned.assign_copy(body) || (!headers.empty() && !block.assign_copy(as_bytes(headers)))) {
    counters_.matched += publisher.memo.matches.size();
    counters_.dropped_no_memory += publisher.memo.matches.size();
    return;
  }
  const std::span<const Match> matches(publisher.memo.matches);
  for (const Match& match : matches.first(matches.size() - 1)) {
    match.subscription->offer(TopicMessage(publisher.name.share(), owned.share(), block.share(), match.filter));
  }
  const Match& last = matches.back();
  last.subscription->offer(TopicMessage(publisher.name.share(), std::move(owned), std::move(block), last.filter));
}

// The parts after the first cannot fail: a large one is a Message with its buffer before the first is sent.
Result<void> Node::send_out(PublisherCore& publisher, Bytes body, std::string_view headers, bool keep) {
  msg::SocketCore& out = sockets_.out_core(publisher.inside);
  const auto peers = out.subscribers();
  if (!peers || *peers == 0) {
    return peers ? Result<void>() : Result<void>(peers.error());
  }
  Message large_body;
  Message large_headers;
  if ((body.size() > msg::Cell::kInlineMax && !large_body.assign_copy(body)) ||
      (headers.size() > msg::Cell::kInlineMax && !large_headers.assign_copy(as_bytes(headers)))) {
    return msg::kNoMemoryToSend;
  }
  msg::Outbound topic{as_bytes(publisher.wire), nullptr, true};
  topic.keep = keep;
  if (const auto sent = out.send(topic, msg::Timeout::none()); !sent) {
    return sent;
  }
  msg::Outbound content{large_body.empty() ? body : large_body.bytes(), large_body.empty() ? nullptr : &large_body,
                        !headers.empty()};
  WEFT_TRY(out.send(content, msg::Timeout::none()));
  if (!headers.empty()) {
    msg::Outbound block{large_headers.empty() ? as_bytes(headers) : large_headers.bytes(),
                        large_headers.empty() ? nullptr : &large_headers, false};
    WEFT_TRY(out.send(block, msg::Timeout::none()));
  }
  if (async()) {
    if (rt::Core* const core = rt::Core::current(); core != nullptr) {
      core->at_turn_end(*this);
    }
  }
  return {};
}

void Node::flush_out(rt::TurnJob& job) noexcept { static_cast<Node&>(job).flush(); }

void Node::flush() noexcept { sockets_.flush(); }

Result<void> Node::publish_until(PublisherCore& publisher, Bytes body, std::string_view headers, Instant deadline) {
  Result<void> published;
  sys::EventFd& event = *WEFT_TRY(thread_event());
  msg::SocketCore& out = sockets_.out_core(publisher.inside);
  sync::WakeList::Sleeper sleeper{&event};
  const bool to_gate = !publisher.subject.empty();
  if (to_gate) {
    gate_->add_waiter(event);
  }
  while (true) {
    (void)out.announce({false, true}, sleeper);
    published = publish(publisher, body, headers, true);
    const Instant now = sys::now();
    if (published || published.error() != Errc::would_block || now >= deadline) {
      break;
    }
    const sys::CancellationOff off;  // the sleeper is on the stack
    sys::PollFd fd{event.fd(), sys::Interest::readable};
    const auto polled = sys::poll_fds({&fd, 1}, time_left(deadline, now));
    if (!polled) {
      published = polled.error();
      break;
    }
    event.drain();
  }
  out.forget({false, true}, sleeper);
  if (to_gate) {
    gate_->remove_waiter(event);
  }
  event.drain();
  return published || published.error() != Errc::would_block
             ? published
             : Result<void>(Error(Errc::timed_out, "a peer had no room for the message"));
}

}  // namespace weft::topic
