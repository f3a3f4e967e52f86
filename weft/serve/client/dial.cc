// SPDX-License-Identifier: MIT
#include "weft/serve/client/dial.h"

#include <exception>
#include <utility>

#include "weft/net/dialer.h"
#include "weft/rt/task/async_event.h"
#include "weft/rt/task/task_time.h"
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

rt::Task<Result<std::unique_ptr<net::Stream>>> dial(rt::Loop& loop, net::Endpoint endpoint, sys::SocketOptions options,
                                                    net::Resolver* resolver) {
  if (const bool cancelled = co_await rt::is_cancelled(); cancelled) {
    co_return rt::kCancelled;
  }
  // The event is shared: the loop's mailbox may still hold the wake-up when this coroutine has ended.
  const auto resolved = std::make_shared<rt::AsyncEvent>();
  net::Dialer dialer(std::move(endpoint), options, resolver);
  dialer.on_resolved([&loop, resolved] {  // runs on a thread of the resolver; not after the dialer's end
    try {
      loop.post([resolved] { resolved->set(); });
    } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): no memory; the caller has a deadline
    }
  });
  auto progress = dialer.begin();
  while (progress && *progress != net::Progress::connected) {
    Result<void> waited;
    if (*progress == net::Progress::resolving) {
      waited = co_await resolved->wait();
    } else {
      WatchedFd watched(loop);
      waited = watched.watch(dialer.fd(), dialer.interest());
      if (waited) {
        waited = co_await watched.ready().wait();
      }
    }
    if (!waited) {
      co_return waited.error();
    }
    progress = dialer.finish();
  }
  if (!progress) {
    co_return progress.error();
  }
  co_return dialer.take_stream();
}

rt::Task<Result<std::unique_ptr<net::Stream>>> shake_hands(rt::Loop& loop, std::unique_ptr<net::Stream> stream) {
  WatchedFd watched(loop);
  Result<void> waited = watched.watch(stream->fd(), sys::Interest::readable | sys::Interest::writable);
  while (waited) {
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
