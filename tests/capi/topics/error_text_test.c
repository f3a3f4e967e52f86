/* SPDX-License-Identifier: MIT */
/* weft_last_error_text(): every failed call of both libraries leaves a text, in the thread that made the call. */
#include <errno.h>
#include <pthread.h>

#define ZMQ_BUILD_DRAFT_API
#include "capi/zmq.h"
#include "tests/capi/topics/topics_test.h"

static const char kOther[] = "not supported: an option of a later version";

/* After it the last error of the thread is another one than that of any call below. */
static int reset(void) {
  struct {
    weft_topics_options now;
    int later;
  } more = {fleet_options("inproc:text", NULL), 1};
  more.now.struct_size = sizeof more;
  weft_topics* topics = NULL;
  EXPECT(WEFT_TOPICS_NOT_SUPPORTED, weft_topics_open(&more.now, &topics));
  REQUIRE(strcmp(weft_last_error_text(), kOther) == 0);
  return 1;
}
/* The call fails, and leaves a text. */
#define FAILS(call) fails(reset() && (call), #call)
static void fails(int failed, const char* call) {
  if (!failed || strcmp(weft_last_error_text(), kOther) == 0 || weft_last_error_text()[0] == '\0') {
    fprintf(stderr, "%s: %s\n", call, failed ? weft_last_error_text() : "did not fail");
    exit(1);
  }
}

static void every_call_of_zmq_leaves_a_text(void) {
  char buffer[128];
  size_t size = 0;
  int number = 0;
  zmq_msg_t none;
  memset(&none, 0, sizeof none);
  void* const context = zmq_ctx_new();
  void* const pull = zmq_socket(context, ZMQ_PULL);
  FAILS(zmq_init(-1) == NULL);
  FAILS(zmq_ctx_set(NULL, ZMQ_IO_THREADS, 1) == -1);
  FAILS(zmq_ctx_set(context, -7, 1) == -1);
  FAILS(zmq_ctx_get(context, -7) == -1);
  FAILS(zmq_ctx_term(NULL) == -1);
  FAILS(zmq_ctx_shutdown(NULL) == -1);
  FAILS(zmq_socket(NULL, ZMQ_PULL) == NULL);
  FAILS(zmq_socket(context, 99) == NULL);
  FAILS(zmq_socket(context, -1) == NULL);
  FAILS(zmq_close(NULL) == -1);
  FAILS(zmq_bind(pull, "nonsense") == -1);
  FAILS(zmq_connect(pull, "tcp://") == -1);
  FAILS(zmq_unbind(pull, "tcp://127.0.0.1:1") == -1);
  FAILS(zmq_disconnect(pull, "tcp://127.0.0.1:1") == -1);
  FAILS(zmq_setsockopt(pull, 9999, &number, sizeof number) == -1);
  FAILS(zmq_setsockopt(pull, ZMQ_SNDHWM, &number, 1) == -1);
  FAILS(zmq_getsockopt(pull, ZMQ_SNDHWM, &number, &size) == -1);
  FAILS(zmq_send(pull, "x", 1, 0) == -1);
  FAILS(zmq_recv(pull, buffer, sizeof buffer, ZMQ_DONTWAIT) == -1);
  FAILS(zmq_recv(NULL, buffer, sizeof buffer, 0) == -1);
  FAILS(zmq_msg_recv(&none, pull, 0) == -1);
  FAILS(zmq_msg_send(&none, pull, 0) == -1);
  FAILS(zmq_msg_close(&none) == -1);
  FAILS(zmq_msg_gets(&none, "Identity") == NULL);
  FAILS(zmq_poll(NULL, 1, 0) == -1);
  FAILS(zmq_proxy(NULL, NULL, NULL) == -1);
  FAILS(zmq_socket_monitor(pull, "tcp://127.0.0.1:1", ZMQ_EVENT_ALL) == -1);
  FAILS(zmq_z85_encode(buffer, (const uint8_t*)"abc", 3) == NULL);
  FAILS(zmq_z85_decode(NULL, "abc") == NULL);
  FAILS(zmq_curve_public(NULL, NULL) == -1);
  FAILS(zmq_threadstart(NULL, NULL) == NULL);
  FAILS(zmq_poller_destroy(NULL) == -1);
  FAILS(zmq_poller_add(NULL, pull, NULL, ZMQ_POLLIN) == -1);
  FAILS(zmq_timers_add(NULL, 1, NULL, NULL) == -1);
  FAILS(zmq_join(pull, "group") == -1);
  FAILS(weft_socket_subscribe(pull, WEFT_FILTER_GLOB, "*", 1) == -1);
  FAILS(weft_socket_subscribe_glob(NULL, "*") == -1);

  /* The text has the cause and its particulars. */
  REQUIRE(zmq_bind(pull, "nonsense") == -1 && strstr(weft_last_error_text(), "endpoint") != NULL);
  REQUIRE(zmq_recv(pull, buffer, 1, ZMQ_DONTWAIT) == -1 && strstr(weft_last_error_text(), "would block") != NULL);
  /* A success leaves it, and reading it leaves errno. */
  errno = EDOM;
  REQUIRE(zmq_setsockopt(pull, ZMQ_RCVTIMEO, &number, sizeof number) == 0);
  REQUIRE(strstr(weft_last_error_text(), "would block") != NULL && errno == EDOM);
  REQUIRE(zmq_close(pull) == 0);
  REQUIRE(zmq_ctx_term(context) == 0);
}

static void* another_thread(void* unused) {
  (void)unused;
  REQUIRE(weft_last_error_text()[0] == '\0');
  REQUIRE(zmq_close(NULL) == -1 && strstr(weft_last_error_text(), "socket") != NULL);
  return NULL;
}

int main(void) {
  REQUIRE(weft_last_error_text()[0] == '\0');
  every_call_of_zmq_leaves_a_text();
  pthread_t thread;
  (void)reset();
  EXPECT(0, pthread_create(&thread, NULL, another_thread, NULL));
  EXPECT(0, pthread_join(thread, NULL));
  REQUIRE(strcmp(weft_last_error_text(), kOther) == 0);
  return 0;
}
