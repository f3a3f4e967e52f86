// SPDX-License-Identifier: MIT
#pragma once

#include "bench/engine/end.h"
#include "capi/zmq.h"

namespace bench {

void check_zmq(bool good, const char* call);  // fails with the call and the library's reason

// Owner: shared by the sockets that were opened in it. Affinity: any thread.
class ZmqContext {
 public:
  ZmqContext();
  ~ZmqContext();
  ZmqContext(const ZmqContext&) = delete;
  ZmqContext& operator=(const ZmqContext&) = delete;

  // Opens a socket with defaults, except: the cell's high-water marks, linger 0, and two options that make
  // messages countable. A PUB waits for slow subscribers, a ROUTER for unknown peers.
  void* open_socket(int type, const Cell& cell);
  void shut_down() { zmq_ctx_shutdown(context_); }
  void allow_sockets(int count) { check_zmq(zmq_ctx_set(context_, ZMQ_MAX_SOCKETS, count) == 0, "ZMQ_MAX_SOCKETS"); }

  static void set(void* socket, int option, int value);
  static void set_keys(void* socket, bool serves, const Addresses& addresses);
  static void set_certificate(void* socket, bool serves, const Addresses& addresses);

 private:
  void* context_;
};

void bind_zmq(void* socket, const Cell& cell, int lane, Addresses& addresses);  // keeps the exact endpoint

}  // namespace bench
