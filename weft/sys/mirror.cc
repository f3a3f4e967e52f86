// SPDX-License-Identifier: MIT
#include "weft/sys/mirror.h"

#include <sys/mman.h>
#include <unistd.h>

#include <limits>

#include "weft/sys/call.h"
#include "weft/sys/fd.h"

namespace weft::sys {
namespace {

Result<std::uint8_t*> map(void* address, std::size_t size, int protection, int flags, int fd) noexcept {
  return reinterpret_cast<std::uint8_t*>(WEFT_TRY(checked_call(
      "mmap", [&] { return reinterpret_cast<std::intptr_t>(::mmap(address, size, protection, flags, fd, 0)); })));
}

}  // namespace

Result<Mirror> Mirror::make(std::size_t size) noexcept {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  if (size == 0 || size > std::numeric_limits<std::ptrdiff_t>::max() / 2 - page) {
    return Error(Errc::invalid_argument, "the size of a mirror");
  }
  size = (size + page - 1) / page * page;
  const Fd file(WEFT_TRY(checked_call("memfd_create", [] { return ::memfd_create("weft-mirror", MFD_CLOEXEC); })));
  WEFT_TRY(checked_call("ftruncate", [&] { return ::ftruncate(file.fd(), static_cast<off_t>(size)); }));
  // Reserves addresses for both halves; the mappings replace the reservation.
  std::uint8_t* first = WEFT_TRY(map(nullptr, 2 * size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1));
  for (std::uint8_t* half : {first, first + size}) {
    if (const auto done = map(half, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file.fd()); !done) {
      ::munmap(first, 2 * size);
      return done.error();
    }
  }
  // The halves are shared memory, so a forked child would write into its parent's bytes.
  if (const auto done = checked_call("madvise", [&] { return ::madvise(first, 2 * size, MADV_DONTFORK); }); !done) {
    ::munmap(first, 2 * size);
    return done.error();
  }
  return Mirror(first, size);
}

Mirror::~Mirror() {
  if (data_ != nullptr && !birth_.elsewhere()) {  // in a child these addresses may be of others
    ::munmap(data_, 2 * size_);
  }
}

}  // namespace weft::sys
