// SPDX-License-Identifier: MIT
// Keys with values.
#include "python/native/calls.h"

namespace weft::python {

Reference Names::list(PyObject* name) const {
  std::size_t count = 0;
  check(weft_topics_names_count(names_, &count), "list keys of", name);
  Reference list = Reference::checked(PyList_New(0));
  for (std::size_t i = 0; i < count; ++i) {
    const char* key = nullptr;
    std::size_t size = 0;
    check(weft_topics_names_at(names_, i, &key, &size), "list keys of", name);
    const Reference text = Reference::checked(of_text(key, size));
    if (PyList_Append(list.get(), text.get()) != 0) {
      throw Raised();
    }
  }
  return list;
}

namespace {

// (topics, name, history, survives, when_full, redeclare, bytes_max, age_max_ms) -> handle
PyObject* kv_open(Args& args) {
  args.expect(8);
  auto* const topics = args.handle<weft_topics>(0);
  const char* const name = args.text(1);
  weft_topics_kv_options options{};
  options.struct_size = sizeof options;
  options.history = args.small_count(2);
  options.survives = args.number(3);
  options.when_full = args.number(4);
  options.redeclare = args.truth(5) ? 1 : 0;
  options.bytes_max = args.count(6);
  options.age_max_ms = args.integer(7);
  weft_topics_kv* kv = nullptr;
  check(unlocked([&] { return weft_topics_kv_open(topics, name, &options, &kv); }), "open bucket", args[1]);
  return of_handle(kv);
}

// (kv, key, data, seen, time_to_live_ms) -> int
template <int kPutIf>
PyObject* kv_put(Args& args) {
  args.expect(5);
  auto* const kv = args.handle<weft_topics_kv>(0);
  const char* const key = args.text(1);
  const PutArguments put(args, 2, kPutIf);
  std::uint64_t revision = 0;
  check(unlocked([&] {
          return weft_topics_kv_put_with(kv, key, put.data.data(), put.data.size(), &put.options, &revision);
        }),
        "put value of", args[1]);
  return PyLong_FromUnsignedLongLong(revision);
}
// (kv, key) -> int
PyObject* kv_delete(Args& args) {
  args.expect(2);
  auto* const kv = args.handle<weft_topics_kv>(0);
  const char* const key = args.text(1);
  std::uint64_t revision = 0;
  check(unlocked([&] { return weft_topics_kv_delete(kv, key, &revision); }), "delete value of", args[1]);
  return PyLong_FromUnsignedLongLong(revision);
}
// (kv, key, class) -> Message
PyObject* kv_get(Args& args) {
  args.expect(3);
  auto* const kv = args.handle<weft_topics_kv>(0);
  const char* const key = args.text(1);
  NewMessage value(args[2]);
  check(unlocked([&] { return weft_topics_kv_get(kv, key, value.place()); }), "get value of", args[1]);
  return value.release();
}

// (kv, name, filter) -> list of str
PyObject* kv_keys(Args& args) {
  args.expect(3);
  auto* const kv = args.handle<weft_topics_kv>(0);
  const char* const filter = args.text_or_null(2);
  Names keys;
  check(unlocked([&] { return weft_topics_kv_keys(kv, filter, keys.place()); }), "list keys of", args[1]);
  return keys.list(args[1]).release();
}

// (kv, name, filter, all) -> handle
PyObject* kv_watch(Args& args) {
  args.expect(4);
  auto* const kv = args.handle<weft_topics_kv>(0);
  const char* const filter = args.text_or_null(2);
  const int all = args.truth(3) ? 1 : 0;
  weft_topics_watch* watch = nullptr;
  check(unlocked([&] { return weft_topics_kv_watch(kv, filter, all, &watch); }), "watch", args[1]);
  return of_handle(watch);
}

}  // namespace

std::vector<PyMethodDef> key_value_calls() {
  return {
      method<kv_open>("kv_open"),
      method<close<weft_topics_kv_close>>("kv_close"),
      method<kv_put<WEFT_TOPICS_PUT_ALWAYS>>("kv_put"),
      method<kv_put<WEFT_TOPICS_PUT_IF_ABSENT>>("kv_create"),
      method<kv_get>("kv_get"),
      method<kv_delete>("kv_delete"),
      method<kv_keys>("kv_keys"),
      method<kv_watch>("kv_watch"),
      method<close<weft_topics_watch_close>>("watch_close"),
      method<next<weft_topics_watch_next>>("watch_next"),
      method<try_next<weft_topics_watch_next>>("watch_try_next"),
      method<descriptor<weft_topics_watch_fd>>("watch_fd"),
      method<answer<weft_topics_watch_is_live>>("watch_is_live"),
  };
}

}  // namespace weft::python
