// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include "weft/base/bytes.h"
#include "weft/base/error.h"
#include "weft/base/filter.h"
#include "weft/msg/message/message.h"

namespace weft::topic {

// GateMember: a handle that uses a gate. The gate calls it on the gate's core, from Gate::join() to Gate::leave(). The
// calls do not wait.
class GateMember {
 public:
  // A message of another process. The topic is in the wire's form. The member copies or shares the parts.
  virtual void handle_gate_message(const Message& topic, const Message& body, const Message& headers) noexcept = 0;
  virtual void handle_gate_control(Bytes control) noexcept = 0;
  // `unserved`: no subscription has the subject.
  virtual void handle_gate_reply(std::uint64_t request, Message&& body, Message&& headers, bool unserved) noexcept = 0;
  virtual void handle_gate_request(std::uint64_t service, std::string_view reply, Message&& body,
                                   Message&& headers) noexcept = 0;
  virtual void handle_gate_connection(bool stands) noexcept = 0;  // that of the messages
  virtual void handle_gate_requests_lost() noexcept = 0;          // the connection of the requests ended
  virtual void handle_gate_room() noexcept = 0;                   // publish() that failed with would_block may succeed
  // The server refuses the subscription, a widened filter of one or more of the handles, and has dropped it.
  virtual void handle_gate_refused(const Filter& widened, const Error& why) noexcept = 0;

 protected:
  GateMember() = default;
  GateMember(const GateMember&) = default;
  GateMember& operator=(const GateMember&) = default;
  ~GateMember() = default;
};

}  // namespace weft::topic
