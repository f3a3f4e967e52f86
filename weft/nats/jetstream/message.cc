// SPDX-License-Identifier: MIT
#include "weft/nats/jetstream/message.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "weft/nats/jetstream/json_fields.h"
#include "weft/nats/jetstream/json_object.h"
#include "weft/nats/jetstream/number_text.h"
#include "weft/nats/jetstream/request_to.h"
#include "weft/nats/protocol/subject.h"

namespace weft::nats::jetstream {

namespace {

constexpr std::string_view kStreamHeader = "Nats-Stream";
constexpr std::string_view kSubjectHeader = "Nats-Subject";
constexpr std::string_view kSequenceHeader = "Nats-Sequence";
constexpr std::string_view kTimeHeader = "Nats-Time-Stamp";
constexpr std::string_view kDirectHeaders[] = {kStreamHeader,       kSubjectHeader,     kSequenceHeader,
                                               kTimeHeader,         "Nats-Num-Pending", "Nats-Last-Sequence",
                                               "Nats-UpTo-Sequence"};

[[nodiscard]] Result<std::string> write_which(const Which& which) {
  JsonObject body;
  switch (which.kind) {
    case Which::Kind::sequence:
      if (which.sequence == 0) {
        return Error(Errc::invalid_argument, "the first sequence of a stream is 1");
      }
      body.number("seq", which.sequence);
      break;
    case Which::Kind::last_of_subject:
      if (!is_subject(which.subject)) {
        return Error(Errc::invalid_argument, "not the subject of a message");
      }
      body.text("last_by_subj", which.subject);
      break;
    case Which::Kind::next_of_subject:
      if (!is_subject_filter(which.subject)) {
        return Error(Errc::invalid_argument, "not a filter of subjects");
      }
      body.number("seq", std::max<std::uint64_t>(which.sequence, 1)).text("next_by_subj", which.subject);
      break;
  }
  return std::move(body).take();
}

[[nodiscard]] Error error_of_status(std::uint16_t status) noexcept {
  switch (status) {
    case 404: return {Errc::not_found, "the message"};
    case 400:
    case 408:
    case 413: return {Errc::invalid_argument, "the server does not take the request for a message"};
    case 429: return {Errc::resource_exhausted, "the stream has too many requests for messages"};
    case kStatusNoResponders: return {Errc::unreachable, "no server answers for the stream"};
    default: return {Errc::system, "the server failed to carry out the request"};
  }
}

}  // namespace

Result<ApiRequest> get_message(std::string_view stream, const Which& which) {
  return request_to("STREAM.MSG.GET", {stream}, WEFT_TRY(write_which(which)));
}

Result<Reply<StreamMessage>> read_message(std::string_view json) {
  return read_reply<StreamMessage>(
      json,
      [](JsonFields& fields, StreamMessage& message) {
        fields.add("message", "subject", message.subject);
        fields.add("message", "seq", message.sequence);
        fields.add("message", "time", message.time);
        fields.add_base64("message", "hdrs", message.header_block);
        fields.add_base64("message", "data", message.content);
      },
      [](StreamMessage& message) { return message.sequence != 0 && !message.subject.empty(); }, kStoredJsonMax);
}

Result<ApiRequest> get_direct(std::string_view stream, const Which& which) {
  return request_to("DIRECT.GET", {stream}, WEFT_TRY(write_which(which)));
}

Result<DirectMessage> read_direct(const HeadersView& headers, Bytes body) {
  if (const std::uint16_t status = headers.status(); status != 0) {
    return error_of_status(status).with_fate(Fate::answered);
  }
  DirectMessage message;
  std::string_view sequence;
  std::string_view time;
  // The server's lines come after those of the message, which may have the same names.
  headers.for_each([&](const HeadersView::Field& field) {
    if (field.name == kStreamHeader) {
      message.stream = field.value;
    } else if (field.name == kSubjectHeader) {
      message.subject = field.value;
    } else if (field.name == kSequenceHeader) {
      sequence = field.value;
    } else if (field.name == kTimeHeader) {
      time = field.value;
    }
  });
  const auto number = read_number(sequence);
  const auto when = read_wall_time(time);
  if (message.stream.empty() || message.subject.empty() || !number || !when) {
    return Error(Errc::protocol_error, "the answer has no message of a stream").with_fate(Fate::answered);
  }
  message.sequence = *number;
  message.time = *when;
  message.headers = headers;
  message.body = body;
  return message;
}

bool is_direct_header(std::string_view name) noexcept {
  return std::find(std::begin(kDirectHeaders), std::end(kDirectHeaders), name) != std::end(kDirectHeaders);
}

Result<ApiRequest> delete_message(std::string_view stream, std::uint64_t sequence, bool erase) {
  JsonObject body;
  body.number("seq", sequence);
  if (!erase) {
    body.flag("no_erase", true);
  }
  return request_to("STREAM.MSG.DELETE", {stream}, std::move(body).take());
}

}  // namespace weft::nats::jetstream
