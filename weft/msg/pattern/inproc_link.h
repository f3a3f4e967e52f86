// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "weft/base/time.h"
#include "weft/msg/connection/connection_owner.h"
#include "weft/msg/connection/frozen_options.h"
#include "weft/msg/queue/channel.h"
#include "weft/sync/lock.h"

namespace weft::msg {

class Pipe;

// InprocLink: the state that two pipes of an inproc connection share: a channel each way, and the socket of each end.
// Owner: both pipes, and the context while no socket is bound to its name. Affinity: see each member.
struct InprocLink {
  ~InprocLink() {
    if (keep[0] != nullptr) {
      settle(false);
    }
  }
  Channel channel[2];                            // [i]: messages that end i sends
  std::atomic<ConnectionOwner*> owner[2] = {};   // null: not bound yet, or closed
  Pipe* pipe[2] = {};                            // of end i; guarded by its socket's table lock; null: none, or ended
  std::shared_ptr<ConnectionOwner> keep[2];      // keeps `owner` valid; set once, dropped when both ends have ended
  std::atomic<bool> closed[2] = {false, false};  // end i will send no more
  std::atomic<bool> joined{false};               // both ends have, or had, a socket
  std::atomic<std::uint64_t> left_behind{0};     // messages of end 0, which left before the link was joined
  Instant expires = kNever;  // when the link stops waiting for a socket to bind; guarded by the context's inproc lock
  sync::StdMutex ends_mutex;
  struct Marks {
    int send = 0;
    int receive = 0;
    bool known = false;  // the end has a socket
  };
  Marks marks[2] WEFT_GUARDED_BY(ends_mutex);
  FrozenOptions options[2] WEFT_GUARDED_BY(
      ends_mutex);  // the same; of end i, from its connect or bind; null: no socket bound yet

  // The mark of each direction is the sender's mark plus the receiver's. 0 on either side means no mark.
  void set_marks(int end, int send, int receive);
  void freeze(int end, FrozenOptions frozen) noexcept;
  [[nodiscard]] FrozenOptions frozen(int end) noexcept;

  // End 0 leaves with that number of messages in its channel; they wait for a socket that binds.
  void leave_behind(std::uint64_t messages) noexcept;
  void join() noexcept;

 private:
  void settle(bool delivered) noexcept;
};

}  // namespace weft::msg
