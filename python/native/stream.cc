// SPDX-License-Identifier: MIT
// Streams, readers and consumers.
#include "python/native/calls.h"

namespace weft::python {

namespace {

// (topics, name, filters, keep, survives, when_full, redeclare, bytes_max, age_max_ms, same_id_window_ms) -> handle
PyObject* stream_open(Args& args) {
  args.expect(10);
  auto* const topics = args.handle<weft_topics>(0);
  const char* const name = args.text(1);
  const std::vector<const char*> filters = args.texts(2);
  weft_topics_stream_options options{};
  options.struct_size = sizeof options;
  options.topics = filters.data();
  options.topic_count = filters.size();
  options.keep = args.number(3);
  options.survives = args.number(4);
  options.when_full = args.number(5);
  options.redeclare = args.truth(6) ? 1 : 0;
  options.bytes_max = args.count(7);
  options.age_max_ms = args.integer(8);
  options.same_id_window_ms = args.integer(9);
  weft_topics_stream* stream = nullptr;
  check(unlocked([&] { return weft_topics_stream_open(topics, name, &options, &stream); }), "open stream", args[1]);
  return of_handle(stream);
}

// (stream, topic, data, id, headers, timeout_ms, expected, strict, time_to_live_ms, delay_ms)
// -> (sequence, instance, duplicate)
PyObject* stream_publish(Args& args) {
  args.expect(10);
  auto* const stream = args.handle<weft_topics_stream>(0);
  const char* const topic = args.text(1);
  const Payload data(args[2]);
  const AppendOptions options(args, 3);
  weft_topics_published published{};
  check(unlocked([&] {
          return weft_topics_stream_publish(stream, topic, data.data(), data.size(), options.get(), &published);
        }),
        "publish", args[1]);
  return of_published(published);
}
// (stream, name, timeout_ms, messages of BatchArguments...) -> (sequence, instance, duplicate)
PyObject* stream_publish_all(Args& args) {
  args.expect(std::max<Py_ssize_t>(args.size(), 3));
  auto* const stream = args.handle<weft_topics_stream>(0);
  const std::int64_t timeout_ms = args.integer(2);
  const BatchArguments batch(args, 3);
  weft_topics_published published{};
  check(unlocked([&] {
          return weft_topics_stream_publish_all(stream, batch.data(), batch.size(), sizeof(weft_topics_batch_message),
                                                timeout_ms, &published);
        }),
        "publish to", args[1]);
  return of_published(published);
}
// The arguments of stream_publish -> pending
PyObject* stream_publish_later(Args& args) {
  args.expect(10);
  auto* const stream = args.handle<weft_topics_stream>(0);
  const char* const topic = args.text(1);
  const Payload data(args[2]);
  const AppendOptions options(args, 3);
  weft_topics_pending* pending = nullptr;
  check(unlocked([&] {
          return weft_topics_stream_publish_later(stream, topic, data.data(), data.size(), options.get(), &pending);
        }),
        "publish", args[1]);
  return of_handle(pending);
}
// (pending, topic, timeout_ms) -> (sequence, instance, duplicate)
PyObject* pending_wait(Args& args) {
  args.expect(3);
  auto* const pending = args.handle<weft_topics_pending>(0);
  weft_topics_published published{};
  const int code =
      patiently(args.integer(2), [&](std::int64_t ms) { return weft_topics_pending_wait(pending, ms, &published); });
  check(code, "publish", args[1]);
  return of_published(published);
}
// (pending, topic) -> the same, or None: the call would wait
PyObject* pending_try(Args& args) {
  args.expect(2);
  weft_topics_published published{};
  const int code = weft_topics_pending_wait(args.handle<weft_topics_pending>(0), 0, &published);
  if (code == WEFT_TOPICS_WOULD_BLOCK) {
    return none();
  }
  check(code, "publish", args[1]);
  return of_published(published);
}

// (stream, name, sequence, class) -> Message
PyObject* stream_message(Args& args) {
  args.expect(4);
  auto* const stream = args.handle<weft_topics_stream>(0);
  const std::uint64_t sequence = args.count(2);
  NewMessage message(args[3]);
  check(unlocked([&] { return weft_topics_stream_message(stream, sequence, message.place()); }), "read message of",
        args[1]);
  return message.release();
}
// (stream, topic, class) -> Message
PyObject* stream_newest(Args& args) {
  args.expect(3);
  auto* const stream = args.handle<weft_topics_stream>(0);
  const char* const topic = args.text(1);
  NewMessage message(args[2]);
  check(unlocked([&] { return weft_topics_stream_newest(stream, topic, message.place()); }), "read newest message of",
        args[1]);
  return message.release();
}
// (stream, name) -> (first, next, bytes, instance, evicted, dropped_unread)
PyObject* stream_info(Args& args) {
  args.expect(2);
  auto* const stream = args.handle<weft_topics_stream>(0);
  weft_topics_stream_info info{};
  check(unlocked([&] { return weft_topics_stream_get_info(stream, &info); }), "ask about stream", args[1]);
  return of_info(info);
}
// (stream, name, before)
PyObject* stream_purge(Args& args) {
  args.expect(3);
  auto* const stream = args.handle<weft_topics_stream>(0);
  const std::uint64_t before = args.count(2);
  check(unlocked([=] { return weft_topics_stream_purge(stream, before); }), "purge stream", args[1]);
  return none();
}
// (stream, name)
PyObject* stream_remove(Args& args) {
  args.expect(2);
  auto* const stream = args.handle<weft_topics_stream>(0);
  check(unlocked([=] { return weft_topics_stream_remove(stream); }), "remove stream", args[1]);
  return none();
}

// (stream, name, filter, from, from_value, queue_messages_max, queue_bytes_max) -> handle
PyObject* read(Args& args) {
  args.expect(7);
  auto* const stream = args.handle<weft_topics_stream>(0);
  weft_topics_read_options options{};
  options.struct_size = sizeof options;
  options.filter = args.text_or_null(2);
  options.from = args.number(3);
  options.from_value = args.count(4);
  options.queue_messages_max = args.small_count(5);
  options.queue_bytes_max = args.count(6);
  weft_topics_reader* reader = nullptr;
  check(unlocked([&] { return weft_topics_read(stream, &options, &reader); }), "read stream", args[1]);
  return of_handle(reader);
}

// (stream, name, filter, from, from_value, tries_max, ack_wait_ms, retry waits in ms, dead_letters, unacked_max,
// queue_messages_max, queue_bytes_max, redeclare, priority or None) -> handle
PyObject* consume(Args& args) {
  args.expect(14);
  auto* const stream = args.handle<weft_topics_stream>(0);
  const char* const name = args.text(1);
  std::vector<std::int64_t> waits;
  const Py_ssize_t wait_count = PyTuple_Size(args[7]);
  if (wait_count < 0) {
    throw Raised();
  }
  for (Py_ssize_t i = 0; i < wait_count; ++i) {
    PyObject* const wait = PyTuple_GetItem(args[7], i);
    waits.push_back(Args(&wait, 1).integer(0));
  }
  weft_topics_consume_options options{};
  options.struct_size = sizeof options;
  options.filter = args.text_or_null(2);
  options.from = args.number(3);
  options.from_value = args.count(4);
  options.tries_max = args.small_count(5);
  options.ack_wait_ms = args.integer(6);
  options.retry_waits_ms = waits.data();
  options.retry_wait_count = waits.size();
  options.dead_letters = args.text_or_null(8);
  options.unacked_max = args.small_count(9);
  options.queue_messages_max = args.small_count(10);
  options.queue_bytes_max = args.count(11);
  options.redeclare = args.truth(12) ? 1 : 0;
  if (args[13] != Py_None) {
    options.prioritized = 1;
    options.priority = args.small_count(13);
  }
  weft_topics_consumer* consumer = nullptr;
  check(unlocked([&] { return weft_topics_consume(stream, name, &options, &consumer); }), "consume by", args[1]);
  return of_handle(consumer);
}

// (delivery, topic)
template <int (*kSettle)(weft_topics_message*)>
PyObject* settle(Args& args) {
  args.expect(2);
  weft_topics_message* const message = message_in(args[0]);
  check(unlocked([=] { return kSettle(message); }), "settle message of", args[1]);
  return none();
}
// (delivery, topic, after_ms)
PyObject* nak(Args& args) {
  args.expect(3);
  check(weft_topics_nak(message_in(args[0]), args.integer(2)), "settle message of", args[1]);
  return none();
}
// (delivery, topic, why)
PyObject* reject(Args& args) {
  args.expect(3);
  check(weft_topics_reject(message_in(args[0]), args.text_or_null(2)), "settle message of", args[1]);
  return none();
}

}  // namespace

std::vector<PyMethodDef> stream_calls() {
  return {
      method<stream_open>("stream_open"),
      method<close<weft_topics_stream_close>>("stream_close"),
      method<stream_publish>("stream_publish"),
      method<stream_publish_all>("stream_publish_all"),
      method<stream_publish_later>("stream_publish_later"),
      method<pending_wait>("pending_wait"),
      method<pending_try>("pending_try"),
      method<descriptor<weft_topics_pending_fd>>("pending_fd"),
      method<close<weft_topics_pending_close>>("pending_close"),
      method<stream_message>("stream_message"),
      method<stream_newest>("stream_newest"),
      method<stream_info>("stream_info"),
      method<stream_purge>("stream_purge"),
      method<stream_remove>("stream_remove"),
      method<read>("read"),
      method<close<weft_topics_reader_close>>("reader_close"),
      method<next<weft_topics_reader_next>>("reader_next"),
      method<try_next<weft_topics_reader_next>>("reader_try_next"),
      method<descriptor<weft_topics_reader_fd>>("reader_fd"),
      method<answer<weft_topics_reader_is_live>>("reader_is_live"),
      method<consume>("consume"),
      method<close<weft_topics_consumer_close>>("consumer_close"),
      method<next<weft_topics_consumer_next>>("consumer_next"),
      method<try_next<weft_topics_consumer_next>>("consumer_try_next"),
      method<descriptor<weft_topics_consumer_fd>>("consumer_fd"),
      method<settle<weft_topics_ack>>("ack"),
      method<settle<weft_topics_ack_confirmed>>("ack_confirmed"),
      method<settle<weft_topics_working>>("working"),
      method<nak>("nak"),
      method<reject>("reject"),
  };
}

}  // namespace weft::python
