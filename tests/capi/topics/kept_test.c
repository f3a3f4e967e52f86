/* SPDX-License-Identifier: MIT */
/* Kept topics: streams, readers, consumers, keys with values, with the hub in this process and in another one. Ends with
   77, which is a skipped test, in a build without SQLite. */
#define _GNU_SOURCE
#include <poll.h>
#include <unistd.h>

#include "tests/capi/topics/topics_test.h"
#include "tests/capi/topics/two_processes.h"

#define INVALID WEFT_TOPICS_INVALID_ARGUMENT
#define CLOSED WEFT_TOPICS_CLOSED
enum { kMessages = 500 };

static weft_topics_stream* open_stream(weft_topics* topics, const char* name, const char* filter, int keep) {
  weft_topics_stream_options options;
  memset(&options, 0, sizeof options);
  options.struct_size = sizeof options;
  options.topics = &filter;
  options.topic_count = 1;
  options.keep = keep;
  options.survives = WEFT_TOPICS_SURVIVES_PROCESS;
  weft_topics_stream* stream = NULL;
  EXPECT(0, weft_topics_stream_open(topics, name, &options, &stream));
  return stream;
}
static uint64_t append(weft_topics_stream* stream, const char* topic, const char* body) {
  weft_topics_published published;
  EXPECT(0, weft_topics_stream_publish(stream, topic, body, strlen(body), NULL, &published));
  REQUIRE(published.sequence != 0 && published.instance != 0 && published.duplicate == 0);
  return published.sequence;
}
static int has_id(const weft_topics_message* message, const char* text) {
  size_t size = 0;
  const char* const id = weft_topics_message_id(message, &size);
  return size == strlen(text) && memcmp(id, text, size) == 0;
}

static void a_stream_keeps(weft_topics* topics) {
  weft_topics_stream* const stream = open_stream(topics, "orders", "orders.>", WEFT_TOPICS_KEEP_LOG);
  const weft_topics_header header = {"Unit", "piece"};
  weft_topics_append_options options;
  memset(&options, 0, sizeof options);
  options.struct_size = sizeof options;
  options.id = "17";
  options.headers = &header;
  options.header_count = 1;
  options.timeout_ms = WAIT_MS;
  weft_topics_published first;
  weft_topics_published again;
  EXPECT(0, weft_topics_stream_publish(stream, "orders.eu", "one", 3, &options, &first));
  EXPECT(0, weft_topics_stream_publish(stream, "orders.eu", "one", 3, &options, &again));
  REQUIRE(first.sequence == 1 && first.duplicate == 0 && again.sequence == 1 && again.duplicate == 1);
  options.id = NULL;
  options.expects_last = 1;
  EXPECT(WEFT_TOPICS_CONFLICT, weft_topics_stream_publish(stream, "orders.eu", "two", 3, &options, NULL));
  options.last = 1;
  EXPECT(0, weft_topics_stream_publish(stream, "orders.eu", "two", 3, &options, NULL));
  EXPECT(3, (int64_t)append(stream, "orders.us", "three"));
  EXPECT(INVALID, weft_topics_stream_publish(stream, "px.a", "x", 1, NULL, NULL));
  weft_topics_stream* const batches = open_stream(topics, "batches", "batches.>", WEFT_TOPICS_KEEP_LOG);
  weft_topics_batch_message batch[3];
  memset(batch, 0, sizeof batch);
  batch[0].topic = batch[1].topic = batch[2].topic = "batches.a";
  batch[1].data = "two";
  batch[1].size = 3;
  batch[1].headers = &header;
  batch[1].header_count = 1;
  batch[2].time_to_live_ms = 3600000;
  weft_topics_published stored;
  EXPECT(0, weft_topics_stream_publish_all(batches, batch, 3, sizeof *batch, WAIT_MS, &stored));
  REQUIRE(stored.sequence == 1 && stored.duplicate == 0);
  weft_topics_message* second = NULL;
  EXPECT(0, weft_topics_stream_message(batches, 2, &second));
  REQUIRE(has_bytes(second, "two"));
  EXPECT(0, weft_topics_message_free(second));
  weft_topics_read_options later;
  memset(&later, 0, sizeof later);
  later.struct_size = sizeof later;
  later.from = WEFT_TOPICS_FROM_SEQUENCE;
  later.from_value = 4;
  weft_topics_reader* waits = NULL;
  EXPECT(0, weft_topics_read(batches, &later, &waits));
  weft_topics_append_options delayed;
  memset(&delayed, 0, sizeof delayed);
  delayed.struct_size = sizeof delayed;
  delayed.delay_ms = 20;
  EXPECT(0, weft_topics_stream_publish(batches, "batches.a", "later", 5, &delayed, &stored));
  REQUIRE(stored.sequence == 0 && stored.duplicate == 0);
  EXPECT(0, weft_topics_reader_next(waits, WAIT_MS, &second));
  REQUIRE(has_bytes(second, "later") && weft_topics_message_sequence(second) == 4);
  EXPECT(0, weft_topics_message_free(second));
  EXPECT(0, weft_topics_reader_close(waits));
  batch[2].time_to_live_ms = 1;
  EXPECT(INVALID, weft_topics_stream_publish_all(batches, batch, 3, sizeof *batch, 0, NULL));
  EXPECT(INVALID, weft_topics_stream_publish_all(batches, NULL, 3, sizeof *batch, 0, NULL));
  EXPECT(INVALID, weft_topics_stream_publish_all(NULL, batch, 3, sizeof *batch, 0, NULL));
  EXPECT(0, weft_topics_stream_close(batches));

  weft_topics_message* message = NULL;
  EXPECT(0, weft_topics_stream_message(stream, 1, &message));
  REQUIRE(has_bytes(message, "one") && has_topic(message, "orders.eu") && has_id(message, "17"));
  EXPECT(1, (int64_t)weft_topics_message_sequence(message));
  EXPECT((int64_t)first.instance, (int64_t)weft_topics_message_instance(message));
  REQUIRE(weft_topics_message_time_ns(message) > INT64_C(1500000000000000000));
  REQUIRE(weft_topics_message_is_erased(message) == 0 && weft_topics_message_tries(message) == 0);
  size_t size = 0;
  const char* const unit = weft_topics_message_header(message, "Unit", &size);
  REQUIRE(size == 5 && memcmp(unit, "piece", 5) == 0);
  EXPECT(INVALID, weft_topics_ack(message)); /* it is not of a consumer */
  EXPECT(0, weft_topics_message_free(message));
  EXPECT(0, weft_topics_stream_newest(stream, "orders.eu", &message));
  REQUIRE(has_bytes(message, "two"));
  EXPECT(0, weft_topics_message_free(message));
  EXPECT(WEFT_TOPICS_NOT_FOUND, weft_topics_stream_message(stream, 99, &message));
  EXPECT(WEFT_TOPICS_NOT_FOUND, weft_topics_stream_newest(stream, "orders.none", &message));

  weft_topics_read_options read;
  memset(&read, 0, sizeof read);
  read.struct_size = sizeof read;
  read.from = WEFT_TOPICS_FROM_SEQUENCE;
  read.from_value = 2;
  weft_topics_reader* reader = NULL;
  EXPECT(0, weft_topics_read(stream, &read, &reader));
  struct pollfd entry = {weft_topics_reader_fd(reader), POLLIN, 0};
  const char* const bodies[] = {"two", "three"};
  for (int i = 0; i < 2; ++i) {
    EXPECT(0, weft_topics_reader_next(reader, WAIT_MS, &message));
    REQUIRE(has_bytes(message, bodies[i]));
    EXPECT(0, weft_topics_message_free(message));
  }
  while (weft_topics_reader_is_live(reader) == 0) { /* the hub reports the end of the stored messages */
    EXPECT(WEFT_TOPICS_WOULD_BLOCK, weft_topics_reader_next(reader, 0, &message));
    if (weft_topics_reader_is_live(reader) == 0) {
      EXPECT(1, poll(&entry, 1, WAIT_MS));
    }
  }
  EXPECT(1, weft_topics_reader_is_live(reader));
  EXPECT(WEFT_TOPICS_WOULD_BLOCK, weft_topics_reader_next(reader, 0, &message));
  EXPECT(0, poll(&entry, 1, 0));
  EXPECT(4, (int64_t)append(stream, "orders.eu", "four"));
  EXPECT(1, poll(&entry, 1, WAIT_MS));
  EXPECT(0, weft_topics_reader_next(reader, 0, &message));
  REQUIRE(has_bytes(message, "four"));
  EXPECT(0, weft_topics_message_free(message));

  weft_topics_stream_info info;
  EXPECT(0, weft_topics_stream_purge(stream, 3));
  EXPECT(0, weft_topics_stream_get_info(stream, &info));
  REQUIRE(info.first == 3 && info.next == 5 && info.bytes > 0 && info.instance == first.instance);
  EXPECT(0, weft_topics_stream_remove(stream));
  EXPECT(WEFT_TOPICS_NOT_FOUND, weft_topics_reader_next(reader, WAIT_MS, &message));
  EXPECT(WEFT_TOPICS_NOT_FOUND, weft_topics_stream_publish(stream, "orders.eu", "x", 1, NULL, NULL));
  EXPECT(0, weft_topics_reader_close(reader));
  EXPECT(CLOSED, weft_topics_reader_close(reader));
  EXPECT(0, weft_topics_stream_close(stream));
  EXPECT(CLOSED, weft_topics_stream_close(stream));
}

static void many_messages_are_under_way(weft_topics* topics) {
  enum { kLater = 100 };
  weft_topics_pending* pending[kLater];
  weft_topics_stream* const stream = open_stream(topics, "later", "later.>", WEFT_TOPICS_KEEP_LOG);
  weft_topics_published published;
  for (int i = 0; i < kLater; ++i) {
    EXPECT(0, weft_topics_stream_publish_later(stream, "later.a", "x", 1, NULL, &pending[i]));
  }
  struct pollfd entry = {weft_topics_pending_fd(pending[kLater - 1]), POLLIN, 0};
  int code = 0;
  while ((code = weft_topics_pending_wait(pending[kLater - 1], 0, &published)) == WEFT_TOPICS_WOULD_BLOCK) {
    EXPECT(1, poll(&entry, 1, WAIT_MS));
  }
  EXPECT(0, code);
  EXPECT(kLater, (int64_t)published.sequence);
  EXPECT(0, weft_topics_pending_close(pending[0])); /* the message is kept nevertheless */
  for (int i = 1; i < kLater; ++i) {
    EXPECT(0, weft_topics_pending_wait(pending[i], WAIT_MS, &published));
    EXPECT(i + 1, (int64_t)published.sequence);
    EXPECT(0, weft_topics_pending_wait(pending[i], WEFT_TOPICS_FOREVER, NULL));
    EXPECT(0, weft_topics_pending_close(pending[i]));
    EXPECT(CLOSED, weft_topics_pending_wait(pending[i], 0, &published));
  }
  weft_topics_append_options options;
  memset(&options, 0, sizeof options);
  options.struct_size = sizeof options;
  options.strict = 1;
  EXPECT(INVALID, weft_topics_stream_publish_later(stream, "later.a", "x", 1, &options, &pending[0]));
  EXPECT(0, weft_topics_stream_publish(stream, "later.a", "x", 1, &options, &published));
  EXPECT(kLater + 1, (int64_t)published.sequence);
  EXPECT(INVALID, weft_topics_stream_publish_later(stream, "later.a", "x", 1, NULL, NULL));
  EXPECT(INVALID, weft_topics_stream_publish_later(stream, NULL, "x", 1, NULL, &pending[0]));
  EXPECT(INVALID, weft_topics_pending_wait(NULL, 0, NULL));
  EXPECT(INVALID, weft_topics_pending_fd(NULL));
  EXPECT(INVALID, weft_topics_pending_close(NULL));
  EXPECT(0, weft_topics_stream_close(stream));
}

static void a_member_of_a_lower_number_is_first(weft_topics* topics) {
  weft_topics_stream* const stream = open_stream(topics, "priorities", "priorities.>", WEFT_TOPICS_KEEP_LOG);
  weft_topics_consume_options options;
  memset(&options, 0, sizeof options);
  options.struct_size = sizeof options;
  options.prioritized = 1;
  weft_topics_consumer* next = NULL;
  weft_topics_consumer* first = NULL;
  weft_topics_message* message = NULL;
  options.priority = 9;
  EXPECT(0, weft_topics_consume(stream, "workers", &options, &next));
  options.priority = 0;
  options.queue_messages_max = 2;
  EXPECT(0, weft_topics_consume(stream, "workers", &options, &first));
  for (int i = 0; i < 3; ++i) {
    (void)append(stream, "priorities.a", i == 2 ? "last" : "a");
  }
  EXPECT(0, weft_topics_consumer_next(next, WAIT_MS, &message)); /* the first member has no room */
  REQUIRE(has_bytes(message, "last"));
  EXPECT(0, weft_topics_message_free(message));
  EXPECT(0, weft_topics_consumer_next(first, WAIT_MS, &message));
  REQUIRE(has_bytes(message, "a"));
  EXPECT(0, weft_topics_message_free(message));
  EXPECT(0, weft_topics_consumer_close(first));
  EXPECT(0, weft_topics_consumer_close(next));
  options.priority = 10;
  EXPECT(INVALID, weft_topics_consume(stream, "workers", &options, &next));
  options.priority = UINT32_MAX;
  EXPECT(INVALID, weft_topics_consume(stream, "workers", &options, &next));
  options.prioritized = 0; /* then the number is no number */
  EXPECT(0, weft_topics_consume(stream, "workers", &options, &next));
  EXPECT(0, weft_topics_consumer_close(next));
  EXPECT(0, weft_topics_stream_close(stream));
}

static void a_consumer_acknowledges(weft_topics* topics) {
  weft_topics_stream* const stream = open_stream(topics, "work", "work.>", WEFT_TOPICS_KEEP_LOG);
  weft_topics_consume_options options;
  memset(&options, 0, sizeof options);
  options.struct_size = sizeof options;
  options.dead_letters = "work.dead";
  options.tries_max = 3;
  options.filter = "work.todo";
  weft_topics_consumer* consumer = NULL;
  weft_topics_message* message = NULL;
  EXPECT(0, weft_topics_consume(stream, "workers", &options, &consumer));
  struct pollfd entry = {weft_topics_consumer_fd(consumer), POLLIN, 0};
  EXPECT(WEFT_TOPICS_WOULD_BLOCK, weft_topics_consumer_next(consumer, 0, &message));
  (void)append(stream, "work.todo", "a");
  EXPECT(1, poll(&entry, 1, WAIT_MS));
  EXPECT(0, weft_topics_consumer_next(consumer, WAIT_MS, &message));
  REQUIRE(has_bytes(message, "a") && weft_topics_message_tries(message) == 0);
  EXPECT(0, weft_topics_working(message));
  EXPECT(0, weft_topics_nak(message, 0));
  EXPECT(WEFT_TOPICS_INVALID_STATE, weft_topics_ack(message));
  EXPECT(WEFT_TOPICS_INVALID_STATE, weft_topics_ack_confirmed(message));
  EXPECT(WEFT_TOPICS_INVALID_STATE, weft_topics_nak(message, -1));
  EXPECT(WEFT_TOPICS_INVALID_STATE, weft_topics_reject(message, "no"));
  EXPECT(WEFT_TOPICS_INVALID_STATE, weft_topics_working(message));
  EXPECT(0, weft_topics_message_free(message));
  EXPECT(0, weft_topics_consumer_next(consumer, WAIT_MS, &message)); /* delivered again */
  REQUIRE(has_bytes(message, "a") && weft_topics_message_tries(message) == 1);
  EXPECT(0, weft_topics_ack_confirmed(message));
  EXPECT(0, weft_topics_message_free(message));
  (void)append(stream, "work.todo", "b");
  EXPECT(0, weft_topics_consumer_next(consumer, WAIT_MS, &message));
  EXPECT(0, weft_topics_reject(message, "spoilt"));
  EXPECT(0, weft_topics_message_free(message));
  (void)append(stream, "work.todo", "c");
  EXPECT(0, weft_topics_consumer_next(consumer, WAIT_MS, &message));
  REQUIRE(has_bytes(message, "c"));
  EXPECT(0, weft_topics_ack(message));
  EXPECT(0, weft_topics_message_free(message));
  EXPECT(0, weft_topics_consumer_close(consumer));
  EXPECT(CLOSED, weft_topics_consumer_close(consumer));
  options.filter = "work.>";
  EXPECT(WEFT_TOPICS_CONFLICT, weft_topics_consume(stream, "workers", &options, &consumer));
  REQUIRE(consumer == NULL);
  EXPECT(0, weft_topics_consume(stream, "late", NULL, &consumer));
  EXPECT(0, weft_topics_consumer_next(consumer, WAIT_MS, &message));
  EXPECT(0, weft_topics_stream_remove(stream));
  REQUIRE(weft_topics_ack_confirmed(message) != 0); /* an outcome, although the hub refuses it */
  EXPECT(WEFT_TOPICS_INVALID_STATE, weft_topics_nak(message, 0));
  EXPECT(0, weft_topics_message_free(message));
  EXPECT(0, weft_topics_consumer_close(consumer));
  EXPECT(0, weft_topics_stream_close(stream));
}

static void a_bucket_has_values(weft_topics* topics) {
  weft_topics_kv* kv = NULL;
  weft_topics_message* message = NULL;
  uint64_t revision = 7;
  uint64_t next = 0;
  EXPECT(0, weft_topics_kv_open(topics, "bucket", NULL, &kv));
  EXPECT(WEFT_TOPICS_NOT_FOUND, weft_topics_kv_get(kv, "a.b", &message));
  EXPECT(0, weft_topics_kv_create(kv, "a.b", "1", 1, &revision));
  EXPECT(WEFT_TOPICS_CONFLICT, weft_topics_kv_create(kv, "a.b", "2", 1, &next));
  REQUIRE(next == 0 && revision != 0);
  EXPECT(0, weft_topics_kv_update(kv, "a.b", "2", 1, revision, &next));
  REQUIRE(next > revision);
  EXPECT(WEFT_TOPICS_CONFLICT, weft_topics_kv_update(kv, "a.b", "3", 1, revision, NULL));
  EXPECT(0, weft_topics_kv_put(kv, "c", NULL, 0, NULL));
  EXPECT(0, weft_topics_kv_get(kv, "a.b", &message));
  REQUIRE(has_bytes(message, "2") && has_topic(message, "a.b") && weft_topics_message_sequence(message) == next);
  EXPECT(0, weft_topics_message_free(message));

  weft_topics_names* names = NULL;
  const char* name = NULL;
  size_t count = 0;
  size_t size = 0;
  EXPECT(0, weft_topics_kv_keys(kv, NULL, &names));
  EXPECT(0, weft_topics_names_count(names, &count));
  EXPECT(2, (int64_t)count);
  EXPECT(0, weft_topics_names_at(names, 0, &name, &size));
  REQUIRE(strcmp(name, "a.b") == 0 && size == 3);
  EXPECT(0, weft_topics_names_at(names, 1, &name, NULL));
  REQUIRE(strcmp(name, "c") == 0);
  EXPECT(INVALID, weft_topics_names_at(names, 2, &name, &size));
  REQUIRE(name == NULL && size == 0);
  EXPECT(0, weft_topics_names_free(names));
  EXPECT(CLOSED, weft_topics_names_free(names));
  EXPECT(CLOSED, weft_topics_names_count(names, &count));
  EXPECT(0, weft_topics_kv_keys(kv, "a.>", &names));
  EXPECT(0, weft_topics_names_count(names, &count));
  EXPECT(1, (int64_t)count);
  EXPECT(0, weft_topics_names_free(names));

  weft_topics_watch* watch = NULL;
  EXPECT(0, weft_topics_kv_watch(kv, "a.*", 0, &watch));
  struct pollfd entry = {weft_topics_watch_fd(watch), POLLIN, 0};
  EXPECT(0, weft_topics_watch_next(watch, WAIT_MS, &message));
  REQUIRE(has_bytes(message, "2") && has_topic(message, "a.b"));
  EXPECT(0, weft_topics_message_free(message));
  EXPECT(0, weft_topics_kv_delete(kv, "a.b", &next));
  do {
    EXPECT(1, poll(&entry, 1, WAIT_MS));
  } while (weft_topics_watch_next(watch, 0, &message) == WEFT_TOPICS_WOULD_BLOCK);
  REQUIRE(has_topic(message, "a.b") && weft_topics_message_is_erased(message) == 1);
  REQUIRE(weft_topics_message_size(message) == 0 && weft_topics_message_sequence(message) == next);
  EXPECT(0, weft_topics_message_free(message));
  EXPECT(1, weft_topics_watch_is_live(watch));

  /* A value with a time to live, under each condition. */
  weft_topics_put_options put;
  memset(&put, 0, sizeof put);
  put.struct_size = sizeof put;
  put.put_if = WEFT_TOPICS_PUT_IF_ABSENT;
  put.time_to_live_ms = 3600000;
  EXPECT(0, weft_topics_kv_put_with(kv, "a.b", "4", 1, &put, &revision));
  EXPECT(WEFT_TOPICS_CONFLICT, weft_topics_kv_put_with(kv, "a.b", "5", 1, &put, NULL));
  put.put_if = WEFT_TOPICS_PUT_IF_SEEN;
  put.seen = revision;
  EXPECT(0, weft_topics_kv_put_with(kv, "a.b", "5", 1, &put, &next));
  EXPECT(WEFT_TOPICS_CONFLICT, weft_topics_kv_put_with(kv, "a.b", "6", 1, &put, NULL));
  EXPECT(0, weft_topics_kv_put_with(kv, "a.b", "6", 1, NULL, NULL));
  put.put_if = WEFT_TOPICS_PUT_ALWAYS;
  put.time_to_live_ms = 1000;
  EXPECT(0, weft_topics_kv_put_with(kv, "a.b", "7", 1, &put, NULL));
  int erased = 0;
  while (!erased) {
    EXPECT(0, weft_topics_watch_next(watch, WAIT_MS, &message));
    erased = weft_topics_message_is_erased(message);
    EXPECT(0, weft_topics_message_free(message));
  }
  EXPECT(WEFT_TOPICS_NOT_FOUND, weft_topics_kv_get(kv, "a.b", &message));
  EXPECT(0, weft_topics_watch_close(watch));
  EXPECT(CLOSED, weft_topics_watch_next(watch, WEFT_TOPICS_FOREVER, &message));
  EXPECT(0, weft_topics_kv_close(kv));
  EXPECT(CLOSED, weft_topics_kv_put_with(kv, "c", "x", 1, NULL, NULL));
  EXPECT(CLOSED, weft_topics_kv_put(kv, "c", "x", 1, NULL));
}

static void each_misuse_is_a_code(weft_topics* topics) {
  weft_topics_stream* stream = NULL;
  weft_topics_reader* reader = NULL;
  weft_topics_consumer* consumer = NULL;
  weft_topics_kv* kv = NULL;
  weft_topics_watch* watch = NULL;
  weft_topics_names* names = NULL;
  weft_topics_message* message = NULL;
  weft_topics_stream_info info;
  EXPECT(INVALID, weft_topics_stream_open(NULL, "s", NULL, &stream));
  EXPECT(INVALID, weft_topics_stream_open(topics, NULL, NULL, &stream));
  EXPECT(INVALID, weft_topics_stream_open(topics, "s.*", NULL, &stream));
  EXPECT(INVALID, weft_topics_stream_open(topics, "s", NULL, NULL));
  weft_topics_stream_options options;
  memset(&options, 0, sizeof options);
  EXPECT(INVALID, weft_topics_stream_open(topics, "s", &options, &stream));
  options.struct_size = sizeof options;
  options.topic_count = 1;
  EXPECT(INVALID, weft_topics_stream_open(topics, "s", &options, &stream));
  const char* const none[] = {NULL};
  options.topics = none;
  EXPECT(INVALID, weft_topics_stream_open(topics, "s", &options, &stream));
  options.topic_count = SIZE_MAX;
  EXPECT(INVALID, weft_topics_stream_open(topics, "s", &options, &stream));
  options.topic_count = 0;
  options.keep = 3;
  EXPECT(INVALID, weft_topics_stream_open(topics, "s", &options, &stream));
  options.keep = 0;
  options.survives = -1;
  EXPECT(INVALID, weft_topics_stream_open(topics, "s", &options, &stream));
  options.survives = WEFT_TOPICS_SURVIVES_MACHINE;
  EXPECT(WEFT_TOPICS_NOT_SUPPORTED, weft_topics_stream_open(topics, "s", &options, &stream));
  options.survives = 0;
  options.when_full = 3;
  EXPECT(INVALID, weft_topics_stream_open(topics, "s", &options, &stream));
  options.when_full = 0;
  options.age_max_ms = -1;
  EXPECT(INVALID, weft_topics_stream_open(topics, "s", &options, &stream));
  options.age_max_ms = 0;
  EXPECT(0, weft_topics_stream_open(topics, "s", &options, &stream));
  EXPECT(INVALID, weft_topics_stream_publish(NULL, "s.a", "x", 1, NULL, NULL));
  EXPECT(INVALID, weft_topics_stream_publish(stream, NULL, "x", 1, NULL, NULL));
  EXPECT(INVALID, weft_topics_stream_publish(stream, "s.a", NULL, 1, NULL, NULL));
  EXPECT(WEFT_TOPICS_MESSAGE_TOO_LARGE, weft_topics_stream_publish(stream, "s.a", "x", SIZE_MAX / 2, NULL, NULL));
  EXPECT(INVALID, weft_topics_stream_message(stream, 1, NULL));
  EXPECT(INVALID, weft_topics_stream_newest(stream, NULL, &message));
  EXPECT(INVALID, weft_topics_stream_get_info(stream, NULL));
  EXPECT(INVALID, weft_topics_stream_get_info(NULL, &info));
  EXPECT(INVALID, weft_topics_stream_purge(NULL, 1));
  EXPECT(INVALID, weft_topics_stream_remove(NULL));
  weft_topics_read_options read;
  memset(&read, 0, sizeof read);
  read.struct_size = sizeof read;
  read.from = 6;
  EXPECT(INVALID, weft_topics_read(stream, &read, &reader));
  EXPECT(INVALID, weft_topics_read(stream, NULL, NULL));
  EXPECT(INVALID, weft_topics_read(NULL, NULL, &reader));
  EXPECT(INVALID, weft_topics_reader_next(NULL, 0, &message));
  EXPECT(INVALID, weft_topics_reader_fd(NULL));
  EXPECT(INVALID, weft_topics_reader_is_live(NULL));
  weft_topics_consume_options consume;
  memset(&consume, 0, sizeof consume);
  consume.struct_size = sizeof consume;
  consume.retry_wait_count = 1;
  EXPECT(INVALID, weft_topics_consume(stream, "c", &consume, &consumer));
  const int64_t wait = -1;
  consume.retry_waits_ms = &wait;
  EXPECT(INVALID, weft_topics_consume(stream, "c", &consume, &consumer));
  EXPECT(INVALID, weft_topics_consume(stream, NULL, NULL, &consumer));
  EXPECT(INVALID, weft_topics_consume(stream, "c", NULL, NULL));
  EXPECT(INVALID, weft_topics_consumer_next(NULL, 0, &message));
  EXPECT(INVALID, weft_topics_consumer_fd(NULL));
  EXPECT(INVALID, weft_topics_ack(NULL));
  EXPECT(INVALID, weft_topics_nak(NULL, 0));
  EXPECT(INVALID, weft_topics_kv_open(topics, "a.b", NULL, &kv));
  EXPECT(INVALID, weft_topics_kv_open(topics, NULL, NULL, &kv));
  EXPECT(INVALID, weft_topics_kv_open(topics, "a", NULL, NULL));
  weft_topics_kv_options bucket;
  memset(&bucket, 0, sizeof bucket);
  bucket.struct_size = sizeof bucket;
  bucket.history = 65;
  EXPECT(INVALID, weft_topics_kv_open(topics, "a", &bucket, &kv));
  EXPECT(0, weft_topics_kv_open(topics, "a", NULL, &kv));
  EXPECT(INVALID, weft_topics_kv_put(NULL, "k", "x", 1, NULL));
  EXPECT(INVALID, weft_topics_kv_put(kv, NULL, "x", 1, NULL));
  EXPECT(INVALID, weft_topics_kv_put(kv, "", "x", 1, NULL));
  EXPECT(INVALID, weft_topics_kv_put(kv, "k", NULL, 1, NULL));
  weft_topics_put_options put;
  memset(&put, 0, sizeof put);
  EXPECT(INVALID, weft_topics_kv_put_with(kv, "k", "x", 1, &put, NULL));
  put.struct_size = sizeof put;
  put.put_if = 3;
  EXPECT(INVALID, weft_topics_kv_put_with(kv, "k", "x", 1, &put, NULL));
  put.put_if = 0;
  const int64_t wrong_times[] = {-1, 1, 999, INT64_MIN, INT64_MAX, INT64_C(3153600000001)};
  weft_topics_append_options append;
  memset(&append, 0, sizeof append);
  append.struct_size = sizeof append;
  for (size_t i = 0; i < sizeof wrong_times / sizeof *wrong_times; ++i) {
    put.time_to_live_ms = append.time_to_live_ms = wrong_times[i];
    EXPECT(INVALID, weft_topics_kv_put_with(kv, "k", "x", 1, &put, NULL));
    EXPECT(INVALID, weft_topics_stream_publish(stream, "a", "x", 1, &append, NULL));
  }
  append.time_to_live_ms = 0;
  const int64_t wrong_delays[] = {-1, INT64_MIN, INT64_MAX, INT64_C(3153600000001)};
  for (size_t i = 0; i < sizeof wrong_delays / sizeof *wrong_delays; ++i) {
    append.delay_ms = wrong_delays[i];
    EXPECT(INVALID, weft_topics_stream_publish(stream, "a", "x", 1, &append, NULL));
  }
  append.delay_ms = 1;
  append.expects_last = 1;
  EXPECT(INVALID, weft_topics_stream_publish(stream, "a", "x", 1, &append, NULL));
  append.delay_ms = append.expects_last = 0;
  put.time_to_live_ms = append.time_to_live_ms = INT64_C(3153600000000);
  EXPECT(0, weft_topics_kv_put_with(kv, "k", "x", 1, &put, NULL));
  EXPECT(INVALID, weft_topics_kv_put_with(NULL, "k", "x", 1, NULL, NULL));
  EXPECT(INVALID, weft_topics_kv_put_with(kv, NULL, "x", 1, NULL, NULL));
  EXPECT(INVALID, weft_topics_kv_get(kv, "k", NULL));
  EXPECT(INVALID, weft_topics_kv_get(kv, NULL, &message));
  EXPECT(INVALID, weft_topics_kv_delete(kv, NULL, NULL));
  EXPECT(INVALID, weft_topics_kv_keys(kv, NULL, NULL));
  EXPECT(INVALID, weft_topics_kv_keys(NULL, NULL, &names));
  EXPECT(INVALID, weft_topics_kv_watch(kv, NULL, 0, NULL));
  EXPECT(INVALID, weft_topics_kv_watch(NULL, NULL, 0, &watch));
  EXPECT(INVALID, weft_topics_watch_next(NULL, 0, &message));
  EXPECT(INVALID, weft_topics_watch_fd(NULL));
  EXPECT(INVALID, weft_topics_names_at(NULL, 0, NULL, NULL));
  EXPECT(INVALID, weft_topics_names_count(NULL, NULL));
  EXPECT(INVALID, weft_topics_kv_close((weft_topics_kv*)stream));
  EXPECT(0, weft_topics_kv_close(kv));
  EXPECT(0, weft_topics_stream_close(stream));
}

/* The other process: a worker that takes every message of a stream, and puts the last one under a key. */
static int other_process(const char* directory) {
  weft_topics* const topics = open_fleet("local:kept", directory);
  weft_topics_stream* const stream = open_stream(topics, "jobs", "jobs.>", WEFT_TOPICS_KEEP_WORK);
  weft_topics_consumer* consumer = NULL;
  weft_topics_message* message = NULL;
  weft_topics_kv* kv = NULL;
  EXPECT(0, weft_topics_kv_open(topics, "state", NULL, &kv));
  EXPECT(0, weft_topics_consume(stream, "workers", NULL, &consumer));
  for (int i = 0; i < kMessages; ++i) {
    char text[16];
    snprintf(text, sizeof text, "%d", i);
    EXPECT(0, weft_topics_consumer_next(consumer, WAIT_MS, &message));
    REQUIRE(has_bytes(message, text));
    EXPECT(0, i + 1 == kMessages ? weft_topics_ack_confirmed(message) : weft_topics_ack(message));
    EXPECT(0, weft_topics_message_free(message));
  }
  EXPECT(0, weft_topics_kv_put(kv, "done", "all", 3, NULL));
  EXPECT(0, weft_topics_consumer_close(consumer));
  EXPECT(0, weft_topics_kv_close(kv));
  EXPECT(0, weft_topics_stream_close(stream));
  EXPECT(0, weft_topics_close(topics));
  return 0;
}

static void two_processes(const char* directory) {
  weft_topics* const topics = open_fleet("local:kept", directory);
  weft_topics_stream* const stream = open_stream(topics, "jobs", "jobs.>", WEFT_TOPICS_KEEP_WORK);
  weft_topics_kv* kv = NULL;
  weft_topics_watch* watch = NULL;
  weft_topics_message* message = NULL;
  EXPECT(0, weft_topics_kv_open(topics, "state", NULL, &kv));
  EXPECT(0, weft_topics_kv_watch(kv, "done", 0, &watch));
  const pid_t child = start_other(directory);
  for (int i = 0; i < kMessages; ++i) {
    char text[16];
    snprintf(text, sizeof text, "%d", i);
    (void)append(stream, "jobs.a", text);
  }
  EXPECT(0, weft_topics_watch_next(watch, WAIT_MS, &message));
  REQUIRE(has_bytes(message, "all"));
  EXPECT(0, weft_topics_message_free(message));
  weft_topics_stream_info info;
  EXPECT(0, weft_topics_stream_get_info(stream, &info));
  EXPECT(kMessages + 1, (int64_t)info.next);
  EXPECT((int64_t)info.next, (int64_t)info.first); /* every message was acknowledged */
  await_other(child);
  EXPECT(0, weft_topics_close(topics));
  EXPECT(CLOSED, weft_topics_watch_next(watch, WEFT_TOPICS_FOREVER, &message));
  EXPECT(CLOSED, weft_topics_stream_publish(stream, "jobs.a", "x", 1, NULL, NULL));
  EXPECT(0, weft_topics_watch_close(watch));
  EXPECT(0, weft_topics_kv_close(kv));
  EXPECT(0, weft_topics_stream_close(stream));
}

int main(int argc, char** argv) {
  if (argc == 3) {
    return other_process(argv[2]);
  }
  char directory[] = "/tmp/weft-capi-XXXXXX";
  REQUIRE(mkdtemp(directory) != NULL);
  weft_topics* const topics = open_fleet("local:one", directory);
  weft_topics_stream* probe = NULL;
  const int keeps = weft_topics_stream_open(topics, "probe", NULL, &probe);
  if (keeps == WEFT_TOPICS_NOT_SUPPORTED) {
    fprintf(stderr, "this build has no SQLite\n");
    return 77;
  }
  EXPECT(0, keeps);
  EXPECT(0, weft_topics_stream_close(probe));
  a_stream_keeps(topics);
  many_messages_are_under_way(topics);
  a_consumer_acknowledges(topics);
  a_member_of_a_lower_number_is_first(topics);
  a_bucket_has_values(topics);
  each_misuse_is_a_code(topics);
  EXPECT(0, weft_topics_close(topics));
  two_processes(directory);
  return remove_folder(directory);
}
