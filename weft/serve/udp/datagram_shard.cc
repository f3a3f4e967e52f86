// SPDX-License-Identifier: MIT
#include "weft/serve/udp/datagram_shard.h"

#include <bit>
#include <new>
#include <span>
#include <utility>

#include "weft/sys/poller.h"

namespace weft::serve {
namespace {

// A second's number may come at once.
net::RateLimit rate_of(std::uint32_t per_second) noexcept { return {per_second, per_second}; }

sync::Counter& counter_of(DatagramCounts& counts, DatagramEnd why) noexcept {
  switch (why) {
    case DatagramEnd::peer_closed: return counts.peer_closed;
    case DatagramEnd::replaced: return counts.replaced;
    case DatagramEnd::idle: return counts.idle;
    case DatagramEnd::by_service: return counts.by_service;
    case DatagramEnd::service_failed: return counts.service_failed;
    case DatagramEnd::server_stopped: return counts.server_stopped;
  }
  return counts.service_failed;
}

}  // namespace

Result<void> DatagramSession::send(Bytes payload) {
  return open_ ? shard_.send(*this, payload) : Error(Errc::closed, "the session has ended");
}

void DatagramSession::close() {
  if (open_) {
    shard_.end(*this, DatagramEnd::by_service);
  }
}

DatagramShard::DatagramShard(rt::Core& core, std::shared_ptr<DatagramCommon> common, sys::Fd fd, DatagramCalls calls)
    : core_(core),
      common_(std::move(common)),
      options_(common_->options),
      session_rate_(rate_of(options_.datagrams_per_second)),
      answer_rate_(rate_of(options_.answers_per_second)),
      counts_(common_->counts[core.index()]),
      fd_(std::move(fd)),
      calls_(std::move(calls)),
      sessions_(0, Hash{common_->table_key}),
      in_(sys::kMaxDatagrams * options_.datagram_max),
      out_(sys::kMaxDatagrams * options_.datagram_max),
      turn_end_(*this,
                [](rt::TurnJob& job) noexcept {
                  DatagramShard& shard = static_cast<TurnEnd&>(job).owner;
                  shard.flush();
                  shard.ended_.clear();
                }),
      core_end_(*this, [](rt::TurnJob& job) noexcept { static_cast<TurnEnd&>(job).owner.stop(); }) {}

DatagramShard::~DatagramShard() { stop(); }

Result<void> DatagramShard::start() {
  watch_ = WEFT_TRY(core_.loop().watch(fd_.fd(), sys::Interest::readable, false, this));
  core_.at_end(core_end_);
  return {};
}

void DatagramShard::stop() noexcept {
  if (watch_ == 0) {
    return;
  }
  core_.loop().unwatch(std::exchange(watch_, 0));
  while (!by_silence_.empty()) {
    end(by_silence_.front(), DatagramEnd::server_stopped);
  }
  flush();
  if (timer_) {
    core_.loop().timers().cancel(std::exchange(timer_, {}));
  }
  core_end_.unhook();
  turn_end_.unhook();  // the shard may end in another thread from now on
  ended_.clear();
  fd_ = sys::Fd();
}

void DatagramShard::handle_event(const sys::PollEvent& /*event*/) {
  std::array<sys::IncomingDatagram, sys::kMaxDatagrams> batch;
  for (int round = 0; round < kBatches && watch_ != 0; ++round) {
    for (std::size_t i = 0; i < batch.size(); ++i) {
      batch[i] = {};
      batch[i].room = MutableBytes(in_).subspan(i * options_.datagram_max, options_.datagram_max);
    }
    batch[0].overflow = overflow_;
    const sys::DatagramResult got = sys::receive_datagrams(fd_.fd(), batch, true);
    if (got.count == 0) {
      return;  // no datagram, or an error that this call has taken away; the poller reports the rest
    }
    counts_.in.add(got.count);
    counts_.receive_buffer.add(batch[got.count - 1].overflow - overflow_);
    overflow_ = batch[got.count - 1].overflow;
    for (const sys::IncomingDatagram& one : std::span(batch).first(got.count)) {
      if (one.cut) {
        counts_.oversize.add();
      } else if (const auto datagram = parse_datagram(one.room.first(one.size)); !datagram || !one.from.is_ip()) {
        counts_.malformed.add();
      } else if (watch_ != 0) {  // a service may have stopped the shard
        handle(one.from, *datagram);
      }
    }
    if (got.count < batch.size()) {
      return;
    }
  }
}

void DatagramShard::handle(const sys::SocketAddress& from, const ParsedDatagram& datagram) {
  switch (datagram.kind) {
    case DatagramKind::hello:
      if (may_answer()) {
        counts_.challenges.add();
        queue(from, DatagramKind::challenge, common_->cookies.make(from, core_.loop().now()), {});
      }
      return;
    case DatagramKind::open: handle_open(from, datagram.cookie); return;
    case DatagramKind::data: handle_data(from, datagram); return;
    case DatagramKind::close: {
      DatagramSession* const session = find(from);
      if (session == nullptr) {
        counts_.strays.add();
      } else if (session->cookie_ != datagram.cookie) {
        counts_.wrong_cookie.add();
      } else {
        end(*session, DatagramEnd::peer_closed);
      }
      return;
    }
    case DatagramKind::challenge:
    case DatagramKind::opened: counts_.malformed.add(); return;
  }
}

void DatagramShard::handle_open(const sys::SocketAddress& from, std::uint64_t cookie) {
  const Instant now = core_.loop().now();
  DatagramSession* const before = find(from);
  if (before != nullptr && before->cookie_ == cookie) {
    note_heard(*before, now);
    if (before->rate_.try_take(session_rate_, now)) {
      queue(from, DatagramKind::opened, cookie, {});  // the first one was lost, or the client keeps alive
    } else {
      counts_.over_rate.add();
    }
    return;
  }
  if (!common_->cookies.valid(cookie, from, now)) {
    if (may_answer()) {
      counts_.wrong_cookie.add();
      queue(from, DatagramKind::close, cookie, {});  // of another start of the server, or too old
    }
    return;
  }
  if (before != nullptr) {
    end(*before, DatagramEnd::replaced);
  }
  if (sessions_.size() >= options_.sessions_max) {
    counts_.refused_full.add();
    queue(from, DatagramKind::close, cookie, {});
    return;
  }
  auto lease = common_->admission->admit(from, now);
  if (!lease) {
    counts_.refused_address.add();
    queue(from, DatagramKind::close, cookie, {});
    return;
  }
  DatagramSession* session = nullptr;
  try {
    auto made = std::make_unique<DatagramSession>(*this, from, cookie, next_id_, std::move(*lease));
    ended_.reserve(std::bit_ceil(ended_.size() + sessions_.size() + 1));  // end() does not allocate
    session = made.get();
    sessions_.emplace(from, std::move(made));
  } catch (const std::bad_alloc&) {
    counts_.refused_full.add();
    queue(from, DatagramKind::close, cookie, {});
    return;
  }
  ++next_id_;
  session->heard_ = now;
  by_silence_.push_back(*session);
  counts_.opened.add();
  counts_.sessions.add();
  if (!timer_) {
    arm(now + options_.idle_timeout);
  }
  queue(from, DatagramKind::opened, cookie, {});
  try {
    calls_.opened(calls_.service.get(), *session);
  } catch (...) {
    end(*session, DatagramEnd::service_failed);
  }
}

void DatagramShard::handle_data(const sys::SocketAddress& from, const ParsedDatagram& datagram) {
  DatagramSession* const session = find(from);
  if (session == nullptr) {
    if (may_answer()) {
      counts_.strays.add();
      queue(from, DatagramKind::close, datagram.cookie, {});
    }
    return;
  }
  if (session->cookie_ != datagram.cookie) {
    counts_.wrong_cookie.add();
    return;
  }
  const Instant now = core_.loop().now();
  note_heard(*session, now);
  if (!session->rate_.try_take(session_rate_, now)) {
    counts_.over_rate.add();
    return;
  }
  try {
    calls_.datagram(calls_.service.get(), *session, datagram.payload);
  } catch (...) {
    end(*session, DatagramEnd::service_failed);
  }
}

void DatagramShard::note_heard(DatagramSession& session, Instant now) noexcept {
  session.heard_ = now;
  session.unhook();
  by_silence_.push_back(session);
}

DatagramSession* DatagramShard::find(const sys::SocketAddress& from) noexcept {
  const auto at = sessions_.find(from);
  return at == sessions_.end() ? nullptr : at->second.get();
}

bool DatagramShard::may_answer() noexcept {
  if (answers_.try_take(answer_rate_, core_.loop().now())) {
    return true;
  }
  counts_.unanswered.add();
  return false;
}

Result<void> DatagramShard::send(DatagramSession& session, Bytes payload) {
  if (payload.size() > options_.datagram_max - kDatagramHeader) {
    return Error(Errc::message_too_large, "the datagram is longer than datagram_max");
  }
  queue(session.address_, DatagramKind::data, session.cookie_, payload);
  return {};
}

void DatagramShard::end(DatagramSession& session, DatagramEnd why) noexcept {
  if (!session.open_) {
    return;
  }
  session.open_ = false;
  session.unhook();
  const auto at = sessions_.find(session.address_);
  ended_.push_back(std::move(at->second));  // has room, see handle_open()
  sessions_.erase(at);
  core_.at_turn_end(turn_end_);
  counts_.sessions.subtract();
  counter_of(counts_, why).add();
  session.lease_.end();
  if (why != DatagramEnd::peer_closed && why != DatagramEnd::replaced) {
    queue(session.address_, DatagramKind::close, session.cookie_, {});
  }
  try {
    calls_.closed(calls_.service.get(), session, why);
  } catch (...) {
    counts_.close_threw.add();
  }
}

void DatagramShard::queue(const sys::SocketAddress& to, DatagramKind kind, std::uint64_t cookie,
                          Bytes payload) noexcept {
  if (queued_ == sys::kMaxDatagrams) {
    flush();
  }
  std::uint8_t* const place = out_.data() + queued_ * options_.datagram_max;
  write_datagram_header(place, kind, cookie);
  copy_bytes(place + kDatagramHeader, payload);
  to_[queued_] = to;
  sizes_[queued_] = kDatagramHeader + payload.size();
  ++queued_;
  core_.at_turn_end(turn_end_);
}

void DatagramShard::flush() noexcept {
  std::array<sys::OutgoingDatagram, sys::kMaxDatagrams> batch;
  for (std::size_t i = 0; i < queued_; ++i) {
    batch[i].address = to_[i].raw();
    batch[i].address_size = to_[i].raw_size();
    batch[i].parts[0] = Bytes(out_).subspan(i * options_.datagram_max, sizes_[i]);
  }
  for (std::size_t at = 0; at < queued_;) {
    const sys::DatagramResult sent = sys::send_datagrams(fd_.fd(), std::span(batch).subspan(at, queued_ - at));
    counts_.out.add(sent.count);
    at += sent.count;
    if (sent.count == 0) {
      if (sys::would_block(sent.os_errno)) {
        counts_.send_buffer.add(queued_ - at);
        break;
      }
      counts_.send_failed.add();
      ++at;
    }
  }
  queued_ = 0;
}

void DatagramShard::arm(Instant at) noexcept {
  timer_ =
      core_.loop().timers().schedule(at, {[](void* shard) { static_cast<DatagramShard*>(shard)->end_idle(); }, this});
}

void DatagramShard::end_idle() noexcept {
  timer_ = {};
  const Instant now = core_.loop().now();
  while (!by_silence_.empty() && by_silence_.front().heard_ + options_.idle_timeout <= now) {
    end(by_silence_.front(), DatagramEnd::idle);
  }
  if (!by_silence_.empty() && watch_ != 0) {
    arm(by_silence_.front().heard_ + options_.idle_timeout);
  }
}

}  // namespace weft::serve
