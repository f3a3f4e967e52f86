// SPDX-License-Identifier: MIT
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>

#include "weft/sys/call.h"
#include "weft/sys/socket.h"

namespace weft::sys {
namespace {

IoResult failure(int os_errno) noexcept {
  if (os_errno == EAGAIN || os_errno == EWOULDBLOCK) {
    return {IoResult::Status::would_block, 0, 0};
  }
  return {IoResult::Status::failed, 0, os_errno};
}

IoResult read_outcome(const CallResult<ssize_t>& result, std::size_t asked) noexcept {
  if (result.failed()) {
    return failure(result.os_errno);
  }
  if (result.value == 0 && asked != 0) {
    return {IoResult::Status::end_of_stream, 0, 0};
  }
  return {IoResult::Status::done, static_cast<std::size_t>(result.value), 0};
}

IoResult write_outcome(const CallResult<ssize_t>& result) noexcept {
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
  return read_outcome(call([&] { return ::recv(fd, into.data(), into.size(), MSG_DONTWAIT); }), into.size());
}

IoResult read_vector(int fd, std::span<MutableBytes> into) noexcept {
  iovec vector[kMaxReadVector];
  msghdr message{};
  const std::size_t bytes = fill(vector, message, into);
  if (bytes == 0) {
    return {IoResult::Status::done, 0, 0};
  }
  return read_outcome(call([&] { return ::recvmsg(fd, &message, MSG_DONTWAIT); }), bytes);
}

IoResult write_some(int fd, Bytes from) noexcept {
  if (from.empty()) {
    return {IoResult::Status::done, 0, 0};
  }
  return write_outcome(call([&] { return ::send(fd, from.data(), from.size(), MSG_DONTWAIT | MSG_NOSIGNAL); }));
}

IoResult write_vector(int fd, std::span<const Bytes> from) noexcept {
  iovec vector[kMaxWriteVector];
  msghdr message{};
  if (fill(vector, message, from) == 0) {
    return {IoResult::Status::done, 0, 0};
  }
  return write_outcome(call([&] { return ::sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL); }));
}

}  // namespace weft::sys
