/* SPDX-License-Identifier: MIT */
/* A C program on zmq.h: messages flow, and misuse answers an errno. */
#include <errno.h>
#include <string.h>

#include "capi/zmq.h"

#undef NDEBUG
#include <assert.h>

static int freed = 0;
static void count_free(void *data, void *hint) {
  (void)data;
  *(int *)hint += 1;
}

static void messages_flow(void *context, const char *endpoint) {
  char exact[256];
  size_t size = sizeof exact;
  char buffer[16];
  zmq_msg_t message;
  void *pull = zmq_socket(context, ZMQ_PULL);
  void *push = zmq_socket(context, ZMQ_PUSH);
  assert(pull != NULL && push != NULL);
  assert(zmq_bind(pull, endpoint) == 0);
  assert(zmq_getsockopt(pull, ZMQ_LAST_ENDPOINT, exact, &size) == 0);
  assert(zmq_connect(push, exact) == 0);

  assert(zmq_send(push, "hello", 5, ZMQ_SNDMORE) == 5);
  assert(zmq_msg_init_data(&message, (void *)"world, which is longer than what fits into a message itself", 59, count_free,
                           &freed) == 0);
  assert(zmq_msg_send(&message, push, 0) == 59);

  assert(zmq_recv(pull, buffer, sizeof buffer, 0) == 5 && memcmp(buffer, "hello", 5) == 0);
  int more = 0;
  size = sizeof more;
  assert(zmq_getsockopt(pull, ZMQ_RCVMORE, &more, &size) == 0 && more == 1);
  assert(zmq_msg_init(&message) == 0);
  assert(zmq_msg_recv(&message, pull, 0) == 59 && zmq_msg_more(&message) == 0);
  assert(memcmp(zmq_msg_data(&message), "world", 5) == 0);
  assert(zmq_msg_close(&message) == 0);

  zmq_pollitem_t items[2] = {{pull, 0, ZMQ_POLLIN, 0}, {push, 0, ZMQ_POLLOUT, 0}};
  assert(zmq_poll(items, 2, 0) == 1 && items[0].revents == 0 && items[1].revents == ZMQ_POLLOUT);
  assert(zmq_send(push, "", 0, 0) == 0);
  assert(zmq_poll(items, 1, -1) == 1 && items[0].revents == ZMQ_POLLIN);
  assert(zmq_recv(pull, buffer, sizeof buffer, ZMQ_DONTWAIT) == 0);
  assert(zmq_recv(pull, buffer, sizeof buffer, ZMQ_DONTWAIT) == -1 && zmq_errno() == EAGAIN);
  assert(zmq_close(push) == 0 && zmq_close(pull) == 0);
  assert(zmq_send(push, "x", 1, 0) == -1 && errno == ENOTSOCK);
}

static void misuse_answers_an_errno(void *context) {
  int value = 0;
  size_t size = sizeof value;
  assert(zmq_socket(context, 99) == NULL && errno == EINVAL);
  assert(zmq_socket(NULL, ZMQ_PUSH) == NULL && errno == EFAULT);
  void *req = zmq_socket(context, ZMQ_REQ);
  assert(zmq_recv(req, NULL, 0, ZMQ_DONTWAIT) == -1 && errno == EFSM);
  assert(zmq_bind(req, "nonsense") == -1 && errno == EINVAL);
  assert(zmq_bind(req, "carrier-pigeon://loft") == -1 && errno == EPROTONOSUPPORT);
  assert(zmq_setsockopt(req, ZMQ_SNDHWM, &value, 1) == -1 && errno == EINVAL);
  assert(zmq_setsockopt(req, 12345, &value, size) == -1 && errno == EINVAL);
  assert(zmq_getsockopt(req, ZMQ_TYPE, &value, &size) == 0 && value == ZMQ_REQ);
  assert(zmq_close(req) == 0 && zmq_close(req) == -1 && errno == ENOTSOCK);
  assert(zmq_close(NULL) == -1 && errno == ENOTSOCK);
}

int main(void) {
  void *context = zmq_ctx_new();
  assert(context != NULL);
  messages_flow(context, "tcp://127.0.0.1:*");
  messages_flow(context, "ipc://*");
  messages_flow(context, "inproc://smoke");
  misuse_answers_an_errno(context);
  assert(zmq_ctx_term(context) == 0);
  assert(zmq_ctx_term(context) == -1 && errno == EFAULT);
  assert(freed == 3);
  return 0;
}
