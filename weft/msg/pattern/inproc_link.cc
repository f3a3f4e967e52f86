// SPDX-License-Identifier: MIT
#include "weft/msg/pattern/inproc_link.h"

#include <utility>

namespace weft::msg {

void InprocLink::set_marks(int end, int send, int receive) {
  const sync::LockGuard lock(ends_mutex);
  marks[end] = {send, receive, true};
  for (int from = 0; from < 2; ++from) {
    const Marks& sender = marks[from];
    const Marks& receiver = marks[1 - from];
    if (sender.known && receiver.known) {
      channel[from].set_mark(sender.send == 0 || receiver.receive == 0 ? 0
                                                                       : std::int64_t{sender.send} + receiver.receive);
    } else {
      channel[from].set_mark(sender.known ? sender.send : receiver.receive);
    }
  }
}

void InprocLink::freeze(int end, FrozenOptions frozen) noexcept {
  const sync::LockGuard lock(ends_mutex);
  options[end] = std::move(frozen);
}

FrozenOptions InprocLink::frozen(int end) noexcept {
  const sync::LockGuard lock(ends_mutex);
  return options[end];
}

void InprocLink::leave_behind(std::uint64_t messages) noexcept {
  keep[0]->share().left_behind += messages;
  left_behind.store(messages);
  // Sequentially consistent, as in join(): this thread sees the link joined, or the other thread sees the messages.
  if (joined.load()) {
    settle(true);
  }
}

void InprocLink::join() noexcept {
  joined.store(true);
  settle(true);
}

void InprocLink::settle(bool delivered) noexcept {
  const std::uint64_t messages = left_behind.exchange(0);
  SocketShare& share = keep[0]->share();
  (delivered ? share.sent_late : share.drops.dropped_lost) += messages;
  share.left_behind -= messages;
}

}  // namespace weft::msg
