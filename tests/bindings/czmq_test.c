/* SPDX-License-Identifier: MIT */
/* czmq_test NAME: one of the self tests that CZMQ carries in its library, on our libzmq.so.5. They assert, so a failure
   is an abort. Works in src/selftest-rw. Exits with 77 when Weft lacks what the test needs. */
/* clang-format off: ours before czmq.h, which then finds no other zmq.h; weft_version() is in no other library */
#include "capi/zmq.h"
/* clang-format on */

#include <czmq.h>
#include <stdio.h>
#include <string.h>

typedef void(self_test_fn)(bool verbose);
struct self_test {
  const char* name;
  self_test_fn* run;
};

static const struct self_test kSelfTests[] = {
    {"zactor", zactor_test}, {"zauth", zauth_test},     {"zcert", zcert_test},   {"zcertstore", zcertstore_test},
    {"zframe", zframe_test}, {"zgossip", zgossip_test}, {"zloop", zloop_test},   {"zmonitor", zmonitor_test},
    {"zmsg", zmsg_test},     {"zpoller", zpoller_test}, {"zproxy", zproxy_test}, {"zsock", zsock_test},
    {"zstr", zstr_test},     {"zsys", zsys_test},
};

static int has_stream_sockets(void) {
  void* context = zmq_ctx_new();
  void* socket = zmq_socket(context, ZMQ_STREAM);
  if (socket != NULL) {
    zmq_close(socket);
  }
  zmq_ctx_term(context);
  return socket != NULL;
}

int main(int count, char** arguments) {
  int major, minor, patch;
  weft_version(&major, &minor, &patch);
  if (count == 2 && strcmp(arguments[1], "zsock") == 0 && !has_stream_sockets()) {
    puts("skipped: it makes a STREAM socket");
    return 77;
  }
  for (size_t i = 0; count == 2 && i < sizeof kSelfTests / sizeof *kSelfTests; ++i) {
    if (strcmp(arguments[1], kSelfTests[i].name) == 0) {
      kSelfTests[i].run(false);
      return 0;
    }
  }
  fprintf(stderr, "czmq_test: no such self test\n");
  return 2;
}
