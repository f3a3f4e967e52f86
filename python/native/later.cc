// SPDX-License-Identifier: MIT
// Calls that return at once, for asyncio. Each has a tag, whose lowest three bits choose the class of its message, or
// are kInfo or kKeys.
#include <cstring>
#include <memory>

#include "python/native/calls.h"

namespace weft::python {

namespace {

constexpr unsigned kOfTag = 7;  // the bits
constexpr unsigned kInfo = 3;
constexpr unsigned kKeys = 4;

// True, or False if the call has no place now.
PyObject* begun(int code, const char* operation, PyObject* name) {
  if (code != WEFT_TOPICS_WOULD_BLOCK) {
    check(code, operation, name);
  }
  return PyBool_FromLong(code == 0 ? 1 : 0);
}

// (topics, name) -> handle
PyObject* calls_open(Args& args) {
  args.expect(2);
  weft_topics_calls* calls = nullptr;
  check(weft_topics_calls_open(args.handle<weft_topics>(0), &calls), "make queue of calls of", args[1]);
  return of_handle(calls);
}

// (calls, tag, topic, data, timeout_ms, headers) -> bool
PyObject* calls_request(Args& args) {
  args.expect(6);
  auto* const calls = args.handle<weft_topics_calls>(0);
  const std::uint64_t tag = args.count(1);
  const char* const topic = args.text(2);
  const Payload data(args[3]);
  const std::int64_t timeout_ms = args.integer(4);
  const HeaderList headers(args[5]);
  return begun(weft_topics_calls_request(calls, tag, topic, data.data(), data.size(), timeout_ms, headers.data(),
                                         headers.size()),
               "request", args[2]);
}

// (calls, tag, stream, topic, data, id, headers, timeout_ms, expected, strict, time_to_live_ms, delay_ms) -> bool
PyObject* calls_publish(Args& args) {
  args.expect(12);
  auto* const calls = args.handle<weft_topics_calls>(0);
  const std::uint64_t tag = args.count(1);
  auto* const stream = args.handle<weft_topics_stream>(2);
  const char* const topic = args.text(3);
  const Payload data(args[4]);
  const AppendOptions options(args, 5);
  return begun(weft_topics_calls_publish(calls, tag, stream, topic, data.data(), data.size(), options.get()), "publish",
               args[3]);
}
// (calls, tag, stream, name, timeout_ms, messages of BatchArguments...) -> bool
PyObject* calls_publish_all(Args& args) {
  args.expect(std::max<Py_ssize_t>(args.size(), 5));
  const BatchArguments batch(args, 5);
  return begun(weft_topics_calls_publish_all(args.handle<weft_topics_calls>(0), args.count(1),
                                             args.handle<weft_topics_stream>(2), batch.data(), batch.size(),
                                             sizeof(weft_topics_batch_message), args.integer(4)),
               "publish to", args[3]);
}
// (calls, tag, stream, name, sequence) -> bool
PyObject* calls_message(Args& args) {
  args.expect(5);
  return begun(weft_topics_calls_message(args.handle<weft_topics_calls>(0), args.count(1),
                                         args.handle<weft_topics_stream>(2), args.count(4)),
               "read message of", args[3]);
}
// (calls, tag, stream, topic) -> bool
PyObject* calls_newest(Args& args) {
  args.expect(4);
  return begun(weft_topics_calls_newest(args.handle<weft_topics_calls>(0), args.count(1),
                                        args.handle<weft_topics_stream>(2), args.text(3)),
               "read newest message of", args[3]);
}
// (calls, tag, stream, name, before) -> bool
PyObject* calls_purge(Args& args) {
  args.expect(5);
  return begun(weft_topics_calls_purge(args.handle<weft_topics_calls>(0), args.count(1),
                                       args.handle<weft_topics_stream>(2), args.count(4)),
               "purge stream", args[3]);
}
// (calls, tag, stream, name) -> bool
PyObject* calls_info(Args& args) {
  args.expect(4);
  return begun(
      weft_topics_calls_info(args.handle<weft_topics_calls>(0), args.count(1), args.handle<weft_topics_stream>(2)),
      "ask about stream", args[3]);
}
// (calls, tag, stream, name) -> bool
PyObject* calls_remove(Args& args) {
  args.expect(4);
  return begun(
      weft_topics_calls_remove(args.handle<weft_topics_calls>(0), args.count(1), args.handle<weft_topics_stream>(2)),
      "remove stream", args[3]);
}
// (calls, tag, delivery, topic) -> bool
PyObject* calls_ack_confirmed(Args& args) {
  args.expect(4);
  return begun(weft_topics_calls_ack_confirmed(args.handle<weft_topics_calls>(0), args.count(1), message_in(args[2])),
               "settle message of", args[3]);
}

// The arguments (calls, tag, kv, key) of each call of a key.
struct OfKey {
  explicit OfKey(Args& args)
      : calls(args.handle<weft_topics_calls>(0)),
        tag(args.count(1)),
        kv(args.handle<weft_topics_kv>(2)),
        key(args.text(3)) {}
  weft_topics_calls* const calls;
  const std::uint64_t tag;
  weft_topics_kv* const kv;
  const char* const key;
};

// (calls, tag, kv, key, data, seen, time_to_live_ms) -> bool
template <int kPutIf>
PyObject* calls_put(Args& args) {
  args.expect(7);
  const OfKey of(args);
  const PutArguments put(args, 4, kPutIf);
  return begun(
      weft_topics_calls_put_with(of.calls, of.tag, of.kv, of.key, put.data.data(), put.data.size(), &put.options),
      "put value of", args[3]);
}
// (calls, tag, kv, key) -> bool
PyObject* calls_delete(Args& args) {
  args.expect(4);
  const OfKey of(args);
  return begun(weft_topics_calls_delete(of.calls, of.tag, of.kv, of.key), "delete value of", args[3]);
}
PyObject* calls_get(Args& args) {
  args.expect(4);
  const OfKey of(args);
  return begun(weft_topics_calls_get(of.calls, of.tag, of.kv, of.key), "get value of", args[3]);
}

// (calls, tag, kv, name, filter, after) -> bool
PyObject* calls_keys(Args& args) {
  args.expect(6);
  return begun(weft_topics_calls_keys(args.handle<weft_topics_calls>(0), args.count(1), args.handle<weft_topics_kv>(2),
                                      args.text_or_null(4), args.text_or_null(5)),
               "list keys of", args[3]);
}

struct FreeMessage {
  void operator()(weft_topics_message* message) const noexcept { (void)weft_topics_message_free(message); }
};

// (first, next, ...)
PyObject* info_in(weft_topics_message* message, PyObject* name) {
  weft_topics_stream_info info{};
  check(weft_topics_message_info(message, &info), "ask about stream", name);
  return Reference::checked(of_info(info)).release();
}
// (keys, after or None)
PyObject* keys_in(weft_topics_message* message, PyObject* name) {
  Names keys;
  const char* after = nullptr;
  check(weft_topics_message_keys(message, keys.place(), &after), "list keys of", name);
  Reference list = keys.list(name);
  Reference text(after == nullptr ? none() : of_text(after, std::strlen(after)));
  if (text.get() == nullptr) {
    throw Raised();
  }
  return Reference::checked(PyTuple_Pack(2, list.get(), text.get())).release();
}

// The value of an outcome. Without memory for it the outcome has an error.
PyObject* value_of(weft_topics_outcome& outcome, PyObject* name, PyObject* classes) {
  if (outcome.message == nullptr) {
    return of_published(outcome.published);
  }
  std::unique_ptr<weft_topics_message, FreeMessage> given(outcome.message);
  try {
    const auto kind = static_cast<unsigned>(outcome.tag & kOfTag);
    if (kind == kInfo || kind == kKeys) {
      return kind == kInfo ? info_in(given.get(), name) : keys_in(given.get(), name);
    }
    NewMessage message(Reference::checked(PySequence_GetItem(classes, static_cast<Py_ssize_t>(kind))).get());
    *message.place() = given.release();
    return message.release();
  } catch (const Raised&) {
    PyErr_Clear();
    outcome.code = WEFT_TOPICS_RESOURCE_EXHAUSTED;
    return PyUnicode_FromString("no memory for the answer");
  }
}

// (calls, name, classes) -> (tag, code, value), or None: there is no outcome now. The value is a Message, (sequence,
// instance, duplicate), or the text of the error
PyObject* calls_next(Args& args) {
  args.expect(3);
  weft_topics_outcome outcome{};
  const int code = weft_topics_calls_next(args.handle<weft_topics_calls>(0), 0, &outcome);
  if (code == WEFT_TOPICS_WOULD_BLOCK) {
    return none();
  }
  check(code, "wait for calls of", args[1]);
  const char* const text = outcome.code == 0 ? "" : weft_last_error_text();
  Reference value = Reference::checked(
      outcome.code == 0 ? value_of(outcome, args[1], args[2])
                        : PyUnicode_DecodeUTF8(text, static_cast<Py_ssize_t>(std::strlen(text)), "replace"));
  return Py_BuildValue("(KiN)", static_cast<unsigned long long>(outcome.tag), outcome.code, value.release());
}

}  // namespace

std::vector<PyMethodDef> later_calls() {
  return {
      method<calls_open>("calls_open"),
      method<close<weft_topics_calls_close>>("calls_close"),
      method<descriptor<weft_topics_calls_fd>>("calls_fd"),
      method<calls_request>("calls_request"),
      method<calls_publish>("calls_publish"),
      method<calls_publish_all>("calls_publish_all"),
      method<calls_message>("calls_message"),
      method<calls_newest>("calls_newest"),
      method<calls_purge>("calls_purge"),
      method<calls_info>("calls_info"),
      method<calls_remove>("calls_remove"),
      method<calls_ack_confirmed>("calls_ack_confirmed"),
      method<calls_put<WEFT_TOPICS_PUT_ALWAYS>>("calls_put"),
      method<calls_put<WEFT_TOPICS_PUT_IF_ABSENT>>("calls_create"),
      method<calls_delete>("calls_delete"),
      method<calls_get>("calls_get"),
      method<calls_keys>("calls_keys"),
      method<calls_next>("calls_next"),
  };
}

}  // namespace weft::python
