// SPDX-License-Identifier: MIT
#include "weft/msg/poll.h"

#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <vector>

#include "capi/handles.h"

namespace weft::capi {

Duration wait_of(long milliseconds) noexcept {
  constexpr auto kLongest = std::chrono::duration_cast<std::chrono::milliseconds>(Duration::max()).count();
  if (milliseconds < 0) {
    return Duration(-1);
  }
  return std::chrono::milliseconds(std::min<std::int64_t>(milliseconds, kLongest));
}

}  // namespace weft::capi

using namespace weft;        // NOLINT(google-build-using-namespace)
using namespace weft::capi;  // NOLINT(google-build-using-namespace)

namespace {

int poll_items(zmq_pollitem_t* items, int nitems, long timeout, const sys::SignalMask* mask) {
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
    wanted[i].want_urgent = (items[i].events & ZMQ_POLLPRI) != 0;
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
  const auto ready = poll(wanted, wait_of(timeout), mask);
  if (!ready) {
    return fail(ready.error());
  }
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i].socket != nullptr && wanted[i].socket->core()->terminated()) {
      return fail(ETERM);
    }
    items[i].revents = static_cast<short>((wanted[i].input ? ZMQ_POLLIN : 0) | (wanted[i].output ? ZMQ_POLLOUT : 0) |
                                          (wanted[i].urgent ? ZMQ_POLLPRI : 0) | (wanted[i].failed ? ZMQ_POLLERR : 0));
  }
  return static_cast<int>(*ready);
}

}  // namespace

extern "C" {

int zmq_poll(zmq_pollitem_t* items, int nitems, long timeout) {
  return or_enomem([&] { return poll_items(items, nitems, timeout, nullptr); });
}

int zmq_ppoll(zmq_pollitem_t* items, int nitems, long timeout, const void* sigmask) {
  sys::SignalMask mask;
  if (sigmask != nullptr) {
    static_assert(sizeof(sigset_t) <= sizeof mask.bytes);
    std::memcpy(mask.bytes.data(), sigmask, sizeof(sigset_t));
  }
  return or_enomem([&] { return poll_items(items, nitems, timeout, sigmask != nullptr ? &mask : nullptr); });
}
}
