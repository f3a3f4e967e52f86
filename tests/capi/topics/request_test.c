/* SPDX-License-Identifier: MIT */
/* Requests and services: in a process, between processes, with a descriptor, and their refusals. */
#define _GNU_SOURCE
#include <poll.h>
#include <pthread.h>

#include "tests/capi/topics/topics_test.h"
#include "tests/capi/topics/two_processes.h"

static weft_topics_service* serve(weft_topics* topics, const char* topic, const char* group) {
  weft_topics_serve_options options;
  memset(&options, 0, sizeof options);
  options.struct_size = sizeof options;
  options.group = group;
  weft_topics_service* service = NULL;
  EXPECT(0, weft_topics_serve(topics, topic, &options, &service));
  return service;
}

/* Answers each request with its bytes; refuses "refuse", drops "drop" and ends at "end". */
static void* answer(void* service) {
  for (;;) {
    weft_topics_message* request = NULL;
    EXPECT(0, weft_topics_service_next(service, WAIT_MS, &request));
    size_t size = 0;
    const char* const unit = weft_topics_message_header(request, "Unit", &size);
    const weft_topics_header header = {"Seen", size == 0 ? "no unit" : "a unit"};
    REQUIRE(size == 0 || memcmp(unit, "dollar", 6) == 0);
    REQUIRE(has_topic(request, "svc.echo"));
    const int ends = has_bytes(request, "end");
    if (has_bytes(request, "refuse")) {
      EXPECT(0, weft_topics_refuse(request, WEFT_TOPICS_NOT_PERMITTED, "not today"));
      EXPECT(WEFT_TOPICS_INVALID_STATE, weft_topics_reply(request, "x", 1, NULL, 0));
    } else if (!has_bytes(request, "drop")) {
      EXPECT(0, weft_topics_reply(request, weft_topics_message_data(request), weft_topics_message_size(request),
                                  &header, 1));
      EXPECT(WEFT_TOPICS_INVALID_STATE, weft_topics_reply(request, "x", 1, NULL, 0));
      EXPECT(WEFT_TOPICS_INVALID_STATE, weft_topics_refuse(request, WEFT_TOPICS_CLOSED, NULL));
    }
    EXPECT(0, weft_topics_message_free(request));
    if (ends) {
      return NULL;
    }
  }
}

static void ask(weft_topics* topics) {
  weft_topics_message* reply = NULL;
  size_t size = 0;
  char body[16];
  for (int i = 0; i < 200; ++i) {
    snprintf(body, sizeof body, "%d", i);
    EXPECT(0, weft_topics_request(topics, "svc.echo", body, strlen(body), WAIT_MS, NULL, 0, &reply));
    REQUIRE(has_bytes(reply, body));
    EXPECT(0, weft_topics_message_free(reply));
  }
  const weft_topics_header unit = {"Unit", "dollar"};
  EXPECT(0, weft_topics_request(topics, "svc.echo", NULL, 0, WAIT_MS, &unit, 1, &reply));
  const char* const seen = weft_topics_message_header(reply, "Seen", &size);
  REQUIRE(size == 6 && memcmp(seen, "a unit", 6) == 0 && weft_topics_message_size(reply) == 0);
  EXPECT(WEFT_TOPICS_INVALID_ARGUMENT, weft_topics_reply(reply, "x", 1, NULL, 0)); /* a reply is not a request */
  EXPECT(0, weft_topics_message_free(reply));
  EXPECT(WEFT_TOPICS_NOT_PERMITTED, weft_topics_request(topics, "svc.echo", "refuse", 6, WAIT_MS, NULL, 0, &reply));
  REQUIRE(reply == NULL && strstr(weft_last_error_text(), "not today") != NULL);
  EXPECT(WEFT_TOPICS_JOB_THREW, weft_topics_request(topics, "svc.echo", "drop", 4, WAIT_MS, NULL, 0, &reply));
  EXPECT(0, weft_topics_request(topics, "svc.echo", "end", 3, WAIT_MS, NULL, 0, &reply));
  EXPECT(0, weft_topics_message_free(reply));
}

static void requests_are_answered(void) {
  weft_topics* const left = open_fleet("inproc:request", NULL);
  weft_topics* const right = open_fleet("inproc:request", NULL);
  weft_topics_service* const service = serve(right, "svc.echo", "group");
  EXPECT(1, weft_topics_sync(left, WAIT_MS));
  pthread_t thread;
  EXPECT(0, pthread_create(&thread, NULL, answer, service));
  ask(left);
  EXPECT(0, pthread_join(thread, NULL));
  EXPECT(0, weft_topics_service_status(service));
  EXPECT(0, weft_topics_service_close(service));
  EXPECT(WEFT_TOPICS_CLOSED, weft_topics_service_status(service));
  EXPECT(1, weft_topics_sync(left, WAIT_MS));
  weft_topics_message* reply = NULL;
  EXPECT(WEFT_TOPICS_UNREACHABLE, weft_topics_request(left, "svc.echo", "x", 1, WAIT_MS, NULL, 0, &reply));
  weft_topics_service* const other = serve(right, "svc.echo", "group");
  EXPECT(0, weft_topics_close(left));
  EXPECT(0, weft_topics_close(right));
  EXPECT(WEFT_TOPICS_CLOSED, weft_topics_service_status(other));
  EXPECT(0, weft_topics_service_close(other));
}

struct asking {
  weft_topics* topics;
  int code;
};
static void* ask_once(void* argument) {
  struct asking* const asking = argument;
  weft_topics_message* reply = NULL;
  EXPECT(asking->code, weft_topics_request(asking->topics, "svc.slow", "x", 1, WAIT_MS, NULL, 0, &reply));
  if (reply != NULL) {
    EXPECT(0, weft_topics_message_free(reply));
  }
  return NULL;
}

/* A request stays valid after its service was closed; the queued one fails. */
static void a_descriptor_announces_requests(void) {
  weft_topics* const topics = open_fleet("inproc:slow", NULL);
  weft_topics_service* const service = serve(topics, "svc.slow", NULL);
  struct pollfd entry = {weft_topics_service_fd(service), POLLIN, 0};
  weft_topics_message* request = NULL;
  REQUIRE(entry.fd >= 0);
  EXPECT(WEFT_TOPICS_WOULD_BLOCK, weft_topics_service_next(service, 0, &request));
  EXPECT(0, poll(&entry, 1, 0));
  pthread_t answered;
  pthread_t refused;
  struct asking first = {topics, 0};
  EXPECT(0, pthread_create(&answered, NULL, ask_once, &first));
  EXPECT(1, poll(&entry, 1, WAIT_MS));
  EXPECT(0, weft_topics_service_next(service, 0, &request));
  struct asking second = {topics, WEFT_TOPICS_UNREACHABLE};
  EXPECT(0, pthread_create(&refused, NULL, ask_once, &second));
  EXPECT(0, weft_topics_service_close(service));
  EXPECT(0, pthread_join(refused, NULL));
  EXPECT(0, weft_topics_reply(request, "late", 4, NULL, 0));
  EXPECT(0, pthread_join(answered, NULL));
  EXPECT(0, weft_topics_message_free(request));
  EXPECT(0, weft_topics_close(topics));
}

static void each_misuse_is_a_code(void) {
  weft_topics* const topics = open_fleet("inproc:misuse", NULL);
  weft_topics_service* service = NULL;
  weft_topics_message* message = NULL;
  weft_topics_serve_options options;
  memset(&options, 0, sizeof options);
  EXPECT(WEFT_TOPICS_INVALID_ARGUMENT, weft_topics_serve(topics, "a", &options, &service));
  options.struct_size = sizeof options;
  options.queue_max = SIZE_MAX;
  EXPECT(WEFT_TOPICS_INVALID_ARGUMENT, weft_topics_serve(topics, "a", &options, &service));
  EXPECT(WEFT_TOPICS_INVALID_ARGUMENT, weft_topics_serve(topics, "a", NULL, NULL));
  EXPECT(WEFT_TOPICS_INVALID_ARGUMENT, weft_topics_serve(topics, NULL, NULL, &service));
  EXPECT(WEFT_TOPICS_INVALID_ARGUMENT, weft_topics_serve(topics, "a.*", NULL, &service));
  EXPECT(WEFT_TOPICS_INVALID_ARGUMENT, weft_topics_serve(NULL, "a", NULL, &service));
  EXPECT(WEFT_TOPICS_INVALID_ARGUMENT, weft_topics_request(topics, "a", "x", 1, 0, NULL, 0, NULL));
  EXPECT(WEFT_TOPICS_INVALID_ARGUMENT, weft_topics_request(topics, NULL, "x", 1, 0, NULL, 0, &message));
  EXPECT(WEFT_TOPICS_INVALID_ARGUMENT, weft_topics_request(topics, "a", NULL, 1, 0, NULL, 0, &message));
  EXPECT(WEFT_TOPICS_INVALID_ARGUMENT, weft_topics_request(topics, "a", "x", 1, -2, NULL, 0, &message));
  EXPECT(WEFT_TOPICS_INVALID_ARGUMENT, weft_topics_request(topics, "a", "x", 1, 0, NULL, 1, &message));
  EXPECT(WEFT_TOPICS_UNREACHABLE, weft_topics_request(topics, "a", "x", 1, WAIT_MS, NULL, 0, &message));
  EXPECT(WEFT_TOPICS_INVALID_ARGUMENT, weft_topics_service_close(NULL));
  EXPECT(WEFT_TOPICS_INVALID_ARGUMENT, weft_topics_service_next(NULL, 0, &message));
  EXPECT(WEFT_TOPICS_INVALID_ARGUMENT, weft_topics_service_fd(NULL));
  EXPECT(WEFT_TOPICS_INVALID_ARGUMENT, weft_topics_reply(NULL, "x", 1, NULL, 0));
  EXPECT(WEFT_TOPICS_INVALID_ARGUMENT, weft_topics_refuse(NULL, WEFT_TOPICS_CLOSED, NULL));
  service = serve(topics, "a", NULL);
  EXPECT(WEFT_TOPICS_INVALID_ARGUMENT, weft_topics_service_next(service, -2, &message));
  EXPECT(WEFT_TOPICS_INVALID_ARGUMENT, weft_topics_service_next(service, 0, NULL));
  EXPECT(WEFT_TOPICS_TIMED_OUT, weft_topics_request(topics, "a", "x", 1, 0, NULL, 0, &message));
  EXPECT(0, weft_topics_service_next(service, WAIT_MS, &message));
  EXPECT(WEFT_TOPICS_INVALID_ARGUMENT, weft_topics_refuse(message, 0, NULL));
  EXPECT(WEFT_TOPICS_INVALID_ARGUMENT, weft_topics_refuse(message, 5, NULL));
  EXPECT(WEFT_TOPICS_INVALID_ARGUMENT, weft_topics_refuse(message, -35, NULL));
  EXPECT(WEFT_TOPICS_INVALID_ARGUMENT, weft_topics_reply(message, NULL, 1, NULL, 0));
  EXPECT(WEFT_TOPICS_MESSAGE_TOO_LARGE, weft_topics_reply(message, "x", SIZE_MAX / 2, NULL, 0));
  EXPECT(0, weft_topics_reply(message, "x", 1, NULL, 0)); /* no call before has answered it */
  EXPECT(0, weft_topics_message_free(message));
  EXPECT(WEFT_TOPICS_INVALID_ARGUMENT, weft_topics_reply(message, "x", 1, NULL, 0));
  EXPECT(WEFT_TOPICS_TIMED_OUT, weft_topics_request(topics, "a", "x", 1, 0, NULL, 0, &message));
  EXPECT(0, weft_topics_service_next(service, WAIT_MS, &message));
  EXPECT(0, weft_topics_close(topics));
  EXPECT(WEFT_TOPICS_CLOSED, weft_topics_reply(message, "x", 1, NULL, 0));
  EXPECT(0, weft_topics_message_free(message));
  EXPECT(WEFT_TOPICS_CLOSED, weft_topics_service_next(service, WEFT_TOPICS_FOREVER, &message));
  EXPECT(0, weft_topics_service_close(service));
  EXPECT(WEFT_TOPICS_CLOSED, weft_topics_service_close(service));
}

static int other_process(const char* directory) {
  weft_topics* const topics = open_fleet("local:two", directory);
  weft_topics_service* const service = serve(topics, "svc.echo", NULL);
  weft_topics_publisher* ready = NULL;
  EXPECT(0, weft_topics_publisher_open(topics, "ready", &ready));
  EXPECT(0, weft_topics_wait_subscribers(ready, 1, WAIT_MS, NULL));
  EXPECT(0, weft_topics_publisher_publish(ready, NULL, 0, NULL));
  (void)answer(service);
  weft_topics_message* message = NULL;
  EXPECT(0, weft_topics_service_next(service, WAIT_MS, &message)); /* it stays until the last answer has arrived */
  EXPECT(0, weft_topics_message_free(message));
  EXPECT(0, weft_topics_close(topics));
  return 0;
}

static void two_processes(const char* directory) {
  weft_topics* const topics = open_fleet("local:two", directory);
  weft_topics_subscription* ready = NULL;
  weft_topics_message* message = NULL;
  EXPECT(0, weft_topics_subscribe(topics, "ready", NULL, &ready));
  const pid_t child = start_other(directory);
  EXPECT(0, weft_topics_next(ready, WAIT_MS, &message));
  EXPECT(0, weft_topics_message_free(message));
  EXPECT(1, weft_topics_sync(topics, WAIT_MS));
  ask(topics);
  /* The other process frees this request without an answer, or ends before the answer has left. */
  const int last = weft_topics_request(topics, "svc.echo", "bye", 3, WAIT_MS, NULL, 0, &message);
  REQUIRE(last == WEFT_TOPICS_JOB_THREW || last == WEFT_TOPICS_CONNECTION_CLOSED);
  await_other(child);
  EXPECT(0, weft_topics_close(topics));
}

int main(int argc, char** argv) {
  if (argc == 3) {
    return other_process(argv[2]);
  }
  char directory[] = "/tmp/weft-capi-XXXXXX";
  REQUIRE(mkdtemp(directory) != NULL);
  requests_are_answered();
  a_descriptor_announces_requests();
  each_misuse_is_a_code();
  two_processes(directory);
  return remove_folder(directory);
}
