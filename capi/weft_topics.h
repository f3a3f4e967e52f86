/* SPDX-License-Identifier: MIT */
/* Topics for C: the handles of docs/topics.md. Link libweft_topics_c.so (pkg-config weft-topics-c).

   Result: a function that returns int returns 0 or more if it succeeds, otherwise one of the negative codes of
   weft_topics_code, and weft_last_error_text() (weft_error.h) has the reason. A call that fails has no effect, unless
   its comment says otherwise, and sets its result to NULL or 0.
   Handles: numbers in the form of pointers, which no function reads through. A call with NULL, with a closed handle or
   with a handle of another kind fails with WEFT_TOPICS_CLOSED or WEFT_TOPICS_INVALID_ARGUMENT, also if the memory was
   given to a new handle since. The objects of a weft_topics may outlive it: their calls fail with WEFT_TOPICS_CLOSED,
   and the program closes each of them nevertheless.
   Messages: pointers to memory of the library, which it keeps for the next messages. A call with NULL or with a freed
   message fails, until its memory is a message again.
   Threads: every call on a handle, from any thread, also several at once. A close by another thread ends the calls that
   wait with WEFT_TOPICS_CLOSED. A message belongs to one thread at a time.
   Time: `timeout_ms` is in milliseconds; 0: the call does not wait, WEFT_TOPICS_FOREVER: it waits without a bound, and
   other negative values are refused.
   Texts: UTF-8 or other bytes that end with a zero byte. A pointer that a call returns is valid until the message or
   handle is closed, and the call names its size: those texts do not end with a zero byte.
   After fork() a child can use no handle of its parent: every call fails with WEFT_TOPICS_INVALID_STATE. It opens
   handles of its own. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "weft_error.h"

#if defined(__GNUC__)
#define WEFT_EXPORT __attribute__((visibility("default")))
#else
#define WEFT_EXPORT
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define WEFT_TOPICS_FOREVER (-1)

/* The codes of errors, with the meanings of docs/errors.md. A later version adds codes at the end. */
enum weft_topics_code {
  WEFT_TOPICS_OK = 0,
  WEFT_TOPICS_WOULD_BLOCK = -1, /* the call would have to wait, and the timeout is 0 */
  WEFT_TOPICS_TIMED_OUT = -2,   /* the timeout passed first */
  WEFT_TOPICS_INTERRUPTED = -3,
  WEFT_TOPICS_TERMINATED = -4,
  WEFT_TOPICS_CLOSED = -5,           /* the handle or its weft_topics was closed */
  WEFT_TOPICS_INVALID_ARGUMENT = -6, /* also a pointer that is NULL */
  WEFT_TOPICS_INVALID_STATE = -7,
  WEFT_TOPICS_NOT_SUPPORTED = -8, /* a fleet or a build that cannot do it */
  WEFT_TOPICS_UNKNOWN_OPTION = -9,
  WEFT_TOPICS_MALFORMED_ENDPOINT = -10,
  WEFT_TOPICS_UNKNOWN_TRANSPORT = -11,
  WEFT_TOPICS_ADDRESS_IN_USE = -12,
  WEFT_TOPICS_ADDRESS_UNAVAILABLE = -13,
  WEFT_TOPICS_NAME_UNRESOLVED = -14,
  WEFT_TOPICS_NO_SUCH_ENDPOINT = -15,
  WEFT_TOPICS_UNREACHABLE = -16, /* no handle serves the topic */
  WEFT_TOPICS_TOO_MANY_SOCKETS = -17,
  WEFT_TOPICS_RESOURCE_EXHAUSTED = -18, /* memory, descriptors or a bound */
  WEFT_TOPICS_MESSAGE_TOO_LARGE = -19,
  WEFT_TOPICS_BUFFER_TOO_SMALL = -20,
  WEFT_TOPICS_CONNECTION_CLOSED = -21,
  WEFT_TOPICS_CONNECTION_FAILED = -22,
  WEFT_TOPICS_PROTOCOL_ERROR = -23,
  WEFT_TOPICS_INCOMPATIBLE_PEER = -24,
  WEFT_TOPICS_HANDSHAKE_REFUSED = -25,
  WEFT_TOPICS_SYSTEM = -26,
  WEFT_TOPICS_OTHER = -27, /* an error of another domain: the text of a service's own error */
  WEFT_TOPICS_CANCELLED = -28,
  WEFT_TOPICS_JOB_THREW = -29, /* a service ended a request without an answer */
  WEFT_TOPICS_NOT_FOUND = -30,
  WEFT_TOPICS_CONFLICT = -31,
  WEFT_TOPICS_NOT_PERMITTED = -32,
  WEFT_TOPICS_OUTCOME_UNKNOWN = -33, /* the hub or the service may have carried the call out */
  WEFT_TOPICS_CORRUPT = -34
};

typedef struct weft_topics weft_topics;
typedef struct weft_topics_publisher weft_topics_publisher;
typedef struct weft_topics_subscription weft_topics_subscription;
typedef struct weft_topics_service weft_topics_service;
typedef struct weft_topics_stream weft_topics_stream;
typedef struct weft_topics_pending weft_topics_pending;
typedef struct weft_topics_reader weft_topics_reader;
typedef struct weft_topics_consumer weft_topics_consumer;
typedef struct weft_topics_kv weft_topics_kv;
typedef struct weft_topics_watch weft_topics_watch;
typedef struct weft_topics_names weft_topics_names;
typedef struct weft_topics_calls weft_topics_calls;
typedef struct weft_topics_message weft_topics_message;

/* Structures of options: the program fills one with zeros, and sets `struct_size` to its size. A member that is 0 or
   NULL has its default. A pointer to options may be NULL: all defaults. A later version adds members at the end. */

/* --- handles on a fleet --- */

/* The bounds and defaults are those of TopicsOptions (weft/topic/node/options.h). */
typedef struct weft_topics_options {
  size_t struct_size;
  /* "inproc:NAME": handles of this library in this process. "local" (the default) or "local:NAME": the handles of one
     user on this host. "tcp://10.0.0.1:7300,10.0.0.2:7300": the listed hosts. "tls+tcp://...": the same, encrypted.
     "nats://h1:4222,h2" or "tls://h1:4222,h2": servers of NATS, for volatile topics (docs/fleet.md). */
  const char* fleet;
  const char* space;             /* the first token of every topic; NULL: none */
  const char* node;              /* this handle's name; NULL: a random one */
  const char* listen;            /* tcp: "tcp://0.0.0.0:7300"; NULL: the system chooses the port */
  const char* advertise;         /* tcp: the endpoint to which peers connect; NULL: `listen` */
  const char* runtime_directory; /* local; NULL: $XDG_RUNTIME_DIR/weft, or /tmp/weft-UID */
  const char* store_directory;   /* local: of the kept topics */
  int never_hosts;               /* local: not 0: this process never becomes the hub */
  int separator;                 /* between tokens, as the program writes names; 0: '.' */
  size_t queue_messages_max;     /* of one subscription; 0: 65,536 */
  size_t queue_bytes_max;        /* of one subscription; 0: 8 MiB */
  int peer_messages_max;         /* that wait for one peer; 0: 1,000 */
  int64_t presence_ms;           /* how long others list this handle while it is silent; 0: not at all */
  /* tcp, CURVE: the keys of the fleet and of this handle, 40 characters of Z85 each, all four or none, or the last
     two with curve_hub_public. */
  const char* curve_server_public;
  const char* curve_server_secret;
  const char* curve_public;
  const char* curve_secret;
  /* tls+tcp: PEM files, by name. */
  const char* tls_certificate;
  const char* tls_key;
  const char* tls_authorities;
  const char* tls_server_name; /* in the certificate of every peer; NULL: the host of its endpoint */
  /* The hub of the kept topics. "tls+tcp://HOST:PORT": of another host; needs the PEM files. "tcp://HOST:PORT": the
     same with CURVE; needs curve_hub_public, curve_public and curve_secret. "ipc://PATH": of another user of this
     host. NULL: that of the local fleet. */
  const char* hub;
  /* nats, one of them: a user and its password, a token, or the name of a file, which is read at each connection. */
  const char* user;
  const char* password;
  const char* token;
  const char* nkey_seed_file;
  const char* credentials_file; /* .creds: a JWT and a seed */
  size_t outage_bytes_max;      /* nats: of messages that wait while the servers are away; 0: 8 MiB */
  const char* curve_hub_public; /* of a hub at tcp://, 40 characters of Z85; the fleet's two keys may then be NULL */
  int64_t ping_every_ms;        /* nats: a server that answers no PING of two is away; 0: 20,000 */
} weft_topics_options;

/* Joins a fleet. Errors: invalid_argument (an option); not_supported; invalid_state (the directory belongs to another
   user); resource_exhausted; those of zmq_bind(). */
WEFT_EXPORT int weft_topics_open(const weft_topics_options* options, weft_topics** topics);
/* Leaves the fleet. Each waiting call of the handle and of its objects fails with closed. */
WEFT_EXPORT int weft_topics_close(weft_topics* topics);
/* Waits until the roster of every peer has arrived: from then on, requests and publishers reach those peers. Returns
   the number of the other handles in the fleet. Errors: timed_out; resource_exhausted; closed. */
WEFT_EXPORT int weft_topics_sync(weft_topics* topics, int64_t timeout_ms);
/* For an event loop that reads the messages of other handles itself, so that no thread of the handle stands between:
   returns a descriptor that is readable while there may be some. The loop then calls weft_topics_take_input(), which
   delivers up to 256 of them to the subscriptions, services and requests of the handle, never waits, and returns their
   number. While the loop is late by 5 ms or more, the handle's thread delivers. The descriptor is valid until
   weft_topics_close(). Errors: closed; resource_exhausted. */
WEFT_EXPORT int weft_topics_input_fd(weft_topics* topics);
WEFT_EXPORT int weft_topics_take_input(weft_topics* topics);

/* --- publishing --- */

typedef struct weft_topics_header {
  const char* name;  /* letters and signs without ':' */
  const char* value; /* one line */
} weft_topics_header;

typedef struct weft_topics_publish_options {
  size_t struct_size;
  const weft_topics_header* headers; /* at most 64 KiB in all */
  size_t header_count;
  /* 0: a peer whose queue is full misses the message. Otherwise the call waits until every peer has room, for at most
     `timeout_ms`, and fails with would_block or timed_out; then the message goes to no peer. */
  int waits_for_room;
  int64_t timeout_ms;
} weft_topics_publish_options;

/* A publisher has its topic checked and encoded once: faster than weft_topics_publish() from the second message on.
   Errors: invalid_argument (not a topic, or one with wildcards); closed. */
WEFT_EXPORT int weft_topics_publisher_open(weft_topics* topics, const char* topic, weft_topics_publisher** publisher);
WEFT_EXPORT int weft_topics_publisher_close(weft_topics_publisher* publisher);
/* Publishes a copy of the bytes; `data` may be NULL if `size` is 0. A message that the call takes may still reach no
   subscriber. Errors: message_too_large (64 MiB, or 64 KiB of headers); invalid_argument (a header); closed;
   resource_exhausted; would_block, timed_out (see the options). */
WEFT_EXPORT int weft_topics_publisher_publish(weft_topics_publisher* publisher, const void* data, size_t size,
                                              const weft_topics_publish_options* options);
/* Waits until `count` subscriptions of the fleet are ready for the topic, and sets `ready`, which may be NULL, to the
   number of ready ones. Each receives the messages that are published from now on. Errors: timed_out; closed. */
WEFT_EXPORT int weft_topics_wait_subscribers(weft_topics_publisher* publisher, size_t count, int64_t timeout_ms,
                                             size_t* ready);
/* The same as a publisher of that topic for one message. Errors: those of both calls. */
WEFT_EXPORT int weft_topics_publish(weft_topics* topics, const char* topic, const void* data, size_t size,
                                    const weft_topics_publish_options* options);

/* --- subscribing --- */

/* The policy of a full queue of a subscription. */
enum weft_topics_full {
  WEFT_TOPICS_DROP_OLDEST = 0,
  WEFT_TOPICS_DROP_NEWEST = 1,
  WEFT_TOPICS_NEWEST_PER_TOPIC = 2, /* a message replaces a queued one of its topic */
  WEFT_TOPICS_END = 3               /* the subscription ends: resource_exhausted after the queued messages */
};

typedef struct weft_topics_subscribe_options {
  size_t struct_size;
  int full;                  /* of enum weft_topics_full */
  size_t queue_messages_max; /* 0: the bound of the handle */
  size_t queue_bytes_max;    /* 0: the bound of the handle */
} weft_topics_subscribe_options;

/* A filter is a topic or tokens: "px.AAPL", "px.*" (one token there), "px.>" (one token or more). Errors:
   invalid_argument; message_too_large (more than 255 bytes); resource_exhausted; closed. */
WEFT_EXPORT int weft_topics_subscribe(weft_topics* topics, const char* filter,
                                      const weft_topics_subscribe_options* options,
                                      weft_topics_subscription** subscription);
/* No message enters the queue any longer. weft_topics_next() takes the queued ones, then fails with closed. The program
   unsubscribes afterwards. */
WEFT_EXPORT int weft_topics_subscription_drain(weft_topics_subscription* subscription);
/* Drops the queued messages. A call that waits for the subscription fails with closed. */
WEFT_EXPORT int weft_topics_unsubscribe(weft_topics_subscription* subscription);
WEFT_EXPORT int weft_topics_subscription_add(weft_topics_subscription* subscription, const char* filter);
/* Fails with invalid_argument if the subscription does not have the filter. */
WEFT_EXPORT int weft_topics_subscription_remove(weft_topics_subscription* subscription, const char* filter);
/* The program frees the message by weft_topics_message_free(). Errors: would_block; timed_out; closed;
   resource_exhausted (the subscription ended by WEFT_TOPICS_END, or no memory). */
WEFT_EXPORT int weft_topics_next(weft_topics_subscription* subscription, int64_t timeout_ms,
                                 weft_topics_message** message);
/* For poll(), epoll and the loops of other languages: returns a descriptor that is readable while there may be a
   message. A weft_topics_next() with timeout 0 that fails with would_block makes it unreadable again. The program only
   waits for it, and never reads, writes or closes it. It is valid until weft_topics_unsubscribe(). Errors:
   resource_exhausted; closed. */
WEFT_EXPORT int weft_topics_subscription_fd(weft_topics_subscription* subscription);
/* Sets `missed` to the number of messages that the subscription has lost so far. */
WEFT_EXPORT int weft_topics_subscription_missed(weft_topics_subscription* subscription, uint64_t* missed);

/* --- requests and services --- */

/* Sends the request to one member of each group that serves the topic, waits, and sets `reply` to the first reply. A
   timeout of 0 is too short for any reply. Errors: unreachable, at once, if no handle serves the topic; timed_out;
   connection_closed (the handle that received the request has gone; it may have answered); resource_exhausted (the
   service's queue is full, or 65,536 requests are under way); the error of the service. */
WEFT_EXPORT int weft_topics_request(weft_topics* topics, const char* topic, const void* data, size_t size,
                                    int64_t timeout_ms, const weft_topics_header* headers, size_t header_count,
                                    weft_topics_message** reply);

typedef struct weft_topics_serve_options {
  size_t struct_size;
  const char* group; /* one member of each group gets a request; NULL: the group "" */
  size_t queue_max;  /* requests that wait to be taken, 1,048,576 at most; 0: 1,024 */
} weft_topics_serve_options;

/* Answers the requests to the topic from now on: the program takes each by weft_topics_service_next(), answers it by
   weft_topics_reply() or weft_topics_refuse(), from any thread and in any order, and frees it. Errors:
   invalid_argument; resource_exhausted (1,024 services); closed. */
WEFT_EXPORT int weft_topics_serve(weft_topics* topics, const char* topic, const weft_topics_serve_options* options,
                                  weft_topics_service** service);
/* The requests in the queue fail with unreachable. The taken ones may still be answered. */
WEFT_EXPORT int weft_topics_service_close(weft_topics_service* service);
/* Errors: would_block; timed_out; closed; resource_exhausted. */
WEFT_EXPORT int weft_topics_service_next(weft_topics_service* service, int64_t timeout_ms,
                                         weft_topics_message** request);
WEFT_EXPORT int weft_topics_service_fd(weft_topics_service* service); /* like weft_topics_subscription_fd() */
/* Why no request arrives any longer, or no reply. Errors: closed (the handle of topics); not_permitted (the fleet's
   server refuses the service, or refused a reply of this process since it connected). */
WEFT_EXPORT int weft_topics_service_status(weft_topics_service* service);
/* Answers a request once, and does not wait. A request that is freed without an answer fails with job_threw. Errors:
   invalid_argument (not a request); invalid_state (it has an answer); message_too_large; closed. */
WEFT_EXPORT int weft_topics_reply(weft_topics_message* request, const void* data, size_t size,
                                  const weft_topics_header* headers, size_t header_count);
/* The request fails with this code, which is one of weft_topics_code, and with the text, of which 150 bytes arrive;
   NULL: without one. The library keeps up to 512 different texts for ever: a text does not name a single request. */
WEFT_EXPORT int weft_topics_refuse(weft_topics_message* request, int code, const char* text);

/* --- messages: no call copies the bytes. A NULL or freed message has no bytes: NULL and 0 --- */

WEFT_EXPORT int weft_topics_message_free(weft_topics_message* message);
WEFT_EXPORT const void* weft_topics_message_data(const weft_topics_message* message);
WEFT_EXPORT size_t weft_topics_message_size(const weft_topics_message* message);
/* `size` gets the number of bytes; it may be NULL. */
WEFT_EXPORT const char* weft_topics_message_topic(const weft_topics_message* message, size_t* size);
/* The value of the first header of that name; a size of 0 if there is none. */
WEFT_EXPORT const char* weft_topics_message_header(const weft_topics_message* message, const char* name, size_t* size);
/* All headers: "NATS/1.0\r\nName: value\r\n\r\n", or a size of 0. */
WEFT_EXPORT const char* weft_topics_message_headers(const weft_topics_message* message, size_t* size);
/* The number of messages that the subscription lost between the message before and this one. */
WEFT_EXPORT uint64_t weft_topics_message_missed(const weft_topics_message* message);
/* Of kept messages; otherwise 0. */
WEFT_EXPORT uint64_t weft_topics_message_sequence(const weft_topics_message* message); /* in its stream, from 1 */
WEFT_EXPORT uint64_t weft_topics_message_instance(const weft_topics_message* message); /* the life of the stream */
WEFT_EXPORT int64_t weft_topics_message_time_ns(const weft_topics_message* message);   /* of its storage, since 1970 */
WEFT_EXPORT uint32_t weft_topics_message_tries(const weft_topics_message* message);    /* earlier deliveries */
WEFT_EXPORT int weft_topics_message_is_erased(const weft_topics_message* message);     /* its topic has no value now */
WEFT_EXPORT const char* weft_topics_message_id(const weft_topics_message* message, size_t* size);

#ifdef __cplusplus
}
#endif

#undef WEFT_EXPORT

#include "weft_topics_kept.h"
