// SPDX-License-Identifier: MIT
#include "weft/sys/fd.h"

#include <unistd.h>

namespace weft::sys {

void Fd::close() noexcept {
  if (fd_ >= 0) {
    ::close(fd_);  // Linux frees the number whatever it answers; repeating could close somebody else's
    fd_ = -1;
  }
}

}  // namespace weft::sys
