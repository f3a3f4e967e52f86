// SPDX-License-Identifier: MIT
#include "weft/sys/linux/uring_poller.h"

#if defined(WEFT_HAVE_URING)

#include <poll.h>
#include <sys/stat.h>

#include <algorithm>
#include <bit>
#include <new>

#include "weft/sys/call.h"
#include "weft/sys/clock.h"
#include "weft/sys/poll.h"
#include "weft/sys/thread_id.h"

namespace weft::sys {
namespace {

// A request's id is its generation and descriptor. These two ids have a descriptor that does not exist.
constexpr std::uint64_t kWakerId = ~std::uint64_t{0};
constexpr std::uint64_t kNobodyId = kWakerId - 1;
constexpr std::uint32_t kAlwaysTold = POLLERR | POLLHUP;

std::uint16_t poll_bits(Interest interest) noexcept {
  unsigned bits = has(interest, Interest::readable) ? POLLIN : 0u;
  bits |= has(interest, Interest::writable) ? POLLOUT : 0u;
  bits |= has(interest, Interest::peer_closed) ? POLLRDHUP : 0u;
  bits |= has(interest, Interest::urgent) ? POLLPRI : 0u;
  return static_cast<std::uint16_t>(bits);
}

std::uint64_t id_of(int fd, std::uint32_t generation) noexcept {
  return (static_cast<std::uint64_t>(generation) << 32) | static_cast<std::uint32_t>(fd);
}

// The wake-up of a socket that became readable also claims urgent data, and the kernel passes that on
// unchecked.
bool is_urgent(int fd) noexcept {
  PollFd asked{.fd = fd, .want = Interest::urgent};
  return poll_fds({&asked, 1}, Duration::zero()).has_value() && has(asked.got, Interest::urgent);
}

// Refuses the descriptors that epoll refuses: an invalid one, or one of a file that is always ready.
Result<void> check_watchable(int fd) noexcept {
  struct stat status{};
  WEFT_TRY(checked_call("add to poller", [&] { return ::fstat(fd, &status); }));
  if (S_ISREG(status.st_mode) || S_ISDIR(status.st_mode)) {
    return make_error(EPERM, "add to poller");
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<Poller>> UringPoller::make() { return make_with({}, UringCalls::kSystem); }

Result<std::unique_ptr<Poller>> UringPoller::make_with(Uring::Shape shape, const UringCalls& calls) {
  Uring ring = WEFT_TRY(Uring::make(shape, calls));
  Waker waker = WEFT_TRY(Waker::make());
  return std::unique_ptr<Poller>(new UringPoller(std::move(ring), std::move(waker)));
}

UringPoller::Watch* UringPoller::find(int fd) noexcept {
  const auto index = static_cast<std::size_t>(static_cast<std::uint32_t>(fd));
  return index < watches_.size() && watches_[index].live ? &watches_[index] : nullptr;
}

Result<void> UringPoller::add(int fd, Interest interest, bool edge_triggered, std::uint64_t tag) {
  if (tag == kReservedTag) {
    return Error(Errc::invalid_argument, "reserved poller tag");
  }
  WEFT_TRY(check_watchable(fd));
  if (find(fd) != nullptr) {
    return make_error(EEXIST, "add to poller");
  }
  const auto index = static_cast<std::size_t>(fd);
  if (index >= watches_.size()) {
    try {
      const std::size_t size = std::max(index + 1, 2 * watches_.size());
      due_.reserve(size);
      watches_.resize(size);
    } catch (const std::bad_alloc&) {
      return Error(Errc::resource_exhausted, "no memory for a watch");
    }
  }
  Watch& watch = watches_[index];
  watch.tag = tag;
  watch.wanted = poll_bits(interest);
  watch.live = true;
  watch.edge = edge_triggered;
  watch.quiet = false;
  make_due(fd, watch);
  return {};
}

Result<void> UringPoller::modify(int fd, Interest interest, bool edge_triggered, std::uint64_t tag) {
  if (tag == kReservedTag) {
    return Error(Errc::invalid_argument, "reserved poller tag");
  }
  Watch* const watch = find(fd);
  if (watch == nullptr) {
    return make_error(ENOENT, "modify in poller");
  }
  const std::uint16_t wanted = poll_bits(interest);
  if (edge_triggered || watch->edge || wanted != watch->wanted) {
    if (watch->armed) {
      WEFT_TRY(cancel(id_of(fd, watch->generation)));
      watch->armed = false;
    }
    watch->quiet = false;
    make_due(fd, *watch);
  }
  watch->tag = tag;
  watch->wanted = wanted;
  watch->edge = edge_triggered;
  return {};
}

Result<void> UringPoller::remove(int fd) {
  Watch* const watch = find(fd);
  if (watch == nullptr) {
    return make_error(ENOENT, "remove from poller");
  }
  watch->live = false;
  if (!std::exchange(watch->armed, false) || !cancel(id_of(fd, watch->generation))) {
    return {};
  }
  // The request holds a reference to the file until the kernel has finished it. The kernel finishes earlier
  // completions first, at most one for each descriptor.
  constexpr std::size_t kFinishedAtLeast = 16;
  std::size_t most = watches_.size() / kFinishedAtLeast + 2;
  do {
    WEFT_TRY(ring_.enter(0, Duration::zero()));
  } while (ring_.unfinished() && --most != 0);
  return {};
}

Result<void> UringPoller::take_possession() noexcept {
  if (owner_ != 0) {
    return Error(Errc::invalid_state, "a poller of io_uring belongs to the thread that waited first");
  }
  WEFT_TRY(ring_.enable());
  owner_ = thread_id();
  return {};
}

Result<io_uring_sqe*> UringPoller::next_entry() noexcept {
  io_uring_sqe* entry = ring_.next();
  if (entry == nullptr) {
    WEFT_TRY(ring_.enter(0, Duration::zero()));
    entry = ring_.next();
  }
  if (entry == nullptr) {
    return Error(Errc::resource_exhausted, "the kernel takes no more of io_uring's entries");
  }
  return entry;
}

Result<void> UringPoller::submit_poll(int fd, std::uint32_t bits, bool repeated, std::uint64_t id) noexcept {
  io_uring_sqe* const entry = WEFT_TRY(next_entry());
  entry->opcode = IORING_OP_POLL_ADD;
  entry->fd = fd;
  entry->len = repeated ? IORING_POLL_ADD_MULTI : 0u;
  entry->poll32_events = std::endian::native == std::endian::big ? std::rotl(bits, 16) : bits;  // the kernel's layout
  entry->user_data = id;
  return {};
}

Result<void> UringPoller::cancel(std::uint64_t id) noexcept {
  if (owner_ != thread_id()) {
    return Error(Errc::invalid_state, "a poller of io_uring belongs to the thread that waited first");
  }
  io_uring_sqe* const entry = WEFT_TRY(next_entry());
  entry->opcode = IORING_OP_ASYNC_CANCEL;
  entry->fd = -1;
  entry->addr = id;
  entry->user_data = kNobodyId;
  return {};
}

void UringPoller::make_due(int fd, Watch& watch) noexcept {
  if (!std::exchange(watch.due, true)) {
    due_.push_back(fd);
  }
}

Result<void> UringPoller::arm_due() noexcept {
  if (!waker_armed_) {
    WEFT_TRY(submit_poll(waker_.fd(), POLLIN, true, kWakerId));
    waker_armed_ = true;
  }
  while (!due_.empty()) {
    const int fd = due_.back();
    Watch& watch = watches_[static_cast<std::size_t>(fd)];
    if (watch.live && !watch.armed) {
      WEFT_TRY(submit_poll(fd, watch.wanted, watch.edge || watch.quiet, id_of(fd, watch.generation + 1)));
      ++watch.generation;
      watch.armed = true;
    }
    watch.due = false;
    due_.pop_back();
  }
  return {};
}

// Returns false if a signal ended the wait.
Result<bool> UringPoller::enter(Duration timeout) noexcept {
  const bool wait = timeout != Duration::zero() && ring_.front() == nullptr;
  if (!wait && ring_.quiet()) {
    return true;
  }
  switch (WEFT_TRY(ring_.enter(wait ? 1 : 0, timeout))) {
    case Uring::Entered::interrupted: return false;
    case Uring::Entered::lost: start_again(); return true;
    case Uring::Entered::done: break;
  }
  return true;
}

// Requests everything anew, since it is unknown which completion is missing. Ready descriptors are reported
// once more.
void UringPoller::start_again() noexcept {
  for (std::size_t i = 0; i < watches_.size(); ++i) {
    Watch& watch = watches_[i];
    const int fd = static_cast<int>(i);
    if (watch.live) {
      if (watch.armed) {
        (void)cancel(id_of(fd, watch.generation));  // if that fails, the generation makes its completions void
      }
      watch.armed = false;
      make_due(fd, watch);
    }
  }
  (void)cancel(kWakerId);
  waker_armed_ = false;
}

// Translates one completion. Returns false if it is not an event for the caller.
bool UringPoller::take_one(const io_uring_cqe& completion, PollEvent& out) noexcept {
  const auto fd = static_cast<int>(static_cast<std::uint32_t>(completion.user_data));
  const auto generation = static_cast<std::uint32_t>(completion.user_data >> 32);
  Watch* const watch = find(fd);
  if (watch == nullptr || !watch->armed || watch->generation != generation) {
    return false;
  }
  watch->armed = (completion.flags & IORING_CQE_F_MORE) != 0;
  std::uint32_t bits = 0;
  if (completion.res < 0) {
    bits = POLLERR;
    // Without memory the request is made again. After any other failure a new request is useless before
    // modify().
    if (completion.res == -ENOMEM || completion.res == -EAGAIN || completion.res == -ECANCELED) {
      make_due(fd, *watch);
    }
  } else {
    bits = static_cast<std::uint32_t>(completion.res) & (watch->wanted | kAlwaysTold);
    if ((bits & POLLPRI) != 0 && !is_urgent(fd)) {
      bits &= ~static_cast<std::uint32_t>(POLLPRI);
    }
    if (!watch->edge) {
      // The kernel reports POLLRDHUP without a request, again and again. Such a watch becomes edge-triggered until a
      // requested event happens.
      watch->quiet = bits == 0;
      if (watch->armed && bits != 0) {
        (void)cancel(completion.user_data);  // a failure is harmless, as in start_again()
        watch->armed = false;
      }
    }
    if (!watch->armed) {
      make_due(fd, *watch);
    }
  }
  out.tag = watch->tag;
  out.readable = (bits & POLLIN) != 0;
  out.writable = (bits & POLLOUT) != 0;
  out.failed = (bits & kAlwaysTold) != 0;
  out.peer_closed = (bits & POLLRDHUP) != 0;
  out.urgent = (bits & POLLPRI) != 0;
  return bits != 0;
}

UringPoller::Taken UringPoller::take(std::span<PollEvent> out) noexcept {
  Taken taken;
  while (taken.events < out.size()) {
    const io_uring_cqe* const completion = ring_.front();
    if (completion == nullptr) {
      break;
    }
    ++taken.completions;
    if (completion->user_data == kWakerId) {
      waker_armed_ = waker_armed_ && (completion->flags & IORING_CQE_F_MORE) != 0;
      taken.woken = waker_.take() || taken.woken;
    } else if (take_one(*completion, out[taken.events])) {
      ++taken.events;
    }
    ring_.pop();
  }
  return taken;
}

Result<std::size_t> UringPoller::wait(std::span<PollEvent> out, Duration timeout) {
  if (out.empty()) {
    return Error(Errc::invalid_argument, "no room for events");
  }
  if (owner_ != thread_id()) [[unlikely]] {
    WEFT_TRY(take_possession());
  }
  const bool limited = timeout > Duration::zero();
  const Instant begin = limited ? now() : Instant();
  Duration left = timeout;
  for (;;) {
    WEFT_TRY(arm_due());
    const bool entered = WEFT_TRY(enter(left));
    const Taken taken = take(out);
    // Void completions do not end a wait. No completion at all means the timeout, or a signal.
    if (taken.events != 0 || taken.woken || taken.completions == 0 || !entered || timeout == Duration::zero()) {
      return taken.events;
    }
    if (limited) {
      left = timeout - (now() - begin);
      if (left <= Duration::zero()) {
        return std::size_t{0};
      }
    }
  }
}

}  // namespace weft::sys

#endif
