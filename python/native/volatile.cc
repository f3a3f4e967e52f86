// SPDX-License-Identifier: MIT
// Handles, publishers, subscriptions, requests and services.
#include "python/native/calls.h"
#include "python/native/message.h"

namespace weft::python {

namespace {

// (fleet, space, node, listen, advertise, runtime_directory, store_directory, never_hosts, separator,
// queue_messages_max, queue_bytes_max, peer_messages_max, presence_ms, 4 keys of CURVE, 4 names of TLS, hub,
// user, password, token, nkey_seed_file, credentials_file, outage_bytes_max, curve_hub_public, ping_every_ms) -> handle
PyObject* open(Args& args) {
  args.expect(30);
  weft_topics_options options{};
  options.struct_size = sizeof options;
  options.fleet = args.text_or_null(0);
  options.space = args.text_or_null(1);
  options.node = args.text_or_null(2);
  options.listen = args.text_or_null(3);
  options.advertise = args.text_or_null(4);
  options.runtime_directory = args.text_or_null(5);
  options.store_directory = args.text_or_null(6);
  options.never_hosts = args.truth(7) ? 1 : 0;
  options.separator = args.number(8);
  options.queue_messages_max = args.count(9);
  options.queue_bytes_max = args.count(10);
  options.peer_messages_max = args.number(11);
  options.presence_ms = args.integer(12);
  options.curve_server_public = args.text_or_null(13);
  options.curve_server_secret = args.text_or_null(14);
  options.curve_public = args.text_or_null(15);
  options.curve_secret = args.text_or_null(16);
  options.tls_certificate = args.text_or_null(17);
  options.tls_key = args.text_or_null(18);
  options.tls_authorities = args.text_or_null(19);
  options.tls_server_name = args.text_or_null(20);
  options.hub = args.text_or_null(21);
  options.user = args.text_or_null(22);
  options.password = args.text_or_null(23);
  options.token = args.text_or_null(24);
  options.nkey_seed_file = args.text_or_null(25);
  options.credentials_file = args.text_or_null(26);
  options.outage_bytes_max = args.count(27);
  options.curve_hub_public = args.text_or_null(28);
  options.ping_every_ms = args.integer(29);
  weft_topics* topics = nullptr;
  check(unlocked([&] { return weft_topics_open(&options, &topics); }), "join fleet", args[0]);
  return of_handle(topics);
}

// (topics, name) -> int
PyObject* take_input(Args& args) {
  args.expect(2);
  const int taken = weft_topics_take_input(args.handle<weft_topics>(0));
  check(taken, "read messages of", args[1]);
  return PyLong_FromLong(taken);
}
// (topics, name, timeout_ms) -> int
PyObject* sync(Args& args) {
  args.expect(3);
  auto* const topics = args.handle<weft_topics>(0);
  const int code = patiently(args.integer(2), [&](std::int64_t ms) { return weft_topics_sync(topics, ms); });
  check(code, "sync with fleet", args[1]);
  return PyLong_FromLong(code);
}

// (topics, topic) -> handle
PyObject* publisher_open(Args& args) {
  args.expect(2);
  weft_topics_publisher* publisher = nullptr;
  check(weft_topics_publisher_open(args.handle<weft_topics>(0), args.text(1), &publisher), "open publisher of",
        args[1]);
  return of_handle(publisher);
}

// Without waiting, a publish costs a copy and a lock: Python's lock is kept, unless the copy is large.
constexpr std::size_t kLarge = std::size_t{64} << 10U;

// (handle, topic, data, headers, timeout_ms or None)
template <typename Publish>
PyObject* publish_to(Args& args, Publish publish) {
  const Payload data(args[2]);
  if (args[3] == Py_None && args[4] == Py_None && data.size() <= kLarge) {
    check(publish(data, nullptr), "publish", args[1]);
    return none();
  }
  const HeaderList headers(args[3]);
  weft_topics_publish_options options{};
  options.struct_size = sizeof options;
  options.headers = headers.data();
  options.header_count = headers.size();
  if (args[4] == Py_None) {
    check(unlocked([&] { return publish(data, &options); }), "publish", args[1]);
    return none();
  }
  options.waits_for_room = 1;
  const int code = patiently(args.integer(4), [&](std::int64_t ms) {
    options.timeout_ms = ms;
    return publish(data, &options);
  });
  check(code, "publish", args[1]);
  return none();
}
PyObject* publish(Args& args) {
  args.expect(5);
  auto* const topics = args.handle<weft_topics>(0);
  const char* const topic = args.text(1);
  return publish_to(args, [=](const Payload& data, const weft_topics_publish_options* options) {
    return weft_topics_publish(topics, topic, data.data(), data.size(), options);
  });
}
PyObject* publisher_publish(Args& args) {
  args.expect(5);
  auto* const publisher = args.handle<weft_topics_publisher>(0);
  return publish_to(args, [=](const Payload& data, const weft_topics_publish_options* options) {
    return weft_topics_publisher_publish(publisher, data.data(), data.size(), options);
  });
}

// (publisher, topic, count, timeout_ms) -> int
PyObject* wait_subscribers(Args& args) {
  args.expect(4);
  auto* const publisher = args.handle<weft_topics_publisher>(0);
  const std::size_t wanted = args.count(2);
  std::size_t ready = 0;
  const int code = patiently(
      args.integer(3), [&](std::int64_t ms) { return weft_topics_wait_subscribers(publisher, wanted, ms, &ready); });
  check(code, "wait for subscribers of", args[1]);
  return PyLong_FromSize_t(ready);
}

// (topics, filter, full, queue_messages_max, queue_bytes_max) -> handle
PyObject* subscribe(Args& args) {
  args.expect(5);
  weft_topics_subscribe_options options{};
  options.struct_size = sizeof options;
  options.full = args.number(2);
  options.queue_messages_max = args.count(3);
  options.queue_bytes_max = args.count(4);
  weft_topics_subscription* subscription = nullptr;
  check(weft_topics_subscribe(args.handle<weft_topics>(0), args.text(1), &options, &subscription), "subscribe to",
        args[1]);
  return of_handle(subscription);
}
// (subscription, name)
PyObject* subscription_drain(Args& args) {
  args.expect(2);
  check(weft_topics_subscription_drain(args.handle<weft_topics_subscription>(0)), "close", args[1]);
  return none();
}
// (subscription, filter)
PyObject* subscription_add(Args& args) {
  args.expect(2);
  check(weft_topics_subscription_add(args.handle<weft_topics_subscription>(0), args.text(1)), "subscribe to", args[1]);
  return none();
}
// (subscription, filter)
PyObject* subscription_remove(Args& args) {
  args.expect(2);
  check(weft_topics_subscription_remove(args.handle<weft_topics_subscription>(0), args.text(1)), "unsubscribe from",
        args[1]);
  return none();
}
// (subscription, name) -> int
PyObject* subscription_missed(Args& args) {
  args.expect(2);
  std::uint64_t missed = 0;
  check(weft_topics_subscription_missed(args.handle<weft_topics_subscription>(0), &missed), "count losses of", args[1]);
  return PyLong_FromUnsignedLongLong(missed);
}

// (topics, topic, data, timeout_ms, headers, class) -> Message
PyObject* request(Args& args) {
  args.expect(6);
  auto* const topics = args.handle<weft_topics>(0);
  const char* const topic = args.text(1);
  const Payload data(args[2]);
  const std::int64_t timeout_ms = args.integer(3);
  const HeaderList headers(args[4]);
  NewMessage reply(args[5]);
  const int code = unlocked([&] {
    return weft_topics_request(topics, topic, data.data(), data.size(), timeout_ms, headers.data(), headers.size(),
                               reply.place());
  });
  check(code, "request", args[1]);
  return reply.release();
}

// (topics, topic, group, queue_max) -> handle
PyObject* serve(Args& args) {
  args.expect(4);
  weft_topics_serve_options options{};
  options.struct_size = sizeof options;
  options.group = args.text_or_null(2);
  options.queue_max = args.count(3);
  weft_topics_service* service = nullptr;
  check(weft_topics_serve(args.handle<weft_topics>(0), args.text(1), &options, &service), "serve", args[1]);
  return of_handle(service);
}
// (service, name)
PyObject* service_status(Args& args) {
  args.expect(2);
  check(weft_topics_service_status(args.handle<weft_topics_service>(0)), "serve", args[1]);
  return none();
}
// (request, topic, data, headers)
PyObject* reply(Args& args) {
  args.expect(4);
  weft_topics_message* const taken = message_in(args[0]);
  const Payload data(args[2]);
  const HeaderList headers(args[3]);
  check(unlocked([&] { return weft_topics_reply(taken, data.data(), data.size(), headers.data(), headers.size()); }),
        "reply to request of", args[1]);
  return none();
}
// (request, topic, code, text)
PyObject* refuse(Args& args) {
  args.expect(4);
  check(weft_topics_refuse(message_in(args[0]), args.number(2), args.text_or_null(3)), "refuse request of", args[1]);
  return none();
}

}  // namespace

std::vector<PyMethodDef> volatile_calls() {
  return {
      method<set_up>("set_up"),
      method<open>("open"),
      method<close<weft_topics_close>>("close"),
      method<sync>("sync"),
      method<descriptor<weft_topics_input_fd>>("input_fd"),
      method<take_input>("take_input"),
      method<publisher_open>("publisher_open"),
      method<close<weft_topics_publisher_close>>("publisher_close"),
      method<publish>("publish"),
      method<publisher_publish>("publisher_publish"),
      method<wait_subscribers>("wait_subscribers"),
      method<subscribe>("subscribe"),
      method<close<weft_topics_unsubscribe>>("unsubscribe"),
      method<subscription_drain>("subscription_drain"),
      method<subscription_add>("subscription_add"),
      method<subscription_remove>("subscription_remove"),
      method<subscription_missed>("subscription_missed"),
      method<next<weft_topics_next>>("next"),
      method<try_next<weft_topics_next>>("try_next"),
      method<descriptor<weft_topics_subscription_fd>>("subscription_fd"),
      method<request>("request"),
      method<serve>("serve"),
      method<close<weft_topics_service_close>>("service_close"),
      method<next<weft_topics_service_next>>("service_next"),
      method<try_next<weft_topics_service_next>>("service_try_next"),
      method<descriptor<weft_topics_service_fd>>("service_fd"),
      method<service_status>("service_status"),
      method<reply>("reply"),
      method<refuse>("refuse"),
  };
}

}  // namespace weft::python
