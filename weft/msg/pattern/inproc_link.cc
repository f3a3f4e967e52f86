// SPDX-License-Identifier: MIT
#include "weft/msg/pattern/inproc_link.h"

namespace weft::msg {

void InprocLink::set_marks(int end, int send, int receive) {
  const std::lock_guard lock(marks_mutex);
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

}  // namespace weft::msg
