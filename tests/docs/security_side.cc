// SPDX-License-Identifier: MIT
// Prints the default of each option of the C interface that docs/security.md names: the option's name and its value.
#include <cinttypes>
#include <cstdint>
#include <cstdio>

#include "capi/zmq.h"

namespace {

struct Row {
  int option;
  const char* name;
};
#define WEFT_NAMED(option) {option, #option}
constexpr Row kRows[] = {
    WEFT_NAMED(WEFT_CONNECTIONS_MAX),
    WEFT_NAMED(WEFT_ADDRESS_CONNECTIONS_MAX),
    WEFT_NAMED(WEFT_ADDRESS_RATE_MAX),
    WEFT_NAMED(WEFT_SUBSCRIPTIONS_MAX),
    WEFT_NAMED(WEFT_MESSAGE_PARTS_MAX),
    WEFT_NAMED(ZMQ_MAXMSGSIZE),
    WEFT_NAMED(ZMQ_HANDSHAKE_IVL),
    WEFT_NAMED(ZMQ_SNDHWM),
    WEFT_NAMED(ZMQ_RCVHWM),
    WEFT_NAMED(ZMQ_HEARTBEAT_IVL),
    WEFT_NAMED(ZMQ_HEARTBEAT_TIMEOUT),
    WEFT_NAMED(ZMQ_LINGER),
    WEFT_NAMED(ZMQ_BACKLOG),
};

}  // namespace

int main() {
  void* const context = zmq_ctx_new();
  void* const socket = zmq_socket(context, ZMQ_ROUTER);
  bool read = socket != nullptr;
  for (const Row& row : kRows) {
    int number = 0;
    std::int64_t wide = 0;
    size_t size = sizeof number;
    if (zmq_getsockopt(socket, row.option, &number, &size) != 0) {
      size = sizeof wide;
      read &= zmq_getsockopt(socket, row.option, &wide, &size) == 0;
    } else {
      wide = number;
    }
    std::printf("%s %" PRId64 "\n", row.name, wide);
  }
  std::printf("ZMQ_MAX_SOCKETS %d\n", zmq_ctx_get(context, ZMQ_MAX_SOCKETS));
  (void)zmq_close(socket);
  (void)zmq_ctx_term(context);
  return read ? 0 : 1;
}
