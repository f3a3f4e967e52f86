// SPDX-License-Identifier: MIT
#pragma once

#include <signal.h>

#include <thread>

#include <gtest/gtest.h>

namespace weft::sys::test {

// Sends SIGTERM to one thread.
inline void send_end_signal(std::thread::native_handle_type thread) { EXPECT_EQ(::pthread_kill(thread, SIGTERM), 0); }
inline void send_hang_up(std::thread::native_handle_type thread) { EXPECT_EQ(::pthread_kill(thread, SIGHUP), 0); }
[[nodiscard]] inline std::thread::native_handle_type this_thread() { return ::pthread_self(); }

}  // namespace weft::sys::test
