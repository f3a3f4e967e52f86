/* SPDX-License-Identifier: MIT */
/* ZMQ_STREAM: a server and a client of plain connections, with nothing but the C interface on our side. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "capi/zmq.h"

#undef NDEBUG
#include <assert.h>

static void* make(void* context, int type) {
  const int zero = 0;
  const int limit = 20000;
  void* socket = zmq_socket(context, type);
  assert(socket != NULL);
  assert(zmq_setsockopt(socket, ZMQ_LINGER, &zero, sizeof zero) == 0);
  assert(zmq_setsockopt(socket, ZMQ_RCVTIMEO, &limit, sizeof limit) == 0);
  return socket;
}

/* A plain connection to where `socket` is bound. */
static int dial(void* bound) {
  char exact[256];
  size_t size = sizeof exact;
  assert(zmq_getsockopt(bound, ZMQ_LAST_ENDPOINT, exact, &size) == 0);
  struct sockaddr_in address = {0};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons((uint16_t)atoi(strrchr(exact, ':') + 1));
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  assert(fd >= 0 && connect(fd, (struct sockaddr*)&address, sizeof address) == 0);
  return fd;
}

/* The next message: the id into `id`, then exactly `text`. */
static void expect(void* socket, unsigned char id[5], const char* text) {
  char bytes[256];
  int more = 0;
  size_t size = sizeof more;
  assert(zmq_recv(socket, id, 5, 0) == 5 && id[0] == 0);
  assert(zmq_getsockopt(socket, ZMQ_RCVMORE, &more, &size) == 0 && more == 1);
  const int got = zmq_recv(socket, bytes, sizeof bytes, 0);
  assert(got == (int)strlen(text) && memcmp(bytes, text, (size_t)got) == 0);
  assert(zmq_getsockopt(socket, ZMQ_RCVMORE, &more, &size) == 0 && more == 0);
}

static void say(void* socket, const unsigned char id[5], const char* text) {
  assert(zmq_send(socket, id, 5, ZMQ_SNDMORE) == 5);
  /* ZMQ_SNDMORE on the second part has no effect; many programs set it there. */
  assert(zmq_send(socket, text, strlen(text), ZMQ_SNDMORE) == (int)strlen(text));
}

static void a_server_answers_and_hangs_up(void* context) {
  unsigned char id[5];
  unsigned char gone[5];
  char answer[64];
  int events = 0;
  size_t size = sizeof events;
  void* server = make(context, ZMQ_STREAM);
  assert(zmq_bind(server, "tcp://127.0.0.1:*") == 0);
  assert(zmq_getsockopt(server, ZMQ_EVENTS, &events, &size) == 0 && events == ZMQ_POLLOUT);
  const int fd = dial(server);
  expect(server, id, "");
  assert(send(fd, "GET /", 5, 0) == 5);
  zmq_msg_t part;
  zmq_msg_init(&part);
  for (int i = 0; i < 2; ++i) {
    assert(zmq_msg_recv(&part, server, 0) == 5 && zmq_msg_more(&part) == (i == 0));
    assert(strcmp(zmq_msg_gets(&part, "Peer-Address"), "127.0.0.1") == 0);
  }
  zmq_msg_close(&part);
  say(server, id, "200 OK");
  say(server, id, "");
  assert(recv(fd, answer, sizeof answer, MSG_WAITALL) == 6 && memcmp(answer, "200 OK", 6) == 0);
  assert(zmq_send(server, id, 5, ZMQ_SNDMORE) == -1 && errno == EHOSTUNREACH);
  close(fd);
  const int second = dial(server);
  expect(server, id, "");
  close(second);
  expect(server, gone, "");
  assert(memcmp(id, gone, 5) == 0);
  assert(zmq_close(server) == 0);
}

static void a_client_finds_the_id_in_an_option(void* context) {
  unsigned char id[5] = {9};
  unsigned char server_id[5];
  size_t size = sizeof id;
  char exact[256];
  size_t length = sizeof exact;
  void* server = make(context, ZMQ_STREAM);
  void* client = make(context, ZMQ_STREAM);
  assert(zmq_bind(server, "tcp://127.0.0.1:*") == 0);
  assert(zmq_getsockopt(server, ZMQ_LAST_ENDPOINT, exact, &length) == 0);
  assert(zmq_connect(client, exact) == 0);
  assert(zmq_getsockopt(client, ZMQ_ROUTING_ID, id, &size) == 0 && size == 5 && id[0] == 0);
  say(client, id, "hello");
  expect(client, id, "");
  expect(server, server_id, "");
  expect(server, server_id, "hello");
  assert(zmq_close(client) == 0);
  expect(server, server_id, "");
  assert(zmq_close(server) == 0);
}

static void a_raw_router_serves_plain_connections(void* context) {
  const int one = 1;
  const int zero = 0;
  unsigned char id[5];
  char answer[8];
  void* router = make(context, ZMQ_ROUTER);
  assert(zmq_setsockopt(router, ZMQ_ROUTER_RAW, &one, sizeof one) == 0);
  assert(zmq_setsockopt(router, ZMQ_STREAM_NOTIFY, &zero, sizeof zero) == -1 && errno == EINVAL);
  assert(zmq_bind(router, "tcp://127.0.0.1:*") == 0);
  const int fd = dial(router);
  expect(router, id, "");
  say(router, (const unsigned char*)"\0who", "nobody");
  say(router, id, "yes");
  say(router, id, "");
  assert(recv(fd, answer, sizeof answer, MSG_WAITALL) == 3 && memcmp(answer, "yes", 3) == 0);
  close(fd);
  assert(zmq_close(router) == 0);
}

int main(void) {
  void* context = zmq_ctx_new();
  a_server_answers_and_hangs_up(context);
  a_client_finds_the_id_in_an_option(context);
  a_raw_router_serves_plain_connections(context);
  void* stream = make(context, ZMQ_STREAM);
  assert(zmq_bind(stream, "inproc://bytes") == -1 && errno == ENOCOMPATPROTO);
  assert(zmq_close(stream) == 0);
  assert(zmq_ctx_term(context) == 0);
  return 0;
}
