// SPDX-License-Identifier: MIT
#pragma once

namespace bench {

// What the machine does at this moment without any library; when these move, comparisons over time are void.
struct Controls {
  double memcpy_64_ns = 0;
  double getppid_ns = 0;    // one system call
  double ping_pong_ns = 0;  // one cache line there and back between two running threads
  double futex_us = 0;      // there and back between two threads that sleep at once
};

Controls measure_controls();

// How busy the whole machine is, in CPU seconds since it started.
struct MachineTime {
  double busy = 0;    // anything but idle; includes `stolen`
  double stolen = 0;  // taken by the host
};

MachineTime machine_time();

}  // namespace bench
