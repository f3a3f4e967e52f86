// SPDX-License-Identifier: MIT
#include "weft/nats/jetstream/delivery.h"

#include <array>
#include <cstddef>
#include <optional>

#include "weft/nats/jetstream/json_object.h"
#include "weft/nats/jetstream/number_text.h"

namespace weft::nats::jetstream {

namespace {

constexpr std::string_view kAckFront = "$JS.ACK.";
constexpr std::size_t kShortTokens = 7;  // after the front
constexpr std::size_t kLongTokens = 9;   // with the domain and the account
constexpr Error kNotADelivery(Errc::protocol_error, "the reply subject is not one of a JetStream consumer");

[[nodiscard]] PullStatus::Kind kind_of_conflict(std::string_view text) noexcept {
  using Kind = PullStatus::Kind;
  struct Row {
    std::string_view front;
    Kind kind;
  };
  constexpr Row kRows[] = {
      {"Batch Completed", Kind::completed},
      {"Consumer Deleted", Kind::consumer_deleted},
      {"Exceeded ", Kind::limit_exceeded},
      {"Leadership Change", Kind::leadership_change},
      {"Message Size Exceeds MaxBytes", Kind::too_large},
      {"Server Shutdown", Kind::leadership_change},
  };
  for (const Row& row : kRows) {
    if (text.starts_with(row.front)) {
      return row.kind;
    }
  }
  return Kind::refused;
}

[[nodiscard]] PullStatus::Kind kind_of_status(std::uint16_t code, std::string_view text) noexcept {
  using Kind = PullStatus::Kind;
  switch (code) {
    case 0: return Kind::message;
    case 100: return text.starts_with("FlowControl") ? Kind::flow_control : Kind::heartbeat;
    case 404: return Kind::no_messages;
    case 408: return Kind::expired;
    case 409: return kind_of_conflict(text);
    case 423: return Kind::wrong_pin;
    case kStatusNoResponders: return Kind::no_responders;
    default: return Kind::refused;
  }
}

}  // namespace

Result<Delivery> read_delivery(std::string_view reply) noexcept {
  if (!reply.starts_with(kAckFront)) {
    return kNotADelivery;
  }
  reply.remove_prefix(kAckFront.size());
  std::array<std::string_view, kLongTokens> tokens;
  std::size_t count = 0;
  for (bool more = true; more && count < kLongTokens; ++count) {
    const std::size_t dot = reply.find('.');
    tokens[count] = reply.substr(0, dot);
    more = dot != std::string_view::npos;
    reply.remove_prefix(more ? dot + 1 : reply.size());
  }
  if (count != kShortTokens && count != kLongTokens) {
    return kNotADelivery;
  }
  const std::string_view* const fields = tokens.data() + (count - kShortTokens);
  Delivery delivery;
  delivery.domain = count == kLongTokens && tokens[0] != "_" ? tokens[0] : std::string_view();
  delivery.stream = fields[0];
  delivery.consumer = fields[1];
  const auto deliveries = read_number(fields[2]);
  const auto stream_sequence = read_number(fields[3]);
  const auto consumer_sequence = read_number(fields[4]);
  const auto time = read_number<Duration::rep>(fields[5]);
  const auto pending = read_number(fields[6]);
  if (delivery.stream.empty() || delivery.consumer.empty() || !deliveries || !stream_sequence || !consumer_sequence ||
      !time || !pending) {
    return kNotADelivery;
  }
  delivery.deliveries = *deliveries;
  delivery.stream_sequence = *stream_sequence;
  delivery.consumer_sequence = *consumer_sequence;
  delivery.time = WallTime(Duration(*time));
  delivery.pending = *pending;
  return delivery;
}

PullStatus read_pull_status(const HeadersView& headers) noexcept {
  PullStatus status;
  status.code = headers.status();
  status.kind = kind_of_status(status.code, headers.status_text());
  if (status.kind == PullStatus::Kind::message) {
    return status;
  }
  const auto number = [&headers](std::string_view name) noexcept {
    return read_number(headers.find(name).value_or(std::string_view())).value_or(0);
  };
  status.pending_messages = number("Nats-Pending-Messages");
  status.pending_bytes = number("Nats-Pending-Bytes");
  status.last_consumer_sequence = number("Nats-Last-Consumer");
  status.last_stream_sequence = number("Nats-Last-Stream");
  return status;
}

void append_nak(Duration delay, std::string& out) {
  out += kNak;
  if (delay > Duration::zero()) {
    JsonObject body;
    body.number("delay", delay);
    out.append(1, ' ').append(std::move(body).take());
  }
}

void append_terminate(std::string_view reason, std::string& out) {
  out += kTerminate;
  if (!reason.empty()) {
    out += ' ';
    for (const char c : reason) {
      out += static_cast<unsigned char>(c) < 0x20 || c == 0x7F ? ' ' : c;
    }
  }
}

}  // namespace weft::nats::jetstream
