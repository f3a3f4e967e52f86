/* SPDX-License-Identifier: MIT */
/* Calls that no thread waits for: many at once, deadlines, closes while they are under way, and their misuse. */
#define _GNU_SOURCE
#include <poll.h>
#include <pthread.h>

#include "tests/capi/topics/topics_test.h"
#include "tests/capi/topics/two_processes.h"

#define INVALID WEFT_TOPICS_INVALID_ARGUMENT
enum { kAtOnce = 1000, kMost = 65536 };

static weft_topics_service* serve(weft_topics* topics, const char* topic, size_t queue_max) {
  weft_topics_serve_options options;
  memset(&options, 0, sizeof options);
  options.struct_size = sizeof options;
  options.queue_max = queue_max;
  weft_topics_service* service = NULL;
  EXPECT(0, weft_topics_serve(topics, topic, &options, &service));
  return service;
}
static weft_topics_calls* open_calls(weft_topics* topics) {
  weft_topics_calls* calls = NULL;
  EXPECT(0, weft_topics_calls_open(topics, &calls));
  return calls;
}
static void request(weft_topics_calls* calls, uint64_t tag, const char* topic, const char* body, int64_t timeout_ms) {
  EXPECT(0, weft_topics_calls_request(calls, tag, topic, body, strlen(body), timeout_ms, NULL, 0));
}
static weft_topics_outcome next(weft_topics_calls* calls) {
  weft_topics_outcome outcome;
  EXPECT(0, weft_topics_calls_next(calls, WAIT_MS, &outcome));
  return outcome;
}
static void has_none(weft_topics_calls* calls) {
  weft_topics_outcome outcome;
  EXPECT(WEFT_TOPICS_WOULD_BLOCK, weft_topics_calls_next(calls, 0, &outcome));
  REQUIRE(outcome.tag == 0 && outcome.code == 0 && outcome.message == NULL);
}

/* Takes the outcomes of the tags from `first`, in any order. None has a message. */
static void take(weft_topics_calls* calls, uint64_t first, size_t count, int code) {
  static int seen[kAtOnce];
  memset(seen, 0, sizeof seen);
  for (size_t i = 0; i < count; ++i) {
    const weft_topics_outcome outcome = next(calls);
    REQUIRE(outcome.tag >= first && outcome.tag < first + count && ++seen[outcome.tag - first] == 1);
    REQUIRE(outcome.code == code && outcome.message == NULL);
  }
}

/* All requests are under way before the first one is answered, and the last one is answered first. */
static void a_thousand_requests_at_once(void) {
  static weft_topics_message* requests[kAtOnce];
  static int seen[kAtOnce];
  weft_topics* const topics = open_fleet("inproc:many", NULL);
  weft_topics_service* const service = serve(topics, "svc.slow", kAtOnce);
  weft_topics_calls* const calls = open_calls(topics);
  struct pollfd entry = {weft_topics_calls_fd(calls), POLLIN, 0};
  char body[16];
  for (int i = 0; i < kAtOnce; ++i) {
    snprintf(body, sizeof body, "%d", i);
    request(calls, (uint64_t)i, "svc.slow", body, WEFT_TOPICS_FOREVER);
  }
  for (int i = 0; i < kAtOnce; ++i) {
    EXPECT(0, weft_topics_service_next(service, WAIT_MS, &requests[i]));
  }
  has_none(calls);
  EXPECT(0, poll(&entry, 1, 0));
  for (int i = kAtOnce; i-- > 0;) {
    EXPECT(0, weft_topics_reply(requests[i], weft_topics_message_data(requests[i]),
                                weft_topics_message_size(requests[i]), NULL, 0));
    EXPECT(0, weft_topics_message_free(requests[i]));
  }
  for (int i = 0; i < kAtOnce; ++i) {
    EXPECT(1, poll(&entry, 1, WAIT_MS));
    const weft_topics_outcome outcome = next(calls);
    REQUIRE(outcome.code == 0 && outcome.tag < kAtOnce && ++seen[outcome.tag] == 1);
    snprintf(body, sizeof body, "%d", (int)outcome.tag);
    REQUIRE(has_bytes(outcome.message, body));
    EXPECT(0, weft_topics_message_free(outcome.message));
  }
  has_none(calls);
  EXPECT(0, poll(&entry, 1, 0));
  EXPECT(0, weft_topics_calls_close(calls));
  EXPECT(0, weft_topics_service_close(service));
  EXPECT(0, weft_topics_close(topics));
}

static void each_request_has_its_own_end(void) {
  weft_topics* const topics = open_fleet("inproc:ends", NULL);
  weft_topics_service* const service = serve(topics, "svc", 0);
  weft_topics_calls* const calls = open_calls(topics);
  struct pollfd entry = {weft_topics_calls_fd(calls), POLLIN, 0};
  weft_topics_message* taken = NULL;
  EXPECT(0, weft_topics_sync(topics, WAIT_MS));
  EXPECT(WEFT_TOPICS_UNREACHABLE, weft_topics_calls_request(calls, 1, "nobody", "x", 1, WAIT_MS, NULL, 0));
  has_none(calls);
  /* The later one has the earlier deadline. */
  request(calls, 2, "svc", "forever", WEFT_TOPICS_FOREVER);
  request(calls, 3, "svc", "soon", 20);
  request(calls, 4, "svc", "never", 0);
  EXPECT(1, poll(&entry, 1, WAIT_MS));
  take(calls, 3, 2, WEFT_TOPICS_TIMED_OUT);
  REQUIRE(strstr(weft_last_error_text(), "in time") != NULL);
  has_none(calls);
  for (int i = 0; i < 3; ++i) {
    EXPECT(0, weft_topics_service_next(service, WAIT_MS, &taken));
    EXPECT(0, weft_topics_refuse(taken, WEFT_TOPICS_NOT_PERMITTED, "not today"));
    EXPECT(0, weft_topics_message_free(taken));
  }
  const weft_topics_outcome outcome = next(calls);
  REQUIRE(outcome.tag == 2 && outcome.code == WEFT_TOPICS_NOT_PERMITTED);
  REQUIRE(strstr(weft_last_error_text(), "not today") != NULL);
  has_none(calls); /* the late answers were dropped */
  EXPECT(0, weft_topics_calls_close(calls));
  EXPECT(0, weft_topics_service_close(service));
  EXPECT(0, weft_topics_close(topics));
}

static void the_number_of_calls_has_a_bound(void) {
  weft_topics* const topics = open_fleet("inproc:bound", NULL);
  weft_topics_service* const service = serve(topics, "svc", 1);
  weft_topics_calls* const calls = open_calls(topics);
  for (int i = 0; i < kMost; ++i) { /* the service takes one; the others are refused, and nobody takes their outcomes */
    request(calls, (uint64_t)i, "svc", "x", WAIT_MS);
  }
  EXPECT(WEFT_TOPICS_RESOURCE_EXHAUSTED, weft_topics_calls_request(calls, 0, "svc", "x", 1, WAIT_MS, NULL, 0));
  const weft_topics_outcome outcome = next(calls);
  REQUIRE(outcome.code == WEFT_TOPICS_RESOURCE_EXHAUSTED && outcome.tag != 0);
  request(calls, 0, "svc", "x", WAIT_MS);
  EXPECT(WEFT_TOPICS_RESOURCE_EXHAUSTED, weft_topics_calls_request(calls, 0, "svc", "x", 1, WAIT_MS, NULL, 0));
  EXPECT(0, weft_topics_calls_close(calls));
  EXPECT(0, weft_topics_service_close(service));
  EXPECT(0, weft_topics_close(topics));
}

static void* wait_for_the_end(void* calls) {
  weft_topics_outcome outcome;
  EXPECT(WEFT_TOPICS_CLOSED, weft_topics_calls_next(calls, WEFT_TOPICS_FOREVER, &outcome));
  return NULL;
}

static void closes_while_calls_are_under_way(void) {
  weft_topics* const topics = open_fleet("inproc:close", NULL);
  weft_topics_service* const service = serve(topics, "svc", 0);
  weft_topics_calls* const calls = open_calls(topics);
  weft_topics_calls* const other = open_calls(topics);
  weft_topics_message* taken = NULL;
  request(calls, 1, "svc", "x", WEFT_TOPICS_FOREVER);
  EXPECT(0, weft_topics_service_next(service, WAIT_MS, &taken));
  pthread_t threads[2];
  for (int i = 0; i < 2; ++i) {
    EXPECT(0, pthread_create(&threads[i], NULL, wait_for_the_end, calls));
  }
  EXPECT(0, weft_topics_calls_close(calls));
  for (int i = 0; i < 2; ++i) {
    EXPECT(0, pthread_join(threads[i], NULL));
  }
  EXPECT(0, weft_topics_reply(taken, "late", 4, NULL, 0)); /* nobody gets it */
  EXPECT(0, weft_topics_message_free(taken));
  EXPECT(WEFT_TOPICS_CLOSED, weft_topics_calls_close(calls));
  EXPECT(WEFT_TOPICS_CLOSED, weft_topics_calls_fd(calls));
  EXPECT(WEFT_TOPICS_CLOSED, weft_topics_calls_request(calls, 1, "svc", "x", 1, 0, NULL, 0));

  /* The end of the handle is the outcome of each call. */
  request(other, 7, "svc", "x", WEFT_TOPICS_FOREVER);
  request(other, 8, "svc", "x", WEFT_TOPICS_FOREVER);
  EXPECT(0, weft_topics_close(topics));
  take(other, 7, 2, WEFT_TOPICS_CLOSED);
  EXPECT(WEFT_TOPICS_CLOSED, weft_topics_calls_request(other, 1, "svc", "x", 1, 0, NULL, 0));
  has_none(other);
  EXPECT(0, weft_topics_calls_close(other));
  EXPECT(0, weft_topics_service_close(service));
}

static void refuses(int code, weft_topics_calls* calls) {
  weft_topics_outcome outcome;
  EXPECT(code, weft_topics_calls_fd(calls));
  EXPECT(code, weft_topics_calls_next(calls, 0, &outcome));
  EXPECT(code, weft_topics_calls_request(calls, 1, "a", "x", 1, 0, NULL, 0));
  EXPECT(code, weft_topics_calls_publish(calls, 1, NULL, "a", "x", 1, NULL));
  EXPECT(code, weft_topics_calls_message(calls, 1, NULL, 1));
  EXPECT(code, weft_topics_calls_newest(calls, 1, NULL, "a"));
  EXPECT(code, weft_topics_calls_purge(calls, 1, NULL, 1));
  EXPECT(code, weft_topics_calls_put(calls, 1, NULL, "a", "x", 1));
  EXPECT(code, weft_topics_calls_create(calls, 1, NULL, "a", "x", 1));
  EXPECT(code, weft_topics_calls_update(calls, 1, NULL, "a", "x", 1, 0));
  EXPECT(code, weft_topics_calls_delete(calls, 1, NULL, "a"));
  EXPECT(code, weft_topics_calls_get(calls, 1, NULL, "a"));
  EXPECT(code, weft_topics_calls_info(calls, 1, NULL));
  EXPECT(code, weft_topics_calls_remove(calls, 1, NULL));
  EXPECT(code, weft_topics_calls_keys(calls, 1, NULL, NULL, NULL));
  EXPECT(code, weft_topics_calls_ack_confirmed(calls, 1, NULL));
  EXPECT(code, weft_topics_calls_close(calls));
}

static void each_misuse_is_a_code(void) {
  weft_topics* const topics = open_fleet("inproc:misuse", NULL);
  weft_topics_outcome outcome;
  weft_topics_calls* calls = NULL;
  EXPECT(INVALID, weft_topics_calls_open(topics, NULL));
  EXPECT(INVALID, weft_topics_calls_open(NULL, &calls));
  refuses(INVALID, NULL);
  refuses(INVALID, (weft_topics_calls*)topics);
  calls = open_calls(topics);
  EXPECT(INVALID, weft_topics_calls_next(calls, 0, NULL));
  EXPECT(INVALID, weft_topics_calls_next(calls, -2, &outcome));
  EXPECT(INVALID, weft_topics_calls_request(calls, 1, NULL, "x", 1, 0, NULL, 0));
  EXPECT(INVALID, weft_topics_calls_request(calls, 1, "a.*", "x", 1, 0, NULL, 0));
  EXPECT(INVALID, weft_topics_calls_request(calls, 1, "a", NULL, 1, 0, NULL, 0));
  EXPECT(INVALID, weft_topics_calls_request(calls, 1, "a", "x", 1, -2, NULL, 0));
  EXPECT(INVALID, weft_topics_calls_request(calls, 1, "a", "x", 1, 0, NULL, 1));
  EXPECT(INVALID, weft_topics_calls_publish(calls, 1, NULL, "a", "x", 1, NULL));
  EXPECT(INVALID, weft_topics_calls_publish(calls, 1, (weft_topics_stream*)topics, "a", "x", 1, NULL));
  EXPECT(INVALID, weft_topics_calls_get(calls, 1, (weft_topics_kv*)calls, "a"));
  has_none(calls);
  const pid_t child = fork();
  if (child == 0) {
    refuses(WEFT_TOPICS_INVALID_STATE, calls);
    _exit(0);
  }
  await_other(child);
  EXPECT(0, weft_topics_calls_close(calls));
  refuses(WEFT_TOPICS_CLOSED, calls);
  EXPECT(0, weft_topics_close(topics));
}

/* A request that comes before the roster of the other process waits for it. */
static int other_process(const char* directory) {
  weft_topics* const topics = open_fleet("local:calls", directory);
  weft_topics_service* const service = serve(topics, "svc.other", 0);
  weft_topics_message* taken = NULL;
  int answered = 0;
  while (!answered) {
    EXPECT(0, weft_topics_service_next(service, WAIT_MS, &taken));
    answered = has_bytes(taken, "end");
    EXPECT(0, weft_topics_reply(taken, "here", 4, NULL, 0));
    EXPECT(0, weft_topics_message_free(taken));
  }
  EXPECT(0, weft_topics_close(topics));
  return 0;
}
static void requests_reach_another_process(const char* directory) {
  const pid_t child = start_other(directory);
  weft_topics_outcome outcome;
  memset(&outcome, 0, sizeof outcome);
  int waited = 0;
  do { /* each turn has a handle that does not know the other process yet */
    weft_topics* const topics = open_fleet("local:calls", directory);
    weft_topics_calls* const calls = open_calls(topics);
    outcome.code = weft_topics_calls_request(calls, 1, "svc.other", "x", 1, WAIT_MS, NULL, 0);
    if (outcome.code == 0) {
      outcome = next(calls);
      ++waited;
    }
    REQUIRE(outcome.code == 0 || outcome.code == WEFT_TOPICS_UNREACHABLE);
    if (outcome.code == 0) {
      REQUIRE(has_bytes(outcome.message, "here"));
      EXPECT(0, weft_topics_message_free(outcome.message));
      request(calls, 2, "svc.other", "end", WAIT_MS);
      (void)next(calls);
    }
    EXPECT(0, weft_topics_calls_close(calls));
    EXPECT(0, weft_topics_close(topics));
  } while (outcome.code != 0);
  REQUIRE(waited > 0);
  await_other(child);
}

static weft_topics_outcome answer_to(weft_topics_calls* calls, int begun) {
  EXPECT(0, begun);
  const weft_topics_outcome outcome = next(calls);
  EXPECT(5, (int64_t)outcome.tag);
  return outcome;
}

/* Acknowledges all messages of the stream except the last one, which it returns. */
static weft_topics_message* acknowledge(weft_topics_calls* calls, weft_topics_stream* stream) {
  static weft_topics_message* messages[kAtOnce];
  weft_topics_consumer* consumer = NULL;
  weft_topics_consume_options options;
  memset(&options, 0, sizeof options);
  options.struct_size = sizeof options;
  options.unacked_max = kAtOnce;
  options.queue_messages_max = kAtOnce;
  EXPECT(0, weft_topics_consume(stream, "workers", &options, &consumer));
  for (int i = 0; i < kAtOnce; ++i) {
    EXPECT(0, weft_topics_consumer_next(consumer, WAIT_MS, &messages[i]));
  }
  EXPECT(INVALID, weft_topics_calls_ack_confirmed(NULL, 1, messages[0])); /* no queue took it: no outcome */
  for (int i = 0; i < kAtOnce - 1; ++i) {
    EXPECT(0, weft_topics_calls_ack_confirmed(calls, (uint64_t)i, messages[i]));
    EXPECT(WEFT_TOPICS_INVALID_STATE, weft_topics_calls_ack_confirmed(calls, 1, messages[i]));
    EXPECT(WEFT_TOPICS_INVALID_STATE, weft_topics_nak(messages[i], 0));
    EXPECT(0, weft_topics_message_free(messages[i]));
  }
  take(calls, 0, kAtOnce - 1, 0);
  EXPECT(0, weft_topics_consumer_close(consumer));
  return messages[kAtOnce - 1];
}

static void info_has(weft_topics_outcome outcome, uint64_t first, uint64_t next_sequence) {
  weft_topics_stream_info info;
  EXPECT(0, outcome.code);
  EXPECT(0, weft_topics_message_info(outcome.message, &info));
  REQUIRE(info.first == first && info.next == next_sequence && info.instance != 0);
  REQUIRE(weft_topics_message_data(outcome.message) == NULL && weft_topics_message_size(outcome.message) == 0);
  EXPECT(INVALID, weft_topics_message_info(outcome.message, NULL));
  EXPECT(INVALID, weft_topics_ack(outcome.message));
  EXPECT(0, weft_topics_message_free(outcome.message));
  EXPECT(INVALID, weft_topics_message_info(outcome.message, &info));
}

static void keys_in_pages(weft_topics_calls* calls, weft_topics_kv* kv) {
  enum { kKeys = 600 };
  char key[16];
  for (int i = 0; i < kKeys; ++i) {
    snprintf(key, sizeof key, "k.%03d", i);
    EXPECT(0, weft_topics_calls_put(calls, 1, kv, key, "x", 1));
  }
  for (int i = 0; i < kKeys; ++i) {
    EXPECT(0, next(calls).code);
  }
  weft_topics_outcome page;
  memset(&page, 0, sizeof page);
  const char* after = NULL;
  size_t found = 0;
  int pages = 0;
  do {
    weft_topics_names* names = NULL;
    size_t count = 0;
    EXPECT(0, weft_topics_calls_keys(calls, 5, kv, "k.*", after));
    EXPECT(page.message == NULL ? INVALID : 0, weft_topics_message_free(page.message)); /* it had `after` */
    page = next(calls);
    REQUIRE(page.code == 0 && page.tag == 5);
    EXPECT(0, weft_topics_message_keys(page.message, &names, &after));
    EXPECT(0, weft_topics_names_count(names, &count));
    for (size_t i = 0; i < count; ++i, ++found) {
      const char* name = NULL;
      EXPECT(0, weft_topics_names_at(names, i, &name, NULL));
      snprintf(key, sizeof key, "k.%03d", (int)found);
      REQUIRE(strcmp(name, key) == 0);
    }
    EXPECT(0, weft_topics_names_free(names));
    ++pages;
  } while (after != NULL);
  EXPECT(kKeys, (int)found);
  REQUIRE(pages > 1);
  weft_topics_names* names = NULL;
  weft_topics_stream_info info;
  EXPECT(INVALID, weft_topics_message_info(page.message, &info));
  EXPECT(INVALID, weft_topics_message_keys(page.message, NULL, &after));
  EXPECT(INVALID, weft_topics_message_keys(page.message, &names, NULL));
  EXPECT(0, weft_topics_message_free(page.message));
  EXPECT(INVALID, weft_topics_message_keys(page.message, &names, &after));
  EXPECT(INVALID, weft_topics_calls_keys(calls, 5, kv, "a..b", NULL));
}

static void kept_topics(const char* directory) {
  weft_topics* const topics = open_fleet("local:kept", directory);
  weft_topics_stream_options options;
  memset(&options, 0, sizeof options);
  options.struct_size = sizeof options;
  options.survives = WEFT_TOPICS_SURVIVES_PROCESS;
  weft_topics_stream* stream = NULL;
  weft_topics_kv* kv = NULL;
  const int opened = weft_topics_stream_open(topics, "orders", &options, &stream);
  if (opened == WEFT_TOPICS_NOT_SUPPORTED) { /* a build without SQLite */
    EXPECT(0, weft_topics_close(topics));
    return;
  }
  EXPECT(0, opened);
  EXPECT(0, weft_topics_kv_open(topics, "config", NULL, &kv));
  weft_topics_calls* const calls = open_calls(topics);
  static uint64_t sequences[kAtOnce];
  char body[16];
  for (int i = 0; i < kAtOnce; ++i) {
    snprintf(body, sizeof body, "%d", i);
    EXPECT(0, weft_topics_calls_publish(calls, (uint64_t)i, stream, "orders.eu", body, strlen(body), NULL));
  }
  for (int i = 0; i < kAtOnce; ++i) {
    const weft_topics_outcome kept = next(calls);
    REQUIRE(kept.code == 0 && kept.published.instance != 0 && sequences[kept.tag] == 0);
    sequences[kept.tag] = kept.published.sequence;
  }
  for (int i = 0; i < kAtOnce; ++i) {
    EXPECT(i + 1, (int64_t)sequences[i]); /* in the order in which they were begun */
  }
  weft_topics_outcome outcome = answer_to(calls, weft_topics_calls_message(calls, 5, stream, 8));
  REQUIRE(outcome.code == 0 && has_bytes(outcome.message, "7") && weft_topics_message_sequence(outcome.message) == 8);
  EXPECT(0, weft_topics_message_free(outcome.message));
  outcome = answer_to(calls, weft_topics_calls_newest(calls, 5, stream, "orders.eu"));
  REQUIRE(outcome.code == 0 && has_bytes(outcome.message, "999") && has_topic(outcome.message, "orders.eu"));
  EXPECT(0, weft_topics_message_free(outcome.message));
  outcome = answer_to(calls, weft_topics_calls_newest(calls, 5, stream, "orders.us"));
  REQUIRE(outcome.code == WEFT_TOPICS_NOT_FOUND && outcome.message == NULL);
  EXPECT(WEFT_TOPICS_NOT_FOUND, weft_topics_calls_message(calls, 5, stream, 0));
  weft_topics_append_options how;
  memset(&how, 0, sizeof how);
  how.struct_size = sizeof how;
  how.strict = 1;
  EXPECT(INVALID, weft_topics_calls_publish(calls, 5, stream, "a", "x", 1, &how));
  EXPECT(INVALID, weft_topics_calls_publish(calls, 5, stream, NULL, "x", 1, NULL));
  how.strict = 0;
  how.expects_last = 1;
  outcome = answer_to(calls, weft_topics_calls_publish(calls, 5, stream, "orders.eu", "x", 1, &how));
  EXPECT(WEFT_TOPICS_CONFLICT, outcome.code);

  weft_topics_message* const unacked = acknowledge(calls, stream);
  info_has(answer_to(calls, weft_topics_calls_info(calls, 5, stream)), 1, kAtOnce + 1);
  outcome = answer_to(calls, weft_topics_calls_purge(calls, 5, stream, 9));
  REQUIRE(outcome.code == 0 && outcome.message == NULL && outcome.published.sequence == 0);
  outcome = answer_to(calls, weft_topics_calls_message(calls, 5, stream, 8));
  EXPECT(WEFT_TOPICS_NOT_FOUND, outcome.code);
  outcome = answer_to(calls, weft_topics_calls_message(calls, 5, stream, 9));
  REQUIRE(outcome.code == 0 && has_bytes(outcome.message, "8"));
  EXPECT(0, weft_topics_message_free(outcome.message));

  weft_topics_batch_message batch[2];
  memset(batch, 0, sizeof batch);
  batch[0].topic = "orders.eu";
  EXPECT(INVALID, weft_topics_calls_publish_all(calls, 5, stream, NULL, 2, sizeof *batch, 0));
  EXPECT(INVALID, weft_topics_calls_publish_all(calls, 5, stream, batch, 2, sizeof *batch, 0)); /* a topic is missing */
  EXPECT(INVALID, weft_topics_calls_publish_all(calls, 5, stream, batch, 0, sizeof *batch, 0));
  EXPECT(INVALID, weft_topics_calls_publish_all(calls, 5, stream, batch, 1, sizeof *batch - 1, 0));
  EXPECT(WEFT_TOPICS_NOT_SUPPORTED, weft_topics_calls_publish_all(calls, 5, stream, batch, 1, sizeof *batch + 8, 0));
  batch[1].topic = "orders.us";
  batch[1].expects_last = 1;
  batch[1].last = 7;
  outcome = answer_to(calls, weft_topics_calls_publish_all(calls, 5, stream, batch, 2, sizeof *batch, WAIT_MS));
  EXPECT(WEFT_TOPICS_CONFLICT, outcome.code);

  outcome = answer_to(calls, weft_topics_calls_put(calls, 5, kv, "color", "blue", 4));
  REQUIRE(outcome.code == 0 && outcome.published.sequence == 1);
  outcome = answer_to(calls, weft_topics_calls_create(calls, 5, kv, "color", "red", 3));
  EXPECT(WEFT_TOPICS_CONFLICT, outcome.code);
  outcome = answer_to(calls, weft_topics_calls_update(calls, 5, kv, "color", "green", 5, 1));
  REQUIRE(outcome.code == 0 && outcome.published.sequence == 2);
  weft_topics_put_options put;
  memset(&put, 0, sizeof put);
  put.struct_size = sizeof put;
  put.put_if = WEFT_TOPICS_PUT_IF_SEEN;
  put.seen = 1;
  put.time_to_live_ms = 3600000;
  outcome = answer_to(calls, weft_topics_calls_put_with(calls, 5, kv, "color", "gray", 4, &put));
  EXPECT(WEFT_TOPICS_CONFLICT, outcome.code);
  put.time_to_live_ms = 999;
  EXPECT(INVALID, weft_topics_calls_put_with(calls, 5, kv, "color", "gray", 4, &put));
  outcome = answer_to(calls, weft_topics_calls_get(calls, 5, kv, "color"));
  REQUIRE(outcome.code == 0 && has_topic(outcome.message, "color") && has_bytes(outcome.message, "green"));
  EXPECT(0, weft_topics_message_free(outcome.message));
  outcome = answer_to(calls, weft_topics_calls_delete(calls, 5, kv, "color"));
  REQUIRE(outcome.code == 0 && outcome.published.sequence == 3);
  outcome = answer_to(calls, weft_topics_calls_get(calls, 5, kv, "color"));
  EXPECT(WEFT_TOPICS_NOT_FOUND, outcome.code);
  EXPECT(INVALID, weft_topics_calls_get(calls, 5, kv, NULL));
  keys_in_pages(calls, kv);

  /* A queue that closes while the hub works: the messages are kept. */
  for (int i = 0; i < kAtOnce; ++i) {
    EXPECT(0, weft_topics_calls_publish(calls, 1, stream, "orders.uk", "x", 1, NULL));
  }
  EXPECT(0, weft_topics_calls_close(calls));
  weft_topics_published last;
  EXPECT(0, weft_topics_stream_publish(stream, "orders.uk", "last", 4, NULL, &last));
  EXPECT(2 * kAtOnce + 1, (int64_t)last.sequence);

  /* The hub refuses an acknowledgement after the removal. It is the outcome of the message nevertheless. */
  weft_topics_calls* const other = open_calls(topics);
  outcome = answer_to(other, weft_topics_calls_remove(other, 5, stream));
  EXPECT(0, outcome.code);
  outcome = answer_to(other, weft_topics_calls_info(other, 5, stream));
  REQUIRE(outcome.code == WEFT_TOPICS_NOT_FOUND && outcome.message == NULL);
  outcome = answer_to(other, weft_topics_calls_ack_confirmed(other, 5, unacked));
  EXPECT(WEFT_TOPICS_NOT_FOUND, outcome.code);
  EXPECT(WEFT_TOPICS_INVALID_STATE, weft_topics_nak(unacked, 0));
  EXPECT(0, weft_topics_message_free(unacked));
  EXPECT(0, weft_topics_calls_close(other));
  EXPECT(0, weft_topics_kv_close(kv));
  EXPECT(0, weft_topics_stream_close(stream));
  EXPECT(0, weft_topics_close(topics));
}

int main(int argc, char** argv) {
  if (argc == 3) {
    return other_process(argv[2]);
  }
  char directory[] = "/tmp/weft-capi-XXXXXX";
  REQUIRE(mkdtemp(directory) != NULL);
  REQUIRE(setenv("XDG_STATE_HOME", directory, 1) == 0);
  a_thousand_requests_at_once();
  each_request_has_its_own_end();
  the_number_of_calls_has_a_bound();
  closes_while_calls_are_under_way();
  each_misuse_is_a_code();
  requests_reach_another_process(directory);
  kept_topics(directory);
  return remove_folder(directory);
}
