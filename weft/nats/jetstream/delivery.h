// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "weft/base/result.h"
#include "weft/base/time.h"
#include "weft/nats/jetstream/wall_time.h"
#include "weft/nats/protocol/headers.h"

namespace weft::nats::jetstream {

// Delivery: the parts of the reply subject of a delivered message:
//   $JS.ACK.<stream>.<consumer>.<deliveries>.<stream sequence>.<consumer sequence>.<time>.<pending>
//   $JS.ACK.<domain>.<account>.<stream>.<consumer>. … .<pending>[.<token>…]
// The texts are views into the subject.
struct Delivery {
  std::string_view domain{};  // empty: none
  std::string_view stream{};
  std::string_view consumer{};
  std::uint64_t deliveries = 0;  // of this message, with this one
  std::uint64_t stream_sequence = 0;
  std::uint64_t consumer_sequence = 0;
  WallTime time{};            // when the stream stored it
  std::uint64_t pending = 0;  // messages that come after it
};
// Errors: protocol_error (another form: it is not a message of a consumer).
[[nodiscard]] Result<Delivery> read_delivery(std::string_view reply) noexcept;

// PullStatus: the kind of a message to the reply subject of a pull request, if its own reply subject is not a Delivery.
// A message of a stream keeps the status that its publisher gave it.
struct PullStatus {
  enum class Kind : std::uint8_t {
    message,            // it is one of the stream
    heartbeat,          // 100: the request goes on
    flow_control,       // 100 with a reply subject; only push consumers send it
    no_messages,        // 404, of a request with no_wait
    expired,            // 408
    completed,          // 409: the bytes of the request are used up
    too_large,          // 409: the next message exceeds bytes_max
    limit_exceeded,     // 409: the request exceeds a bound of the consumer; or too many requests wait
    leadership_change,  // 409: the requests are lost, ask again. Also a server that shuts down
    consumer_deleted,   // 409
    wrong_pin,          // 423, of a consumer with pinned_client
    no_responders,      // 503: there is no such consumer, or no leader of it
    refused,            // 400 and others: the server does not take the request
  };
  Kind kind = Kind::message;
  std::uint16_t code = 0;
  std::uint64_t pending_messages = 0;  // of the request, that no message has served
  std::uint64_t pending_bytes = 0;
  std::uint64_t last_consumer_sequence = 0;  // of a heartbeat: the last delivery of the consumer
  std::uint64_t last_stream_sequence = 0;

  // Whether the request has ended with this status.
  [[nodiscard]] bool ends() const noexcept {
    return kind != Kind::message && kind != Kind::heartbeat && kind != Kind::flow_control;
  }
};
[[nodiscard]] PullStatus read_pull_status(const HeadersView& headers) noexcept;

// The bodies that a program publishes to the reply subject of a delivered message.
inline constexpr std::string_view kAck = "+ACK";
inline constexpr std::string_view kInProgress = "+WPI";  // its ack_wait begins again
inline constexpr std::string_view kNak = "-NAK";         // deliver it again at once
inline constexpr std::string_view kTerminate = "+TERM";  // never again
// "-NAK {"delay":…}". A delay of 0 or less is kNak.
void append_nak(Duration delay, std::string& out);
// "+TERM why", with the reason for the server's advisory. Control characters become blanks. A server before 2.10.4
// ignores it, and delivers the message again: for that one the word is kTerminate.
void append_terminate(std::string_view reason, std::string& out);

}  // namespace weft::nats::jetstream
