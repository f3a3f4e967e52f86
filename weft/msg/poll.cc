// SPDX-License-Identifier: MIT
#include "weft/msg/poll.h"

#include <algorithm>
#include <new>
#include <optional>
#include <vector>

#include "weft/msg/socket/socket_core.h"
#include "weft/sync/spin.h"
#include "weft/sync/wake_list.h"
#include "weft/sys/clock.h"
#include "weft/sys/event_fd.h"
#include "weft/sys/poll.h"

namespace weft {

namespace {

msg::SocketCore* core_of(const PollItem& item) { return item.socket == nullptr ? nullptr : item.socket->core().get(); }

// Fills in the answers of the sockets and counts the ready ones. Waiter::sleep() answers for descriptors.
std::size_t look(std::span<PollItem> items, Instant deadline = Instant::min()) {
  std::size_t ready = 0;
  for (PollItem& item : items) {
    if (item.socket == nullptr) {
      continue;
    }
    item.input = item.output = item.urgent = item.failed = false;
    if (msg::SocketCore* core = core_of(item); core != nullptr) {
      const msg::Readiness answer = core->readiness({item.want_input, item.want_output}, deadline);
      item.input = answer.input;
      item.output = answer.output;
    } else {
      item.input = item.want_input;
      item.output = item.want_output;
    }
    ready += item.input || item.output ? 1 : 0;
  }
  return ready;
}

// Waiter: the sleep of one poll() call. Each socket rings the calling thread's event; besides, a socket may name one
// descriptor to wait for.
// Owner: the call. Affinity: its thread.
class Waiter {
 public:
  Waiter(std::span<PollItem> items, sys::EventFd& event)
      : items_(items), event_(event), fds_(items.size() + 1), sleepers_(items.size(), {&event}) {
    for (std::size_t i = 0; i < items.size(); ++i) {
      const PollItem& item = items[i];
      if (item.socket == nullptr) {
        fds_[i].fd = item.fd;
        fds_[i].want = (item.want_input ? sys::Interest::readable : sys::Interest::none) |
                       (item.want_output ? sys::Interest::writable : sys::Interest::none) |
                       (item.want_urgent ? sys::Interest::urgent : sys::Interest::none);
      }
    }
    fds_[items.size()] = {event.fd(), sys::Interest::readable, sys::Interest::none, false};
  }
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;
  ~Waiter() {
    bool rung = false;
    for (std::size_t i = 0; i < items_.size(); ++i) {
      if (msg::SocketCore* core = core_of(items_[i]); core != nullptr) {
        core->forget({items_[i].want_input, items_[i].want_output}, sleepers_[i]);
        rung |= sleepers_[i].rung;
      }
    }
    if (rung) {
      event_.drain();
    }
  }

  [[nodiscard]] Result<void> announce() {
    for (std::size_t i = 0; i < items_.size(); ++i) {
      const PollItem& item = items_[i];
      if (msg::SocketCore* core = core_of(item); core != nullptr) {
        fds_[i].fd = WEFT_TRY(core->announce({item.want_input, item.want_output}, sleepers_[i]));
        fds_[i].want = sys::Interest::readable;
      }
    }
    return {};
  }

  // Sleeps until a descriptor is ready, and fills in the answers for the caller's descriptors. Zero timeout: no sleep.
  [[nodiscard]] Result<std::size_t> sleep(Duration timeout, const sys::SignalMask* mask) {
    (void)WEFT_TRY(sys::poll_fds(fds_, timeout, mask));
    if (has(fds_.back().got, sys::Interest::readable)) {
      event_.drain();
    }
    std::size_t ready = 0;
    for (std::size_t i = 0; i < items_.size(); ++i) {
      PollItem& item = items_[i];
      if (item.socket == nullptr) {
        item.input = has(fds_[i].got, sys::Interest::readable);
        item.output = has(fds_[i].got, sys::Interest::writable);
        item.urgent = has(fds_[i].got, sys::Interest::urgent);
        item.failed = fds_[i].failed;
        ready += item.input || item.output || item.urgent || item.failed ? 1 : 0;
      }
    }
    return ready;
  }

 private:
  std::span<PollItem> items_;
  sys::EventFd& event_;
  std::vector<sys::PollFd> fds_;  // one of each item, in order, then that of the event
  std::vector<sync::WakeList::Sleeper> sleepers_;
};

Result<sys::EventFd*> thread_event() {
  static thread_local std::optional<sys::EventFd> event;
  if (!event) {
    event.emplace(WEFT_TRY(sys::EventFd::make()));
  }
  return &*event;
}

Result<std::size_t> poll_items(std::span<PollItem> items, Duration timeout, const sys::SignalMask* mask) {
  bool has_fds = false;
  bool has_sockets = false;
  sync::WaitMode mode = sync::WaitMode::adaptive;
  for (const PollItem& item : items) {
    has_fds |= item.socket == nullptr;
    if (msg::SocketCore* core = core_of(item); core != nullptr) {
      mode = core->wait_mode();
      has_sockets = true;
    }
  }
  const Instant deadline = deadline_after(sys::now(), timeout);
  std::size_t ready = has_fds ? 0 : look(items);
  if (ready == 0) {
    msg::flush_this_threads_batches();
  }
  static thread_local sync::SpinBudget spin;
  if (ready == 0 && has_sockets && !has_fds && timeout != Duration::zero() && mask == nullptr) {
    (void)sync::spin_until(spin, mode, [&] { return (ready = look(items)) != 0; });
  }
  if (ready != 0) {
    return ready;
  }
  Waiter waiter(items, *WEFT_TRY(thread_event()));
  if (has_fds && has_sockets) {
    // Poll the descriptors first: one may be a socket's own (ZMQ_FD), and readiness() takes back its signal.
    if (const std::size_t fds_ready = WEFT_TRY(waiter.sleep(Duration::zero(), mask)); fds_ready != 0) {
      return fds_ready + look(items);
    }
  }
  for (bool first = true;; first = false) {
    WEFT_TRY(waiter.announce());
    ready = look(items, deadline);
    const Duration left =
        ready != 0 || timeout == Duration::zero() ? Duration::zero() : time_left(deadline, sys::now());
    if (ready != 0 && !has_fds) {
      return ready;
    }
    const std::size_t fds_ready = WEFT_TRY(waiter.sleep(left, mask));
    if (ready + fds_ready != 0) {
      return ready + fds_ready;
    }
    if (left == Duration::zero() && !first) {
      return std::size_t{0};
    }
    if (left == Duration::zero() && timeout == Duration::zero()) {
      return std::size_t{0};
    }
  }
}

}  // namespace

Result<std::size_t> poll(std::span<PollItem> items, Duration timeout, const sys::SignalMask* mask) {
  try {
    auto ready = poll_items(items, timeout, mask);
    if (mask != nullptr && ready) {
      // The kernel lets a signal through only when no descriptor is ready. A program that blocks its signals outside
      // this call would get none while messages keep coming.
      (void)WEFT_TRY(sys::poll_fds({}, Duration::zero(), mask));
    }
    return ready;
  } catch (const std::bad_alloc&) {
    return Error(Errc::resource_exhausted, "no memory");
  }
}

}  // namespace weft
