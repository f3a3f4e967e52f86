// SPDX-License-Identifier: MIT
#include "weft/msg/connection/io_service.h"

#include <algorithm>

#include "weft/msg/connection/connection.h"
#include "weft/sync/spin.h"
#include "weft/sys/clock.h"

namespace weft::msg {

Result<std::unique_ptr<IoService>> IoService::make(const sys::ThreadOptions& thread_options) {
  auto loop =
      WEFT_TRY(rt::Loop::make("weft-io", thread_options));  // not inside `new`: its memory would leak on an error
  auto service = std::unique_ptr<IoService>(new IoService(std::move(loop)));
  WEFT_TRY(service->loop_->start(service.get()));
  return service;
}

IoService::~IoService() {
  loop_->stop();
  requests_.take_all([](const std::shared_ptr<Connection>& /*connection*/) {});
}

void IoService::arm(Connection& connection) noexcept {
  Connection* head = incoming_.load(std::memory_order_relaxed);
  do {
    connection.next_armed.store(head, std::memory_order_relaxed);
    // Release pairs with the acquire in collect_armed().
  } while (!incoming_.compare_exchange_weak(head, &connection, std::memory_order_release, std::memory_order_relaxed));
  loop_->nudge();
}

void IoService::request(std::shared_ptr<Connection> connection, unsigned requests) noexcept {
  auto& entry = connection->request_entry;
  connection->requests.fetch_or(requests, std::memory_order_relaxed);  // the list orders it before the visit
  if (requests_.add(entry, std::move(connection))) {
    loop_->wake_sleeper();  // with a fence, which pairs with that before has_work() and may_sleep()
  }
}

void IoService::run_errand(Errand& errand) noexcept {
  if (errands_.add(errand.entry, &errand)) {
    loop_->wake_sleeper();
  }
  std::unique_lock lock(errand.mutex);
  errand.ended.wait(lock, [&] { return errand.done; });
}

void IoService::add_link() {
  if (armed_.capacity() <= links_ || watched_.capacity() <= links_) {
    const std::size_t room = std::max<std::size_t>(16, 2 * links_);
    armed_.reserve(room);
    watched_.reserve(room);
  }
  ++links_;
}

void IoService::retry_starved() noexcept {
  List<TimerRetry> due;
  due.splice_back(starved_);
  while (TimerRetry* retry = due.pop_front()) {
    retry->link.retry_timers();  // may list it again
  }
}

void IoService::collect_armed() noexcept {
  if (incoming_.load(std::memory_order_relaxed) == nullptr) {
    return;
  }
  for (Connection* connection = incoming_.exchange(nullptr, std::memory_order_acquire); connection != nullptr;
       connection = connection->next_armed.load(std::memory_order_relaxed)) {
    armed_.push_back(connection);
  }
}

void IoService::disarm(Connection& connection) noexcept {
  collect_armed();
  std::erase(armed_, &connection);
}

void IoService::forget(Connection& connection) noexcept {
  disarm(connection);
  std::erase(watched_, &connection);
}

void IoService::run_flushes(bool only_bursts) {
  bool all_busy = true;
  for (std::size_t i = 0; i < armed_.size();) {
    Connection& connection = *armed_[i];
    if (only_bursts && !connection.send_side().flush_at_once()) {
      ++i;
      continue;
    }
    const SendSide::FlushTurn turn = connection.send_side().flush_turn();
    all_busy &= turn == SendSide::FlushTurn::busy;
    if (turn == SendSide::FlushTurn::keep || turn == SendSide::FlushTurn::busy) {
      ++i;
      continue;
    }
    armed_[i] = armed_.back();
    armed_.pop_back();
    if (turn == SendSide::FlushTurn::await_room) {
      connection.link().await_room();
    }
  }
  nap_ = all_busy && !only_bursts ? std::min(nap_ * 2, kNapLongest) : kNap;
}

// After a rest a sender woke this thread for a new batch, and often that batch is all that the sender sends. Check each
// new batch twice, 3 us apart. If the sender appended nothing in between, flush it.
void IoService::flush_bursts() {
  nap_ = kNap;
  if (std::any_of(armed_.begin(), armed_.end(),
                  [](Connection* connection) { return connection->send_side().flush_at_once(); })) {
    run_flushes(true);
    sync::spin_for(kCheckApartUs);
    run_flushes(true);
  }
}

void IoService::run_watches(Instant now) {
  std::erase_if(watched_, [](Connection* connection) { return !connection->link().watch_turn(); });
  next_watch_ = now + kWatchEvery;
}

Instant IoService::handle_turn(Instant now) {
  requests_.take_all([](const std::shared_ptr<Connection>& connection) {
    connection->link().handle_requests(connection->requests.exchange(0, std::memory_order_relaxed));
  });
  errands_.take_all([](Errand* errand) {
    errand->function(errand->context);
    const std::lock_guard lock(errand->mutex);
    errand->done = true;
    errand->ended.notify_one();  // under the lock: the caller's stack goes when it has the lock
  });
  retry_starved();
  collect_armed();
  if (armed_.empty()) {
    next_flush_ = kNever;
  } else if (next_flush_ == kNever) {
    flush_bursts();
    next_flush_ = armed_.empty() ? kNever : sys::now() + nap_;
  } else if (now >= next_flush_) {
    run_flushes(false);
    next_flush_ = armed_.empty() ? kNever : now + nap_;
  }
  if (watched_.empty()) {
    next_watch_ = kNever;
  } else if (next_watch_ == kNever) {
    next_watch_ = now + kWatchEvery;
  } else if (now >= next_watch_) {
    run_watches(now);
  }
  const Instant next_retry = starved_.empty() ? kNever : now + kRetryEvery;
  return std::min({next_flush_, watched_.empty() ? kNever : next_watch_, next_retry});
}

}  // namespace weft::msg
