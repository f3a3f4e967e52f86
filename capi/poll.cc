// SPDX-License-Identifier: MIT
#include "weft/msg/poll.h"

#include <cerrno>
#include <chrono>
#include <vector>

#include "capi/handles.h"

using namespace weft;        // NOLINT(google-build-using-namespace)
using namespace weft::capi;  // NOLINT(google-build-using-namespace)

extern "C" int zmq_poll(zmq_pollitem_t* items, int nitems, long timeout) {
  if (nitems < 0) {
    return fail(EINVAL);
  }
  if (items == nullptr && nitems != 0) {
    return fail(EFAULT);
  }
  std::vector<PollItem> wanted(static_cast<std::size_t>(nitems));
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    items[i].revents = 0;
    wanted[i].want_input = (items[i].events & ZMQ_POLLIN) != 0;
    wanted[i].want_output = (items[i].events & ZMQ_POLLOUT) != 0;
    wanted[i].fd = items[i].fd;
    if (items[i].socket != nullptr) {
      SocketHandle* handle = socket_of(items[i].socket);
      if (handle == nullptr) {
        return -1;
      }
      if (handle->core->terminated()) {
        return fail(ETERM);
      }
      wanted[i].socket = &handle->socket;
    }
  }
  const auto ready = poll(wanted, timeout < 0 ? Duration(-1) : Duration(std::chrono::milliseconds(timeout)));
  if (!ready) {
    return fail(ready.error());
  }
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i].socket != nullptr && wanted[i].socket->core()->terminated()) {
      return fail(ETERM);
    }
    items[i].revents = static_cast<short>((wanted[i].input ? ZMQ_POLLIN : 0) | (wanted[i].output ? ZMQ_POLLOUT : 0) |
                                          (wanted[i].failed ? ZMQ_POLLERR : 0));
  }
  return static_cast<int>(*ready);
}
