// SPDX-License-Identifier: MIT
#include "weft/serve/web_client/http_exchange.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "weft/rt/task/task_time.h"
#include "weft/serve/session/shard.h"
#include "weft/serve/web_client/http_pool.h"

namespace weft::serve::web {

namespace {

constexpr std::size_t kJoinedMax = 16 * 1024;  // bytes of a body that is sent in one piece with its head
constexpr Error kLinkEnded(Errc::connection_closed, "the connection ended before the request was sent");
constexpr Error kAnswerGivenUp(Errc::closed, "the client gave the answer up");
constexpr Error kNoMemoryForAnswer(Errc::resource_exhausted, "no memory for the body of an answer");
constexpr Error kHeadLate(Errc::timed_out, "the head of the answer did not come within head_timeout");
constexpr Error kAnswerLate(Errc::timed_out, "no bytes of the answer's body came for body_timeout");
constexpr Error kUploadLate(Errc::timed_out, "the server took no bytes of the request for body_timeout");
constexpr Error kDeadline(Errc::timed_out, "the deadline of the request passed");

Result<void> send_chunk_of_request(Session& session, bool after_chunk, Bytes chunk) {
  return static_cast<AnswerSession&>(session).send(ChunkHeader{after_chunk}, chunk);
}

}  // namespace

namespace {

// Writes a whole body piece by piece, so that it is not queued at once.
Response::Produce write_whole(std::string body) {
  return [body = std::move(body)](BodyWriter& out) { return out.write(std::string_view(body)); };
}

}  // namespace

// The body of a request that a coroutine of the session writes. It may outlive the exchange.
struct HttpExchange::Upload {
  Response::Produce produce;
  std::optional<std::uint64_t> length;
  HttpExchange* exchange;  // null: it has ended
};

HttpExchange::HttpExchange(std::shared_ptr<HttpPool> pool, std::shared_ptr<HttpLink> link) noexcept
    : pool_(std::move(pool)), link_(std::move(link)), reused_(link_->served != 0) {
  pool_->note_exchange(1);
}

HttpExchange::~HttpExchange() {
  if (reader_ && reader_->late()) {
    pool_->counts().late_body.add();
  }
  reader_.reset();
  const std::shared_ptr<HttpLink> link = link_;
  detach();
  pool_->give_back(body_.size());
  if (link != nullptr && !failed_) {
    if (sent_) {
      pool_->counts().given_up.add();
    }
    if (link->session != nullptr && sent_) {
      link->session->abort(CloseReason::service, kAnswerGivenUp);
    } else {
      pool_->release(link);
    }
  }
  leave_pool();
}

// The pool waits for it no longer: the answer came whole, or failed, or its object has gone.
void HttpExchange::leave_pool() noexcept {
  if (std::exchange(counted_, false)) {
    pool_->note_exchange(-1);
  }
}

void HttpExchange::detach() noexcept {
  if (link_ != nullptr && link_->exchange == this) {
    link_->exchange = nullptr;
  }
  if (upload_ != nullptr) {
    upload_->exchange = nullptr;
  }
  link_.reset();
}

// --- the request ---

Result<void> HttpExchange::begin(const ClientRequest& request, const net::http::Url& url, bool whole) {
  if (!link_->is_open()) {
    return kLinkEnded;
  }
  AnswerSession& session = *link_->answers();
  const AnswerLimits& limits = pool_->options().limits;
  whole_ = whole;
  deadline_ = request.deadline();
  std::string text = request.head_text(url.target, url.authority());
  const bool joined = request.body().size() <= kJoinedMax;
  if (joined) {
    text.append(request.body());
  }
  session.codec().begin(request.method() == "HEAD", false, whole ? limits.body_max : limits.streamed_max);
  sent_ = true;  // from now on the connection is not one for another request
  link_->exchange = this;
  WEFT_TRY(session.send_bytes(as_bytes(text)));
  pool_->counts().sent.add();
  if (request.producer()) {
    return start_upload(session, {request.producer(), request.length(), this});
  }
  return joined ? Result<void>() : start_upload(session, {write_whole(request.body()), request.body().size(), this});
}

Result<void> HttpExchange::start_upload(AnswerSession& session, Upload upload) {
  upload_ = std::make_shared<Upload>(std::move(upload));
  return session.spawn(run_upload(&session, upload_));
}

rt::Task<void> HttpExchange::run_upload(AnswerSession* session, std::shared_ptr<Upload> upload) {
  const BodyFraming framing = upload->length ? BodyFraming::length : BodyFraming::chunks;
  BodyWriter writer(*session, send_chunk_of_request, framing, upload->length.value_or(0));
  Result<void> outcome = Error(Errc::job_threw, "the coroutine that writes the body of the request threw");
  try {
    outcome = co_await upload->produce(writer);
  } catch (...) {
    session->note_exception(std::current_exception());
  }
  if (outcome) {
    outcome = writer.end();
  }
  if (upload->exchange != nullptr) {
    upload->exchange->end_upload(outcome);
  }
  if (!outcome && session->takes_frames()) {
    session->abort(CloseReason::service_failed, outcome.error());
  }
}

void HttpExchange::end_upload(const Result<void>& outcome) noexcept {
  upload_->exchange = nullptr;
  upload_.reset();
  // A connection that failed ends by itself, after an answer that may have come before.
  if (!outcome && link_->is_open() && link_->session->takes_frames()) {
    fail(outcome.error(), true);
  }
  changed_.pulse();
}

// --- the answer ---

rt::Task<Result<void>> HttpExchange::wait_changed() { co_return co_await changed_.wait(); }

rt::Task<Result<void>> HttpExchange::wait(Instant deadline) {
  const HttpClientOptions& options = pool_->options();
  Instant head_due = kNever;
  while (!is_done()) {
    const Instant now = pool_->now();
    const bool uploading = uploads();
    Instant due = deadline_after(now, options.body_timeout);
    if (status_ == 0 && !uploading) {
      head_due = head_due == kNever ? deadline_after(now, options.head_timeout) : head_due;
      due = head_due;
    }
    const std::uint64_t written = link_->session->counts().bytes_out;
    rt::Task<Result<void>> waiting = wait_changed();
    const Result<void> waited = co_await rt::with_timeout(std::move(waiting), time_left(std::min(due, deadline), now));
    if (waited || is_done()) {
      continue;
    }
    const bool at_deadline = deadline <= due;
    const bool progressed = uploading && (!uploads() || link_->session->counts().bytes_out != written);
    if (waited.error() != Errc::timed_out || at_deadline || !progressed) {
      co_return give_up(waited.error(), at_deadline);
    }
  }
  co_return failed_ ? Result<void>(failure_) : Result<void>();
}

// The error of a wait that ended before the answer.
Error HttpExchange::give_up(const Error& waited, bool at_deadline) noexcept {
  const Fate fate = status_ == 0 ? Fate::outcome_unknown : Fate::answered;
  HttpClientCounts& counts = pool_->counts();
  if (!(waited == Errc::timed_out)) {
    return waited.with_fate(fate);
  }
  if (at_deadline) {
    counts.late_total.add();
    return kDeadline.with_fate(fate);
  }
  if (status_ == 0 && !uploads()) {
    counts.late_head.add();
    return kHeadLate.with_fate(fate);
  }
  counts.late_body.add();
  return (status_ == 0 ? kUploadLate : kAnswerLate).with_fate(fate);
}

void HttpExchange::take_head(AnswerSession& session, const AnswerHeader& header) {
  head_.assign(header.text.begin(), header.text.end());
  status_ = header.head.status;
  counter_of_answer(pool_->counts(), status_).add();
  if (!whole_) {
    reader_.emplace(session, pool_->options().body_timeout, deadline_);
  }
  changed_.pulse();  // from now on body_timeout counts
}

void HttpExchange::take_piece(AnswerSession& session, Bytes piece, bool last) {
  if (reader_) {
    return reader_->deliver(piece, last);
  }
  if (piece.empty()) {
    return;
  }
  if (!session.shard().budget().take(piece.size())) {
    pool_->counts().no_memory.add();
    fail(kNoMemoryForAnswer, true);
    return session.abort(CloseReason::out_of_memory, kNoMemoryForAnswer);
  }
  try {
    body_.append(as_text(piece));
  } catch (...) {
    session.shard().budget().give_back(piece.size());
    throw;
  }
  changed_.pulse();
}

std::string HttpExchange::take_body() noexcept {
  pool_->give_back(body_.size());
  return std::exchange(body_, std::string());
}

bool HttpExchange::finish(const AnswerSession& session) noexcept {
  const bool clean = upload_ == nullptr && session.queued() == 0 && session.takes_frames();
  ended_ = true;
  if (reader_) {
    reader_->leave(Error());
  }
  detach();
  changed_.pulse();
  leave_pool();
  return clean;
}

void HttpExchange::fail(const Error& why, bool heard, bool answered) noexcept {
  if (failed_ || ended_) {
    return;
  }
  failed_ = true;
  unheard_ = !heard;
  failure_ = why.with_fate(status_ == 0 && !answered ? Fate::outcome_unknown : Fate::answered);
  if (reader_) {
    reader_->leave(failure_);
  }
  detach();
  changed_.pulse();
  leave_pool();
}

}  // namespace weft::serve::web
