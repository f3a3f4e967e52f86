// SPDX-License-Identifier: MIT
#pragma once

// Python.h comes first. From 3.11 on the stable ABI has buffers, so the module loads in every later Python.
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#include <Python.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <new>
#include <utility>
#include <vector>

#include "capi/weft_topics.h"

// Arguments of Python as those of the C interface. Every function here runs with Python's lock.
namespace weft::python {

// Raised: Python's exception is set. guarded() turns it into the null result that Python expects.
struct Raised {};

// Reference: owns one reference to an object.
class Reference {
 public:
  Reference() noexcept = default;
  explicit Reference(PyObject* owned) noexcept : object_(owned) {}
  Reference(Reference&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Reference& operator=(Reference&& other) noexcept {
    Py_XDECREF(std::exchange(object_, std::exchange(other.object_, nullptr)));
    return *this;
  }
  ~Reference() { Py_XDECREF(object_); }
  // Throws Raised if `made`, the result of a call of Python, is null.
  [[nodiscard]] static Reference checked(PyObject* made) {
    if (made == nullptr) {
      throw Raised();
    }
    return Reference(made);
  }
  [[nodiscard]] PyObject* get() const noexcept { return object_; }
  [[nodiscard]] PyObject* release() noexcept { return std::exchange(object_, nullptr); }

 private:
  PyObject* object_ = nullptr;
};

// Text: a str in UTF-8, with a zero byte after it. Surrogates of "surrogateescape" are the bytes that they stand for.
class Text {
 public:
  // Throws Raised: the object is not a str, or it contains a zero byte.
  explicit Text(PyObject* object);
  [[nodiscard]] const char* get() const noexcept { return text_; }

 private:
  Reference keeps_;  // the text: another thread may drop the caller's
  const char* text_ = nullptr;
};

// Payload: the bytes of an object with a buffer, without a copy, or the UTF-8 of a str.
class Payload {
 public:
  explicit Payload(PyObject* object);  // throws Raised
  Payload(const Payload&) = delete;
  Payload& operator=(const Payload&) = delete;
  ~Payload() {
    if (has_view_) {
      PyBuffer_Release(&view_);
    }
  }
  [[nodiscard]] const void* data() const noexcept { return has_view_ ? view_.buf : text_; }
  [[nodiscard]] std::size_t size() const noexcept { return has_view_ ? static_cast<std::size_t>(view_.len) : size_; }

 private:
  Py_buffer view_{};
  bool has_view_ = false;
  const char* text_ = nullptr;
  std::size_t size_ = 0;
};

// HeaderList: the headers of a dict of str, or of None.
class HeaderList {
 public:
  explicit HeaderList(PyObject* object);  // throws Raised
  [[nodiscard]] const weft_topics_header* data() const noexcept { return list_.data(); }
  [[nodiscard]] std::size_t size() const noexcept { return list_.size(); }

 private:
  std::deque<Text> texts_;
  std::vector<weft_topics_header> list_;
};

// Args: the positional arguments of a call. Its texts live until its end.
class Args {
 public:
  Args(PyObject* const* items, Py_ssize_t count) noexcept : items_(items), count_(count) {}
  // Throws Raised unless the call has this many arguments.
  void expect(Py_ssize_t count) const;
  [[nodiscard]] Py_ssize_t size() const noexcept { return count_; }
  [[nodiscard]] PyObject* operator[](Py_ssize_t at) const noexcept { return items_[at]; }
  // A handle is an int.
  template <typename Handle>
  [[nodiscard]] Handle* handle(Py_ssize_t at) const {
    return static_cast<Handle*>(pointer(at));
  }
  [[nodiscard]] std::int64_t integer(Py_ssize_t at) const;       // throws Raised
  [[nodiscard]] std::uint64_t count(Py_ssize_t at) const;        // of an int that is not negative; throws Raised
  [[nodiscard]] int number(Py_ssize_t at) const;                 // throws Raised
  [[nodiscard]] std::uint32_t small_count(Py_ssize_t at) const;  // throws Raised
  [[nodiscard]] bool truth(Py_ssize_t at) const;                 // throws Raised
  [[nodiscard]] const char* text(Py_ssize_t at);                 // throws Raised
  [[nodiscard]] const char* text_or_null(Py_ssize_t at);         // None: null; throws Raised
  // Of a tuple of str; throws Raised.
  [[nodiscard]] std::vector<const char*> texts(Py_ssize_t at);

 private:
  [[nodiscard]] void* pointer(Py_ssize_t at) const;
  PyObject* const* items_;
  Py_ssize_t count_;
  std::deque<Text> kept_;
};

// Runs a call with its arguments as Python's METH_FASTCALL expects it.
template <PyObject* (*kCall)(Args& args)>
PyObject* guarded(PyObject* /*module*/, PyObject* const* items, Py_ssize_t count) noexcept {
  try {
    Args args(items, count);
    return kCall(args);
  } catch (const Raised&) {
    return nullptr;
  } catch (const std::bad_alloc&) {
    return PyErr_NoMemory();
  }
}
template <PyObject* (*kCall)(Args& args)>
[[nodiscard]] PyMethodDef method(const char* name) noexcept {
  return {name, reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(guarded<kCall>)), METH_FASTCALL, nullptr};
}

// Unlocked: other threads of Python run during its life.
class Unlocked {
 public:
  Unlocked() noexcept : state_(PyEval_SaveThread()) {}
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;
  ~Unlocked() { PyEval_RestoreThread(state_); }

 private:
  PyThreadState* state_;
};
template <typename Call>
[[nodiscard]] int unlocked(Call call) {
  const Unlocked others;
  return call();
}

// Raises the package's error for the code of a call, with the text of this thread's last error. `name` is the topic,
// the stream or the key that the operation was about, or None.
[[noreturn]] void raise(int code, const char* operation, PyObject* name);
inline void check(int code, const char* operation, PyObject* name) {
  if (code < 0) {
    raise(code, operation, name);
  }
}

// Calls `call` with times in milliseconds until it no longer fails with would_block, timed_out or interrupted, or until
// `timeout_ms` has passed; negative: without a bound. Python's main thread runs handlers of signals meanwhile, and an
// exception of theirs is Raised.
template <typename Call>
[[nodiscard]] int patiently(std::int64_t timeout_ms, Call call);
// The rest of patiently() for a call that would block.
[[nodiscard]] int wait_patiently(std::int64_t timeout_ms, int (*call)(void* of, std::int64_t ms), void* of);

template <typename Call>
int patiently(std::int64_t timeout_ms, Call call) {
  const int code = call(0);
  if (timeout_ms == 0 || (code != WEFT_TOPICS_WOULD_BLOCK && code != WEFT_TOPICS_TIMED_OUT)) {
    return code;
  }
  return wait_patiently(timeout_ms, [](void* of, std::int64_t ms) { return (*static_cast<Call*>(of))(ms); }, &call);
}

[[nodiscard]] inline PyObject* none() noexcept {
  Py_INCREF(Py_None);
  return Py_None;
}
[[nodiscard]] inline PyObject* of_handle(void* handle) noexcept { return PyLong_FromVoidPtr(handle); }
[[nodiscard]] PyObject* of_text(const char* text, std::size_t size) noexcept;

// (factory of the package's errors, which takes (code, text, operation, name); the main thread's identity). The package
// calls it at its import, and again in each child of fork().
PyObject* set_up(Args& args);
// Differs between a process and its child by fork().
[[nodiscard]] unsigned process_number() noexcept;

}  // namespace weft::python
