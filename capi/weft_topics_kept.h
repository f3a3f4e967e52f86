/* SPDX-License-Identifier: MIT */
/* Kept topics for C: streams, keys with values, and the calls that do not wait. A part of weft_topics.h, which includes
   it, and defines handles, options, errors and times. */
#pragma once

#include "weft_topics.h"

#if defined(__GNUC__)
#define WEFT_EXPORT __attribute__((visibility("default")))
#else
#define WEFT_EXPORT
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* --- kept topics, of a local fleet or one on NATS: streams --- */

enum weft_topics_keep {
  WEFT_TOPICS_KEEP_LOG = 0,   /* every message, in one order */
  WEFT_TOPICS_KEEP_WORK = 1,  /* every message until a consumer has acknowledged it */
  WEFT_TOPICS_KEEP_LATEST = 2 /* the newest value of each topic */
};
/* The fault that loses no acknowledged message. */
enum weft_topics_survives {
  WEFT_TOPICS_SURVIVES_POWER = 0,   /* the loss of power; not_supported on NATS */
  WEFT_TOPICS_SURVIVES_PROCESS = 1, /* the death of every process at once */
  WEFT_TOPICS_SURVIVES_NOTHING = 2, /* the messages end with the process that hosts the hub */
  WEFT_TOPICS_SURVIVES_MACHINE = 3  /* the loss of one of three servers of NATS; not_supported by a hub */
};
enum weft_topics_when_full {
  WEFT_TOPICS_FULL_DEFAULT = 0, /* of a stream: a log drops its oldest messages, the others refuse; a bucket refuses */
  WEFT_TOPICS_FULL_OLDEST = 1,
  WEFT_TOPICS_FULL_REFUSE = 2
};

typedef struct weft_topics_stream_options {
  size_t struct_size;
  const char* const* topics; /* filters of the topics that it takes, at most 64; none: every topic */
  size_t topic_count;
  int keep;                  /* of enum weft_topics_keep */
  int survives;              /* of enum weft_topics_survives */
  int when_full;             /* of enum weft_topics_when_full */
  int redeclare;             /* not 0: change the settings of another declaration instead of failing with conflict */
  uint64_t bytes_max;        /* of all its messages, at least 64 KiB; 0: 1 GiB */
  int64_t age_max_ms;        /* 0: any age */
  int64_t same_id_window_ms; /* for which the stream remembers the id of a message; 0: 2 minutes */
} weft_topics_stream_options;

/* Declares the stream, and waits for the hub for at most 30 s. Errors: conflict (it exists with other settings);
   not_supported (another kind of fleet, or a build without SQLite); invalid_argument; timed_out; closed. */
WEFT_EXPORT int weft_topics_stream_open(weft_topics* topics, const char* name,
                                        const weft_topics_stream_options* options, weft_topics_stream** stream);
WEFT_EXPORT int weft_topics_stream_close(weft_topics_stream* stream); /* the stream stays */

typedef struct weft_topics_append_options {
  size_t struct_size;
  const char* id; /* of the message, at most 255 bytes; NULL: a unique one. The stream stores an id once */
  const weft_topics_header* headers;
  size_t header_count;
  int64_t timeout_ms; /* 0, WEFT_TOPICS_FOREVER: 30 s; at most half of same_id_window */
  int expects_last;   /* not 0: conflict unless the topic's last message has the sequence `last`; 0: there is none */
  int strict;         /* not 0: one message of a topic is under way at a time */
  uint64_t last;
  int64_t time_to_live_ms; /* 1 s to 100 years, rounded up to seconds; 0: none. not_supported: NATS before 2.11.3 */
  int64_t delay_ms;        /* until the message is readable, at most 100 years; it has no `last`. not_supported: NATS */
} weft_topics_append_options;

/* The hub's answer. */
typedef struct weft_topics_published {
  uint64_t sequence; /* 0: of a message with a delay */
  uint64_t instance; /* the life of the stream that counts the sequence; 0: unknown */
  int duplicate;     /* a message of this id was stored before, with this sequence */
} weft_topics_published;

/* Waits until the stream keeps the message. `published` may be NULL. Errors: outcome_unknown (the message was sent, and
   no answer came in time); timed_out (it was never sent); conflict; not_found (the stream was removed);
   invalid_argument (not a topic of the stream); message_too_large (1 MiB, or 64 KiB of headers); resource_exhausted
   (the stream or memory is full); closed. */
WEFT_EXPORT int weft_topics_stream_publish(weft_topics_stream* stream, const char* topic, const void* data, size_t size,
                                           const weft_topics_append_options* options, weft_topics_published* published);
/* The same, but waits only for a place: at most 4,096 messages and 8 MiB of a handle are under way. Fails with
   invalid_argument if the options are strict. */
WEFT_EXPORT int weft_topics_stream_publish_later(weft_topics_stream* stream, const char* topic, const void* data,
                                                 size_t size, const weft_topics_append_options* options,
                                                 weft_topics_pending** pending);
/* A message of a batch, like that of a publish with its options. `last` compares with the topic before the batch. */
typedef struct weft_topics_batch_message {
  const char* topic;
  const void* data;
  size_t size;
  const char* id; /* NULL: none */
  const weft_topics_header* headers;
  size_t header_count;
  int expects_last;
  uint64_t last;
  int64_t time_to_live_ms;
} weft_topics_batch_message;
/* Stores all of the messages, with consecutive sequences, or none: 1 to 1,000, 1 MiB in all. `published` has the first
   one. `message_size`: sizeof(weft_topics_batch_message). Errors: those of a publish; conflict (also: a message of the
   id was stored before, but not all of them by a hub); not_supported (servers of NATS before 2.12). */
WEFT_EXPORT int weft_topics_stream_publish_all(weft_topics_stream* stream, const weft_topics_batch_message* messages,
                                               size_t count, size_t message_size, int64_t timeout_ms,
                                               weft_topics_published* published);
/* Waits for the answer, which the program may read more than once. Errors: would_block and timed_out (the program may
   wait again); those of weft_topics_stream_publish(). A close of the handle does not end the wait. */
WEFT_EXPORT int weft_topics_pending_wait(weft_topics_pending* pending, int64_t timeout_ms,
                                         weft_topics_published* published);
WEFT_EXPORT int weft_topics_pending_fd(weft_topics_pending* pending);    /* like weft_topics_subscription_fd() */
WEFT_EXPORT int weft_topics_pending_close(weft_topics_pending* pending); /* drops the answer, not the message */
/* The message with this sequence, or the newest one of the topic, an erasure, too. Errors: not_found; as above. */
WEFT_EXPORT int weft_topics_stream_message(weft_topics_stream* stream, uint64_t sequence,
                                           weft_topics_message** message);
WEFT_EXPORT int weft_topics_stream_newest(weft_topics_stream* stream, const char* topic, weft_topics_message** message);

typedef struct weft_topics_stream_info {
  uint64_t first; /* the sequence of the oldest message */
  uint64_t next;  /* of the next message; equal to `first`: the stream is empty */
  uint64_t bytes;
  uint64_t instance;
  uint64_t evicted;        /* messages that a full stream dropped since the hub opened it */
  uint64_t dropped_unread; /* messages that no consumer had acknowledged when a bound dropped them */
} weft_topics_stream_info;
WEFT_EXPORT int weft_topics_stream_get_info(weft_topics_stream* stream, weft_topics_stream_info* info);
/* Deletes every message before the sequence. */
WEFT_EXPORT int weft_topics_stream_purge(weft_topics_stream* stream, uint64_t before);
/* Removes the stream, its messages and consumers from the hub. */
WEFT_EXPORT int weft_topics_stream_remove(weft_topics_stream* stream);

/* The first message of a consumer or reader. */
enum weft_topics_from {
  WEFT_TOPICS_FROM_FIRST = 0,
  WEFT_TOPICS_FROM_LAST = 1,
  WEFT_TOPICS_FROM_NEXT = 2,          /* those that arrive after the opening */
  WEFT_TOPICS_FROM_SEQUENCE = 3,      /* `from_value` */
  WEFT_TOPICS_FROM_TIME = 4,          /* at or after `from_value` ns since 1970 */
  WEFT_TOPICS_FROM_LAST_PER_TOPIC = 5 /* the newest of every topic, then the new ones */
};

typedef struct weft_topics_read_options {
  size_t struct_size;
  const char* filter;          /* of topics; NULL: every topic of the stream */
  int from;                    /* of enum weft_topics_from */
  uint32_t queue_messages_max; /* 0: 256 */
  uint64_t from_value;
  size_t queue_bytes_max; /* 0: 8 MiB */
} weft_topics_read_options;

/* Reads the messages in their order, without acknowledgements: first the stored ones, then the new ones. */
WEFT_EXPORT int weft_topics_read(weft_topics_stream* stream, const weft_topics_read_options* options,
                                 weft_topics_reader** reader);
WEFT_EXPORT int weft_topics_reader_close(weft_topics_reader* reader);
/* Errors: would_block; timed_out; closed; not_found (the stream was removed). */
WEFT_EXPORT int weft_topics_reader_next(weft_topics_reader* reader, int64_t timeout_ms, weft_topics_message** message);
WEFT_EXPORT int weft_topics_reader_fd(weft_topics_reader* reader); /* like weft_topics_subscription_fd() */
/* Returns 1 if all messages that were stored when the reader was opened have been taken, otherwise 0. */
WEFT_EXPORT int weft_topics_reader_is_live(weft_topics_reader* reader);

typedef struct weft_topics_consume_options {
  size_t struct_size;
  const char* filter; /* of topics; NULL: every topic of the stream */
  int from;           /* of enum weft_topics_from */
  uint32_t tries_max; /* deliveries of one message; 0: any number */
  uint64_t from_value;
  int64_t ack_wait_ms;           /* after which the hub delivers the message again; 0: 30 s */
  const int64_t* retry_waits_ms; /* after each refused delivery, at most 32; the last one holds for all others */
  size_t retry_wait_count;
  const char* dead_letters;    /* the topic for messages beyond tries_max; NULL: the hub drops them */
  uint32_t unacked_max;        /* delivered and not acknowledged, at most 65,536; 0: 1,000 */
  uint32_t queue_messages_max; /* that wait in this handle; 0: 256 */
  size_t queue_bytes_max;      /* 0: 8 MiB */
  int redeclare;               /* like a stream's */
  /* Not 0: this member has the number `priority`, 0 (first) to 9; otherwise it has 0. A message goes to a member of the
     lowest number that has room in its queue. not_supported: servers of NATS before 2.12. conflict: a consumer on NATS
     whose first member had none, without `redeclare`. */
  int prioritized;
  uint32_t priority;
} weft_topics_consume_options;

/* Makes the consumer or joins it: all members with the name share the messages of the stream. Each message goes to a
   member at least once, until one acknowledges it. Errors: conflict (its settings differ); invalid_argument; not_found;
   timed_out; resource_exhausted; closed. */
WEFT_EXPORT int weft_topics_consume(weft_topics_stream* stream, const char* name,
                                    const weft_topics_consume_options* options, weft_topics_consumer** consumer);
/* This member leaves; its queued messages go to the others. */
WEFT_EXPORT int weft_topics_consumer_close(weft_topics_consumer* consumer);
WEFT_EXPORT int weft_topics_consumer_next(weft_topics_consumer* consumer, int64_t timeout_ms,
                                          weft_topics_message** message);
WEFT_EXPORT int weft_topics_consumer_fd(weft_topics_consumer* consumer); /* like weft_topics_subscription_fd() */
/* The outcome of a message from a consumer: one of these four, once. The hub delivers a message that is freed without
   one again after ack_wait. Errors: invalid_argument (not of a consumer); invalid_state (it has an outcome). */
WEFT_EXPORT int weft_topics_ack(weft_topics_message* message); /* does not wait */
/* Waits until the hub has kept the acknowledgement. Errors: also not_found (another member has the message);
   outcome_unknown; timed_out; closed. */
WEFT_EXPORT int weft_topics_ack_confirmed(weft_topics_message* message);
/* The hub delivers it again: after the time, or after the consumer's retry_waits if `after_ms` is negative. */
WEFT_EXPORT int weft_topics_nak(weft_topics_message* message, int64_t after_ms);
/* The hub never delivers it again. `why` is for the dead letters; it may be NULL. */
WEFT_EXPORT int weft_topics_reject(weft_topics_message* message, const char* why);
WEFT_EXPORT int weft_topics_working(weft_topics_message* message); /* restarts ack_wait; not an outcome */

/* --- kept topics: keys with values --- */

typedef struct weft_topics_kv_options {
  size_t struct_size;
  uint32_t history;   /* values that are kept of each key, at most 64; 0: 1 */
  int survives;       /* of enum weft_topics_survives */
  int when_full;      /* of enum weft_topics_when_full */
  int redeclare;      /* like a stream's */
  uint64_t bytes_max; /* 0: 1 GiB */
  int64_t age_max_ms; /* 0: any age */
} weft_topics_kv_options;

/* Declares the bucket. Errors of this call and of those on it: those of weft_topics_stream_open() and
   weft_topics_stream_publish(); invalid_argument (the text is not a key). */
WEFT_EXPORT int weft_topics_kv_open(weft_topics* topics, const char* name, const weft_topics_kv_options* options,
                                    weft_topics_kv** kv);
WEFT_EXPORT int weft_topics_kv_close(weft_topics_kv* kv); /* the bucket stays */
/* `revision` gets that of the change; it may be NULL. */
WEFT_EXPORT int weft_topics_kv_put(weft_topics_kv* kv, const char* key, const void* data, size_t size,
                                   uint64_t* revision);
/* Fails with conflict if the key has a value. */
WEFT_EXPORT int weft_topics_kv_create(weft_topics_kv* kv, const char* key, const void* data, size_t size,
                                      uint64_t* revision);
/* Fails with conflict unless `seen` is the revision of the key's newest change; 0: it never had a value. */
WEFT_EXPORT int weft_topics_kv_update(weft_topics_kv* kv, const char* key, const void* data, size_t size, uint64_t seen,
                                      uint64_t* revision);
enum weft_topics_put_if { WEFT_TOPICS_PUT_ALWAYS = 0, WEFT_TOPICS_PUT_IF_ABSENT = 1, WEFT_TOPICS_PUT_IF_SEEN = 2 };
typedef struct weft_topics_put_options {
  size_t struct_size;
  int put_if;              /* of enum weft_topics_put_if */
  uint64_t seen;           /* of WEFT_TOPICS_PUT_IF_SEEN: the revision of the newest change */
  int64_t time_to_live_ms; /* of the value, like a message's. not_supported: also a bucket with a history on NATS */
} weft_topics_put_options;
WEFT_EXPORT int weft_topics_kv_put_with(weft_topics_kv* kv, const char* key, const void* data, size_t size,
                                        const weft_topics_put_options* options, uint64_t* revision);
/* Fails with not_found if there is no value. The topic of the message is the key, and its sequence the revision. */
WEFT_EXPORT int weft_topics_kv_get(weft_topics_kv* kv, const char* key, weft_topics_message** value);
WEFT_EXPORT int weft_topics_kv_delete(weft_topics_kv* kv, const char* key, uint64_t* revision);
/* The keys that match the filter and have a value, in byte order; NULL: all keys. */
WEFT_EXPORT int weft_topics_kv_keys(weft_topics_kv* kv, const char* filter, weft_topics_names** keys);
/* The newest values of the keys that match, then each change. `all`: not 0: also the older values that are kept. */
WEFT_EXPORT int weft_topics_kv_watch(weft_topics_kv* kv, const char* filter, int all, weft_topics_watch** watch);
WEFT_EXPORT int weft_topics_watch_close(weft_topics_watch* watch);
/* An erasure is a message without bytes for which weft_topics_message_is_erased() returns 1. */
WEFT_EXPORT int weft_topics_watch_next(weft_topics_watch* watch, int64_t timeout_ms, weft_topics_message** message);
WEFT_EXPORT int weft_topics_watch_fd(weft_topics_watch* watch); /* like weft_topics_subscription_fd() */
/* Returns 1 if all values that were stored when the watch was opened have been taken, otherwise 0. */
WEFT_EXPORT int weft_topics_watch_is_live(weft_topics_watch* watch);

/* A list of names. */
WEFT_EXPORT int weft_topics_names_free(weft_topics_names* names);
WEFT_EXPORT int weft_topics_names_count(weft_topics_names* names, size_t* count);
/* `name` gets a text that ends with a zero byte, and is valid until the list is freed; `size`, which may be NULL, its
   size. Fails with invalid_argument beyond the last name. */
WEFT_EXPORT int weft_topics_names_at(weft_topics_names* names, size_t index, const char** name, size_t* size);

/* --- calls that do not wait: one queue has the outcomes of many, for event loops --- */

/* A queue of calls under way. It has one descriptor and one thread. The calls on it return at once; each one that
   returns 0 has one outcome later, with its tag, unless the queue is closed first. A tag is any number of the program.
   Errors: resource_exhausted; closed. */
WEFT_EXPORT int weft_topics_calls_open(weft_topics* topics, weft_topics_calls** calls);
/* Drops the outcomes that no call took. A request that was sent may still be served, and a message may be kept. */
WEFT_EXPORT int weft_topics_calls_close(weft_topics_calls* calls);
/* Like weft_topics_subscription_fd(): readable while there may be an outcome. */
WEFT_EXPORT int weft_topics_calls_fd(weft_topics_calls* calls);

typedef struct weft_topics_outcome {
  uint64_t tag;
  int code;                        /* of weft_topics_code: those of the call that waits */
  weft_topics_message* message;    /* of a request, message, newest, info, get or keys, otherwise NULL. The program
                                      frees it */
  weft_topics_published published; /* of a publish; `sequence`: also the revision of a change of a key */
} weft_topics_outcome;
/* Takes an outcome; their order is not that of the calls. If its `code` is not 0, weft_last_error_text() has the
   reason. After a close of the weft_topics the calls under way end with closed. Errors: would_block; timed_out; closed
   (the queue); resource_exhausted. */
WEFT_EXPORT int weft_topics_calls_next(weft_topics_calls* calls, int64_t timeout_ms, weft_topics_outcome* outcome);

/* weft_topics_request(). A topic that no handle serves fails at once, except while the rosters of the fleet arrive.
   Errors of each call on a queue: invalid_argument; closed; resource_exhausted (65,536 calls are under way or have an
   outcome that no call took). */
WEFT_EXPORT int weft_topics_calls_request(weft_topics_calls* calls, uint64_t tag, const char* topic, const void* data,
                                          size_t size, int64_t timeout_ms, const weft_topics_header* headers,
                                          size_t header_count);
/* weft_topics_stream_publish(), _publish_all(), _message(), _newest(), _get_info(), _purge() and _remove(). Errors:
   also would_block (the bound of weft_topics_stream_publish_later(), or 4,096 other calls: take outcomes first). A
   strict publish is an invalid_argument. The message of an info has no bytes: weft_topics_message_info() reads it. */
WEFT_EXPORT int weft_topics_calls_publish(weft_topics_calls* calls, uint64_t tag, weft_topics_stream* stream,
                                          const char* topic, const void* data, size_t size,
                                          const weft_topics_append_options* options);
WEFT_EXPORT int weft_topics_calls_publish_all(weft_topics_calls* calls, uint64_t tag, weft_topics_stream* stream,
                                              const weft_topics_batch_message* messages, size_t count,
                                              size_t message_size, int64_t timeout_ms);
WEFT_EXPORT int weft_topics_calls_message(weft_topics_calls* calls, uint64_t tag, weft_topics_stream* stream,
                                          uint64_t sequence);
WEFT_EXPORT int weft_topics_calls_newest(weft_topics_calls* calls, uint64_t tag, weft_topics_stream* stream,
                                         const char* topic);
WEFT_EXPORT int weft_topics_calls_purge(weft_topics_calls* calls, uint64_t tag, weft_topics_stream* stream,
                                        uint64_t before);
WEFT_EXPORT int weft_topics_calls_info(weft_topics_calls* calls, uint64_t tag, weft_topics_stream* stream);
WEFT_EXPORT int weft_topics_calls_remove(weft_topics_calls* calls, uint64_t tag, weft_topics_stream* stream);
/* weft_topics_ack_confirmed(), which is the outcome of the message as soon as this call returns 0. The program may free
   the message then. Errors: also would_block, like the calls on streams, and invalid_state (it has an outcome). */
WEFT_EXPORT int weft_topics_calls_ack_confirmed(weft_topics_calls* calls, uint64_t tag, weft_topics_message* message);
/* weft_topics_kv_put(), _create(), _update(), _put_with(), _delete(), _get(). Errors: those of the calls on streams. */
WEFT_EXPORT int weft_topics_calls_put(weft_topics_calls* calls, uint64_t tag, weft_topics_kv* kv, const char* key,
                                      const void* data, size_t size);
WEFT_EXPORT int weft_topics_calls_create(weft_topics_calls* calls, uint64_t tag, weft_topics_kv* kv, const char* key,
                                         const void* data, size_t size);
WEFT_EXPORT int weft_topics_calls_update(weft_topics_calls* calls, uint64_t tag, weft_topics_kv* kv, const char* key,
                                         const void* data, size_t size, uint64_t seen);
WEFT_EXPORT int weft_topics_calls_put_with(weft_topics_calls* calls, uint64_t tag, weft_topics_kv* kv, const char* key,
                                           const void* data, size_t size, const weft_topics_put_options* options);
WEFT_EXPORT int weft_topics_calls_delete(weft_topics_calls* calls, uint64_t tag, weft_topics_kv* kv, const char* key);
WEFT_EXPORT int weft_topics_calls_get(weft_topics_calls* calls, uint64_t tag, weft_topics_kv* kv, const char* key);
/* A page of weft_topics_kv_keys(), which weft_topics_message_keys() reads. `after` is that of the page before, NULL for
   the first one. A page may have no key that matches, and others may follow. */
WEFT_EXPORT int weft_topics_calls_keys(weft_topics_calls* calls, uint64_t tag, weft_topics_kv* kv, const char* filter,
                                       const char* after);
/* The numbers of weft_topics_calls_info(). Fails with invalid_argument for another message. */
WEFT_EXPORT int weft_topics_message_info(const weft_topics_message* message, weft_topics_stream_info* info);
/* The keys of weft_topics_calls_keys(), as a list of the program. `after` gets the text for the next page, valid until
   the message is freed; NULL: this was the last one. Fails with invalid_argument for another message. */
WEFT_EXPORT int weft_topics_message_keys(const weft_topics_message* message, weft_topics_names** keys,
                                         const char** after);

#ifdef __cplusplus
}
#endif

#undef WEFT_EXPORT
