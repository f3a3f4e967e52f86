// SPDX-License-Identifier: MIT
// Frames from a task to sessions of any core, which wait for room.
#include <utility>
#include <vector>

#include "weft/rt/core/core.h"
#include "weft/rt/task/task_group.h"
#include "weft/serve/server/server.h"
#include "weft/serve/session/groups.h"
#include "weft/serve/session/shard.h"

namespace weft::serve {

namespace {

constexpr Error kNotOnCore(Errc::invalid_state, "only a task on a core of the server's runtime waits for room");
constexpr Error kStoppedMeanwhile(Errc::closed, "the server is stopped");
constexpr Error kNotReadInTime(Errc::timed_out, "a peer did not read in time");
constexpr Error kSessionEnded(Errc::unreachable, "the session has ended");

// On the session's core. The session may end while the task waits: the wait then fails, and does not touch it.
rt::Task<Result<void>> send_here(SessionId id, SharedFrame frame, Instant deadline) {
  Shard* const shard = Shard::here(id.epoch());
  Session* const session = shard == nullptr ? nullptr : shard->find_or_count(id);
  if (session == nullptr) {
    co_return kSessionEnded;
  }
  co_return co_await session->send_shared_wait(frame, deadline);
}

void note(PublishOutcome& count, const Result<void>& sent) noexcept {
  if (sent) {
    ++count.taken;
  } else {
    ++count.missed;
    count.why = sent.error();
  }
}

// Sends the frame to the members on this core that have room. Returns the others. No member leaves during this call.
std::vector<SessionId> send_to_ready(Shard& shard, GroupId group, const SharedFrame& frame, PublishOutcome& count) {
  std::vector<SessionId> full;
  const Group* const found = shard.groups().find(group);
  if (found == nullptr) {
    return full;
  }
  for (const Group::Member& member : found->members) {
    Session& session = *member.session;
    if (session.takes_at_once() || !session.takes_frames()) {
      note(count, session.send_shared(frame));
    } else {
      full.push_back(session.id());
    }
  }
  return full;
}

rt::Task<Result<PublishOutcome>> publish_here(std::uint16_t epoch, GroupId group, SharedFrame frame, Instant deadline) {
  PublishOutcome count;
  Shard* const shard = Shard::here(epoch);
  if (shard == nullptr) {
    co_return count;  // its last session has ended, and so have the members
  }
  const std::vector<SessionId> full = send_to_ready(*shard, group, frame, count);
  if (full.empty()) {
    co_return count;
  }
  std::vector<rt::Task<Result<void>>> waits;
  waits.reserve(full.size());
  for (const SessionId id : full) {
    waits.push_back(send_here(id, frame, deadline));
  }
  const std::vector<Result<void>> results = co_await rt::when_all(std::move(waits));
  for (const Result<void>& sent : results) {
    note(count, sent);
  }
  co_return count;
}

rt::Task<Result<PublishOutcome>> publish_on(rt::Runtime* runtime, unsigned core, std::uint16_t epoch, GroupId group,
                                            SharedFrame frame, Instant deadline) {
  if (rt::Core::current()->index() == core) {
    co_return co_await publish_here(epoch, group, frame, deadline);
  }
  auto publish = [epoch, group, frame, deadline] { return publish_here(epoch, group, frame, deadline); };
  auto calling = runtime->call(core, std::move(publish), deadline);
  co_return co_await calling;
}

}  // namespace

Error Server::not_on_core() const noexcept {
  const rt::Core* const here = rt::Core::current();
  return here != nullptr && &here->runtime() == &runtime_ ? Error() : kNotOnCore;
}

rt::Task<Result<void>> Server::send_wait(SessionId id, SharedFrame frame, Instant deadline) {
  if (const Result<void> routed = route(id); !routed) {
    co_return routed.error();
  }
  if (const Error wrong = not_on_core(); !(wrong == Errc::ok)) {
    co_return wrong;
  }
  if (rt::Core::current()->index() == id.core()) {
    co_return co_await send_here(id, std::move(frame), deadline);
  }
  auto send = [id, kept = std::move(frame), deadline] { return send_here(id, kept, deadline); };
  auto calling = runtime_.call(id.core(), std::move(send), deadline);
  co_return co_await calling;
}

rt::Task<Result<PublishOutcome>> Server::publish_wait(GroupId group, SharedFrame frame, Instant deadline) {
  if (const Error wrong = not_on_core(); !(wrong == Errc::ok)) {
    co_return wrong;
  }
  const std::uint16_t epoch = this->epoch();
  if (epoch == 0) {
    co_return kStoppedMeanwhile;
  }
  std::vector<rt::Task<Result<PublishOutcome>>> parts;
  presence_->for_each_core(
      group, [&](unsigned core) { parts.push_back(publish_on(&runtime_, core, epoch, group, frame, deadline)); });
  const std::vector<Result<PublishOutcome>> results = co_await rt::when_all(std::move(parts));
  if (const bool cancelled = co_await rt::is_cancelled(); cancelled) {
    co_return rt::kCancelled;
  }
  PublishOutcome sum;
  for (const Result<PublishOutcome>& part : results) {
    if (!part) {
      ++sum.cores_missed;
      sum.why = part.error();
      continue;
    }
    sum.taken += part->taken;
    sum.missed += part->missed;
    if (part->missed != 0) {
      sum.why = part->why == Errc::cancelled ? kNotReadInTime : part->why;  // the deadline of the call cancelled it
    }
  }
  co_return sum;
}

}  // namespace weft::serve
