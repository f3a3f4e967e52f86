// SPDX-License-Identifier: MIT
#include "weft/sys/fd.h"

#include <fcntl.h>
#include <unistd.h>

#include "weft/sys/call.h"

namespace weft::sys {

Result<Fd> Fd::duplicate() const noexcept {
  return Fd(WEFT_TRY(checked_call("fcntl", [this] { return ::fcntl(fd_, F_DUPFD_CLOEXEC, 0); })));
}

void Fd::close() noexcept {
  if (fd_ >= 0) {
    const CancellationOff off;
    ::close(fd_);  // Linux frees the number even on failure; a second close could hit another owner's descriptor
    fd_ = -1;
  }
}

}  // namespace weft::sys
