/* SPDX-License-Identifier: MIT */
/* weft_topics.h, weft_topics_kept.h and weft_error.h compile alone in strict C99, and keep their numbers and layouts.
   Compiling this file is the test. */
#include "capi/weft_topics_kept.h"
/* After the other one: each of the two may be the first one. */
#include "capi/weft_topics.h"

#define CHECK(name, condition) typedef char check_##name[(condition) ? 1 : -1]

CHECK(would_block, WEFT_TOPICS_WOULD_BLOCK == -1);
CHECK(timed_out, WEFT_TOPICS_TIMED_OUT == -2);
CHECK(closed, WEFT_TOPICS_CLOSED == -5);
CHECK(invalid_argument, WEFT_TOPICS_INVALID_ARGUMENT == -6);
CHECK(corrupt, WEFT_TOPICS_CORRUPT == -34);
CHECK(forever, WEFT_TOPICS_FOREVER == -1);
CHECK(end, WEFT_TOPICS_END == 3);

/* A program that was compiled with an earlier header has these layouts. A later version adds members behind them. */
CHECK(size_first, offsetof(weft_topics_options, struct_size) == 0);
CHECK(fleet, offsetof(weft_topics_options, fleet) == 8);
CHECK(queue_messages_max, offsetof(weft_topics_options, queue_messages_max) == 72);
CHECK(tls_server_name, offsetof(weft_topics_options, tls_server_name) == 160);
CHECK(hub, offsetof(weft_topics_options, hub) == 168);
CHECK(outage_bytes_max, offsetof(weft_topics_options, outage_bytes_max) == 216);
CHECK(curve_hub_public, offsetof(weft_topics_options, curve_hub_public) == 224);
CHECK(ping_every_ms, offsetof(weft_topics_options, ping_every_ms) == 232);
CHECK(options, sizeof(weft_topics_options) == 240);
CHECK(header, sizeof(weft_topics_header) == 16);
CHECK(timeout_ms, offsetof(weft_topics_publish_options, timeout_ms) == 32);
CHECK(publish_options, sizeof(weft_topics_publish_options) == 40);
CHECK(queue_bytes_max, offsetof(weft_topics_subscribe_options, queue_bytes_max) == 24);
CHECK(serve_options, sizeof(weft_topics_serve_options) == 24);
CHECK(stream_options, sizeof(weft_topics_stream_options) == 64);
CHECK(append_options, sizeof(weft_topics_append_options) == 72);
CHECK(append_time_to_live_ms, offsetof(weft_topics_append_options, time_to_live_ms) == 56);
CHECK(append_delay_ms, offsetof(weft_topics_append_options, delay_ms) == 64);
CHECK(batch_message, sizeof(weft_topics_batch_message) == 72);
CHECK(put_options, sizeof(weft_topics_put_options) == 32);
CHECK(published, sizeof(weft_topics_published) == 24);
CHECK(stream_info, sizeof(weft_topics_stream_info) == 48);
CHECK(read_options, sizeof(weft_topics_read_options) == 40);
CHECK(consume_options, sizeof(weft_topics_consume_options) == 96);
CHECK(kv_options, sizeof(weft_topics_kv_options) == 40);
CHECK(outcome, sizeof(weft_topics_outcome) == 48);
CHECK(subscribe_options, sizeof(weft_topics_subscribe_options) == 32);

int main(void) { return 0; }
