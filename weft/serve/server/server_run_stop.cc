// SPDX-License-Identifier: MIT
// The end of a run: ServerRun from begin_stop() on.
#include <algorithm>
#include <exception>
#include <string>

#include "weft/serve/server/server_run.h"
#include "weft/sync/condition.h"
#include "weft/sync/kept_text.h"
#include "weft/sys/clock.h"

namespace weft::serve {

void ServerRun::begin_stop(Instant deadline) {
  {
    const sync::LockGuard lock(mutex_);
    if (begun_ && deadline >= stop_deadline_) {
      return;
    }
    begun_ = true;
    stop_deadline_ = deadline;
  }
  for (unsigned core = 0; core < parts_.size(); ++core) {
    call(core);
  }
}

// A stop has phases. The core accepts no more. Its sessions handle their received frames; see Shard::drain(). When
// those of all cores have, or at `settled_by`, they close. At the deadline they end.
void ServerRun::stop_by(unsigned core, Instant deadline) noexcept {
  Part& part = *parts_[core];
  rt::Core& here = runtime_.core(core);
  if (deadline < part.deadline || !part.stopping) {
    const Instant now = here.loop().now();
    part.deadline = deadline;
    const Instant half = deadline == kNever ? kNever : now + time_left(deadline, now) / 2;
    part.settled_by = std::min({part.settled_by, half, deadline_after(now, settle_timeout_)});
    arm(part);
  }
  if (!part.stopping) {
    part.stopping = true;
    for (const auto& port : part.ports) {
      port->close();
    }
    if (part.proxy_waits != nullptr) {
      part.proxy_waits->refuse_all(Error(Errc::terminated, "the server stops"));
    }
    tell_services(part);
    part.shard->drain([this, core] { drain_.note_drained(core, shared_from_this()); });
  }
}

void ServerRun::tell_services(Part& part) noexcept {
  for (const auto& port : part.ports) {
    if (port->ops.stopping != nullptr) {
      try {
        port->ops.stopping(port->service.get());
      } catch (...) {
        part.shard->note_exception(std::current_exception());
      }
    }
  }
}

void ServerRun::arm(Part& part) noexcept {
  rt::TimerWheel& timers = part.shard->loop().timers();
  (void)timers.cancel(part.timer);
  const auto late = [](void* at) {
    auto& late_part = *static_cast<Part*>(at);
    late_part.run.handle_time(late_part);
  };
  const Instant due = part.closing ? part.deadline : std::min(part.settled_by, part.deadline);
  part.timer = due == kNever ? rt::TimerId() : timers.schedule(due, {late, &part});
  if (!part.timer && due != kNever) {  // no memory for it
    close_sessions(part);
    end_sessions(part);
  }
}

void ServerRun::handle_time(Part& part) noexcept {
  part.timer = {};
  const bool at_deadline = part.closing || part.shard->loop().now() >= part.deadline;
  close_sessions(part);
  if (at_deadline) {
    return end_sessions(part);
  }
  arm(part);
}

void ServerRun::close_sessions(Part& part) noexcept {
  if (!part.closing) {
    part.closing = true;
    // Destroys the shard later: its last session may be on the stack.
    part.shard->close_drained([&part] { part.shard->core().at_turn_end(part.drained); });
  }
}

void ServerRun::end_sessions(Part& part) noexcept {
  const bool lost = part.shard->end_all() != 0;
  const sync::LockGuard lock(mutex_);
  part_states_[part.core].met_deadline = true;
  aborted_ = aborted_ || lost;
}

void ServerRun::tear_down(unsigned core) noexcept {
  Part& part = *parts_[core];
  const auto self = std::move(part.keep);
  part.stopping = true;
  (void)runtime_.core(core).loop().timers().cancel(part.timer);
  part.drained.unhook();
  part.core_ended.unhook();
  part.proxy_waits.reset();
  part.shard->abandon();
  part.shard.reset();
  part.ports.clear();
  bool last = false;
  {
    const sync::LockGuard lock(mutex_);
    begun_ = true;  // also when the core's end came before any stop
    part_states_[core].down = true;
    ++down_;
    last = down_ == parts_.size();
    changed_.notify_all();
  }
  if (self != nullptr && !last) {
    drain_.note_drained(core, self);
  }
}

Result<void> ServerRun::stop(Instant deadline) {
  begin_stop(deadline);
  if (rt::Core::current() != nullptr) {
    return {};
  }
  if (!wait_down(deadline)) {
    return left_behind();
  }
  const sync::LockGuard lock(mutex_);
  return aborted_ ? Error(Errc::timed_out, "sessions were left at the deadline") : Result<void>();
}

// Waits until every part is down, at most until kStopGrace after the deadline: until then the cores end the sessions
// that are left at the deadline. Returns false if a part is left.
bool ServerRun::wait_down(Instant deadline) {
  const Instant until = deadline_after(std::max(deadline, sys::now()), kStopGrace);
  sync::UniqueLock lock(mutex_);
  while (down_ != parts_.size()) {
    if (!sync::sleep_until(changed_, lock, until)) {
      return false;
    }
  }
  return true;
}

// Names the cores that are not down. A core that has met the deadline waits for coroutines; another one does not turn.
Error ServerRun::left_behind() {
  std::string waiting;
  std::string stuck;
  const sync::LockGuard lock(mutex_);
  for (unsigned core = 0; core < parts_.size(); ++core) {
    const PartState& state = part_states_[core];
    if (!state.down) {
      std::string& list = state.met_deadline ? waiting : stuck;
      list += (list.empty() ? "" : ", ") + std::to_string(core);
    }
  }
  const bool both = !waiting.empty() && !stuck.empty();
  return {Errc::timed_out,
          sync::keep_text({stuck.empty() ? "" : "a handler has not returned on core ", stuck, both ? "; " : "",
                           waiting.empty() ? "" : "coroutines of sessions have not ended on core ", waiting},
                          "handlers or coroutines were left behind")};
}

}  // namespace weft::serve
