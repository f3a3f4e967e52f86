// SPDX-License-Identifier: MIT
#include "weft/serve/client/dial.h"

#include <exception>
#include <utility>

#include "weft/rt/task/task_time.h"
#include "weft/serve/session/shard.h"
#include "weft/sys/call.h"

namespace weft::serve {

namespace {

// Lets a coroutine wait for a descriptor. Edge-triggered; unwatched in the destructor.
class WatchedFd final : private rt::Watcher {
 public:
  explicit WatchedFd(rt::Loop& loop) noexcept : loop_(loop) {}
  WatchedFd(const WatchedFd&) = delete;
  WatchedFd& operator=(const WatchedFd&) = delete;
  ~WatchedFd() { loop_.unwatch(watch_); }

  [[nodiscard]] Result<void> watch(int fd, sys::Interest interest) {
    watch_ = WEFT_TRY(loop_.watch(fd, interest, true, this));
    return {};
  }
  rt::AsyncEvent& ready() noexcept { return ready_; }

 private:
  void handle_event(const sys::PollEvent& /*event*/) override { ready_.set(); }

  rt::Loop& loop_;
  rt::Loop::WatchId watch_ = 0;
  rt::AsyncEvent ready_;
};

}  // namespace

// The event is shared: the loop's mailbox may still hold the wake-up when the look-up was given up.
Dialling::Dialling(rt::Loop& loop, net::Endpoint endpoint, const sys::SocketOptions& options, net::Resolver* resolver)
    : loop_(loop), resolved_(std::make_shared<rt::AsyncEvent>()), dialer_(std::move(endpoint), options, resolver) {
  dialer_.on_resolved([&loop, resolved = resolved_] {  // runs on a thread of the resolver; not after the dialer's end
    try {
      loop.post([resolved] { resolved->set(); });
    } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): no memory; the caller has a deadline
    }
  });
}

rt::Task<Result<void>> Dialling::look_up(Dialling* self) {
  if (const bool cancelled = co_await rt::is_cancelled(); cancelled) {
    co_return rt::kCancelled;
  }
  self->progress_ = self->dialer_.begin();
  while (self->progress_ && *self->progress_ == net::Progress::resolving) {
    const Result<void> waited = co_await self->resolved_->wait();
    if (!waited) {
      co_return waited.error();
    }
    self->progress_ = self->dialer_.finish();
  }
  co_return self->progress_ ? Result<void>() : self->progress_.error();
}

rt::Task<Result<std::unique_ptr<net::ByteStream>>> Dialling::connect(Dialling* self) {
  while (self->progress_ && *self->progress_ != net::Progress::connected) {
    Result<void> waited;
    {  // finish() may close the descriptor, and another thread may get its number
      WatchedFd watched(self->loop_);
      waited = watched.watch(self->dialer_.fd(), self->dialer_.interest());
      if (waited) {
        waited = co_await watched.ready().wait();
      }
    }
    if (!waited) {
      co_return waited.error();
    }
    self->progress_ = self->dialer_.finish();
  }
  if (!self->progress_) {
    co_return self->progress_.error();
  }
  co_return self->dialer_.take_stream();
}

rt::Task<Result<std::unique_ptr<net::ByteStream>>> shake_hands(Shard& shard, std::unique_ptr<net::ByteStream> stream) {
  WatchedFd watched(shard.loop());
  Result<void> waited = watched.watch(stream->fd(), sys::Interest::readable | sys::Interest::writable);
  while (waited) {
    if (shard.defers_handshake()) {
      waited = co_await rt::yield();
      continue;
    }
    watched.ready().reset();
    sys::IoResult result = stream->read({});
    const bool cut = result.cut;
    if (result.status != sys::IoResult::Status::failed && stream->state().unsent) {
      result = stream->write({});
    }
    const net::StreamState state = stream->state();
    if (result.status == sys::IoResult::Status::failed) {
      co_return state.failure == Errc::ok ? sys::make_error(result.os_errno, "the connection failed") : state.failure;
    }
    if (result.status == sys::IoResult::Status::end_of_stream) {
      co_return Error(Errc::connection_closed, "the peer closed in the middle of the handshake");
    }
    if (state.established && !state.unsent) {
      co_return std::move(stream);
    }
    if (cut) {
      waited = co_await rt::yield();
    } else {
      waited = co_await watched.ready().wait();
    }
  }
  co_return waited.error();
}

}  // namespace weft::serve
