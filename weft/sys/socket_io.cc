// SPDX-License-Identifier: MIT
#include <dlfcn.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include <algorithm>

#include "weft/sys/call.h"
#include "weft/sys/socket.h"

namespace weft::sys {
namespace {

// The address of the library that has the function of this name for the process, or null.
const void* library_of(const char* function) noexcept {
  Dl_info info{};
  void* const address = ::dlsym(RTLD_DEFAULT, function);
  return address != nullptr && ::dladdr(address, &info) != 0 ? info.dli_fbase : nullptr;
}

// Whether another library, as a rule a preloaded one, takes the place of the C library's functions: a network stack
// that bypasses the kernel, a proxy, a sanitizer. Its sockets may not be the kernel's.
bool intercepted() noexcept {
  static const bool kIntercepted = [] {
    const void* const c_library = library_of("getppid");
    for (const char* const function : {"recv", "recvfrom", "recvmsg", "send", "sendto", "sendmsg"}) {
      if (library_of(function) != c_library) {
        return true;
      }
    }
    return c_library == nullptr;
  }();
  return kIntercepted;
}

// Decided at load, before a thread that holds the loader's lock can be missing in a forked child.
[[maybe_unused]] const bool decided_at_load = intercepted();

// Calls until the result is not EINTR. The function of the C library is a cancellation point. In a process with several
// threads this costs four atomic operations a call: two in the function, and two of CancellationOff. So the kernel is
// called without the function, except where the function is another library's.
template <typename Function, typename... Arguments>
SyscallResult<ssize_t> transfer(const Function& function, long number, Arguments... arguments) noexcept {
  if (intercepted()) [[unlikely]] {
    return call(function);
  }
  for (;;) {
    const auto result = raw_call_once(number, arguments...);
    if (result.os_errno != EINTR) [[likely]] {
      return {static_cast<ssize_t>(result.value), result.os_errno};
    }
  }
}

IoResult failure(int os_errno) noexcept {
  if (os_errno == EAGAIN || os_errno == EWOULDBLOCK) {
    return {IoResult::Status::would_block, 0, 0};
  }
  return {IoResult::Status::failed, 0, os_errno};
}

IoResult read_outcome(const SyscallResult<ssize_t>& result, std::size_t asked) noexcept {
  if (result.failed()) {
    return failure(result.os_errno);
  }
  if (result.value == 0 && asked != 0) {
    return {IoResult::Status::end_of_stream, 0, 0};
  }
  return {IoResult::Status::done, static_cast<std::size_t>(result.value), 0};
}

IoResult write_outcome(const SyscallResult<ssize_t>& result) noexcept {
  if (result.failed()) {
    return failure(result.os_errno);
  }
  return {IoResult::Status::done, static_cast<std::size_t>(result.value), 0};
}

// Fills `vector` from the first elements of `from` and returns their size in bytes.
template <typename Element, std::size_t kSize>
std::size_t fill(iovec (&vector)[kSize], msghdr& message, std::span<Element> from) noexcept {
  const std::size_t count = std::min(from.size(), kSize);
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < count; ++i) {
    vector[i] = {const_cast<std::uint8_t*>(from[i].data()), from[i].size()};
    bytes += from[i].size();
  }
  message.msg_iov = vector;
  message.msg_iovlen = count;
  return bytes;
}

}  // namespace

IoResult read_some(int fd, MutableBytes into) noexcept {
  if (into.empty()) {
    return {IoResult::Status::done, 0, 0};
  }
  const auto receive = [&] { return ::recv(fd, into.data(), into.size(), MSG_DONTWAIT); };
  return read_outcome(transfer(receive, SYS_recvfrom, fd, into.data(), into.size(), MSG_DONTWAIT, nullptr, nullptr),
                      into.size());
}

IoResult read_vector(int fd, std::span<MutableBytes> into) noexcept {
  iovec vector[kMaxReadVector];
  msghdr message{};
  const std::size_t bytes = fill(vector, message, into);
  if (bytes == 0) {
    return {IoResult::Status::done, 0, 0};
  }
  const auto receive = [&] { return ::recvmsg(fd, &message, MSG_DONTWAIT); };
  return read_outcome(transfer(receive, SYS_recvmsg, fd, &message, MSG_DONTWAIT), bytes);
}

IoResult write_some(int fd, Bytes from) noexcept {
  if (from.empty()) {
    return {IoResult::Status::done, 0, 0};
  }
  constexpr int kFlags = MSG_DONTWAIT | MSG_NOSIGNAL;
  const auto send = [&] { return ::send(fd, from.data(), from.size(), kFlags); };
  return write_outcome(transfer(send, SYS_sendto, fd, from.data(), from.size(), kFlags, nullptr, 0));
}

IoResult write_vector(int fd, std::span<const Bytes> from) noexcept {
  iovec vector[kMaxWriteVector];
  msghdr message{};
  if (fill(vector, message, from) == 0) {
    return {IoResult::Status::done, 0, 0};
  }
  constexpr int kFlags = MSG_DONTWAIT | MSG_NOSIGNAL;
  const auto send = [&] { return ::sendmsg(fd, &message, kFlags); };
  return write_outcome(transfer(send, SYS_sendmsg, fd, &message, kFlags));
}

}  // namespace weft::sys
