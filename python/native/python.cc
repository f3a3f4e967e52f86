// SPDX-License-Identifier: MIT
#include "python/native/python.h"

#include <algorithm>
#include <chrono>
#include <climits>
#include <cstring>
#include <limits>

namespace weft::python {

namespace {

PyObject* error_factory = nullptr;
unsigned long main_thread = 0;
unsigned process = 0;

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
constexpr milliseconds kSignalsChecked{100};  // the longest wait of the main thread without a look at signals

const char* utf8_of(PyObject* text, Py_ssize_t* size) {
  const char* const found = PyUnicode_AsUTF8AndSize(text, size);
  if (found == nullptr) {
    throw Raised();
  }
  return found;
}

}  // namespace

Text::Text(PyObject* object) {
  Py_ssize_t size = 0;
  text_ = PyUnicode_AsUTF8AndSize(object, &size);
  if (text_ != nullptr) {
    Py_INCREF(object);
    keeps_ = Reference(object);
  } else {
    if (PyErr_ExceptionMatches(PyExc_UnicodeEncodeError) == 0) {
      throw Raised();
    }
    PyErr_Clear();
    keeps_ = Reference::checked(PyUnicode_AsEncodedString(object, "utf-8", "surrogateescape"));
    text_ = PyBytes_AsString(keeps_.get());
    size = PyBytes_Size(keeps_.get());
  }
  if (std::memchr(text_, 0, static_cast<std::size_t>(size)) != nullptr) {
    PyErr_SetString(PyExc_ValueError, "a text with a zero byte");
    throw Raised();
  }
}

Payload::Payload(PyObject* object) {
  if (PyUnicode_Check(object) != 0) {
    Py_ssize_t size = 0;
    text_ = utf8_of(object, &size);
    size_ = static_cast<std::size_t>(size);
  } else if (PyObject_GetBuffer(object, &view_, PyBUF_SIMPLE) == 0) {
    has_view_ = true;
  } else {
    throw Raised();
  }
}

HeaderList::HeaderList(PyObject* object) {
  if (object == Py_None) {
    return;
  }
  if (PyDict_Check(object) == 0) {
    PyErr_SetString(PyExc_TypeError, "headers are a dict of str");
    throw Raised();
  }
  PyObject* name = nullptr;
  PyObject* value = nullptr;
  for (Py_ssize_t at = 0; PyDict_Next(object, &at, &name, &value) != 0;) {
    const char* const named = texts_.emplace_back(name).get();
    list_.push_back({named, texts_.emplace_back(value).get()});
  }
}

void Args::expect(Py_ssize_t count) const {
  if (count_ != count) {
    PyErr_Format(PyExc_TypeError, "%zd arguments instead of %zd", count_, count);
    throw Raised();
  }
}

void* Args::pointer(Py_ssize_t at) const {
  void* const found = PyLong_AsVoidPtr(items_[at]);
  if (found == nullptr && PyErr_Occurred() != nullptr) {
    throw Raised();
  }
  return found;
}

std::int64_t Args::integer(Py_ssize_t at) const {
  const std::int64_t found = PyLong_AsLongLong(items_[at]);
  if (found == -1 && PyErr_Occurred() != nullptr) {
    throw Raised();
  }
  return found;
}

std::uint64_t Args::count(Py_ssize_t at) const {
  const std::uint64_t found = PyLong_AsUnsignedLongLong(items_[at]);
  if (found == ~std::uint64_t{0} && PyErr_Occurred() != nullptr) {
    throw Raised();
  }
  return found;
}

int Args::number(Py_ssize_t at) const {
  const std::int64_t found = integer(at);
  if (found < INT_MIN || found > INT_MAX) {
    PyErr_SetString(PyExc_OverflowError, "the number does not fit into an int of C");
    throw Raised();
  }
  return static_cast<int>(found);
}

std::uint32_t Args::small_count(Py_ssize_t at) const {
  const std::uint64_t found = count(at);
  if (found > std::numeric_limits<std::uint32_t>::max()) {
    PyErr_SetString(PyExc_OverflowError, "the number does not fit into 32 bits");
    throw Raised();
  }
  return static_cast<std::uint32_t>(found);
}

bool Args::truth(Py_ssize_t at) const {
  const int found = PyObject_IsTrue(items_[at]);
  if (found < 0) {
    throw Raised();
  }
  return found != 0;
}

const char* Args::text(Py_ssize_t at) { return kept_.emplace_back(items_[at]).get(); }

const char* Args::text_or_null(Py_ssize_t at) { return items_[at] == Py_None ? nullptr : text(at); }

std::vector<const char*> Args::texts(Py_ssize_t at) {
  const Py_ssize_t size = PyTuple_Size(items_[at]);
  if (size < 0) {
    throw Raised();
  }
  std::vector<const char*> found;
  for (Py_ssize_t i = 0; i < size; ++i) {
    found.push_back(kept_.emplace_back(PyTuple_GetItem(items_[at], i)).get());
  }
  return found;
}

void raise(int code, const char* operation, PyObject* name) {
  const char* const text = weft_last_error_text();
  if (code == WEFT_TOPICS_INTERRUPTED && PyErr_CheckSignals() != 0) {
    throw Raised();
  }
  if (error_factory == nullptr) {
    PyErr_SetString(PyExc_RuntimeError, text);
    throw Raised();
  }
  const Reference said =
      Reference::checked(PyUnicode_DecodeUTF8(text, static_cast<Py_ssize_t>(std::strlen(text)), "replace"));
  const Reference error =
      Reference::checked(PyObject_CallFunction(error_factory, "iOsO", code, said.get(), operation, name));
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.get())), error.get());
  throw Raised();
}

int wait_patiently(std::int64_t timeout_ms, int (*call)(void* of, std::int64_t ms), void* of) {
  constexpr std::int64_t kLongest = std::int64_t{1} << 40U;  // 34 years: the sum below cannot overflow
  const bool for_ever = timeout_ms < 0;
  const bool handles_signals = PyThread_get_thread_ident() == main_thread;
  const Clock::time_point end = Clock::now() + milliseconds(for_ever ? 0 : std::min(timeout_ms, kLongest));
  while (true) {
    std::int64_t slice = WEFT_TOPICS_FOREVER;
    if (!for_ever) {
      slice = std::max<std::int64_t>(std::chrono::ceil<milliseconds>(end - Clock::now()).count(), 1);
    }
    if (handles_signals) {
      slice = for_ever ? kSignalsChecked.count() : std::min<std::int64_t>(slice, kSignalsChecked.count());
    }
    const int code = unlocked([&] { return call(of, slice); });
    if (code != WEFT_TOPICS_TIMED_OUT && code != WEFT_TOPICS_INTERRUPTED) {
      return code;
    }
    if (PyErr_CheckSignals() != 0) {
      throw Raised();
    }
    if (!for_ever && Clock::now() >= end) {
      return WEFT_TOPICS_TIMED_OUT;
    }
  }
}

PyObject* of_text(const char* text, std::size_t size) noexcept {
  return PyUnicode_DecodeUTF8(text, static_cast<Py_ssize_t>(size), "surrogateescape");
}

PyObject* set_up(Args& args) {
  args.expect(2);
  const auto identity = static_cast<unsigned long>(args.count(1));
  Py_INCREF(args[0]);
  Py_XDECREF(std::exchange(error_factory, args[0]));
  main_thread = identity;
  ++process;
  return none();
}

unsigned process_number() noexcept { return process; }

}  // namespace weft::python
