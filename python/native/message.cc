// SPDX-License-Identifier: MIT
#include "python/native/message.h"

namespace weft::python {

namespace {

struct MessageObject {
  PyObject head;
  weft_topics_message* message;
  unsigned process;
};

PyTypeObject* message_type = nullptr;

MessageObject* as_message(PyObject* object) noexcept { return reinterpret_cast<MessageObject*>(object); }

PyObject* refuse_new(PyTypeObject* /*type*/, PyObject* /*args*/, PyObject* /*names*/) {
  PyErr_SetString(PyExc_TypeError, "messages come from the library");
  return nullptr;
}

void destroy(PyObject* object) {
  PyTypeObject* const type = Py_TYPE(object);
  // A child of fork() cannot give its parent's messages back: their locks may be held there for ever.
  if (as_message(object)->message != nullptr && as_message(object)->process == process_number()) {
    (void)weft_topics_message_free(as_message(object)->message);
  }
  reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(object);
  Py_DECREF(type);
}

int fill_buffer(PyObject* object, Py_buffer* view, int flags) {
  const weft_topics_message* const message = as_message(object)->message;
  void* const data = const_cast<void*>(weft_topics_message_data(message));
  return PyBuffer_FillInfo(view, object, data, static_cast<Py_ssize_t>(weft_topics_message_size(message)), 1, flags);
}

Py_ssize_t length_of(PyObject* object) {
  return static_cast<Py_ssize_t>(weft_topics_message_size(as_message(object)->message));
}

PyObject* data_of(PyObject* object, void* /*closure*/) {
  const weft_topics_message* const message = as_message(object)->message;
  return PyBytes_FromStringAndSize(static_cast<const char*>(weft_topics_message_data(message)),
                                   static_cast<Py_ssize_t>(weft_topics_message_size(message)));
}

template <const char* (*kRead)(const weft_topics_message*, std::size_t*)>
PyObject* text_of(PyObject* object, void* /*closure*/) {
  std::size_t size = 0;
  const char* const text = kRead(as_message(object)->message, &size);
  return of_text(text, size);
}
template <auto kRead>
PyObject* unsigned_of(PyObject* object, void* /*closure*/) {
  return PyLong_FromUnsignedLongLong(kRead(as_message(object)->message));
}
PyObject* time_ns_of(PyObject* object, void* /*closure*/) {
  return PyLong_FromLongLong(weft_topics_message_time_ns(as_message(object)->message));
}
PyObject* erased_of(PyObject* object, void* /*closure*/) {
  return PyBool_FromLong(weft_topics_message_is_erased(as_message(object)->message));
}

PyGetSetDef attributes[] = {
    {"data", data_of, nullptr, nullptr, nullptr},
    {"topic", text_of<weft_topics_message_topic>, nullptr, nullptr, nullptr},
    {"header_block", text_of<weft_topics_message_headers>, nullptr, nullptr, nullptr},
    {"missed", unsigned_of<weft_topics_message_missed>, nullptr, nullptr, nullptr},
    {"sequence", unsigned_of<weft_topics_message_sequence>, nullptr, nullptr, nullptr},
    {"instance", unsigned_of<weft_topics_message_instance>, nullptr, nullptr, nullptr},
    {"tries", unsigned_of<weft_topics_message_tries>, nullptr, nullptr, nullptr},
    {"id", text_of<weft_topics_message_id>, nullptr, nullptr, nullptr},
    {"time_ns", time_ns_of, nullptr, nullptr, nullptr},
    {"erased", erased_of, nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

template <typename Function>
void* slot(Function* function) noexcept {
  return reinterpret_cast<void*>(function);
}

}  // namespace

bool add_message_type(PyObject* module) noexcept {
  PyType_Slot slots[] = {
      {Py_tp_new, slot(refuse_new)},        {Py_tp_dealloc, slot(destroy)},  {Py_tp_getset, attributes},
      {Py_bf_getbuffer, slot(fill_buffer)}, {Py_sq_length, slot(length_of)}, {0, nullptr},
  };
  PyType_Spec spec = {"weft._topics.Message", sizeof(MessageObject), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
                      slots};
  message_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  return message_type != nullptr && PyModule_AddType(module, message_type) == 0;
}

NewMessage::NewMessage(PyObject* type) {
  if (PyType_Check(type) == 0 || PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(type), message_type) == 0) {
    PyErr_SetString(PyExc_TypeError, "the class is none of a message");
    throw Raised();
  }
  object_ = Reference::checked(PyType_GenericAlloc(reinterpret_cast<PyTypeObject*>(type), 0));
  as_message(object_.get())->process = process_number();
}

weft_topics_message** NewMessage::place() const noexcept { return &as_message(object_.get())->message; }

weft_topics_message* message_in(PyObject* object) {
  if (PyObject_TypeCheck(object, message_type) == 0) {
    PyErr_SetString(PyExc_TypeError, "not a message");
    throw Raised();
  }
  return as_message(object)->message;
}

}  // namespace weft::python
