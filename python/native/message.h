// SPDX-License-Identifier: MIT
#pragma once

#include "python/native/python.h"

// Message: the base of the package's classes of messages. It owns a message of the library, and its buffer is the
// message's memory: memoryview(message) copies nothing.
namespace weft::python {

// Makes the type, and adds it to the module. Returns false if Python's exception is set.
[[nodiscard]] bool add_message_type(PyObject* module) noexcept;

// NewMessage: an object of `type`, a subclass of Message, before its message exists: a message that the library has
// given is never lost for lack of memory.
class NewMessage {
 public:
  explicit NewMessage(PyObject* type);  // throws Raised
  [[nodiscard]] weft_topics_message** place() const noexcept;
  [[nodiscard]] PyObject* release() noexcept { return object_.release(); }

 private:
  Reference object_;
};

// The message of the object. Throws Raised: the object is not a Message.
[[nodiscard]] weft_topics_message* message_in(PyObject* object);

}  // namespace weft::python
