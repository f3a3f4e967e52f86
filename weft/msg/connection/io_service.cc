// SPDX-License-Identifier: MIT
#include "weft/msg/connection/io_service.h"

#include <algorithm>
#include <utility>

#include "weft/msg/connection/connection.h"
#include "weft/sync/spin.h"
#include "weft/sys/call.h"
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
  const sys::CancellationOff off;
  sync::UniqueLock lock(errand.mutex);
  while (!errand.done) {
    errand.ended.wait(lock);
  }
}

void IoService::add_link() {
  if (armed_.capacity() <= links_) {
    armed_.reserve(std::max<std::size_t>(16, 2 * links_));
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
    connection->armed_place = armed_.size();
    armed_.push_back(connection);
  }
}

void IoService::disarm(Connection& connection) noexcept {
  collect_armed();
  if (connection.armed_place != Connection::kNotArmed) {
    drop_armed(connection.armed_place);
  }
}

void IoService::drop_armed(std::size_t place) noexcept {
  armed_[place]->armed_place = Connection::kNotArmed;
  if (place + 1 < armed_.size()) {
    armed_[place] = armed_.back();
    armed_[place]->armed_place = place;
  }
  armed_.pop_back();
}

void IoService::run_flushes(bool only_bursts) {
  bool all_busy = true;
  flushes_more_ = false;
  for (std::size_t i = 0; i < armed_.size();) {
    Connection& connection = *armed_[i];
    if (only_bursts && !connection.send_side().flush_at_once()) {
      ++i;
      continue;
    }
    const SendSide::FlushTurn turn = connection.send_side().flush_turn();
    all_busy &= turn == SendSide::FlushTurn::busy;
    flushes_more_ |= turn == SendSide::FlushTurn::more;
    if (turn != SendSide::FlushTurn::drop && turn != SendSide::FlushTurn::await_room) {
      ++i;
      continue;
    }
    drop_armed(i);
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

// --- connections that threads of the application read ---

namespace {

// Whether a thread of the application waits for input, or has read since the last call.
bool has_read(SocketShare& share) noexcept {
  const std::uint64_t reads = share.app_read_count();
  return reads != std::exchange(share.app_readers.seen, reads) || share.app_waits();
}

}  // namespace

bool IoService::app_reads(SocketShare& share) noexcept { return share.app_readers.active || has_read(share); }

void IoService::leave_to_app(Link& link, SocketShare& share) noexcept {
  AppReaders& readers = share.app_readers;
  readers.links.push_back(link);
  link.leave_to_app_threads();
  if (!readers.active) {
    readers.active = true;
    readers.idle_turns = 0;
    readers.unhook();
    readers_.push_back(readers);
  }
}

void IoService::take_back(Link& link, SocketShare& share) noexcept {
  link.unhook();
  link.take_back_from_app();
  if (share.app_readers.links.empty()) {
    share.app_readers.unhook();
    share.app_readers.active = false;
  }
}

void IoService::check_readers() noexcept {
  AppReaders* next = nullptr;
  for (AppReaders* readers = readers_.first(); readers != nullptr; readers = next) {
    next = readers_.next(*readers);
    SocketShare& share = readers->links.front().share();
    const bool reads_on = share.app_read_count() != readers->seen;
    if (has_read(share) && (reads_on || ++readers->idle_turns < kIdleChecks)) {
      readers->idle_turns = reads_on ? 0 : readers->idle_turns;
      continue;
    }
    readers->active = false;
    readers->unhook();
    idle_readers_.push_back(*readers);
  }
}

void IoService::take_back_some() noexcept {
  for (std::size_t i = 0; i < kTakesPerTurn && !idle_readers_.empty(); ++i) {
    idle_readers_.front().links.front().await_input();
  }
}

Instant IoService::handle_turn(Instant now) {
  requests_.take_all([](const std::shared_ptr<Connection>& connection) {
    connection->link().handle_requests(connection->requests.exchange(0, std::memory_order_relaxed));
  });
  errands_.take_all([](Errand* errand) {
    errand->function(errand->context);
    const sync::LockGuard lock(errand->mutex);
    errand->done = true;
    errand->ended.notify_one();  // under the lock: the caller's stack goes when it has the lock
  });
  retry_starved();
  collect_armed();
  if (armed_.empty()) {
    next_flush_ = kNever;
  } else if (next_flush_ == kNever) {
    flush_bursts();
    next_flush_ = armed_.empty() ? kNever : flushes_more_ ? now : sys::now() + nap_;
  } else if (now >= next_flush_) {
    run_flushes(false);
    next_flush_ = armed_.empty() ? kNever : flushes_more_ ? now : now + nap_;
  }
  if (readers_.empty()) {
    next_check_ = kNever;
  } else if (next_check_ == kNever) {
    next_check_ = now + kCheckEvery;
  } else if (now >= next_check_) {
    check_readers();
    next_check_ = readers_.empty() ? kNever : now + kCheckEvery;
  }
  take_back_some();
  reads_.serve(now, [](Link& link) { link.read_in_line(); });
  // A link that ended in the line may have collected connections that were armed meanwhile: see disarm().
  if (!idle_readers_.empty() || !reads_.empty() || (next_flush_ == kNever && !armed_.empty())) {
    return now;
  }
  return std::min({next_flush_, next_check_, starved_.empty() ? kNever : now + kRetryEvery});
}

}  // namespace weft::msg
