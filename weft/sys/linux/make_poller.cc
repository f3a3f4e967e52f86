// SPDX-License-Identifier: MIT
#include <cstdlib>
#include <string_view>
#include <utility>

#include "weft/sys/linux/epoll_poller.h"
#include "weft/sys/linux/uring_poller.h"
#include "weft/sys/poller.h"

namespace weft::sys {
namespace {

PollerKind configured_kind() noexcept {
  const char* const configured = std::getenv("WEFT_POLLER");
  return configured != nullptr && std::string_view(configured) == describe(PollerKind::io_uring) ? PollerKind::io_uring
                                                                                                 : PollerKind::epoll;
}

}  // namespace

const char* describe(PollerKind kind) noexcept {
  switch (kind) {
    case PollerKind::automatic: return "automatic";
    case PollerKind::epoll: return "epoll";
    case PollerKind::io_uring: return "io_uring";
  }
  return "unknown";
}

Result<MadePoller> make_poller(PollerKind kind) { return make_poller(kind, &UringPoller::make); }

Result<MadePoller> make_poller(PollerKind kind, MakePoller make_uring) {
  MadePoller made;
  if ((kind == PollerKind::automatic ? configured_kind() : kind) == PollerKind::io_uring) {
    auto ring = make_uring();
    if (ring) {
      made.poller = std::move(*ring);
      made.choice.kind = PollerKind::io_uring;
      return made;
    }
    made.choice.refusal = ring.error();
  }
  made.poller = WEFT_TRY(EpollPoller::make());
  return made;
}

}  // namespace weft::sys
