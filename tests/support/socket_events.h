// SPDX-License-Identifier: MIT
#pragma once

#include <utility>

#include "weft/base/time.h"
#include "weft/msg/message/monitor.h"
#include "weft/msg/socket.h"
#include "weft/sys/clock.h"
#include <gtest/gtest.h>

namespace weft::test {

// The next event of this kind. The test fails if none comes within `patience`, whatever other events come; then the
// event has the error as its reason.
[[nodiscard]] inline MonitorEvent wait_for_event(Socket& socket, EventKind kind, Duration patience) {
  for (const Instant end = sys::now() + patience;;) {
    auto event = socket.next_event(time_left(end, sys::now()));
    EXPECT_TRUE(event) << "waiting for " << event_name(kind) << ": " << event.error().message();
    if (!event || event->kind == kind) {
      return event ? std::move(event).value() : MonitorEvent{kind, "", event.error()};
    }
  }
}

}  // namespace weft::test
