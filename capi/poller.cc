// SPDX-License-Identifier: MIT
// zmq_poller_*: a set of sockets and descriptors to wait for, kept between waits.
#include <algorithm>
#include <cerrno>
#include <optional>
#include <vector>

#include "capi/handle_store.h"
#include "capi/handles.h"
#include "weft/msg/poll.h"
#include "weft/sys/epoll_set.h"

using namespace weft;        // NOLINT(google-build-using-namespace)
using namespace weft::capi;  // NOLINT(google-build-using-namespace)

namespace {

constexpr int kNoDescriptor = -1;
constexpr short kEventMask = ZMQ_POLLIN | ZMQ_POLLOUT | ZMQ_POLLERR | ZMQ_POLLPRI;

struct Registration {
  void* socket;  // null: a descriptor
  int fd;
  void* user_data;
  short events;
};

// Poller: the value of a handle from zmq_poller_new(). Affinity: one thread at a time, as libzmq requires.
struct Poller {
  std::vector<Registration> registrations;
  std::vector<PollItem> items;       // scratch of a wait; item i is registration i
  std::size_t first = 0;             // where the next wait without room for all events starts, so that none is starved
  std::optional<sys::EpollSet> set;  // of zmq_poller_fd(), once it was called: the descriptors of all sockets
};
using PollerHandle = ValueHandle<Poller, 0x57504f4c>;

std::vector<Registration>::iterator find(Poller& poller, const void* socket, int fd) {
  return std::find_if(poller.registrations.begin(), poller.registrations.end(),
                      [&](const Registration& known) { return known.socket == socket && known.fd == fd; });
}

// The poller; null and errno: either pointer is not a live handle.
PollerHandle* poller_for_socket(void* poller, void* socket) noexcept {
  PollerHandle* handle = PollerHandle::of(poller);
  return handle == nullptr || socket_of(socket) == nullptr ? nullptr : handle;
}
PollerHandle* poller_for_fd(void* poller, int fd) noexcept {
  PollerHandle* handle = PollerHandle::of(poller);
  if (handle != nullptr && fd == kNoDescriptor) {
    (void)fail(EBADF);
    return nullptr;
  }
  return handle;
}

Result<void> watch(Poller& poller, void* socket) {
  SocketHandle* const handle = socket_of(socket);
  if (!poller.set || handle == nullptr) {
    return {};
  }
  return poller.set->add(WEFT_TRY(handle->core->descriptor()), 0, sys::Interest::readable);
}

// A socket that was closed has left the set with its descriptor.
void unwatch(Poller& poller, void* socket) noexcept {
  SocketHandle* const handle = poller.set && socket != nullptr ? socket_of(socket) : nullptr;
  if (handle == nullptr) {
    return;
  }
  if (const auto fd = handle->core->descriptor(); fd) {
    (void)poller.set->remove(*fd);
  }
}

int add(Poller& poller, const Registration& wanted) {
  if ((wanted.events & ~kEventMask) != 0 || find(poller, wanted.socket, wanted.fd) != poller.registrations.end()) {
    return fail(EINVAL);
  }
  return or_enomem([&] {
    poller.registrations.push_back(wanted);
    const Result<void> watched = wanted.socket != nullptr ? watch(poller, wanted.socket) : Result<void>();
    if (!watched) {
      poller.registrations.pop_back();
      return fail(watched.error());
    }
    return 0;
  });
}

int modify(Poller& poller, const void* socket, int fd, short events) {
  const auto known = find(poller, socket, fd);
  if ((events & ~kEventMask) != 0 || known == poller.registrations.end()) {
    return fail(EINVAL);
  }
  known->events = events;
  return 0;
}

int remove(Poller& poller, const void* socket, int fd) {
  const auto known = find(poller, socket, fd);
  if (known == poller.registrations.end()) {
    return fail(EINVAL);
  }
  unwatch(poller, known->socket);
  poller.registrations.erase(known);
  return 0;
}

// -1 with ENOTSOCK or ETERM: a registered socket was closed, or its context terminated.
int check_sockets(const Poller& poller) noexcept {
  for (const Registration& known : poller.registrations) {
    if (known.socket == nullptr) {
      continue;
    }
    const SocketHandle* socket = socket_of(known.socket);
    if (socket == nullptr) {
      return -1;
    }
    if (socket->core->terminated()) {
      return fail(ETERM);
    }
    if (poller.set) {
      (void)socket->core->readiness({true, false});  // the socket's descriptor is not readable until there is news
    }
  }
  return 0;
}

// The poller's own descriptor.
int open_set(Poller& poller, zmq_fd_t& fd) {
  const bool any = std::any_of(poller.registrations.begin(), poller.registrations.end(), [](const Registration& known) {
    const SocketHandle* const socket = known.socket == nullptr ? nullptr : socket_of(known.socket);
    return socket != nullptr && socket->core->single_part();
  });
  if (!any) {
    return fail(EINVAL);
  }
  if (!poller.set) {
    auto set = sys::EpollSet::make();
    if (!set) {
      return fail(set.error());
    }
    poller.set.emplace(std::move(*set));
    for (const Registration& known : poller.registrations) {
      if (const auto watched = known.socket == nullptr ? Result<void>() : watch(poller, known.socket); !watched) {
        poller.set.reset();
        return fail(watched.error());
      }
    }
  }
  fd = poller.set->fd();
  return 0;
}

// Fills poller.items; false: no registration waits for an event.
bool fill_items(Poller& poller) {
  bool wants = false;
  poller.items.assign(poller.registrations.size(), PollItem());
  for (std::size_t i = 0; i < poller.items.size(); ++i) {
    const Registration& known = poller.registrations[i];
    PollItem& item = poller.items[i];
    if (SocketHandle* socket = known.socket == nullptr ? nullptr : socket_of(known.socket); socket != nullptr) {
      item.socket = &socket->socket;
    }
    item.fd = known.events == 0 ? kNoDescriptor : known.fd;  // poll(2) skips it, so that a hang-up does not count
    item.want_input = (known.events & ZMQ_POLLIN) != 0;
    item.want_output = (known.events & ZMQ_POLLOUT) != 0;
    item.want_urgent = (known.events & ZMQ_POLLPRI) != 0;
    wants |= known.events != 0;
  }
  return wants;
}

int take_events(Poller& poller, zmq_poller_event_t* events, std::size_t room) noexcept {
  const std::size_t size = poller.items.size();
  const std::size_t start = room < size ? poller.first % size : 0;
  std::size_t taken = 0;
  for (std::size_t i = 0; i < size && taken < room; ++i) {
    const std::size_t at = (start + i) % size;
    const PollItem& item = poller.items[at];
    const int ready = (item.input ? ZMQ_POLLIN : 0) | (item.output ? ZMQ_POLLOUT : 0) |
                      (item.urgent ? ZMQ_POLLPRI : 0) | (item.failed ? ZMQ_POLLERR : 0);
    if (ready != 0) {
      const Registration& known = poller.registrations[at];
      events[taken++] = {known.socket, known.fd, known.user_data, static_cast<short>(ready)};
      poller.first = at + 1;
    }
  }
  return static_cast<int>(taken);
}

}  // namespace

extern "C" {

void* zmq_poller_new(void) { return PollerHandle::make(); }

int zmq_poller_destroy(void** poller_p) {
  PollerHandle* handle = poller_p == nullptr ? nullptr : PollerHandle::of(*poller_p);
  if (handle == nullptr) {
    return fail(EFAULT);
  }
  handle->value = Poller();
  handle->retire();
  *poller_p = nullptr;
  return 0;
}

int zmq_poller_size(void* poller) {
  const PollerHandle* handle = PollerHandle::of(poller);
  return handle == nullptr ? -1 : static_cast<int>(handle->value.registrations.size());
}

int zmq_poller_add(void* poller, void* socket, void* user_data, short events) {
  PollerHandle* handle = poller_for_socket(poller, socket);
  return handle == nullptr ? -1 : add(handle->value, {socket, kNoDescriptor, user_data, events});
}
int zmq_poller_modify(void* poller, void* socket, short events) {
  PollerHandle* handle = poller_for_socket(poller, socket);
  return handle == nullptr ? -1 : modify(handle->value, socket, kNoDescriptor, events);
}
int zmq_poller_remove(void* poller, void* socket) {
  PollerHandle* handle = PollerHandle::of(poller);
  if (handle == nullptr) {
    return -1;
  }
  // Removes a closed socket too, so that the poller can be used again.
  if (socket != nullptr && find(handle->value, socket, kNoDescriptor) != handle->value.registrations.end()) {
    return remove(handle->value, socket, kNoDescriptor);
  }
  return socket_of(socket) == nullptr ? -1 : fail(EINVAL);
}

int zmq_poller_add_fd(void* poller, zmq_fd_t fd, void* user_data, short events) {
  PollerHandle* handle = poller_for_fd(poller, fd);
  return handle == nullptr ? -1 : add(handle->value, {nullptr, fd, user_data, events});
}
int zmq_poller_modify_fd(void* poller, zmq_fd_t fd, short events) {
  PollerHandle* handle = poller_for_fd(poller, fd);
  return handle == nullptr ? -1 : modify(handle->value, nullptr, fd, events);
}
int zmq_poller_remove_fd(void* poller, zmq_fd_t fd) {
  PollerHandle* handle = poller_for_fd(poller, fd);
  return handle == nullptr ? -1 : remove(handle->value, nullptr, fd);
}

int zmq_poller_wait_all(void* poller, zmq_poller_event_t* events, int n_events, long timeout) {
  PollerHandle* handle = PollerHandle::of(poller);
  if (handle == nullptr) {
    return -1;
  }
  if (events == nullptr) {
    return fail(EFAULT);
  }
  if (n_events < 0) {
    return fail(EINVAL);
  }
  Poller& set = handle->value;
  if (check_sockets(set) != 0) {
    return -1;
  }
  const int wants = or_enomem([&] { return fill_items(set) ? 1 : 0; });
  if (wants < 0) {
    return -1;
  }
  if (wants == 0 && timeout < 0) {
    return fail(EFAULT);  // no event could end the wait
  }
  const auto ready = poll(set.items, wait_of(timeout));
  if (!ready) {
    return fail(ready.error());
  }
  if (check_sockets(set) != 0) {
    return -1;
  }
  const int taken = take_events(set, events, static_cast<std::size_t>(n_events));
  return taken == 0 ? fail(EAGAIN) : taken;
}

int zmq_poller_wait(void* poller, zmq_poller_event_t* event, long timeout) {
  if (zmq_poller_wait_all(poller, event, 1, timeout) > 0) {
    return 0;
  }
  if (event != nullptr) {
    *event = {nullptr, kNoDescriptor, nullptr, 0};
  }
  return -1;
}

int zmq_poller_fd(void* poller, zmq_fd_t* fd) {
  PollerHandle* handle = PollerHandle::of(poller);
  if (handle == nullptr) {
    return -1;
  }
  return fd == nullptr ? fail(EFAULT) : or_enomem([&] { return open_set(handle->value, *fd); });
}
}
