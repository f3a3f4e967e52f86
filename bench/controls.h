// SPDX-License-Identifier: MIT
#pragma once

namespace bench {

// Costs of the machine at this moment, without any library. When these move, comparisons over time are void.
struct Controls {
  double memcpy_64_ns = 0;
  double getppid_ns = 0;    // of one system call
  double ping_pong_ns = 0;  // of one cache line, there and back between two running threads
  double futex_us = 0;      // there and back between two threads that sleep at once
};

Controls measure_controls();

// CPU seconds of the whole machine since it started.
struct MachineTime {
  double busy = 0;    // everything except idle; includes `stolen`
  double stolen = 0;  // taken by the host
};

MachineTime machine_time();

}  // namespace bench
