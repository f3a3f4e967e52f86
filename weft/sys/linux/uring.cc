// SPDX-License-Identifier: MIT
#include "weft/sys/linux/uring.h"

#if defined(WEFT_HAVE_URING)

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <span>

#include "weft/sys/call.h"
#include "weft/sys/thread_id.h"

namespace weft::sys {
namespace {

// The kernel finishes completions in enter() only, for the one thread that uses the ring. A flag is set while some are
// due.
constexpr unsigned kSetup = IORING_SETUP_CQSIZE | IORING_SETUP_CLAMP | IORING_SETUP_R_DISABLED |
                            IORING_SETUP_SUBMIT_ALL | IORING_SETUP_TASKRUN_FLAG | IORING_SETUP_SINGLE_ISSUER |
                            IORING_SETUP_DEFER_TASKRUN;
constexpr unsigned kFeatures = IORING_FEAT_SINGLE_MMAP | IORING_FEAT_NODROP | IORING_FEAT_EXT_ARG;

Error refusal(int os_errno) noexcept {
  switch (os_errno) {
    case ENOSYS: return make_error(os_errno, "this kernel has no io_uring");
    case EPERM:
    case EACCES: return make_error(os_errno, "io_uring is forbidden here (a sandbox, or kernel.io_uring_disabled)");
    case EINVAL: return make_error(os_errno, "io_uring needs Linux 6.1 or later");
    case ENOMEM: return make_error(os_errno, "no memory for io_uring (perhaps RLIMIT_MEMLOCK)");
    default: return make_error(os_errno, "io_uring_setup");
  }
}

}  // namespace

const UringCalls UringCalls::kSystem = {
    [](unsigned entries, io_uring_params* params) {
      return static_cast<int>(::syscall(SYS_io_uring_setup, entries, params));
    },
    [](int fd, unsigned submit, unsigned least, unsigned flags, const void* argument, std::size_t size) {
      return static_cast<int>(::syscall(SYS_io_uring_enter, fd, submit, least, flags, argument, size));
    },
    [](int fd, unsigned operation, void* argument, unsigned count) {
      return static_cast<int>(::syscall(SYS_io_uring_register, fd, operation, argument, count));
    },
};

void Uring::Unmap::operator()(std::uint8_t* begin) const noexcept { ::munmap(begin, size); }

Result<Uring> Uring::make(Shape shape, const UringCalls& calls) noexcept {
  io_uring_params params{};
  params.flags = kSetup;
  params.cq_entries = shape.completions;
  const auto made = call([&] { return calls.setup(shape.submissions, &params); });
  if (made.failed()) {
    return refusal(made.os_errno);
  }
  Uring ring(Fd(made.value), calls);  // the kernel makes every ring close-on-exec
  if ((params.features & kFeatures) != kFeatures) {
    return Error(Errc::not_supported, "io_uring lacks features of Linux 6.1");
  }
  WEFT_TRY(ring.try_calls());
  WEFT_TRY(ring.map(params));
  return ring;
}

// A sandbox may permit the first call only. The others are tried on the ring while it is disabled and does
// nothing.
Result<void> Uring::try_calls() const noexcept {
  constexpr unsigned kOperations = IORING_OP_ASYNC_CANCEL + 1;
  // A head, and one record for each operation.
  alignas(io_uring_probe) std::uint8_t probe[sizeof(io_uring_probe) + kOperations * sizeof(io_uring_probe_op)] = {};
  const auto probed = call([&] { return calls_.configure(fd_.fd(), IORING_REGISTER_PROBE, probe, kOperations); });
  if (probed.failed()) {
    return refusal(probed.os_errno);
  }
  for (const auto operation : {IORING_OP_POLL_ADD, IORING_OP_ASYNC_CANCEL}) {
    io_uring_probe_op known{};
    std::memcpy(&known, probe + sizeof(io_uring_probe) + operation * sizeof known, sizeof known);
    if ((known.flags & IO_URING_OP_SUPPORTED) == 0) {
      return Error(Errc::not_supported, "io_uring lacks operations of Linux 6.1");
    }
  }
  const auto entered = call([&] { return calls_.enter(fd_.fd(), 0, 0, 0, nullptr, 0); });
  if (entered.os_errno != EBADFD) {
    return refusal(entered.os_errno == 0 ? EINVAL : entered.os_errno);
  }
  return {};
}

Result<Uring::Mapping> Uring::map_part(std::size_t size, std::uint64_t offset) const noexcept {
  void* begin = MAP_FAILED;
  WEFT_TRY(checked_call("map io_uring", [&] {
    begin =
        ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd_.fd(), static_cast<off_t>(offset));
    return begin == MAP_FAILED ? -1 : 0;
  }));
  return Mapping(static_cast<std::uint8_t*>(begin), Unmap{size});
}

Result<void> Uring::map(const io_uring_params& params) noexcept {
  const auto& sq = params.sq_off;
  const auto& cq = params.cq_off;
  const std::size_t rings_size = std::max(sq.array + params.sq_entries * sizeof(std::uint32_t),
                                          cq.cqes + params.cq_entries * sizeof(io_uring_cqe));
  rings_ = WEFT_TRY(map_part(rings_size, IORING_OFF_SQ_RING));
  entries_memory_ = WEFT_TRY(map_part(params.sq_entries * sizeof(io_uring_sqe), IORING_OFF_SQES));
  std::uint8_t* const base = rings_.get();
  const auto word = [base](std::uint32_t offset) { return reinterpret_cast<std::uint32_t*>(base + offset); };
  entries_ = reinterpret_cast<io_uring_sqe*>(entries_memory_.get());
  completions_ = reinterpret_cast<const io_uring_cqe*>(base + cq.cqes);
  submitted_ = word(sq.head);
  pushed_ = word(sq.tail);
  flags_ = word(sq.flags);
  taken_ = word(cq.head);
  completed_ = word(cq.tail);
  entry_count_ = params.sq_entries;
  completion_mask_ = params.cq_entries - 1;
  // Entries are submitted in order, so that the ring of indices never changes.
  const std::span indices(word(sq.array), params.sq_entries);
  std::iota(indices.begin(), indices.end(), 0u);
  return {};
}

Uring::~Uring() {
  if (fd_.valid() && registrar_ == thread_id()) {  // else the table is gone with its thread
    io_uring_rsrc_update slot{};
    slot.offset = static_cast<std::uint32_t>(enter_fd_);
    call([&] { return calls_.configure(fd_.fd(), IORING_UNREGISTER_RING_FDS, &slot, 1); });
  }
}

Result<void> Uring::enable() noexcept {
  WEFT_TRY(checked_call("enable io_uring",
                        [&] { return calls_.configure(fd_.fd(), IORING_REGISTER_ENABLE_RINGS, nullptr, 0); }));
  enter_fd_ = fd_.fd();
  // A place in the thread's own table saves each enter() a look-up. There are 16; the ring works without one
  // too.
  io_uring_rsrc_update slot{};
  slot.offset = ~0u;
  slot.data = static_cast<std::uint64_t>(fd_.fd());
  if (call([&] { return calls_.configure(fd_.fd(), IORING_REGISTER_RING_FDS, &slot, 1); }).value == 1) {
    enter_fd_ = static_cast<int>(slot.offset);
    enter_flags_ = IORING_ENTER_REGISTERED_RING;
    registrar_ = thread_id();
  }
  return {};
}

io_uring_sqe* Uring::next() noexcept {
  if (tail_ - load(submitted_) == entry_count_) {
    return nullptr;
  }
  io_uring_sqe* const entry = &entries_[tail_++ & (entry_count_ - 1)];
  std::memset(entry, 0, sizeof *entry);
  return entry;
}

Result<Uring::Entered> Uring::enter(unsigned least, Duration timeout) noexcept {
  std::atomic_ref(*pushed_).store(tail_, std::memory_order_release);
  __kernel_timespec time{};
  io_uring_getevents_arg argument{};
  unsigned flags = enter_flags_ | IORING_ENTER_GETEVENTS;
  const bool limited = least != 0 && timeout >= Duration::zero();
  if (limited) {
    constexpr Duration::rep kNanosecondsPerSecond = 1'000'000'000;
    time.tv_sec = timeout.count() / kNanosecondsPerSecond;
    time.tv_nsec = timeout.count() % kNanosecondsPerSecond;
    argument.ts = reinterpret_cast<std::uint64_t>(&time);
    flags |= IORING_ENTER_EXT_ARG;
  }
  const auto result = call_once([&] {
    return calls_.enter(enter_fd_, tail_ - load(submitted_), least, flags, limited ? &argument : nullptr,
                        limited ? sizeof argument : 0);
  });
  switch (result.os_errno) {
    case 0:
    case ETIME:                         // timeout
    case EBUSY:                         // the kernel keeps too many completions: the caller must take them first
    case EAGAIN: return Entered::done;  // no memory for the entries: they stay for the next call
    case EINTR: return Entered::interrupted;
    case EBADR: return Entered::lost;
    default: return make_error(result.os_errno, "io_uring_enter");
  }
}

}  // namespace weft::sys

#endif
