// SPDX-License-Identifier: MIT
#include "weft/sys/fd.h"

#include <unistd.h>

#include "weft/sys/call.h"

namespace weft::sys {

void Fd::close() noexcept {
  if (fd_ >= 0) {
    const CancellationOff off;
    ::close(fd_);  // Linux frees the number even on failure; a second close could hit another owner's descriptor
    fd_ = -1;
  }
}

}  // namespace weft::sys
