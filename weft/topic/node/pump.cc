// SPDX-License-Identifier: MIT
// Node: from the XSUB into the subscriptions, and the threads that wait for them.
#include <mutex>
#include <new>
#include <optional>
#include <utility>

#include "weft/base/no_memory.h"
#include "weft/msg/socket/socket_core.h"
#include "weft/sync/lock.h"
#include "weft/sync/wake_list.h"
#include "weft/sys/call.h"
#include "weft/sys/clock.h"
#include "weft/sys/poll.h"
#include "weft/topic/node/node.h"

namespace weft::topic {

Result<sys::EventFd*> thread_event() {
  static thread_local std::optional<sys::EventFd> event;
  if (!event) {
    event.emplace(WEFT_TRY(sys::EventFd::make()));
  }
  return &*event;
}

// --- reading ---

unsigned Node::pump(bool wait_for_lock, unsigned most) {
  sync::UniqueLock lock(pump_mutex_, std::defer_lock);
  if (wait_for_lock) {
    lock.lock();
  } else if (!lock.try_lock()) {
    return 0;
  }
  msg::SocketCore& in = *in_.core();
  unsigned count = 0;
  while (count < most) {
    Message parts[3];
    msg::Inbound first{&parts[0], {}};
    if (!in.recv(first, msg::Timeout::none())) {
      break;
    }
    bool more = first.more;
    // Only whole messages are delivered, so the next part is there, unless memory runs out.
    for (std::size_t i = 1; more; ++i) {
      Message further;
      msg::Inbound next{i < 3 ? &parts[i] : &further, {}};
      if (!in.recv(next, msg::Timeout::none())) {
        break;
      }
      more = next.more;
    }
    ++count;
    dispatch(std::move(parts[0]), std::move(parts[1]), std::move(parts[2]));
  }
  return count;
}

// disconnect() loses the messages of a connection that were not read.
void Node::pump_all() {
  constexpr unsigned kTurnsMost = 1024;  // other peers may send all the time
  for (unsigned turn = 0; turn < kTurnsMost && pump(true) != 0; ++turn) {
  }
}

void Node::dispatch(Message&& topic, Message&& body, Message&& headers) {
  if (topic.empty() || topic.bytes().front() < 0x20) {
    return;  // a welcome
  }
  counters_.received.store(counters_.received.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  try {
    interest_.match(topic.text(), pump_memo_);
  } catch (const std::bad_alloc&) {
    ++counters_.matched;
    ++counters_.dropped_no_memory;
    return;
  }
  const std::size_t count = pump_memo_.matches.size();
  if (count == 0) {
    counters_.unwanted.store(counters_.unwanted.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    return;
  }
  if (!names_.identity()) {
    auto name = or_no_memory([&] { return Message::copy_of(names_.decode(topic.text())); });
    if (!name) {
      counters_.matched += count;
      counters_.dropped_no_memory += count;
      return;
    }
    topic = *std::move(name);
  }
  topic.set_more(false);
  body.set_more(false);
  for (std::size_t i = 0; i < count; ++i) {
    const Match& match = pump_memo_.matches[i];
    if (i + 1 == count) {
      match.subscription->offer(std::move(topic), std::move(body), std::move(headers), match.filter);
    } else {
      match.subscription->offer(TopicMessage(topic.share(), body.share(), headers.share(), match.filter));
    }
  }
}

// --- the loop's part ---

void Node::In::handle_event(const sys::PollEvent& /*event*/) { node.handle_in(); }

// A loop of its own leaves the XSUB to threads that wait in next(). It comes back when no thread has led for a tick.
void Node::handle_in() {
  if (loop_.is_own()) {
    const std::uint64_t leads = leads_.load(std::memory_order_relaxed);
    if (led_.load(std::memory_order_acquire) || leads != leads_seen_) {
      leads_seen_ = leads;
      loop().unwatch(std::exchange(in_watch_, 0));
      if (!tick_.start()) {
        watch_in();
      }
      return;
    }
  }
  read_turn();
  if (in_.core()->closed() || in_.core()->terminated()) {
    loop().unwatch(std::exchange(in_watch_, 0));  // the descriptor would stay readable for ever
  }
}

// A pump that ends before the XSUB is empty may leave messages of which a cleared descriptor has no sign. So another
// turn follows.
void Node::read_turn() {
  const unsigned most = async() ? kPumpMostOfTurn : kPumpMost;
  if (pump(false, most) == most) {
    try {  // a post to the own thread costs no system call
      loop_.post([this] { read_turn(); });
    } catch (const std::bad_alloc&) {
      loop_.request(NodeLoop::kReadIn);
    }
  }
}

void Node::tick(void* self) {
  Node& node = *static_cast<Node*>(self);
  const std::uint64_t leads = node.leads_.load(std::memory_order_relaxed);
  const bool same = leads == std::exchange(node.leads_seen_, leads);
  const bool led = node.led_.load(std::memory_order_seq_cst);
  if (same && led) {
    // One leader has waited for the whole tick: nothing comes. It wakes the loop when it ends.
    node.dormant_.store(true, std::memory_order_seq_cst);  // pairs with lead_ended()
    if (node.led_.load(std::memory_order_seq_cst) || !node.dormant_.exchange(false)) {
      return;
    }
  }
  if (same && !led) {
    node.watch_in();
    return;
  }
  if (!node.tick_.start()) {
    node.watch_in();
  }
}

void Node::watch_in() {
  if (in_watch_ != 0 || closed()) {
    return;
  }
  const auto fd = in_.core()->descriptor();
  const auto watch =
      fd ? loop().watch(*fd, sys::Interest::readable, false, &in_watcher_) : Result<rt::Loop::WatchId>(fd.error());
  in_watch_ = watch ? *watch : 0;
  read_turn();  // and arms the descriptor
}

// --- an event loop of the program ---

Result<int> Node::input_descriptor() {
  if (closed()) {
    return Error(Errc::closed, "the handle was closed");
  }
  return in_.core()->descriptor();
}

unsigned Node::take_input() {
  if (closed()) {
    return 0;
  }
  // Relaxed, with no partner: the loop compares it with an earlier value. A lost increment costs it one wake-up.
  leads_.store(leads_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  const unsigned count = pump(false);
  if (count == kPumpMost) {
    loop_.request(NodeLoop::kReadIn);  // see read_turn()
  }
  return count;
}

// --- threads that wait ---

void Node::promote() noexcept {
  const sync::LockGuard lock(follower_mutex_);
  if (SubscriptionCore::Sleeper* const follower = followers_.pop_front()) {
    follower->event->signal();
  }
}

void Node::lead_ended() noexcept {
  led_.store(false, std::memory_order_seq_cst);
  // Sequentially consistent, as in tick(): the loop sees that the lead ended, or this thread sees that the loop sleeps.
  if (dormant_.load(std::memory_order_seq_cst) && dormant_.exchange(false)) {
    try {
      loop_.post([this] {
        if (!tick_.runs()) {
          tick(this);
        }
      });
    } catch (const std::bad_alloc&) {
      dormant_.store(true);  // the next leader tries again
    }
  }
}

// One variable is returned, in the caller's place: a message is large to move.
Result<TopicMessage> Node::try_next(SubscriptionCore& subscription) {
  Result<TopicMessage> message = subscription.try_pop();
  if (!message && message.error() == Errc::would_block && !closed()) {
    const unsigned most = async() ? kPumpMostOfTurn : kPumpMost;
    const unsigned count = pump(false, most);
    if (count == most && async()) {
      loop_.request(NodeLoop::kReadIn);  // see read_turn(). A loop of its own looks after a tick
    }
    if (count != 0) {
      message = subscription.try_pop();
    }
  }
  return message;
}

Result<TopicMessage> Node::next_until(SubscriptionCore& subscription, Instant deadline) {
  Result<TopicMessage> message = try_next(subscription);
  while (!message && message.error() == Errc::would_block) {
    const Result<sys::EventFd*> event = thread_event();
    if (!event) {
      message = event.error();
    } else if (deadline != kNever && sys::now() >= deadline) {
      message = Error(Errc::timed_out, "no message came in time");
    } else {
      wait_for_input(subscription, **event, deadline);
      message = try_next(subscription);
    }
  }
  return message;
}

void Node::wait_for_input(SubscriptionCore& subscription, sys::EventFd& event, Instant deadline) {
  msg::flush_this_threads_batches();
  const bool lead = !led_.exchange(true, std::memory_order_acq_rel);
  if (lead) {
    leads_.store(leads_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    const bool came = sync::spin_until(spin_, in_.core()->wait_mode(), [&] {
      (void)pump(false);
      return subscription.has_input();
    });
    if (came) {
      lead_ended();
      promote();
      return;
    }
  }
  SubscriptionCore::Sleeper sleeper(event);
  SubscriptionCore::Sleeper follower(event);
  subscription.add_sleeper(sleeper);
  sync::WakeList::Sleeper in_sleeper{&event};
  sys::PollFd fds[2] = {{event.fd(), sys::Interest::readable}, {-1, sys::Interest::readable}};
  bool waits = !closed();
  if (lead) {
    const auto fd = in_.core()->announce({true, false}, in_sleeper);
    fds[1].fd = fd ? *fd : -1;
    waits = fd.has_value() && pump(true) == 0 && waits;
  } else {
    const sync::LockGuard lock(follower_mutex_);
    followers_.push_back(follower);
    waits = led_.load(std::memory_order_acquire) && waits;  // pairs with lead_ended(), before promote() locks
  }
  if (waits && !subscription.has_input()) {
    const Instant now = sys::now();
    if (deadline > now) {
      const sys::CancellationOff off;  // the sleepers are on the stack
      (void)sys::poll_fds(fds, time_left(deadline, now));
    }
  }
  if (lead) {
    in_.core()->forget({true, false}, in_sleeper);
    lead_ended();
  } else {
    const sync::LockGuard lock(follower_mutex_);
    follower.unhook();
  }
  subscription.remove_sleeper(sleeper);
  event.drain();
  if (!led_.load(std::memory_order_acquire)) {
    promote();
  }
}

}  // namespace weft::topic
