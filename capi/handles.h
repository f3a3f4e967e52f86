// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <string>

#include "capi/handle_store.h"
#include "capi/last_error.h"
#include "capi/zmq.h"
#include "weft/base/result.h"
#include "weft/base/time.h"
#include "weft/msg/context.h"
#include "weft/msg/message/message.h"
#include "weft/msg/socket.h"
#include "weft/msg/socket/context_core.h"
#include "weft/msg/socket/socket_core.h"

namespace weft::capi {

// The objects behind the opaque pointers of the C interface. The tag distinguishes a live handle from any other
// pointer. The memory of a closed handle is kept for the next handle, so a call with a closed handle returns an
// errno and never reads freed memory.
struct ContextHandle {
  static constexpr std::uint32_t kTag = 0x57454654;
  std::atomic<std::uint32_t> tag{0};
  std::shared_ptr<msg::ContextCore> core;
  int sockets_max = ZMQ_MAX_SOCKETS_DFLT;
  int io_threads = ZMQ_IO_THREADS_DFLT;
  std::atomic<int> io_threads_started{-1};  // the number at the first socket; -1: no socket yet
  int max_msgsz = INT32_MAX;
  bool ipv6 = false;
  bool blocky = true;
  bool zero_copy_receive = true;  // the interface returns it; see zmq.h
  ThreadOptions io_thread;
  ContextHandle* next_free = nullptr;
};
struct SocketHandle {
  static constexpr std::uint32_t kTag = 0x57534f43;
  std::atomic<std::uint32_t> tag{0};
  std::shared_ptr<msg::SocketCore> core;
  Socket socket;  // the same socket, for poll()
  std::string last_endpoint;
  int io_threads = 0;                       // of the context
  bool more = false;                        // the last received part was not the last of its message
  std::atomic<bool> monitors_pipes{false};  // the latest monitor takes pipe statistics
  static constexpr std::size_t kStoredCount = 7;
  std::int64_t stored[kStoredCount] = {};  // options that only the C interface keeps (options.cc)
  SocketHandle* next_free = nullptr;
};

ContextHandle* make_context_handle();
SocketHandle* make_socket_handle();
void reset_stored_options(SocketHandle& handle) noexcept;
// Returns true if the socket's affinity includes an I/O thread of the context.
[[nodiscard]] bool has_io_thread(const SocketHandle& handle) noexcept;
void retire(ContextHandle* handle) noexcept;
void retire(SocketHandle* handle) noexcept;

// Returns null, with errno set (EFAULT; ENOTSOCK), if the pointer is not a live handle.
ContextHandle* context_of(void* pointer) noexcept;
inline SocketHandle* socket_of(void* pointer) noexcept { return live_handle<SocketHandle>(pointer, ENOTSOCK); }

// Returns the message inside a zmq_msg_t; null with EFAULT if it was not initialised.
Message* message_of(zmq_msg_t* msg) noexcept;
const Message* message_of(const zmq_msg_t* msg) noexcept;
Message* init_message(zmq_msg_t* msg) noexcept;

// The time-out of a call that sends or receives.
static_assert(ZMQ_DONTWAIT == msg::Timeout::kNoWait);
[[nodiscard]] constexpr msg::Timeout timeout_of(int flags) noexcept { return msg::Timeout::of_flags(flags); }
// A size in the form of the C interface.
[[nodiscard]] constexpr int clamped(std::size_t size) noexcept {
  return static_cast<int>(std::min<std::size_t>(size, INT32_MAX));
}

// The time for which a call waits: the C interface has milliseconds, a negative number means for ever.
[[nodiscard]] Duration wait_of(long milliseconds) noexcept;

// Sets errno, notes the error and returns -1, like fail(int).
int fail(const Error& error) noexcept;
int fail(const Error& error, int code) noexcept;
[[nodiscard]] int errno_of(const Error& error) noexcept;

// Runs the body of a function of the C interface, through which no exception may pass. Memory that runs out in there
// sets ENOMEM, and the function returns `failed`. Not noexcept: the stack of a cancelled thread unwinds through it.
template <typename Body>
[[nodiscard]] auto or_enomem(Body&& body, decltype(body()) failed) -> decltype(body()) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    (void)fail(ENOMEM);
    return failed;
  }
}
template <typename Body>
[[nodiscard]] int or_enomem(Body&& body) {
  return or_enomem(body, -1);
}

// Returns the received part's size, or -1 with errno set.
[[nodiscard]] inline int recv_part(SocketHandle& handle, msg::Inbound& part, int flags) {
  if (const auto received = handle.core->recv(part, timeout_of(flags)); !received) [[unlikely]] {
    return fail(received.error());
  }
  handle.more = part.more;
  return clamped(part.size);
}

}  // namespace weft::capi
