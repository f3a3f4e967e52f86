// SPDX-License-Identifier: MIT
#include "weft/msg/proxy.h"

#include <cerrno>

#include "capi/handles.h"

using namespace weft;        // NOLINT(google-build-using-namespace)
using namespace weft::capi;  // NOLINT(google-build-using-namespace)

extern "C" {

int zmq_proxy_steerable(void* frontend, void* backend, void* capture, void* control) {
  SocketHandle* front = socket_of(frontend);
  SocketHandle* back = socket_of(backend);
  SocketHandle* copies = capture == nullptr ? nullptr : socket_of(capture);
  SocketHandle* orders = control == nullptr ? nullptr : socket_of(control);
  if (front == nullptr || back == nullptr || (capture != nullptr) != (copies != nullptr) ||
      (control != nullptr) != (orders != nullptr)) {
    return fail(EFAULT);
  }
  Socket* sink = copies == nullptr ? nullptr : &copies->socket;
  const auto done = orders == nullptr ? weft::proxy(front->socket, back->socket, sink)
                                      : weft::proxy(front->socket, back->socket, sink, orders->socket);
  return done ? 0 : fail(done.error());
}

int zmq_proxy(void* frontend, void* backend, void* capture) {
  return zmq_proxy_steerable(frontend, backend, capture, nullptr);
}

int zmq_device(int /*type*/, void* frontend, void* backend) { return zmq_proxy(frontend, backend, nullptr); }
}
