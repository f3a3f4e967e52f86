// SPDX-License-Identifier: MIT
#include "weft/topic/node/input_lead.h"

#include <new>
#include <optional>
#include <utility>

#include "weft/msg/socket/socket_core.h"
#include "weft/sync/wake_list.h"
#include "weft/sys/call.h"
#include "weft/sys/clock.h"
#include "weft/sys/poll.h"

namespace weft::topic {

Result<sys::EventFd*> thread_event() {
  static thread_local std::optional<sys::EventFd> event;
  if (!event) {
    event.emplace(WEFT_TRY(sys::EventFd::make()));
  }
  return &*event;
}

// --- the loop's part ---

Result<void> InputLead::begin() {
  const int fd = WEFT_TRY(in_.core()->descriptor());
  watch_ = WEFT_TRY(loop_.loop().watch(fd, sys::Interest::readable, false, this));
  return {};
}

void InputLead::end() noexcept {
  unwatch();
  tick_.stop();
}

void InputLead::unwatch() noexcept { loop_.loop().unwatch(std::exchange(watch_, 0)); }

// A loop of its own leaves the XSUB to threads that wait in next(). It comes back when no thread has led for a tick.
void InputLead::handle_event(const sys::PollEvent& /*event*/) {
  if (loop_.is_own()) {
    const std::uint64_t leads = leads_.load(std::memory_order_relaxed);
    if (led_.load(std::memory_order_acquire) || leads != leads_seen_) {
      leads_seen_ = leads;
      unwatch();
      if (!tick_.start()) {
        watch();
      }
      return;
    }
  }
  read_turn();
  if (in_.core()->closed() || in_.core()->terminated()) {
    unwatch();  // the descriptor would stay readable for ever
  }
}

void InputLead::tick(void* self) {
  InputLead& lead = *static_cast<InputLead*>(self);
  const std::uint64_t leads = lead.leads_.load(std::memory_order_relaxed);
  const bool same = leads == std::exchange(lead.leads_seen_, leads);
  const bool led = lead.led_.load(std::memory_order_seq_cst);
  if (same && led) {
    // One leader has waited for the whole tick: nothing comes. It wakes the loop when it ends.
    lead.dormant_.store(true, std::memory_order_seq_cst);  // pairs with lead_ended()
    if (lead.led_.load(std::memory_order_seq_cst) || !lead.dormant_.exchange(false)) {
      return;
    }
  }
  if ((same && !led) || !lead.tick_.start()) {
    lead.watch();
  }
}

void InputLead::watch() {
  if (watch_ != 0 || loop_.closed()) {
    return;
  }
  if (!begin()) {
    watch_ = 0;
  }
  read_turn();  // and arms the descriptor
}

// A read that ends before the XSUB is empty may leave messages of which a cleared descriptor has no sign. So another
// turn follows; after the read of another thread, a loop of its own reads after a tick.
unsigned InputLead::read_turn() {
  const unsigned most = loop_.is_own() ? Pump::kMost : kMostOfSharedLoop;
  const unsigned count = pump_.read(false, most);
  if (count == most && (!loop_.is_own() || loop_.loop().on_loop_thread())) {
    loop_.request(NodeLoop::kReadIn);
  }
  return count;
}

// --- an event loop of the program ---

unsigned InputLead::take_input() {
  if (loop_.closed()) {
    return 0;
  }
  // Relaxed, with no partner: the loop compares it with an earlier value. A lost increment costs it one wake-up.
  leads_.store(leads_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  const unsigned count = pump_.read(false);
  if (count == Pump::kMost) {
    loop_.request(NodeLoop::kReadIn);  // see read_turn()
  }
  return count;
}

// --- threads that wait ---

void InputLead::promote() noexcept {
  const sync::LockGuard lock(mutex_);
  if (SubscriptionCore::Sleeper* const follower = followers_.pop_front()) {
    follower->event->signal();
  }
}

void InputLead::lead_ended() noexcept {
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
Result<TopicMessage> InputLead::try_next(SubscriptionCore& subscription) {
  Result<TopicMessage> message = subscription.try_pop();
  if (!message && message.error() == Errc::would_block && !loop_.closed() && read_turn() != 0) {
    message = subscription.try_pop();
  }
  return message;
}

Result<TopicMessage> InputLead::next_until(SubscriptionCore& subscription, Instant deadline) {
  Result<TopicMessage> message = try_next(subscription);
  while (!message && message.error() == Errc::would_block) {
    const Result<sys::EventFd*> event = thread_event();
    if (!event) {
      message = event.error();
    } else if (deadline != kNever && sys::now() >= deadline) {
      message = Error(Errc::timed_out, "no message came in time");
    } else {
      wait(subscription, **event, deadline);
      message = try_next(subscription);
    }
  }
  return message;
}

void InputLead::wait(SubscriptionCore& subscription, sys::EventFd& event, Instant deadline) {
  msg::flush_this_threads_batches();
  const bool lead = !led_.exchange(true, std::memory_order_acq_rel);
  if (lead) {
    leads_.store(leads_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    const bool came = sync::spin_until(spin_, in_.core()->wait_mode(), [&] {
      (void)pump_.read(false);
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
  bool waits = !loop_.closed();
  if (lead) {
    const auto fd = in_.core()->announce({true, false}, in_sleeper);
    fds[1].fd = fd ? *fd : -1;
    waits = fd.has_value() && pump_.read(true) == 0 && waits;
  } else {
    const sync::LockGuard lock(mutex_);
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
    const sync::LockGuard lock(mutex_);
    follower.unhook();
  }
  subscription.remove_sleeper(sleeper);
  event.drain();
  if (!led_.load(std::memory_order_acquire)) {
    promote();
  }
}

}  // namespace weft::topic
