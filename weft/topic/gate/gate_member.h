// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string_view>

#include "weft/base/bytes.h"
#include "weft/base/error.h"
#include "weft/base/filter.h"
#include "weft/msg/message/message.h"

namespace weft::topic {

// FleetMessage: a received message, in the bytes of the connection. Members that share a copy make it once.
// Owner: the gate, during a call. Affinity: the gate's core.
class FleetMessage {
 public:
  // `topic` is in the wire's form.
  FleetMessage(const Message& topic, Bytes body, std::string_view headers) noexcept
      : topic_(topic), body_(body), headers_(headers) {}
  FleetMessage(const FleetMessage&) = delete;
  FleetMessage& operator=(const FleetMessage&) = delete;
  ~FleetMessage() = default;

  [[nodiscard]] const Message& topic() const noexcept { return topic_; }
  [[nodiscard]] Bytes body() const noexcept { return body_; }
  [[nodiscard]] std::string_view headers() const noexcept { return headers_; }
  // Returns whether there is memory for the copy, which shared_body() and shared_headers() share from then on.
  [[nodiscard]] bool copy() noexcept {
    copied_ = copied_ || (owned_body_.assign_copy(body_) && owned_headers_.assign_copy(as_bytes(headers_)));
    return copied_;
  }
  [[nodiscard]] Message shared_body() const noexcept { return owned_body_.share(); }
  [[nodiscard]] Message shared_headers() const noexcept { return owned_headers_.share(); }

 private:
  const Message& topic_;
  const Bytes body_;
  const std::string_view headers_;
  bool copied_ = false;
  Message owned_body_;
  Message owned_headers_;
};

// GateMember: a handle that uses a gate. The gate calls it on the gate's core, from Gate::join() to Gate::leave(). The
// calls do not wait.
class GateMember {
 public:
  // A message of another process.
  virtual void handle_gate_message(FleetMessage& message) noexcept = 0;
  virtual void handle_gate_control(Bytes control) noexcept = 0;
  // `unserved`: no subscription has the subject.
  virtual void handle_gate_reply(std::uint64_t request, Message&& body, Message&& headers, bool unserved) noexcept = 0;
  virtual void handle_gate_request(std::uint64_t service, std::string_view reply, Message&& body,
                                   Message&& headers) noexcept = 0;
  virtual void handle_gate_connection(bool stands) noexcept = 0;  // that of the messages
  virtual void handle_gate_requests_connected() noexcept = 0;     // that of the requests and answers stands
  virtual void handle_gate_requests_lost() noexcept = 0;          // it ended
  virtual void handle_gate_room() noexcept = 0;                   // publish() that failed with would_block may succeed
  // The server refuses the subscription, a widened filter of one or more of the handles, and has dropped it.
  virtual void handle_gate_refused(const Filter& widened, const Error& why) noexcept = 0;
  // The same of a service's subscription. stop_serving() stays to be called, and does nothing more.
  virtual void handle_gate_service_refused(std::uint64_t service, const Error& why) noexcept = 0;
  // The server refuses a message to the subject: each request to it that is under way, or the answer to one.
  virtual void handle_gate_request_refused(std::string_view subject, const Error& why) noexcept = 0;
  // The server refuses the subscription to the answers of requests, or the messages between handles, on the
  // connection that stands: the gate tries again on the next one.
  virtual void handle_gate_replies_refused(const Error& why) noexcept = 0;
  virtual void handle_gate_control_refused(const Error& why) noexcept = 0;

 protected:
  GateMember() = default;
  GateMember(const GateMember&) = default;
  GateMember& operator=(const GateMember&) = default;
  ~GateMember() = default;
};

}  // namespace weft::topic
