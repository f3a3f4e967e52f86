// SPDX-License-Identifier: MIT
#include "weft/rt/core/core.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <iterator>
#include <utility>

#include "weft/rt/core/call.h"
#include "weft/rt/core/runtime.h"
#include "weft/rt/exec/job_run.h"
#include "weft/sync/kept_text.h"
#include "weft/sync/lock.h"

namespace weft::rt {

Core::Core(Runtime& runtime, unsigned index, std::unique_ptr<Loop> loop) noexcept
    : runtime_(runtime), index_(index), loop_(std::move(loop)), aftermath_(loop_->tasks()) {}

Core::~Core() {
  while (!calls_.empty()) {
    detail::CallState& call = calls_.front();
    call.unhook();
    call.destroy();
  }
}

Result<std::unique_ptr<Core>> Core::make(Runtime& runtime, unsigned index, unsigned cores, unsigned foreign_lanes,
                                         std::size_t lane_capacity, sys::PollerKind poller) {
  auto loop = WEFT_TRY(Loop::make(nullptr, {}, poller));
  // By reference: a copy of the handler may throw.
  loop->set_exception_handler([&runtime](std::exception_ptr thrown) {
    if (runtime.options_.on_exception) {
      runtime.options_.on_exception(std::move(thrown));
    }
  });
  auto core = std::unique_ptr<Core>(new Core(runtime, index, std::move(loop)));
  core->cores_ = cores;
  core->lane_count_ = cores + foreign_lanes;
  core->lane_capacity_ = lane_capacity;
  core->lanes_ = std::make_unique<Lane<Message>[]>(core->lane_count_);
  core->foreign_ = std::make_unique<ForeignLane[]>(foreign_lanes);
  core->outgoing_ = std::make_unique<Outgoing[]>(cores);
  core->posted_.to.reserve(cores);
  core->posted_.hiding.reserve(cores);
  return core;
}

void Core::run(std::span<const std::unique_ptr<Core>> cores, sync::WaitMode mode, const LatencyOptions& latency) {
  for (unsigned i = 0; i < cores_; ++i) {
    outgoing_[i].lane = Sender(*cores[i], cores[i]->lanes_[index_], bit_of(index_), lane_capacity_);
  }
  current_ = this;
  (void)loop_->run(this, mode, latency);
  end();
  run_given();
  current_ = nullptr;
}

// --- receiving ---

Instant Core::handle_turn(Instant now) {
  run_messages();
  run_turn_jobs();
  ring_all();
  if (runtime_.draining()) [[unlikely]] {
    aftermath_.settle(loop_->mail_taken());
    runtime_.note_turn();
  }
  return ready_ != 0 || !turn_jobs_.empty() ? now : kNever;
}

bool Core::has_work() const noexcept { return ready_ != 0 || doorbell_.rung() || (hot_ != nullptr && !hot_->empty()); }

void Core::run_turn_jobs() noexcept {
  List<TurnJob> now;  // a job that is listed during this call runs in the next turn
  now.splice_back(turn_jobs_);
  while (!now.empty()) {
    TurnJob& job = now.front();
    job.unhook();
    job.run();
  }
}

void Core::run_messages() {
  std::uint64_t ready = std::exchange(ready_, 0) | doorbell_.take();
  if (hot_ != nullptr && !hot_->empty()) {
    ready |= hot_bit_;
  }
  if (ready != 0 && runtime_.draining()) [[unlikely]] {
    aftermath_.begin();
  }
  if ((ready & ~kLanes) != 0) [[unlikely]] {
    if ((ready & kRoom) != 0) {
      serve_backlogs();
    }
    if ((ready & kGiven) != 0) {
      take_given();
    }
  }
  std::size_t budget = kMessagesPerTurn;
  std::uint64_t left = ready & kLanes;
  while (left != 0 && budget != 0) {
    // Continues where the last turn stopped, so that busy lanes do not starve the others.
    const std::uint64_t later = left & (~std::uint64_t{0} << next_bit_);
    const auto bit = static_cast<unsigned>(std::countr_zero(later != 0 ? later : left));
    left &= ~(std::uint64_t{1} << bit);
    next_bit_ = bit + 1;
    if (visit(bit, budget)) {
      ready_ |= std::uint64_t{1} << bit;
    }
  }
  ready_ |= left;
  if (!jobs_.empty()) [[unlikely]] {
    run_due_jobs();
  }
}

bool Core::visit(unsigned bit, std::size_t& budget) {
  bool more = false;
  for (unsigned lane = bit; lane < lane_count_; lane += kLaneBits) {
    Ring* const ring = lanes_[lane].incoming();
    if (ring == nullptr) {
      continue;
    }
    budget -= run_lane(lane, *ring, std::min(budget, kMessagesPerVisit));
    more = more || !ring->empty();
  }
  return more;
}

std::size_t Core::run_lane(unsigned lane, Ring& ring, std::size_t most) {
  constexpr std::size_t kRunMax = 64;  // then their cells go back to the sender
  std::size_t done = 0;
  while (done < most) {
    const std::span<Message> run = ring.peek(std::min(most - done, kRunMax));
    if (run.empty()) {
      break;
    }
    for (Message& message : run) {
      begin_job();
      if (!detail::run_job(message.job, runtime_.options_.on_exception)) {
        count(counters_.threw);
      }
      end_job();
    }
    ring.consume(run.size());
    done += run.size();
    count(counters_.executed, run.size());
  }
  if (done != 0 && lane < cores_) {
    if (lane != index_) {
      hot_ = &ring;
      hot_bit_ = bit_of(lane);
    }
    if (lanes_[lane].room_was_wanted()) {
      outgoing_[lane].lane.target()->ring(kRoom);
    }
  }
  return done;
}

// --- given jobs ---

void Core::give(CoreJob& job, bool behind_all) noexcept {
  job.every_lane_ = behind_all;
  if (Core* const giver = runtime_.own_core(); giver != nullptr) {
    giver->outgoing_[index_].lane.show();
    job.lane_ = giver->index_;
  } else {
    job.lane_ = cores_ + Runtime::foreign_ordinal() % runtime_.options_.foreign_lanes;
  }
  if (behind_all) {
    job.lane_ = 0;
  }
  {
    const sync::LockGuard lock(given_.mutex);
    given_.jobs.push_back(job);
    if (given_.runner == JobRunner::core) {
      (void)ring(kGiven);  // under the lock: once the core has the job it may end
    }
    if (given_.runner != JobRunner::none) {
      return;
    }
    given_.runner = JobRunner::giver;
  }
  run_given();
}

// Takes the given jobs, and notes how many messages come before each.
void Core::take_given() noexcept {
  List<CoreJob> came;
  {
    const sync::LockGuard lock(given_.mutex);
    came.splice_back(given_.jobs);
  }
  while (CoreJob* const job = came.pop_front()) {
    job->after_ = end_of(job->lane_);
    jobs_.push_back(*job);
  }
}

// The number of messages that the lane's ring has given out when all are run that are in it. The lane after the last
// one is the mail of the loop.
std::uint64_t Core::end_of(unsigned lane) noexcept {
  if (lane == lane_count_) {
    return loop_->mailed();
  }
  Ring* const ring = lanes_[lane].incoming();
  return ring == nullptr ? 0 : ring->popped() + ring->readable(ring->capacity());
}

std::uint64_t Core::done_of(unsigned lane) noexcept {
  if (lane == lane_count_) {
    return loop_->mail_taken();
  }
  Ring* const ring = lanes_[lane].incoming();
  return ring == nullptr ? 0 : ring->popped();
}

// A job after all lanes takes them one after the other, so that it needs no more room than one place. It waits for at
// most one lane's capacity, of each, and for the mail that came until then.
bool Core::is_due(CoreJob& job) noexcept {
  for (;;) {
    if (done_of(job.lane_) < job.after_) {
      return false;
    }
    if (!job.every_lane_ || job.lane_ == lane_count_) {
      return true;
    }
    job.after_ = end_of(++job.lane_);
  }
}

// Runs the jobs whose messages have run. While one is left its lane has messages or the loop mail, so the core does not
// sleep.
void Core::run_due_jobs() noexcept {
  for (CoreJob* job = jobs_.first(); job != nullptr;) {
    if (!is_due(*job)) {
      job = jobs_.next(*job);
      continue;
    }
    job->unhook();
    job->function_(*job);
    job = jobs_.first();
  }
}

// Runs every given job on the calling thread. Requires that the core's loop has ended and that no other thread does
// this. From then on the next giver does.
void Core::run_given() noexcept {
  while (CoreJob* const job = jobs_.pop_front()) {
    job->function_(*job);
  }
  sync::UniqueLock lock(given_.mutex);
  while (CoreJob* const job = given_.jobs.pop_front()) {
    lock.unlock();
    job->function_(*job);
    lock.lock();
  }
  given_.runner = JobRunner::none;
}

// --- sending ---

Error Core::refuse() noexcept {
  if (ended_) {
    count(counters_.after_stop);
    return Error(Errc::closed, "the runtime was stopped");
  }
  count(counters_.refused);
  return Error(Errc::resource_exhausted, "the lane to that core is full");
}

bool Core::try_send(unsigned target, Waiting& waiting) noexcept {
  Outgoing& out = outgoing_[target];
  Message* const cell = out.backlog.empty() ? out.lane.claim() : nullptr;
  if (cell == nullptr) {
    return false;
  }
  count(counters_.posted);
  ::new (static_cast<void*>(cell)) Message{std::move(waiting.message)};
  commit(out);  // `waiting` may be gone as soon as its message is in the lane
  return true;
}

void Core::wait_to_send(unsigned target, Waiting& waiting) noexcept {
  Outgoing& out = outgoing_[target];
  count(counters_.posted);
  const bool first = out.backlog.empty();
  out.backlog.push_back(waiting);
  if (first && wait_for_room(out)) {
    ready_ |= kRoom;  // the next turn serves the backlog: the caller is about to suspend
  }
}

void Core::forget(Waiting& waiting) noexcept {
  waiting.unhook();
  count(dropped_);
}

void Core::ring_all() noexcept {
  for (Outgoing* const out : posted_.to) {
    if (out->lane.end_turn()) {
      count(counters_.wakes);
    }
    out->posted = false;
  }
  posted_.to.clear();
}

void Core::show_hidden() noexcept {
  for (Outgoing* const out : posted_.hiding) {
    out->lane.show();
    out->hiding = false;
  }
  posted_.hiding.clear();
}

bool Core::ring(std::uint64_t bits) noexcept {
  const bool asleep = doorbell_.ring(bits);
  if (asleep) {
    loop_->wake();
  }
  return asleep;
}

void Core::serve_backlogs() noexcept {
  begin_job();
  for (unsigned i = 0; i < cores_; ++i) {
    serve(outgoing_[i]);
  }
  end_job();
}

// Returns true if there is room now. Returns false if the receiver rings kRoom later.
bool Core::wait_for_room(Outgoing& out) noexcept {
  if (!out.lane.is_open()) {
    ready_ |= kRoom;  // no memory for the lane, so no receiver rings: retry in the next turn
    return false;
  }
  return out.lane.wait_for_room();
}

void Core::serve(Outgoing& out) noexcept {
  while (!out.backlog.empty()) {
    Message* const cell = out.lane.claim();
    if (cell == nullptr) {
      if (!wait_for_room(out)) {
        return;
      }
      continue;
    }
    Waiting& waiting = out.backlog.front();
    Waiting::Report* const report = waiting.report();
    waiting.unhook();
    ::new (static_cast<void*>(cell)) Message{std::move(waiting.message)};
    commit(out);
    if (report != nullptr) {
      report(waiting, Error());
    }
  }
}

// Requires the lane's mutex. Returns null if it is closed, or refused.
Core::Message* Core::claim_foreign(unsigned slot, ForeignLane& foreign) noexcept {
  auto& lane = lanes_[cores_ + slot];
  if (foreign.closed) {
    count(foreign.counters.foreign_after_stop);
    return nullptr;
  }
  Message* const cell =
      lane.outgoing() != nullptr || lane.open(lane_capacity_) ? lane.outgoing()->claim_one() : nullptr;
  if (cell == nullptr) {
    count(foreign.counters.foreign_refused);
  }
  return cell;
}

void Core::close_foreign() noexcept {
  for (unsigned slot = 0; slot < lane_count_ - cores_; ++slot) {
    const sync::LockGuard lock(foreign_[slot].mutex);
    foreign_[slot].closed = true;
  }
}

// At the end of the thread: ends the waits of backlogs and calls, which no other core will end.
void Core::end() noexcept {
  ended_ = true;
  run_turn_jobs();
  while (TurnJob* const job = end_jobs_.pop_front()) {
    job->run();
  }
  for (unsigned i = 0; i < cores_; ++i) {
    while (!outgoing_[i].backlog.empty()) {
      Waiting& waiting = outgoing_[i].backlog.front();
      forget(waiting);
      if (waiting.report() != nullptr) {
        waiting.report()(waiting, Error(Errc::closed, "the runtime was stopped"));
      }
    }
  }
  List<detail::CallState> calls;
  calls.splice_back(calls_);
  while (!calls.empty()) {
    detail::CallState& call = calls.front();
    call.unhook();
    calls_.push_back(call);  // the core's destructor frees it: its reply may still come
    call.handle_end();
  }
  ring_all();
  aftermath_.end();
  if (runtime_.draining()) {
    runtime_.note_turn();
  }
}

void Core::drop_messages() noexcept {
  for (unsigned lane = 0; lane < lane_count_; ++lane) {
    if (Ring* const ring = lanes_[lane].incoming(); ring != nullptr) {
      while (ring->front() != nullptr) {
        ring->pop();
      }
    }
  }
}

namespace {
// "core 7", or "a thread that is no core".
class CoreName {
 public:
  explicit CoreName(const Core* core) noexcept {
    if (core != nullptr) {
      size_ = static_cast<std::size_t>(std::snprintf(text_, sizeof text_, "core %u", core->index()));
    }
  }
  [[nodiscard]] std::string_view text() const noexcept {
    return size_ == 0 ? std::string_view("a thread that is no core") : std::string_view(text_, size_);
  }

 private:
  char text_[24];
  std::size_t size_ = 0;
};
}  // namespace

Error used_elsewhere(std::string_view what, const Core* owner) noexcept {
  return {Errc::invalid_state,
          sync::keep_text({what, " of ", CoreName(owner).text(), " used on ", CoreName(Core::current()).text()},
                          "an object of one core was used on another thread")};
}

namespace {
constexpr CounterRow kCoreRows[] = {WEFT_CORE_COUNTERS(WEFT_COUNTER_ROW) WEFT_FOREIGN_LANE_COUNTERS(WEFT_COUNTER_ROW)
                                        WEFT_CORE_TASK_COUNTERS(WEFT_COUNTER_ROW)};
static_assert(std::size(kCoreRows) == sync::count_of_rows<CoreCounts>());
}  // namespace

constinit const CounterTable kCoreTable = {
    "core",
    "A core of an `rt::Runtime`. The runtime of the admin port is there by itself; others: "
    "`admin->add(name, *runtime)`.",
    kCoreRows};

namespace {
constexpr CounterRow kTurnRows[] = {{"milliseconds", "milliseconds", CounterKind::gauge, "", "", "milliseconds",
                                     "How long the core's present turn has lasted; 0 below 100.",
                                     "rt/core/runtime.cc"}};
static_assert(std::size(kTurnRows) == sync::count_of_rows<CoreTurn>());
}  // namespace
constinit const CounterTable kCoreTurnTable = {
    "core_turn", "The turn of a core that lasts: the labels `service` and `handler` name the call that holds it.",
    kTurnRows};

constinit const sync::DurationRow kCoreLagRow = {"core", "lag_seconds", "core, runtime",
                                                 "The time from one look of a core for events to its next look or "
                                                 "wait: an event waits at most so long for its turn. "
                                                 "The sum is the time in which the core worked.",
                                                 "rt/loop/loop.cc"};

CoreCounts Core::counts() const noexcept {
  CoreCounts counts;
  sync::add_counters(static_cast<CoreNumbers<std::uint64_t>&>(counts), counters_);
  for (unsigned slot = 0; slot < lane_count_ - cores_; ++slot) {
    sync::add_counters(static_cast<ForeignLaneNumbers<std::uint64_t>&>(counts), foreign_[slot].counters);
  }
  counts.threw += loop_->threw();
  counts.parks = loop_->parks();
  counts.polled = static_cast<std::uint64_t>(loop_->polled() / std::chrono::microseconds(1));
  counts.cancels_ignored = loop_->tasks().cancels_ignored();
  counts.stalls = loop_->activity()->stalls();
  return counts;
}

}  // namespace weft::rt
