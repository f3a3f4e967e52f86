// SPDX-License-Identifier: MIT
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>

#include "capi/handles.h"

namespace weft::capi {

namespace {

// A Message lies in the zmq_msg_t; its mark distinguishes an initialised one from garbage.
constexpr std::uint32_t kMark = 0x574d5347;
static_assert(sizeof(Message) <= sizeof(zmq_msg_t) && alignof(Message) <= alignof(zmq_msg_t));

Message* inside(zmq_msg_t* msg) noexcept { return std::launder(reinterpret_cast<Message*>(msg)); }

}  // namespace

Message* message_of(zmq_msg_t* msg) noexcept {
  if (msg == nullptr || inside(msg)->mark() != kMark) {
    (void)fail(EFAULT);
    return nullptr;
  }
  return inside(msg);
}
const Message* message_of(const zmq_msg_t* msg) noexcept { return message_of(const_cast<zmq_msg_t*>(msg)); }

Message* init_message(zmq_msg_t* msg) noexcept {
  auto* message = ::new (static_cast<void*>(msg)) Message;
  message->set_mark(kMark);
  return message;
}

static void end_message(zmq_msg_t* msg) noexcept {
  message_of(msg)->~Message();
  std::memset(static_cast<void*>(msg), 0, sizeof *msg);  // erases the mark too
}

}  // namespace weft::capi

using namespace weft;        // NOLINT(google-build-using-namespace)
using namespace weft::capi;  // NOLINT(google-build-using-namespace)

extern "C" {

int zmq_msg_init(zmq_msg_t* msg) {
  if (msg == nullptr) {
    return fail(EFAULT);
  }
  init_message(msg);
  return 0;
}

int zmq_msg_init_size(zmq_msg_t* msg, size_t size) {
  if (msg == nullptr) {
    return fail(EFAULT);
  }
  auto made = Message::with_size(size);
  if (!made) {
    return fail(ENOMEM);
  }
  *init_message(msg) = std::move(*made);
  return 0;
}

int zmq_msg_init_buffer(zmq_msg_t* msg, const void* buf, size_t size) {
  if (msg == nullptr || (buf == nullptr && size != 0)) {
    return fail(EFAULT);
  }
  auto made = Message::copy_of(Bytes(static_cast<const std::uint8_t*>(buf), size));
  if (!made) {
    return fail(ENOMEM);
  }
  *init_message(msg) = std::move(*made);
  return 0;
}

int zmq_msg_init_data(zmq_msg_t* msg, void* data, size_t size, zmq_free_fn* ffn, void* hint) {
  if (msg == nullptr || (data == nullptr && size != 0)) {
    return fail(EFAULT);
  }
  const MutableBytes bytes(static_cast<std::uint8_t*>(data), size);
  mem::Buffer* buffer = mem::Buffer::make_external(bytes, ffn != nullptr ? ffn : &mem::Buffer::keep_bytes, hint);
  if (buffer == nullptr) {
    return fail(ENOMEM);
  }
  init_message(msg)->assign(buffer, bytes);
  return 0;
}

int zmq_msg_close(zmq_msg_t* msg) {
  if (message_of(msg) == nullptr) {
    return -1;
  }
  end_message(msg);
  return 0;
}

int zmq_msg_move(zmq_msg_t* dest, zmq_msg_t* src) {
  Message* to = message_of(dest);
  Message* from = message_of(src);
  if (to == nullptr || from == nullptr) {
    return -1;
  }
  if (to != from) {
    *to = std::move(*from);
    from->set_more(false);
  }
  return 0;
}

int zmq_msg_copy(zmq_msg_t* dest, zmq_msg_t* src) {
  Message* to = message_of(dest);
  const Message* from = message_of(src);
  if (to == nullptr || from == nullptr) {
    return -1;
  }
  if (to != from) {
    *to = from->share();
  }
  return 0;
}

void* zmq_msg_data(zmq_msg_t* msg) {
  const Message* message = message_of(msg);
  return message == nullptr ? nullptr : const_cast<std::uint8_t*>(message->bytes().data());
}
size_t zmq_msg_size(const zmq_msg_t* msg) {
  const Message* message = message_of(msg);
  return message == nullptr ? 0 : message->size();
}
int zmq_msg_more(const zmq_msg_t* msg) { return zmq_msg_get(msg, ZMQ_MORE); }

int zmq_msg_get(const zmq_msg_t* msg, int property) {
  const Message* message = message_of(msg);
  if (message == nullptr) {
    return -1;
  }
  switch (property) {
    case ZMQ_MORE: return message->more() ? 1 : 0;
    case ZMQ_SRCFD: {
      const char* fd = message->peer_property("__fd");
      return fd == nullptr ? fail(EINVAL) : std::atoi(fd);
    }
    case ZMQ_SHARED: return message->shared() ? 1 : 0;
    default: return fail(EINVAL);
  }
}

const char* zmq_msg_gets(const zmq_msg_t* msg, const char* property) {
  const Message* message = message_of(msg);
  if (message == nullptr) {
    return nullptr;
  }
  const char* value = property == nullptr ? nullptr : message->peer_property(property);
  if (value == nullptr) {
    (void)fail(EINVAL);
  }
  return value;
}

int zmq_msg_set(zmq_msg_t* /*msg*/, int /*property*/, int /*optval*/) {
  return fail(EINVAL);  // libzmq 4.3.5 has no property that can be set
}

int zmq_msg_set_routing_id(zmq_msg_t* msg, uint32_t routing_id) {
  Message* message = message_of(msg);
  if (message == nullptr) {
    return -1;
  }
  const auto set = message->set_routing_id(routing_id);
  return set ? 0 : fail(set.error());
}

uint32_t zmq_msg_routing_id(zmq_msg_t* msg) {
  const Message* message = message_of(msg);
  return message == nullptr ? 0 : message->routing_id();
}

int zmq_msg_set_group(zmq_msg_t* msg, const char* group) {
  Message* message = message_of(msg);
  if (message == nullptr) {
    return -1;
  }
  const auto set = group == nullptr ? Result<void>(Errc::invalid_argument) : message->set_group(group);
  return set ? 0 : fail(set.error());
}

const char* zmq_msg_group(zmq_msg_t* msg) {
  const Message* message = message_of(msg);
  return message == nullptr ? nullptr : message->group().data();
}

int zmq_msg_send(zmq_msg_t* msg, void* socket, int flags) {
  SocketHandle* handle = socket_of(socket);
  Message* message = message_of(msg);
  if (handle == nullptr || message == nullptr) {
    return -1;
  }
  const std::size_t size = message->size();
  msg::Outbound part{message->bytes(), message, (flags & ZMQ_SNDMORE) != 0};
  if (const auto sent = handle->core->send(part, timeout_of(flags)); !sent) [[unlikely]] {
    return fail(sent.error());
  }
  *message = Message();
  return clamped(size);
}

int zmq_msg_recv(zmq_msg_t* msg, void* socket, int flags) {
  SocketHandle* handle = socket_of(socket);
  Message* message = message_of(msg);
  if (handle == nullptr || message == nullptr) {
    return -1;
  }
  msg::Inbound part{message, {}};
  return recv_part(*handle, part, flags);
}

int zmq_sendmsg(void* socket, zmq_msg_t* msg, int flags) { return zmq_msg_send(msg, socket, flags); }
int zmq_recvmsg(void* socket, zmq_msg_t* msg, int flags) { return zmq_msg_recv(msg, socket, flags); }
}
