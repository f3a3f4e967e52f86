/* SPDX-License-Identifier: MIT */
/* Each wrong argument and each wrong order is an error code. */
#define _GNU_SOURCE
#include <sys/wait.h>
#include <unistd.h>

#include "tests/capi/topics/topics_test.h"

#define INVALID WEFT_TOPICS_INVALID_ARGUMENT
#define CLOSED WEFT_TOPICS_CLOSED

/* Every call on the handle of a kind returns the same code. */
static void refuses_topics(int code, weft_topics* topics) {
  weft_topics_publisher* publisher = NULL;
  weft_topics_subscription* subscription = NULL;
  EXPECT(code, weft_topics_sync(topics, 0));
  EXPECT(code, weft_topics_publisher_open(topics, "a", &publisher));
  EXPECT(code, weft_topics_publish(topics, "a", "x", 1, NULL));
  EXPECT(code, weft_topics_subscribe(topics, "a", NULL, &subscription));
  REQUIRE(publisher == NULL && subscription == NULL);
}
static void refuses_publisher(int code, weft_topics_publisher* publisher) {
  size_t ready = 7;
  EXPECT(code, weft_topics_publisher_publish(publisher, "x", 1, NULL));
  EXPECT(code, weft_topics_wait_subscribers(publisher, 0, 0, &ready));
  EXPECT(0, (int64_t)ready);
}
static void refuses_subscription(int code, weft_topics_subscription* subscription) {
  weft_topics_message* message = NULL;
  uint64_t missed = 7;
  EXPECT(code, weft_topics_next(subscription, 0, &message));
  EXPECT(code, weft_topics_next(subscription, WEFT_TOPICS_FOREVER, &message));
  EXPECT(code, weft_topics_subscription_add(subscription, "a"));
  EXPECT(code, weft_topics_subscription_remove(subscription, "a"));
  EXPECT(code, weft_topics_subscription_drain(subscription));
  EXPECT(code, weft_topics_subscription_fd(subscription));
  EXPECT(code, weft_topics_subscription_missed(subscription, &missed));
  REQUIRE(message == NULL && missed == 0);
}

static void handles_that_never_were(void) {
  static int number;
  void* const wrong[] = {NULL, (void*)1, (void*)4096, (void*)UINTPTR_MAX, (void*)(UINTPTR_MAX >> 1), &number};
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; ++i) {
    const int first = weft_topics_close(wrong[i]);
    REQUIRE(first == INVALID || first == CLOSED); /* closed: the slot was never open */
    refuses_topics(first, wrong[i]);
    EXPECT(first, weft_topics_publisher_close(wrong[i]));
    refuses_publisher(first, wrong[i]);
    EXPECT(first, weft_topics_unsubscribe(wrong[i]));
    refuses_subscription(first, wrong[i]);
  }
  EXPECT(INVALID, weft_topics_close(NULL));
}

static void messages_that_are_none(void) {
  size_t size = 7;
  EXPECT(INVALID, weft_topics_message_free(NULL));
  REQUIRE(weft_topics_message_data(NULL) == NULL && weft_topics_message_size(NULL) == 0);
  REQUIRE(weft_topics_message_topic(NULL, &size) == NULL && size == 0);
  REQUIRE(weft_topics_message_headers(NULL, NULL) == NULL && weft_topics_message_missed(NULL) == 0);
  REQUIRE(weft_topics_message_header(NULL, "a", NULL) == NULL);
}

static void options_and_texts(void) {
  weft_topics* topics = NULL;
  EXPECT(INVALID, weft_topics_open(NULL, NULL));
  weft_topics_options options = fleet_options("inproc:misuse", NULL);
  options.struct_size = 0;
  EXPECT(INVALID, weft_topics_open(&options, &topics));
  options.struct_size = SIZE_MAX;
  EXPECT(INVALID, weft_topics_open(&options, &topics));
  /* The structure of a later version: its members are permitted while they are 0. */
  struct {
    weft_topics_options now;
    int later;
  } more = {fleet_options("inproc:misuse", NULL), 0};
  more.now.struct_size = sizeof more;
  EXPECT(0, weft_topics_open(&more.now, &topics));
  EXPECT(0, weft_topics_close(topics));
  more.later = 1;
  EXPECT(WEFT_TOPICS_NOT_SUPPORTED, weft_topics_open(&more.now, &topics));
  REQUIRE(topics == NULL);
  /* The structure of an earlier version, with its first members only. */
  options = fleet_options("inproc:misuse", NULL);
  options.struct_size = offsetof(weft_topics_options, space);
  options.separator = 4096;
  EXPECT(0, weft_topics_open(&options, &topics));
  EXPECT(0, weft_topics_close(topics));
  options.struct_size = sizeof options;
  EXPECT(INVALID, weft_topics_open(&options, &topics));
  options = fleet_options("nonsense", NULL);
  REQUIRE(weft_topics_open(&options, &topics) < 0);
  options = fleet_options("inproc:misuse", NULL);
  options.presence_ms = -1;
  EXPECT(INVALID, weft_topics_open(&options, &topics));
  options = fleet_options("tcp://127.0.0.1:1", NULL);
  options.curve_public = "too short";
  EXPECT(INVALID, weft_topics_open(&options, &topics));

  options = fleet_options("inproc:misuse", NULL);
  EXPECT(0, weft_topics_open(&options, &topics));
  weft_topics_publisher* publisher = NULL;
  weft_topics_subscription* subscription = NULL;
  weft_topics_message* message = NULL;
  EXPECT(INVALID, weft_topics_publisher_open(topics, NULL, &publisher));
  EXPECT(INVALID, weft_topics_publisher_open(topics, "", &publisher));
  EXPECT(INVALID, weft_topics_publisher_open(topics, "a.*", &publisher));
  EXPECT(INVALID, weft_topics_publisher_open(topics, "a", NULL));
  EXPECT(INVALID, weft_topics_publish(topics, NULL, "x", 1, NULL));
  EXPECT(INVALID, weft_topics_publish(topics, "a", NULL, 1, NULL));
  EXPECT(WEFT_TOPICS_MESSAGE_TOO_LARGE, weft_topics_publish(topics, "a", "x", SIZE_MAX / 2, NULL));
  EXPECT(INVALID, weft_topics_subscribe(topics, NULL, NULL, &subscription));
  EXPECT(INVALID, weft_topics_subscribe(topics, "a..b", NULL, &subscription));
  EXPECT(INVALID, weft_topics_subscribe(topics, "a", NULL, NULL));
  weft_topics_subscribe_options how;
  memset(&how, 0, sizeof how);
  EXPECT(INVALID, weft_topics_subscribe(topics, "a", &how, &subscription));
  how.struct_size = sizeof how;
  how.full = 4;
  EXPECT(INVALID, weft_topics_subscribe(topics, "a", &how, &subscription));
  EXPECT(0, weft_topics_subscribe(topics, "a", NULL, &subscription));
  EXPECT(INVALID, weft_topics_next(subscription, -2, &message));
  EXPECT(INVALID, weft_topics_next(subscription, INT64_MIN, &message));
  EXPECT(INVALID, weft_topics_next(subscription, 0, NULL));
  EXPECT(INVALID, weft_topics_subscription_missed(subscription, NULL));
  EXPECT(0, weft_topics_publish(topics, "a", "x", 1, NULL));
  EXPECT(0, weft_topics_next(subscription, INT64_MAX, &message)); /* more than 292 years */
  size_t size = 7;
  (void)weft_topics_message_header(message, NULL, &size);
  EXPECT(0, (int64_t)size);
  EXPECT(0, weft_topics_message_free(message));
  EXPECT(INVALID, weft_topics_message_free(message));
  REQUIRE(weft_topics_message_data(message) == NULL && weft_topics_message_size(message) == 0);

  EXPECT(0, weft_topics_publisher_open(topics, "a", &publisher));
  const weft_topics_header bad[] = {{"a:b", "x"}, {"a", "two\nlines"}, {NULL, "x"}, {"a", NULL}, {"", "x"}};
  weft_topics_publish_options with;
  memset(&with, 0, sizeof with);
  with.struct_size = sizeof with;
  with.header_count = 1;
  EXPECT(INVALID, weft_topics_publisher_publish(publisher, "x", 1, &with));
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; ++i) {
    with.headers = &bad[i];
    EXPECT(INVALID, weft_topics_publisher_publish(publisher, "x", 1, &with));
  }
  EXPECT(WEFT_TOPICS_WOULD_BLOCK, weft_topics_next(subscription, 0, &message)); /* none of them was published */

  /* A handle of another kind. */
  refuses_topics(INVALID, (weft_topics*)publisher);
  refuses_publisher(INVALID, (weft_topics_publisher*)subscription);
  refuses_subscription(INVALID, (weft_topics_subscription*)topics);
  EXPECT(INVALID, weft_topics_close((weft_topics*)publisher));
  EXPECT(INVALID, weft_topics_unsubscribe((weft_topics_subscription*)topics));

  /* The objects outlive their weft_topics. */
  EXPECT(0, weft_topics_close(topics));
  EXPECT(CLOSED, weft_topics_close(topics));
  refuses_topics(CLOSED, topics);
  EXPECT(CLOSED, weft_topics_publisher_publish(publisher, "x", 1, NULL));
  EXPECT(CLOSED, weft_topics_next(subscription, WEFT_TOPICS_FOREVER, &message));
  EXPECT(0, weft_topics_publisher_close(publisher));
  EXPECT(0, weft_topics_unsubscribe(subscription));
  EXPECT(CLOSED, weft_topics_publisher_close(publisher));
  EXPECT(CLOSED, weft_topics_unsubscribe(subscription));
  refuses_publisher(CLOSED, publisher);
  refuses_subscription(CLOSED, subscription);

  /* A handle stays closed after its memory was given to the next one. */
  weft_topics* const next = open_fleet("inproc:misuse", NULL);
  weft_topics_publisher* newer = NULL;
  for (int i = 0; i < 3; ++i) {
    EXPECT(0, weft_topics_publisher_open(next, "a", &newer));
    REQUIRE(newer != publisher);
    refuses_topics(CLOSED, topics);
    refuses_publisher(CLOSED, publisher);
    refuses_subscription(CLOSED, subscription);
  }
  EXPECT(0, weft_topics_close(next));
}

static void more_handles_than_a_chunk(void) {
  enum { kHandles = 3000 };
  static weft_topics_publisher* publishers[kHandles];
  weft_topics* const topics = open_fleet("inproc:many", NULL);
  for (int i = 0; i < kHandles; ++i) {
    EXPECT(0, weft_topics_publisher_open(topics, "a", &publishers[i]));
  }
  for (int i = 0; i < kHandles; ++i) {
    EXPECT(0, weft_topics_publisher_publish(publishers[i], "x", 1, NULL));
    EXPECT(0, weft_topics_publisher_close(publishers[i]));
    refuses_publisher(CLOSED, publishers[i]);
  }
  EXPECT(0, weft_topics_close(topics));
}

static void a_forked_child_has_handles_of_its_own(void) {
  weft_topics* const topics = open_fleet("inproc:fork", NULL);
  weft_topics_publisher* publisher = NULL;
  EXPECT(0, weft_topics_publisher_open(topics, "a", &publisher));
  const pid_t child = fork();
  if (child == 0) {
    refuses_topics(WEFT_TOPICS_INVALID_STATE, topics);
    refuses_publisher(WEFT_TOPICS_INVALID_STATE, publisher);
    EXPECT(WEFT_TOPICS_INVALID_STATE, weft_topics_publisher_close(publisher));
    EXPECT(WEFT_TOPICS_INVALID_STATE, weft_topics_close(topics));
    weft_topics* const own = open_fleet("inproc:fork", NULL);
    weft_topics_subscription* subscription = NULL;
    weft_topics_message* message = NULL;
    EXPECT(0, weft_topics_subscribe(own, "a", NULL, &subscription));
    EXPECT(0, weft_topics_publish(own, "a", "x", 1, NULL));
    EXPECT(0, weft_topics_next(subscription, WAIT_MS, &message));
    EXPECT(0, weft_topics_message_free(message));
    EXPECT(0, weft_topics_close(own));
    _exit(0);
  }
  int status = -1;
  EXPECT(child, waitpid(child, &status, 0));
  EXPECT(0, status);
  refuses_topics(CLOSED, (EXPECT(0, weft_topics_close(topics)), topics));
}

int main(void) {
  handles_that_never_were();
  messages_that_are_none();
  options_and_texts();
  more_handles_than_a_chunk();
  a_forked_child_has_handles_of_its_own();
  return 0;
}
