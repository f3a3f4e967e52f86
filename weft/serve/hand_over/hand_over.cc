// SPDX-License-Identifier: MIT
#include "weft/serve/hand_over/hand_over.h"

#include <array>
#include <exception>
#include <utility>

#include "weft/serve/hand_over/hand_over_wire.h"
#include "weft/sys/clock.h"
#include "weft/sys/linux/descriptors.h"
#include "weft/sys/poll.h"
#include "weft/sys/socket.h"

namespace weft::serve {

namespace {
constexpr Duration kAcceptPause = std::chrono::milliseconds(100);
}  // namespace

Result<std::unique_ptr<HandOver>> HandOver::open(Server& server, const std::string& path, HandOverOptions options) {
  sys::EventFd ends = WEFT_TRY(sys::EventFd::make());
  std::unique_ptr<HandOver> made(new HandOver(server, path, std::move(options), std::move(ends)));
  made->listener_ = WEFT_TRY(sys::open_in_place(path));
  made->identity_ = WEFT_TRY(sys::identify_file(path));
  made->thread_ = WEFT_TRY(sys::Thread::start([](void* self) { static_cast<HandOver*>(self)->run(); }, made.get()));
  return made;
}

HandOver::HandOver(Server& server, std::string path, HandOverOptions options, sys::EventFd ends)
    : server_(server), path_(std::move(path)), options_(std::move(options)), ends_(std::move(ends)) {}

HandOver::~HandOver() {
  ends_.signal();
  thread_.join();
  if (const auto there = sys::identify_file(path_); listener_.valid() && there && *there == identity_) {
    (void)sys::remove_file(path_);
  }
}

// Returns false at the deadline, or if this object ends.
bool HandOver::wait_readable(int fd, Instant deadline) const {
  std::array<sys::PollFd, 2> both;
  both[0] = {fd, sys::Interest::readable, sys::Interest::none, false};
  both[1] = {ends_.fd(), sys::Interest::readable, sys::Interest::none, false};
  for (;;) {
    const auto ready = sys::poll_fds(both, time_left(deadline, sys::now()));
    if (ready || !(ready.error() == Errc::interrupted)) {
      return ready && *ready != 0 && !sys::has(both[1].got, sys::Interest::readable);
    }
  }
}

void HandOver::run() {
  while (!taken_.load() && wait_readable(listener_.fd(), kNever)) {
    auto connection = sys::accept_connection(listener_.fd());
    if (!connection) {
      (void)wait_readable(-1, sys::now() + kAcceptPause);  // no descriptor is free, or the process has gone
      continue;
    }
    if (!may_hand_over(connection->fd())) {
      refused_.fetch_add(1);
    } else if (give(connection->fd())) {
      taken_.store(true);
    }
  }
  if (taken_.load() && options_.on_taken) {
    try {
      options_.on_taken();
    } catch (...) {  // NOLINT(bugprone-empty-catch): the listeners are released in any case
    }
  }
}

// An error: this process keeps the listeners.
Result<void> HandOver::give(int connection) {
  const auto listeners = WEFT_TRY(server_.listeners(sys::now() + options_.step));
  for (const OpenListener& one : listeners) {
    WEFT_TRY(
        send_message(connection, HandOverKind::listener, one.name, one.descriptor.fd(), sys::now() + options_.step));
  }
  WEFT_TRY(send_message(connection, HandOverKind::all, {}, -1, sys::now() + options_.step));
  if (!wait_readable(connection, sys::now() + options_.start)) {
    return Error(Errc::timed_out, "the new process did not confirm in time");
  }
  const HandOverMessage answer = WEFT_TRY(receive_message(connection, sys::now() + options_.step));
  sys::PollFd alive{connection, sys::Interest::peer_closed, sys::Interest::none, false};
  const auto left = sys::poll_fds({&alive, 1}, Duration::zero());
  if (answer.kind != HandOverKind::confirmed || !left || *left != 0) {
    return Error(Errc::connection_closed, "the new process ended");
  }
  // The new process serves from now on, also if a core of this one is too busy to close its listener yet.
  (void)server_.release_listeners(sys::now() + options_.step);
  (void)send_message(connection, HandOverKind::released, {}, -1, sys::now() + options_.step);
  return {};
}

}  // namespace weft::serve
