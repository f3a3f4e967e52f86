// SPDX-License-Identifier: MIT
#include "weft/serve/session/shard.h"

#include <new>
#include <utility>

namespace weft::serve {

namespace {
// Calls use() with the exception's text.
template <typename Use>
void with_what(const std::exception_ptr& thrown, const Use& use) {
  try {
    std::rethrow_exception(thrown);
  } catch (const std::exception& exception) {
    use(exception.what());
  } catch (...) {
    use("an exception that is no std::exception");
  }
}

void write_record(const LogSink& log, const LogRecord& record) noexcept {
  try {
    log(record);
  } catch (...) {  // NOLINT(bugprone-empty-catch): a failing log ends no session
  }
}
}  // namespace

Shard::~Shard() {
  if (scratch_ != nullptr) {
    scratch_->release();
  }
}

MutableBytes Shard::scratch() noexcept {
  if (scratch_ == nullptr) {
    scratch_ = mem::Buffer::make(Session::kReadMax);
    if (scratch_ == nullptr) {
      return {};
    }
  }
  return {scratch_->data(), Session::kReadMax};
}

void Shard::open(const ServiceSlot& slot, std::unique_ptr<net::ByteStream> stream, net::Admission::Lease lease,
                 std::optional<Instant> accepted) {
  if (draining_) {
    return reject(Rejection::failed, peer_of(*stream), Error(Errc::terminated, "the server stops"));
  }
  if (!count_.take()) {
    return reject(Rejection::full, peer_of(*stream));
  }
  const auto place = sessions_.emplace();
  if (!place || place->slot() >= SessionId::kSlots) {
    if (place) {
      sessions_.erase(*place);
    }
    count_.give_back();
    return reject(Rejection::no_memory, peer_of(*stream));
  }
  Block& block = *sessions_.find(*place);
  block.session = slot.ops->make(block.place, *this, slot);
  block.session->record_.peer = peer_to_log(*stream);
  Result<void> started = Error(Errc::resource_exhausted, "no memory for a session");
  try {
    started = block.session->start(std::move(stream), SessionId::make(core_.index(), *place, epoch_), std::move(lease),
                                   accepted.value_or(loop().now()));
  } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): `started` has it
  }
  if (!started) {  // counted before its peer sees the end
    const std::string* const peer = block.session->record_.peer.get();
    reject(Rejection::no_memory, peer == nullptr ? std::string_view() : *peer, started.error());
    slot.ops->destroy(*block.session);
    sessions_.erase(*place);
    count_.give_back();
  }
}

// Once more when the line is empty, so that the next read has a whole share.
void Shard::serve_reads() noexcept {
  reads_.serve(loop().now(), [](Session& session) noexcept { session.read_in_line(); });
  if ((!reads_.empty() || reads_.crowded()) && !sessions_.empty()) {
    core_.at_turn_end(read_job_);
  }
}

Session* Shard::find(SessionId id) noexcept {
  if (id.epoch() != epoch_ || id.core() != core_.index()) {
    return nullptr;
  }
  Block* const block = sessions_.find(id.slot());
  return block == nullptr || block->session->state_ == Session::State::ended ? nullptr : block->session;
}

std::string Shard::peer_of(const net::ByteStream& stream) const noexcept {
  try {
    return log_ ? stream.peer_address() : std::string();
  } catch (const std::bad_alloc&) {
    return {};
  }
}

// Returns null if no log needs it, or if there is no memory.
std::unique_ptr<const std::string> Shard::peer_to_log(const net::ByteStream& stream) const noexcept {
  return log_ ? std::unique_ptr<const std::string>(new (std::nothrow) std::string(peer_of(stream))) : nullptr;
}

void Shard::finish(Session& session) noexcept {
  if (session.has_tasks()) [[unlikely]] {
    return session.release_all_but_tasks();  // the last coroutine lists the session, and this function runs again
  }
  const SlotId slot = session.id().slot();
  counters_.closed[static_cast<std::size_t>(session.record_.reason)].add();
  session.drop_queue();
  log_end(session);
  const ServiceSlot& service = session.slot_;
  try {
    if (session.clock_.begun()) {
      service.ops->closed(session, session.record_.why);
    }
  } catch (...) {
    note_exception(session, std::current_exception());  // the session ends in any case
  }
  session.clean_up();
  service.ops->destroy(session);
  sessions_.erase(slot);
  count_.give_back();
  if (sessions_.empty()) {
    read_job_.unhook();  // another thread may destroy the shard from now on
  }
  if (closing_ && sessions_.empty() && reserved_ == 0) {
    report_empty();
  }
}

bool Shard::reserve() noexcept {
  if (draining_) {
    return false;
  }
  ++reserved_;
  hold_drain();
  return true;
}

void Shard::release() noexcept {
  --reserved_;
  release_drain();
  if (closing_ && sessions_.empty() && reserved_ == 0) {
    report_empty();
  }
}

bool Shard::answer(SessionId id, SessionMove& move, bool granted) noexcept {
  Session* const session = find(id);
  return session != nullptr && session->answer_move(move, granted);
}

void Shard::depart(Session& session) noexcept {
  const SlotId slot = session.id().slot();
  const SessionOps& ops = *session.slot_.ops;
  SessionMove& move = *std::exchange(session.move_, nullptr);
  session.writing_.move_granted = false;
  std::shared_ptr<const void> codec;
  std::unique_ptr<ServiceData> state;
  bool whole = true;
  try {
    codec = ops.keep_codec(session);
    state = std::make_unique<ServiceData>();
  } catch (const std::bad_alloc&) {
    whole = false;
  }
  try {
    ops.closed(session, Error());
  } catch (...) {
    note_exception(session, std::current_exception());  // the connection goes on nevertheless
  }
  SessionRest rest = session.give_up();
  rest.codec = std::move(codec);
  rest.whole = rest.whole && whole;
  if (state != nullptr) {
    state->take_owned(session.state_of_service_);
    rest.state = std::move(state);
  }
  ops.destroy(session);
  sessions_.erase(slot);
  counters_.moves.add();
  if (sessions_.empty()) {
    read_job_.unhook();
  }
  move.carry(std::move(rest));
}

void Shard::arrive(const ServiceSlot& slot, SessionRest rest) noexcept {
  const auto place = sessions_.emplace();
  if (!place || place->slot() >= SessionId::kSlots) {
    if (place) {
      sessions_.erase(*place);
    }
    counters_.closed[static_cast<std::size_t>(CloseReason::out_of_memory)].add();
    count_.give_back();
    return release();
  }
  Block& block = *sessions_.find(*place);
  rest.id = SessionId::make(core_.index(), *place, epoch_);
  block.session = slot.ops->make(block.place, *this, slot);
  block.session->take_over(std::move(rest));
  if (draining_) {
    block.session->drain();
  }
  if (ended_) {
    block.session->end(CloseReason::server_stopped, Error(Errc::terminated, "the server stopped"));
  }
  release();
}

void Shard::replace(Session& session) noexcept {
  const SessionOps& ops = *session.slot_.ops;
  const ServiceSlot& next = *session.record_.successor;
  Block& block = *sessions_.find(session.id().slot());
  try {
    ops.closed(session, Error());
  } catch (...) {
    note_exception(session, std::current_exception());  // the connection goes on nevertheless
  }
  const bool held = std::exchange(session.writing_.holds_drain, false);
  SessionRest rest = session.give_up();
  ops.destroy(session);
  block.session = next.ops->make(block.place, *this, next);
  block.session->take_over(std::move(rest));
  if (draining_) {
    block.session->drain();
  }
  if (held) {
    release_drain();
  }
}

void Shard::reject(Rejection why, std::string_view peer, const Error& error) noexcept {
  counters_.rejected[static_cast<std::size_t>(why)].add();
  if (!log_) {
    return;
  }
  LogRecord record;
  record.time = std::chrono::system_clock::now();
  record.level = LogLevel::warning;
  record.event = LogEvent::connection_rejected;
  record.core = core_.index();
  record.peer = peer;
  record.reason = describe(why);
  record.error = error;
  write_record(log_, record);
}

void Shard::log_end(const Session& session) const noexcept {
  if (!log_) {
    return;
  }
  LogRecord record;
  record.time = std::chrono::system_clock::now();
  const SessionRecord& ended = session.record_;
  record.level = level_of(ended.reason);
  record.core = core_.index();
  record.session = session.id_;
  record.peer = ended.peer == nullptr ? std::string_view() : *ended.peer;
  record.reason = describe(ended.reason);
  record.error = ended.why;
  record.age = core_.loop().now() - session.clock_.accepted();
  record.counts = ended.counts;
  record.counts.frames_out += session.uncounted_.out;
  record.undelivered = ended.undelivered;
  write_record(log_, record);
}

void Shard::note_exception(const Session& session, const std::exception_ptr& thrown) const noexcept {
  const std::string* const peer = session.record_.peer.get();
  tell_exception(session.id_, peer == nullptr ? std::string_view() : *peer, thrown);
}

void Shard::tell_exception(SessionId id, std::string_view peer, const std::exception_ptr& thrown) const noexcept {
  if (!log_ && !on_exception_) {
    return;
  }
  try {
    with_what(thrown, [&](const char* what) {
      if (log_) {
        LogRecord record;
        record.time = std::chrono::system_clock::now();
        record.level = LogLevel::error;
        record.event = LogEvent::handler_threw;
        record.core = core_.index();
        record.session = id;
        record.peer = peer;
        record.reason = describe(CloseReason::service_failed);
        record.what = what;
        write_record(log_, record);
      }
      if (on_exception_) {
        on_exception_({core_.index(), id, what, thrown});
      }
    });
  } catch (...) {  // NOLINT(bugprone-empty-catch): a failing function of the program ends no session
  }
}

std::size_t Shard::publish(GroupId group, const SharedFrame& frame) {
  const Group* const found = groups_.find(group);
  if (found == nullptr) {
    return 0;
  }
  std::size_t taken = 0;
  for (const Group::Member& member : found->members) {  // no member leaves during this loop
    taken += member.session->send_shared(frame) ? 1 : 0;
  }
  return taken;
}

void Shard::end_slowest() noexcept {
  const Instant now = core_.loop().now();
  if (now < relief_due_) {
    return;
  }
  relief_due_ = now + kReliefEvery;
  Session* slowest = nullptr;
  for_each([&slowest](Session& session) {
    if (session.writing_.blocked && session.is_open() && (slowest == nullptr || session.queued() > slowest->queued())) {
      slowest = &session;
    }
  });
  if (slowest != nullptr) {
    slowest->end(CloseReason::slow_consumer,
                 Error(Errc::resource_exhausted, "memory was spent, and this peer left the most bytes unread"));
  }
}

void Shard::drain(std::function<void()> when_drained) {
  draining_ = true;
  when_drained_ = std::move(when_drained);
  hold_drain();  // until every session is asked
  for_each([](Session& session) { session.drain(); });
  release_drain();
}

void Shard::release_drain() noexcept {
  if (--undrained_ == 0 && when_drained_) {
    when_drained_();
  }
}

bool Shard::still_drained() {
  for_each([](Session& session) { session.drain_again(); });
  return undrained_ == 0;
}

void Shard::close_drained(std::function<void()> when_empty) {
  closing_ = true;
  when_drained_ = nullptr;
  when_empty_ = std::move(when_empty);
  for_each([](Session& session) { session.close_drained(); });
  if (sessions_.empty() && reserved_ == 0) {
    report_empty();
  }
}

std::size_t Shard::end_all() {
  std::size_t lost = 0;
  ended_ = true;
  for_each([&lost](Session& session) {
    lost += session.delivered_all() ? 0 : 1;
    session.end(CloseReason::server_stopped, Error(Errc::terminated, "the server stopped"));
  });
  return lost;
}

void Shard::abandon() noexcept {
  when_drained_ = nullptr;
  when_empty_ = nullptr;
  for_each([this](Session& session) {
    session.end(CloseReason::server_stopped, Error(Errc::terminated, "the server stopped"));
    finish(session);
  });
}

void Shard::report_empty() {
  if (auto when_empty = std::exchange(when_empty_, nullptr)) {
    when_empty();
  }
}

}  // namespace weft::serve
