// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <deque>
#include <vector>

#include "python/native/message.h"
#include "python/native/python.h"

// The functions of the module, and the parts that several of them share.
namespace weft::python {

[[nodiscard]] std::vector<PyMethodDef> volatile_calls();
[[nodiscard]] std::vector<PyMethodDef> stream_calls();
[[nodiscard]] std::vector<PyMethodDef> key_value_calls();
[[nodiscard]] std::vector<PyMethodDef> later_calls();

// AppendOptions: the arguments (id, headers, timeout_ms, expected sequence or None, strict, time_to_live_ms, delay_ms)
// from `at` on.
class AppendOptions {
 public:
  AppendOptions(Args& args, Py_ssize_t at) : headers_(args[at + 1]) {
    options_.struct_size = sizeof options_;
    options_.id = args.text_or_null(at);
    options_.headers = headers_.data();
    options_.header_count = headers_.size();
    options_.timeout_ms = args.integer(at + 2);
    if (args[at + 3] != Py_None) {
      options_.expects_last = 1;
      options_.last = args.count(at + 3);
    }
    options_.strict = args.truth(at + 4) ? 1 : 0;
    options_.time_to_live_ms = args.integer(at + 5);
    options_.delay_ms = args.integer(at + 6);
  }
  [[nodiscard]] const weft_topics_append_options* get() const noexcept { return &options_; }

 private:
  HeaderList headers_;
  weft_topics_append_options options_{};
};

// BatchArguments: the messages of a batch from `at` on, each as (topic, data, id, headers, expected sequence or None,
// time to live in ms).
class BatchArguments {
 public:
  BatchArguments(Args& args, Py_ssize_t at) {
    for (; at < args.size(); at += 6) {
      args.expect(std::max(args.size(), at + 6));
      const Payload& data = data_.emplace_back(args[at + 1]);
      const HeaderList& headers = headers_.emplace_back(args[at + 3]);
      weft_topics_batch_message& made = messages_.emplace_back();
      made.topic = args.text(at);
      made.data = data.data();
      made.size = data.size();
      made.id = args.text_or_null(at + 2);
      made.headers = headers.data();
      made.header_count = headers.size();
      made.expects_last = args[at + 4] == Py_None ? 0 : 1;
      made.last = args[at + 4] == Py_None ? 0 : args.count(at + 4);
      made.time_to_live_ms = args.integer(at + 5);
    }
  }
  [[nodiscard]] const weft_topics_batch_message* data() const noexcept { return messages_.data(); }
  [[nodiscard]] std::size_t size() const noexcept { return messages_.size(); }

 private:
  std::deque<Payload> data_;
  std::deque<HeaderList> headers_;
  std::vector<weft_topics_batch_message> messages_;
};

// PutArguments: the value of a key, at `at`, and the options after it: the sequence that must be seen, or None; and the
// time to live in ms.
struct PutArguments {
  PutArguments(Args& args, Py_ssize_t at, int put_if) : data(args[at]) {
    options.struct_size = sizeof options;
    options.put_if = args[at + 1] == Py_None ? put_if : static_cast<int>(WEFT_TOPICS_PUT_IF_SEEN);
    options.seen = args[at + 1] == Py_None ? 0 : args.count(at + 1);
    options.time_to_live_ms = args.integer(at + 2);
  }
  const Payload data;
  weft_topics_put_options options{};
};

// Names: a list of keys, which it frees.
class Names {
 public:
  Names() noexcept = default;
  Names(const Names&) = delete;
  Names& operator=(const Names&) = delete;
  ~Names() {
    if (names_ != nullptr) {
      (void)weft_topics_names_free(names_);
    }
  }
  [[nodiscard]] weft_topics_names** place() noexcept { return &names_; }
  // A list of str. `name`: of the bucket, for an error. Throws Raised.
  [[nodiscard]] Reference list(PyObject* name) const;

 private:
  weft_topics_names* names_ = nullptr;
};

[[nodiscard]] inline PyObject* of_published(const weft_topics_published& published) {
  return Py_BuildValue("(KKO)", static_cast<unsigned long long>(published.sequence),
                       static_cast<unsigned long long>(published.instance),
                       published.duplicate != 0 ? Py_True : Py_False);
}
// (first, next, bytes, instance, evicted, dropped_unread)
[[nodiscard]] inline PyObject* of_info(const weft_topics_stream_info& info) {
  return Py_BuildValue("(KKKKKK)", static_cast<unsigned long long>(info.first),
                       static_cast<unsigned long long>(info.next), static_cast<unsigned long long>(info.bytes),
                       static_cast<unsigned long long>(info.instance), static_cast<unsigned long long>(info.evicted),
                       static_cast<unsigned long long>(info.dropped_unread));
}

// The type of a handle, which is the first argument of its functions.
template <typename Function>
struct FirstArgument;
template <typename Result, typename First, typename... Rest>
struct FirstArgument<Result (*)(First*, Rest...)> {
  using Type = First;
};
template <auto kCall>
using HandleOf = typename FirstArgument<decltype(kCall)>::Type;

// (handle, name)
template <auto kClose>
PyObject* close(Args& args) {
  args.expect(2);
  auto* const handle = args.handle<HandleOf<kClose>>(0);
  check(unlocked([=] { return kClose(handle); }), "close", args[1]);
  return none();
}

// (handle, name, timeout_ms, class) -> Message
template <auto kNext>
PyObject* next(Args& args) {
  args.expect(4);
  auto* const handle = args.handle<HandleOf<kNext>>(0);
  NewMessage message(args[3]);
  const int code = patiently(args.integer(2), [&](std::int64_t ms) { return kNext(handle, ms, message.place()); });
  check(code, "wait for message of", args[1]);
  return message.release();
}
// (handle, name, class) -> Message, or None: the call would wait
template <auto kNext>
PyObject* try_next(Args& args) {
  args.expect(3);
  NewMessage message(args[2]);
  const int code = kNext(args.handle<HandleOf<kNext>>(0), 0, message.place());
  if (code == WEFT_TOPICS_WOULD_BLOCK) {
    return none();
  }
  check(code, "wait for message of", args[1]);
  return message.release();
}

// (handle, name) -> int
template <auto kDescriptor>
PyObject* descriptor(Args& args) {
  args.expect(2);
  const int code = kDescriptor(args.handle<HandleOf<kDescriptor>>(0));
  check(code, "make descriptor of", args[1]);
  return PyLong_FromLong(code);
}
// (handle, name) -> bool
template <auto kAsk>
PyObject* answer(Args& args) {
  args.expect(2);
  const int code = kAsk(args.handle<HandleOf<kAsk>>(0));
  check(code, "ask", args[1]);
  return PyBool_FromLong(code);
}

}  // namespace weft::python
