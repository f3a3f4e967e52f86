/* SPDX-License-Identifier: MIT */
/* Proxies: messages go through, orders are obeyed, and misuse answers an errno. */
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "capi/zmq.h"

#undef NDEBUG
#include <assert.h>

static const int kZero = 0;
static const int kLong = 20000;

static void* make(void* context, int type) {
  void* socket = zmq_socket(context, type);
  assert(socket != NULL);
  assert(zmq_setsockopt(socket, ZMQ_LINGER, &kZero, sizeof kZero) == 0);
  assert(zmq_setsockopt(socket, ZMQ_RCVTIMEO, &kLong, sizeof kLong) == 0);
  return socket;
}
static void* make_connected(void* context, int type, const char* endpoint) {
  void* socket = make(context, type);
  assert(zmq_connect(socket, endpoint) == 0);
  return socket;
}
static void* make_bound(void* context, int type, const char* endpoint) {
  void* socket = make(context, type);
  assert(zmq_bind(socket, endpoint) == 0);
  return socket;
}

struct proxy {
  void* frontend;
  void* backend;
  void* capture;
  void* control;
  int result;
  int error;
};
static void* run(void* argument) {
  struct proxy* proxy = argument;
  proxy->result = proxy->control != NULL
                      ? zmq_proxy_steerable(proxy->frontend, proxy->backend, proxy->capture, proxy->control)
                  : proxy->capture != NULL ? zmq_proxy(proxy->frontend, proxy->backend, proxy->capture)
                                           : zmq_device(ZMQ_QUEUE, proxy->frontend, proxy->backend);
  proxy->error = errno;
  return NULL;
}

static void expect(void* socket, const char* text, size_t size) {
  char buffer[64];
  assert(zmq_recv(socket, buffer, sizeof buffer, 0) == (int)size && memcmp(buffer, text, size) == 0);
}

static void orders_are_obeyed(void) {
  void* context = zmq_ctx_new();
  struct proxy proxy = {make_bound(context, ZMQ_ROUTER, "inproc://front"),
                        make_bound(context, ZMQ_DEALER, "inproc://back"),
                        make_bound(context, ZMQ_PUB, "inproc://copies"),
                        make_bound(context, ZMQ_REP, "inproc://orders"),
                        9,
                        0};
  void* client = make_connected(context, ZMQ_REQ, "inproc://front");
  void* worker = make_connected(context, ZMQ_REP, "inproc://back");
  void* orders = make_connected(context, ZMQ_REQ, "inproc://orders");
  pthread_t thread;
  assert(pthread_create(&thread, NULL, run, &proxy) == 0);
  assert(zmq_send(client, "question", 8, 0) == 8);
  expect(worker, "question", 8);
  assert(zmq_send(worker, "answer", 6, 0) == 6);
  expect(client, "answer", 6);
  assert(zmq_send(orders, "PAUSE", 5, 0) == 5);
  expect(orders, "", 0);
  assert(zmq_send(orders, "RESUME", 6, 0) == 6);
  expect(orders, "", 0);
  assert(zmq_send(orders, "STATISTICS", 10, 0) == 10);
  for (int i = 0; i < 8; ++i) {
    uint64_t number = 0;
    int more = 0;
    size_t size = sizeof more;
    assert(zmq_recv(orders, &number, sizeof number, 0) == sizeof number);
    assert(i % 2 == 1 ? number >= 6 : number == 3); /* parts; their bytes, with the envelope */
    assert(zmq_getsockopt(orders, ZMQ_RCVMORE, &more, &size) == 0 && more == (i < 7));
  }
  assert(zmq_send(orders, "TERMINATE", 9, 0) == 9);
  expect(orders, "", 0);
  assert(pthread_join(thread, NULL) == 0);
  assert(proxy.result == 0);
  void* all[] = {proxy.frontend, proxy.backend, proxy.capture, proxy.control, client, worker, orders};
  for (size_t i = 0; i < sizeof all / sizeof *all; ++i) {
    assert(zmq_close(all[i]) == 0);
  }
  assert(zmq_ctx_term(context) == 0);
}

static void the_end_of_the_context_ends_it(void* (*make_capture)(void*, int, const char*)) {
  void* context = zmq_ctx_new();
  struct proxy proxy = {make_bound(context, ZMQ_PULL, "inproc://front"),
                        make_bound(context, ZMQ_PUSH, "inproc://back"),
                        make_capture == NULL ? NULL : make_capture(context, ZMQ_PUB, "inproc://copies"),
                        NULL,
                        9,
                        0};
  void* source = make_connected(context, ZMQ_PUSH, "inproc://front");
  void* target = make_connected(context, ZMQ_PULL, "inproc://back");
  pthread_t thread;
  assert(pthread_create(&thread, NULL, run, &proxy) == 0);
  assert(zmq_send(source, "one", 3, ZMQ_SNDMORE) == 3 && zmq_send(source, "two", 3, 0) == 3);
  expect(target, "one", 3);
  expect(target, "two", 3);
  assert(zmq_ctx_shutdown(context) == 0);
  assert(pthread_join(thread, NULL) == 0);
  assert(proxy.result == -1 && proxy.error == ETERM);
  assert(zmq_close(proxy.frontend) == 0 && zmq_close(proxy.backend) == 0);
  assert(proxy.capture == NULL || zmq_close(proxy.capture) == 0);
  assert(zmq_close(source) == 0 && zmq_close(target) == 0);
  assert(zmq_ctx_term(context) == 0);
}

static void misuse_answers_an_errno(void) {
  void* context = zmq_ctx_new();
  void* socket = make(context, ZMQ_DEALER);
  void* closed = make(context, ZMQ_DEALER);
  assert(zmq_close(closed) == 0);
  assert(zmq_proxy(NULL, socket, NULL) == -1 && errno == EFAULT);
  assert(zmq_proxy(socket, NULL, NULL) == -1 && errno == EFAULT);
  assert(zmq_proxy(socket, closed, NULL) == -1 && errno == EFAULT);
  assert(zmq_proxy(socket, socket, closed) == -1 && errno == EFAULT);
  assert(zmq_proxy_steerable(socket, socket, NULL, closed) == -1 && errno == EFAULT);
  assert(zmq_device(ZMQ_QUEUE, NULL, socket) == -1 && errno == EFAULT);
  assert(zmq_close(socket) == 0 && zmq_ctx_term(context) == 0);
}

int main(void) {
  orders_are_obeyed();
  the_end_of_the_context_ends_it(make_bound);
  the_end_of_the_context_ends_it(NULL);
  misuse_answers_an_errno();
  return 0;
}
