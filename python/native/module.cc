// SPDX-License-Identifier: MIT
// The module weft._topics: weft_topics.h for Python.
#include "python/native/calls.h"

namespace {

// Python keeps pointers into the table.
PyMethodDef* all_calls() {
  static std::vector<PyMethodDef> table = [] {
    std::vector<PyMethodDef> calls = weft::python::volatile_calls();
    for (const auto& more :
         {weft::python::stream_calls(), weft::python::key_value_calls(), weft::python::later_calls()}) {
      calls.insert(calls.end(), more.begin(), more.end());
    }
    calls.push_back({nullptr, nullptr, 0, nullptr});
    return calls;
  }();
  return table.data();
}

}  // namespace

PyMODINIT_FUNC PyInit__topics() {
  try {
    static PyModuleDef definition = {
        PyModuleDef_HEAD_INIT, "weft._topics", nullptr, -1, all_calls(), nullptr, nullptr, nullptr, nullptr};
    PyObject* const module = PyModule_Create(&definition);
    if (module != nullptr && !weft::python::add_message_type(module)) {
      Py_DECREF(module);
      return nullptr;
    }
    return module;
  } catch (const std::bad_alloc&) {
    return PyErr_NoMemory();
  }
}
