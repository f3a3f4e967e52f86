// SPDX-License-Identifier: MIT
#include "weft/sys/linux/descriptors.h"

#include <sys/socket.h>
#include <sys/stat.h>

#include <cstdio>
#include <cstring>
#include <span>

#include "weft/sys/address.h"
#include "weft/sys/call.h"
#include "weft/sys/clock.h"
#include "weft/sys/path.h"
#include "weft/sys/poll.h"
#include "weft/sys/socket.h"

namespace weft::sys {
namespace {

constexpr std::size_t kControlBytes = CMSG_SPACE(sizeof(int));

// Errors: timed_out; of the system.
Result<void> wait_ready(int socket, Interest interest, Instant deadline) {
  for (;;) {
    PollFd one{socket, interest, Interest::none, false};
    const auto ready = poll_fds(std::span(&one, 1), time_left(deadline, now()));
    if (ready && *ready == 0) {
      return Error(Errc::timed_out, "the other process did not answer in time");
    }
    if (ready) {
      return {};
    }
    if (!(ready.error() == Errc::interrupted)) {
      return ready.error();
    }
  }
}

// Takes the descriptors of a message: the first one into `into`, or an error if there are others.
Result<void> take_descriptors(msghdr& message, Fd* into) {
  bool strange = (message.msg_flags & MSG_CTRUNC) != 0;
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr; part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) {
      continue;
    }
    const std::size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int number = -1;
      std::memcpy(&number, CMSG_DATA(part) + i * sizeof number, sizeof number);
      Fd received(number);
      if (into == nullptr || into->valid()) {
        strange = true;
      } else {
        *into = std::move(received);
      }
    }
  }
  return strange ? Result<void>(Error(Errc::protocol_error, "a descriptor came that was not expected"))
                 : Result<void>();
}

}  // namespace

Result<void> send_with_descriptor(int socket, Bytes bytes, int descriptor, Instant deadline) {
  alignas(cmsghdr) std::uint8_t control[kControlBytes] = {};
  while (!bytes.empty()) {
    iovec part{const_cast<std::uint8_t*>(bytes.data()), bytes.size()};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (descriptor >= 0) {
      message.msg_control = control;
      message.msg_controllen = sizeof control;
      cmsghdr* const header = CMSG_FIRSTHDR(&message);
      header->cmsg_level = SOL_SOCKET;
      header->cmsg_type = SCM_RIGHTS;
      header->cmsg_len = CMSG_LEN(sizeof descriptor);
      std::memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
    }
    const auto sent = call([&] { return ::sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL); });
    if (!sent.failed()) {
      bytes = bytes.subspan(static_cast<std::size_t>(sent.value));
      descriptor = -1;  // it went with the first byte
    } else if (sent.os_errno == EAGAIN) {
      WEFT_TRY(wait_ready(socket, Interest::writable, deadline));
    } else {
      return make_error(sent.os_errno, "send to the other process");
    }
  }
  return {};
}

Result<void> receive_with_descriptor(int socket, MutableBytes bytes, Fd* descriptor, Instant deadline) {
  bool first = true;
  while (!bytes.empty()) {
    alignas(cmsghdr) std::uint8_t control[kControlBytes] = {};
    iovec part{bytes.data(), bytes.size()};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    const auto got = call([&] { return ::recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC); });
    if (got.failed() && got.os_errno == EAGAIN) {
      WEFT_TRY(wait_ready(socket, Interest::readable, deadline));
      continue;
    }
    if (got.failed()) {
      return make_error(got.os_errno, "receive from the other process");
    }
    WEFT_TRY(take_descriptors(message, first ? descriptor : nullptr));
    if (got.value == 0) {
      return Error(Errc::connection_closed, "the other process ended");
    }
    first = false;
    bytes = bytes.subspan(static_cast<std::size_t>(got.value));
  }
  return {};
}

Result<Fd> open_in_place(const std::string& path) {
  const std::string beside = path + "." + std::to_string(process_id());
  const SocketAddress address = WEFT_TRY(SocketAddress::from_path(beside));
  (void)remove_file(beside);  // of an earlier process with that number
  Fd listener = WEFT_TRY(open_unix_listener(address, {}));
  const auto moved = checked_call("move the socket to its path", [&] {
    const int mode = ::chmod(beside.c_str(), S_IRUSR | S_IWUSR);
    return mode == 0 ? ::rename(beside.c_str(), path.c_str()) : mode;
  });
  if (!moved) {
    (void)remove_file(beside);
    return moved.error();
  }
  return listener;
}

}  // namespace weft::sys
