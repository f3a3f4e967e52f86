/* SPDX-License-Identifier: MIT */
/* Publishing and subscribing: in a process, between processes, with a descriptor, and the end of a wait. */
#define _GNU_SOURCE
#include <poll.h>
#include <pthread.h>

#include "tests/capi/topics/topics_test.h"
#include "tests/capi/topics/two_processes.h"

enum { kMessages = 3000 };

static weft_topics_publisher* open_publisher(weft_topics* topics, const char* topic) {
  weft_topics_publisher* publisher = NULL;
  EXPECT(0, weft_topics_publisher_open(topics, topic, &publisher));
  return publisher;
}
static weft_topics_subscription* subscribe(weft_topics* topics, const char* filter) {
  weft_topics_subscription* subscription = NULL;
  EXPECT(0, weft_topics_subscribe(topics, filter, NULL, &subscription));
  return subscription;
}

static void messages_flow(const char* fleet, const char* directory) {
  weft_topics* const left = open_fleet(fleet, directory);
  weft_topics* const right = open_fleet(fleet, directory);
  REQUIRE(left != right);
  EXPECT(1, weft_topics_sync(left, WAIT_MS));
  weft_topics_subscription* const prices = subscribe(right, "px.*");
  weft_topics_publisher* const publisher = open_publisher(left, "px.AAPL");
  size_t ready = 0;
  EXPECT(0, weft_topics_wait_subscribers(publisher, 1, WAIT_MS, &ready));
  EXPECT(1, (int64_t)ready);

  const weft_topics_header headers[2] = {{"Unit", "dollar"}, {"Source", "test"}};
  weft_topics_publish_options options;
  memset(&options, 0, sizeof options);
  options.struct_size = sizeof options;
  options.headers = headers;
  options.header_count = 2;
  EXPECT(0, weft_topics_publisher_publish(publisher, "189.5", 5, &options));
  EXPECT(0, weft_topics_publisher_publish(publisher, NULL, 0, NULL));
  EXPECT(0, weft_topics_publish(left, "px.AAPL", "the last", 8, NULL));

  weft_topics_message* message = NULL;
  size_t size = 0;
  EXPECT(0, weft_topics_next(prices, WAIT_MS, &message));
  REQUIRE(has_bytes(message, "189.5") && has_topic(message, "px.AAPL"));
  const char* const unit = weft_topics_message_header(message, "Unit", &size);
  REQUIRE(size == 6 && memcmp(unit, "dollar", 6) == 0);
  (void)weft_topics_message_header(message, "None", &size);
  EXPECT(0, (int64_t)size);
  const char* const block = weft_topics_message_headers(message, &size);
  REQUIRE(size > 8 && memcmp(block, "NATS/1.0", 8) == 0);
  EXPECT(0, (int64_t)weft_topics_message_missed(message));
  EXPECT(0, weft_topics_message_free(message));
  EXPECT(0, weft_topics_next(prices, WAIT_MS, &message));
  EXPECT(0, (int64_t)weft_topics_message_size(message));
  EXPECT(0, weft_topics_message_free(message));
  EXPECT(0, weft_topics_next(prices, WEFT_TOPICS_FOREVER, &message));
  REQUIRE(has_bytes(message, "the last"));
  EXPECT(0, weft_topics_message_free(message));
  EXPECT(WEFT_TOPICS_WOULD_BLOCK, weft_topics_next(prices, 0, &message));
  REQUIRE(message == NULL);
  EXPECT(WEFT_TOPICS_TIMED_OUT, weft_topics_next(prices, 1, &message));

  EXPECT(0, weft_topics_subscription_add(prices, "news.>"));
  EXPECT(0, weft_topics_subscription_remove(prices, "px.*"));
  EXPECT(WEFT_TOPICS_INVALID_ARGUMENT, weft_topics_subscription_remove(prices, "px.*"));
  weft_topics_publisher* const news = open_publisher(left, "news.today");
  EXPECT(0, weft_topics_wait_subscribers(news, 1, WAIT_MS, NULL));
  EXPECT(0, weft_topics_publisher_publish(publisher, "unseen", 6, NULL));
  EXPECT(0, weft_topics_publisher_publish(news, "seen", 4, NULL));
  EXPECT(0, weft_topics_next(prices, WAIT_MS, &message));
  REQUIRE(has_bytes(message, "seen") && has_topic(message, "news.today"));
  EXPECT(0, weft_topics_message_free(message));

  EXPECT(0, weft_topics_publisher_close(news));
  EXPECT(0, weft_topics_publisher_close(publisher));
  EXPECT(0, weft_topics_unsubscribe(prices));
  EXPECT(0, weft_topics_close(left));
  EXPECT(0, weft_topics_close(right));
}

static void a_full_queue_drops_by_its_policy(void) {
  weft_topics* const topics = open_fleet("inproc:full", NULL);
  weft_topics_subscribe_options options;
  memset(&options, 0, sizeof options);
  options.struct_size = sizeof options;
  options.full = WEFT_TOPICS_DROP_NEWEST;
  options.queue_messages_max = 2;
  weft_topics_subscription* subscription = NULL;
  EXPECT(0, weft_topics_subscribe(topics, "a", &options, &subscription));
  for (int i = 0; i < 5; ++i) {
    const char body = (char)('0' + i);
    EXPECT(0, weft_topics_publish(topics, "a", &body, 1, NULL));
  }
  uint64_t missed = 0;
  EXPECT(0, weft_topics_subscription_missed(subscription, &missed));
  EXPECT(3, (int64_t)missed);
  weft_topics_message* message = NULL;
  EXPECT(0, weft_topics_next(subscription, 0, &message));
  REQUIRE(has_bytes(message, "0"));
  EXPECT(0, weft_topics_message_free(message));
  EXPECT(0, weft_topics_unsubscribe(subscription));
  EXPECT(0, weft_topics_close(topics));
}

static void a_drained_subscription_gives_what_it_has(void) {
  weft_topics* const topics = open_fleet("inproc:drained", NULL);
  weft_topics_subscription* const subscription = subscribe(topics, "a");
  weft_topics_message* message = NULL;
  EXPECT(0, weft_topics_publish(topics, "a", "1", 1, NULL));
  EXPECT(0, weft_topics_publish(topics, "a", "2", 1, NULL));
  EXPECT(0, weft_topics_subscription_drain(subscription));
  EXPECT(0, weft_topics_subscription_drain(subscription));
  EXPECT(0, weft_topics_publish(topics, "a", "unseen", 6, NULL));
  EXPECT(WEFT_TOPICS_CLOSED, weft_topics_subscription_add(subscription, "b"));
  EXPECT(0, weft_topics_next(subscription, WAIT_MS, &message));
  REQUIRE(has_bytes(message, "1"));
  EXPECT(0, weft_topics_message_free(message));
  EXPECT(0, weft_topics_close(topics));
  EXPECT(0, weft_topics_next(subscription, WAIT_MS, &message));
  REQUIRE(has_bytes(message, "2"));
  EXPECT(0, weft_topics_message_free(message));
  EXPECT(WEFT_TOPICS_CLOSED, weft_topics_next(subscription, WAIT_MS, &message));
  EXPECT(0, weft_topics_unsubscribe(subscription));
}

static void a_descriptor_announces_messages(void) {
  weft_topics* const topics = open_fleet("inproc:descriptor", NULL);
  weft_topics_subscription* const subscription = subscribe(topics, "a.>");
  weft_topics_message* message = NULL;
  struct pollfd entry = {weft_topics_subscription_fd(subscription), POLLIN, 0};
  REQUIRE(entry.fd >= 0);
  EXPECT(WEFT_TOPICS_WOULD_BLOCK, weft_topics_next(subscription, 0, &message));
  EXPECT(0, poll(&entry, 1, 0));
  for (int i = 0; i < 3; ++i) {
    EXPECT(0, weft_topics_publish(topics, "a.b", "x", 1, NULL));
    EXPECT(1, poll(&entry, 1, WAIT_MS));
    EXPECT(0, weft_topics_next(subscription, 0, &message));
    EXPECT(0, weft_topics_message_free(message));
    EXPECT(WEFT_TOPICS_WOULD_BLOCK, weft_topics_next(subscription, 0, &message));
    EXPECT(0, poll(&entry, 1, 0));
  }
  EXPECT(0, weft_topics_close(topics)); /* the end is an event, too */
  EXPECT(1, poll(&entry, 1, WAIT_MS));
  EXPECT(WEFT_TOPICS_CLOSED, weft_topics_next(subscription, 0, &message));
  EXPECT(0, weft_topics_unsubscribe(subscription));
}

static void publish_and_take(weft_topics_publisher* publisher, weft_topics* reader,
                             weft_topics_subscription* subscription, struct pollfd* fds, nfds_t count, int* taken) {
  weft_topics_message* message = NULL;
  int code = WEFT_TOPICS_WOULD_BLOCK;
  EXPECT(0, weft_topics_publisher_publish(publisher, "x", 1, NULL));
  while (code == WEFT_TOPICS_WOULD_BLOCK) {
    REQUIRE(poll(fds, count, WAIT_MS) > 0);
    if (reader != NULL && fds[1].revents != 0) {
      const int now = weft_topics_take_input(reader);
      REQUIRE(now >= 0);
      *taken += now;
    }
    code = weft_topics_next(subscription, 0, &message);
  }
  EXPECT(0, code);
  REQUIRE(has_bytes(message, "x"));
  EXPECT(0, weft_topics_message_free(message));
}
/* More messages than one call takes, while the program reads nothing else: the descriptor announces the rest, too. */
static void a_loop_takes_a_flood(void) {
  enum { kFlood = 800 };
  weft_topics* const left = open_fleet("inproc:flood", NULL);
  weft_topics* const right = open_fleet("inproc:flood", NULL);
  EXPECT(1, weft_topics_sync(left, WAIT_MS));
  weft_topics_subscription* const subscription = subscribe(right, "a");
  weft_topics_publisher* const publisher = open_publisher(left, "a");
  EXPECT(0, weft_topics_wait_subscribers(publisher, 1, WAIT_MS, NULL));
  struct pollfd input = {weft_topics_input_fd(right), POLLIN, 0};
  struct pollfd queue = {weft_topics_subscription_fd(subscription), POLLIN, 0};
  for (int round = 0; round < 20; ++round) {
    for (int i = 0; i < kFlood; ++i) {
      EXPECT(0, weft_topics_publisher_publish(publisher, "x", 1, NULL));
      if (i % 100 == 0) { /* between two of them the descriptor is cleared */
        REQUIRE(weft_topics_take_input(right) >= 0);
      }
    }
    for (int i = 0; i < kFlood;) {
      weft_topics_message* message = NULL;
      struct pollfd fds[2] = {input, queue};
      REQUIRE(poll(fds, 2, WAIT_MS) > 0);
      REQUIRE(weft_topics_take_input(right) >= 0);
      while (weft_topics_next(subscription, 0, &message) == 0) {
        EXPECT(0, weft_topics_message_free(message));
        ++i;
      }
    }
  }
  EXPECT(0, weft_topics_close(right));
  EXPECT(0, weft_topics_unsubscribe(subscription));
  EXPECT(0, weft_topics_publisher_close(publisher));
  EXPECT(0, weft_topics_close(left));
}

/* A loop reads for its handle. While it does not, the handle's thread reads. */
static void a_loop_takes_the_messages_of_other_handles(const char* fleet, const char* directory) {
  weft_topics* const left = open_fleet(fleet, directory);
  weft_topics* const right = open_fleet(fleet, directory);
  EXPECT(1, weft_topics_sync(left, WAIT_MS));
  weft_topics_subscription* const subscription = subscribe(right, "a");
  weft_topics_publisher* const publisher = open_publisher(left, "a");
  EXPECT(0, weft_topics_wait_subscribers(publisher, 1, WAIT_MS, NULL));
  struct pollfd fds[2] = {{weft_topics_subscription_fd(subscription), POLLIN, 0},
                          {weft_topics_input_fd(right), POLLIN, 0}};
  REQUIRE(fds[1].fd >= 0);
  for (int round = 0; round < 3; ++round) {
    int taken = 0;
    for (int i = 0; i < 100 || (taken == 0 && i < 100000); ++i) { /* the thread reads the first ones, perhaps */
      publish_and_take(publisher, right, subscription, fds, 2, &taken);
    }
    REQUIRE(taken > 0);
    publish_and_take(publisher, NULL, subscription, fds, 1, NULL);
  }
  EXPECT(WEFT_TOPICS_INVALID_ARGUMENT, weft_topics_input_fd(NULL));
  EXPECT(WEFT_TOPICS_INVALID_ARGUMENT, weft_topics_take_input(NULL));
  EXPECT(0, weft_topics_close(right));
  EXPECT(WEFT_TOPICS_CLOSED, weft_topics_input_fd(right));
  EXPECT(WEFT_TOPICS_CLOSED, weft_topics_take_input(right));
  EXPECT(0, weft_topics_unsubscribe(subscription));
  EXPECT(0, weft_topics_publisher_close(publisher));
  EXPECT(0, weft_topics_close(left));
}

static void* wait_for_ever(void* subscription) {
  weft_topics_message* message = NULL;
  EXPECT(WEFT_TOPICS_CLOSED, weft_topics_next(subscription, WEFT_TOPICS_FOREVER, &message));
  return NULL;
}
static void a_close_by_another_thread_ends_each_wait(void) {
  for (int round = 0; round < 100; ++round) {
    weft_topics* const topics = open_fleet("inproc:close", NULL);
    weft_topics_subscription* const subscription = subscribe(topics, "a");
    pthread_t waiters[2];
    for (int i = 0; i < 2; ++i) {
      EXPECT(0, pthread_create(&waiters[i], NULL, wait_for_ever, subscription));
    }
    if (round % 2 == 0) {
      EXPECT(0, weft_topics_unsubscribe(subscription));
      EXPECT(0, weft_topics_close(topics));
    } else {
      EXPECT(0, weft_topics_close(topics));
      EXPECT(0, weft_topics_unsubscribe(subscription));
    }
    for (int i = 0; i < 2; ++i) {
      EXPECT(0, pthread_join(waiters[i], NULL));
    }
  }
}

/* The other process: takes every message, and answers on a topic of its own. */
static int other_process(const char* directory) {
  weft_topics* const topics = open_fleet("local:two", directory);
  weft_topics_subscription* const subscription = subscribe(topics, "count.>");
  for (int i = 0; i < kMessages; ++i) {
    weft_topics_message* message = NULL;
    EXPECT(0, weft_topics_next(subscription, WAIT_MS, &message));
    int number = -1;
    EXPECT(sizeof number, (int64_t)weft_topics_message_size(message));
    memcpy(&number, weft_topics_message_data(message), sizeof number);
    EXPECT(i, number);
    EXPECT(0, weft_topics_message_free(message));
  }
  weft_topics_publisher* const publisher = open_publisher(topics, "done");
  EXPECT(0, weft_topics_wait_subscribers(publisher, 1, WAIT_MS, NULL));
  EXPECT(0, weft_topics_publisher_publish(publisher, "all", 3, NULL));
  weft_topics_message* message = NULL;
  weft_topics_subscription* const end = subscribe(topics, "end");
  EXPECT(0, weft_topics_next(end, WAIT_MS, &message)); /* it stays until the answer has arrived */
  EXPECT(0, weft_topics_message_free(message));
  EXPECT(0, weft_topics_close(topics));
  return 0;
}

static void two_processes(const char* directory) {
  weft_topics* const topics = open_fleet("local:two", directory);
  weft_topics_subscription* const done = subscribe(topics, "done");
  weft_topics_publisher* const publisher = open_publisher(topics, "count.up");
  const pid_t child = start_other(directory);
  EXPECT(0, weft_topics_wait_subscribers(publisher, 1, WAIT_MS, NULL));
  weft_topics_publish_options options;
  memset(&options, 0, sizeof options);
  options.struct_size = sizeof options;
  options.waits_for_room = 1;
  options.timeout_ms = WAIT_MS;
  for (int i = 0; i < kMessages; ++i) {
    EXPECT(0, weft_topics_publisher_publish(publisher, &i, sizeof i, &options));
  }
  weft_topics_message* message = NULL;
  EXPECT(0, weft_topics_next(done, WAIT_MS, &message));
  REQUIRE(has_bytes(message, "all"));
  EXPECT(0, weft_topics_message_free(message));
  weft_topics_publisher* const end = open_publisher(topics, "end");
  EXPECT(0, weft_topics_wait_subscribers(end, 1, WAIT_MS, NULL));
  EXPECT(0, weft_topics_publisher_publish(end, "", 0, NULL));
  await_other(child);
  EXPECT(0, weft_topics_close(topics));
}

int main(int argc, char** argv) {
  if (argc == 3) {
    return other_process(argv[2]);
  }
  char directory[] = "/tmp/weft-capi-XXXXXX";
  REQUIRE(mkdtemp(directory) != NULL);
  messages_flow("inproc:flow", NULL);
  messages_flow("local:flow", directory);
  a_full_queue_drops_by_its_policy();
  a_drained_subscription_gives_what_it_has();
  a_descriptor_announces_messages();
  a_loop_takes_a_flood();
  a_loop_takes_the_messages_of_other_handles("inproc:loop", NULL);
  a_loop_takes_the_messages_of_other_handles("local:loop", directory);
  a_close_by_another_thread_ends_each_wait();
  two_processes(directory);
  return remove_folder(directory);
}
