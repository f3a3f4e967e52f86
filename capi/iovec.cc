// SPDX-License-Identifier: MIT
// zmq_sendiov and zmq_recviov: several parts in one call. libzmq deprecates them; programs still use them.
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "capi/handles.h"

using namespace weft;        // NOLINT(google-build-using-namespace)
using namespace weft::capi;  // NOLINT(google-build-using-namespace)

namespace {

// Copies the message into memory that the caller frees with free(). Returns false if there is no memory.
bool copy_out(const Message& message, iovec& element) noexcept {
  void* copy = std::malloc(std::max<std::size_t>(message.size(), 1));
  if (copy == nullptr) {
    return false;
  }
  copy_bytes(static_cast<std::uint8_t*>(copy), message.bytes());
  element.iov_base = copy;
  element.iov_len = message.size();
  return true;
}

}  // namespace

extern "C" {

int zmq_sendiov(void* socket, struct iovec* iov, size_t count, int flags) {
  if (socket_of(socket) == nullptr) {
    return -1;
  }
  if (iov == nullptr || count == 0) {
    return fail(EINVAL);
  }
  int sent = 0;
  for (size_t i = 0; i < count && sent >= 0; ++i) {
    const int last = i + 1 == count ? flags & ~ZMQ_SNDMORE : flags;
    sent = zmq_send(socket, iov[i].iov_base, iov[i].iov_len, last);
  }
  return sent;
}

int zmq_recviov(void* socket, struct iovec* iov, size_t* count, int flags) {
  if (socket_of(socket) == nullptr) {
    return -1;
  }
  if (iov == nullptr || count == nullptr || *count == 0) {
    return fail(EINVAL);
  }
  const size_t room = std::min<size_t>(*count, INT32_MAX);
  *count = 0;
  bool more = true;
  while (more && *count < room) {
    zmq_msg_t part;
    Message* message = init_message(&part);
    const bool received = zmq_msg_recv(&part, socket, flags) >= 0;
    const bool taken = received && copy_out(*message, iov[*count]);
    more = received && message->more();
    const int error = taken ? 0 : (received ? ENOMEM : errno);
    (void)zmq_msg_close(&part);
    if (!taken) {
      return fail(error);
    }
    ++*count;
  }
  return static_cast<int>(*count);
}
}
