// SPDX-License-Identifier: MIT
#include "weft/serve/web/body_stream.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "weft/rt/task/task_time.h"
#include "weft/serve/session/shard.h"
#include "weft/sys/files/file_tree.h"

namespace weft::serve::web {

namespace {

constexpr Error kTooLong(Errc::message_too_large, "a body is longer than its length says");
constexpr Error kBodyLate(Errc::timed_out, "no bytes of the body came for body_timeout");

}  // namespace

BodyReader::BodyReader(HttpSession& session, WebCounters& counts, Bytes whole) noexcept
    : session_(&session),
      counts_(&counts),
      loop_(session.shard().loop()),
      budget_(session.shard().budget()),
      part_timeout_(session.slot().limits.body_timeout),
      unread_(whole),
      reading_(true),
      ended_(true) {}

BodyReader::BodyReader(HttpSession& session, WebCounters& counts, Readers& readers, bool expects_continue)
    : session_(&session),
      continues_(expects_continue ? &session : nullptr),
      counts_(&counts),
      readers_(&readers),
      loop_(session.shard().loop()),
      budget_(session.shard().budget()),
      part_timeout_(session.slot().limits.body_timeout),
      rate_min_(session.codec().limits().streamed_rate_min) {
  readers.emplace(session.id().value, this);
  session.pause_reading();
}

BodyReader::BodyReader(Session& session, Duration part_timeout, Instant deadline) noexcept
    : session_(&session),
      loop_(session.shard().loop()),
      budget_(session.shard().budget()),
      part_timeout_(part_timeout),
      deadline_(deadline) {
  session.pause_reading();
}

BodyReader::~BodyReader() {
  release();
  if (readers_ != nullptr) {
    readers_->erase(session_->id().value);
  }
  leave(Error());
}

rt::Task<Result<Bytes>> BodyReader::read() {
  while (unread_.empty()) {
    release();
    if (late_) {
      co_return kBodyLate;
    }
    if (ended_) {
      co_return Bytes();
    }
    if (session_ == nullptr) {
      co_return left_;
    }
    if (const auto told = send_continue(); !told) {
      co_return told.error();
    }
    const Instant now = loop_.now();
    const Instant due = std::min(deadline_after(now, patience()), deadline_);
    rt::Task<Result<void>> waiting = wait();  // before a change that an exception would leave half made
    arrived_.reset();
    reading_ = true;
    session_->resume_reading();
    const Result<void> waited = co_await rt::with_timeout(std::move(waiting), time_left(due, now));
    waited_ += loop_.now() - now;
    stop_reading();
    if (waited.error() == Errc::timed_out) {
      late_ = unread_.empty() && !ended_;
    } else if (!waited) {
      co_return waited.error();
    }
  }
  co_return std::exchange(unread_, {});
}

// The time for the next part. A peer that sends a byte now and then may not hold its connection for ever: the waits of
// a body have together as much time as its bytes take at the smallest rate. The handler's own time does not count.
Duration BodyReader::patience() const noexcept {
  if (part_timeout_ < Duration::zero() || rate_min_ == 0) {
    return part_timeout_;
  }
  const Duration earned = std::chrono::seconds(received_ / rate_min_) +
                          std::chrono::nanoseconds(received_ % rate_min_ * 1'000'000'000 / rate_min_);
  return std::clamp(part_timeout_ + earned - waited_, Duration::zero(), part_timeout_);
}

Result<void> BodyReader::send_continue() {
  HttpSession* const session = std::exchange(continues_, nullptr);
  return session == nullptr ? Result<void>() : web::send_continue(*session, *counts_);
}

void BodyReader::note_answer() {
  answered_ = true;
  (void)send_continue();
}

void BodyReader::leave(const Error& why) noexcept {
  Session* const session = std::exchange(session_, nullptr);
  left_ = why;
  if (session != nullptr && !std::exchange(reading_, true)) {
    session->resume_reading();
  }
  arrived_.set();
}

rt::Task<Result<void>> BodyReader::wait() { co_return co_await arrived_.wait(); }

rt::Task<Result<std::string>> BodyReader::read_rest(std::size_t most) {
  std::string rest;
  for (;;) {
    const Result<Bytes> part = co_await read();
    if (!part) {
      co_return part.error();
    }
    if (part->empty()) {
      co_return rest;
    }
    if (part->size() > most - rest.size()) {
      co_return Error(Errc::message_too_large, "a body has more bytes than read_rest() may take");
    }
    rest.append(as_text(*part));
  }
}

// A part that was read gives its memory back.
void BodyReader::release() noexcept {
  if (!part_.empty()) {
    budget_.give_back(part_.size());
    part_ = std::string();  // `{}` would keep its memory
  }
  unread_ = {};
}

void BodyReader::stop_reading() noexcept {
  if (std::exchange(reading_, false) && session_ != nullptr) {
    session_->pause_reading();
  }
}

void BodyReader::deliver(Bytes part, bool last) {
  if (!part.empty()) {
    if (!reading_ || !budget_.take(part.size())) {
      return session_->abort(CloseReason::out_of_memory, Error(Errc::resource_exhausted, "no memory for a body"));
    }
    try {
      part_ = as_text(part);
    } catch (...) {
      budget_.give_back(part.size());
      throw;
    }
    unread_ = as_bytes(part_);
  } else if (!last) {
    return;
  }
  received_ += part.size();
  ended_ = last;
  stop_reading();
  arrived_.set();
}

BodyWriter::BodyWriter(HttpSession& session, BodyFraming framing, std::uint64_t length) noexcept
    : BodyWriter(
          session,
          [](Session& to, bool after_chunk, Bytes chunk) {
            ResponseHead head;
            head.part = chunk.empty() ? ResponsePart::end : ResponsePart::chunk;
            head.after_chunk = after_chunk;
            return static_cast<HttpSession&>(to).send(head, chunk);
          },
          framing, length) {}

rt::Task<Result<void>> BodyWriter::write(Bytes bytes) {
  if (framing_ == BodyFraming::length && bytes.size() > rest_) {
    co_return kTooLong;
  }
  if (!(failed_ == Errc::ok)) {
    co_return failed_;
  }
  while (!bytes.empty()) {
    if (const auto waited = co_await wait_for_room(); !waited) {
      co_return fail(waited.error());
    }
    const Bytes piece = bytes.first(std::min(bytes.size(), kPieceMax));
    if (const auto sent = send(piece); !sent) {
      co_return fail(sent.error());
    }
    bytes = bytes.subspan(piece.size());
  }
  co_return Result<void>();
}

rt::Task<Result<void>> BodyWriter::send_file(int file, std::uint64_t offset, std::uint64_t size) {
  if (framing_ == BodyFraming::length && size > rest_) {
    co_return kTooLong;
  }
  if (!(failed_ == Errc::ok)) {
    co_return failed_;
  }
  while (size != 0 && framing_ == BodyFraming::length) {
    if (const auto waited = co_await wait_for_room(); !waited) {
      co_return fail(waited.error());
    }
    const Result<std::size_t> taken =
        session_.write_file(file, offset, static_cast<std::size_t>(std::min<std::uint64_t>(size, kTurnMax)));
    if (taken.error() == Errc::not_supported) {
      break;
    }
    if (!taken) {
      co_return fail(taken.error());
    }
    if (*taken == 0) {
      in_turn_ = 0;
      if (const Result<void> waited = co_await session_.written().wait(); !waited) {
        co_return fail(waited.error());
      }
    }
    in_turn_ += *taken;
    offset += *taken;
    size -= *taken;
    rest_ -= *taken;
  }
  co_return co_await copy_file(file, offset, size);
}

rt::Task<Result<void>> BodyWriter::copy_file(int file, std::uint64_t offset, std::uint64_t size) {
  std::vector<std::uint8_t> room(static_cast<std::size_t>(std::min<std::uint64_t>(size, kPieceMax)));
  while (size != 0) {
    const MutableBytes into = MutableBytes(room).first(std::min<std::size_t>(room.size(), size));
    const Result<std::size_t> read = sys::read_file_at(file, offset, into);
    if (!read || *read != into.size()) {
      co_return fail(read ? Error(Errc::invalid_state, "the file is shorter than it was") : read.error());
    }
    if (const auto sent = co_await write(Bytes(into)); !sent) {
      co_return sent.error();
    }
    offset += into.size();
    size -= into.size();
  }
  co_return Result<void>();
}

rt::Task<Result<void>> BodyWriter::wait_for_room() {
  const std::size_t most = std::min(kQueuedMax, session_.slot().limits.write_budget / 4);
  while (session_.queued() > most) {
    in_turn_ = 0;
    if (const Result<void> waited = co_await session_.written().wait(); !waited) {
      co_return waited.error();
    }
  }
  if (in_turn_ >= kTurnMax) {
    in_turn_ = 0;
    co_return co_await rt::yield();
  }
  co_return Result<void>();
}

Result<void> BodyWriter::send(Bytes piece) {
  in_turn_ += piece.size();
  if (framing_ != BodyFraming::chunks) {
    WEFT_TRY(session_.send_bytes(piece));
    rest_ -= framing_ == BodyFraming::length ? piece.size() : 0;
    return {};
  }
  WEFT_TRY(send_chunk_(session_, after_chunk_, piece));
  after_chunk_ = true;
  return {};
}

Error BodyWriter::fail(const Error& why) noexcept {
  if (failed_ == Errc::ok) {
    failed_ = why;
  }
  return why;
}

Result<void> BodyWriter::end() {
  if (!(failed_ == Errc::ok)) {
    return failed_;
  }
  if (framing_ == BodyFraming::length) {
    return rest_ == 0 ? Result<void>() : Error(Errc::invalid_state, "a body is shorter than its length says");
  }
  if (framing_ == BodyFraming::connection) {
    return {};
  }
  return send_chunk_(session_, after_chunk_, {});
}

}  // namespace weft::serve::web
