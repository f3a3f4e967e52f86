// SPDX-License-Identifier: MIT
#include "tools/weft/bridge/requests.h"

#include <charconv>
#include <iterator>
#include <span>
#include <string>
#include <utility>

#include "tools/weft/bridge/names.h"

namespace weft::bridge {

std::optional<Envelope> split_request(std::vector<Message> frames) {
  if (frames.size() < 2) {
    return std::nullopt;
  }
  const auto last = frames.begin() + static_cast<std::ptrdiff_t>(std::min(frames.size(), kEnvelopeMax));
  const auto empty = std::find_if(frames.begin() + 1, last, [](const Message& each) { return each.empty(); });
  const auto body = empty == last ? frames.begin() + 1 : empty + 1;
  Envelope request;
  request.envelope.assign(std::move_iterator(frames.begin()), std::move_iterator(body));
  request.body.assign(std::move_iterator(body), std::move_iterator(frames.end()));
  return request;
}

std::vector<Message> error_frames(const Error& error) {
  std::vector<Message> frames;
  frames.emplace_back(kErrorFrame);
  frames.emplace_back(std::to_string(error.domain_and_value()));
  frames.emplace_back(std::string_view(*error.text() != '\0' ? error.text() : describe(error.code()).data()));
  return frames;
}

std::optional<Error> read_error(const std::vector<Message>& body) {
  if (body.size() != 3 || body[0].text() != kErrorFrame) {
    return std::nullopt;
  }
  const std::string_view text = body[1].text();
  std::uint32_t number = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (fault != std::errc() || end != text.data() + text.size() || number == 0) {
    return Error(Errc::protocol_error, "the worker's error has no number");
  }
  return Error(ErrorDomain(static_cast<std::uint16_t>(number >> 16U)), static_cast<std::uint16_t>(number & 0xFFFFU));
}

Result<void> add_parts(Headers& headers, const std::vector<Message>& body) {
  if (body.size() < 2) {
    return {};
  }
  if (body.size() - 1 > kPartsMax) {
    return Error(Errc::message_too_large, "more frames than Weft-Parts holds");
  }
  return headers.add(kPartsHeader, encode_parts(std::span(body).subspan(1)));
}

std::optional<std::vector<Message>> frames_of(Message body, std::string_view headers) {
  std::vector<Message> frames;
  frames.push_back(std::move(body));
  const std::string_view value = find_header(headers, kPartsHeader);
  if (value.empty()) {
    return frames;
  }
  const auto parts = decode_parts(value);
  if (!parts) {
    return std::nullopt;
  }
  for (const std::string& part : *parts) {
    frames.emplace_back(part);
  }
  return frames;
}

std::optional<std::vector<Message>> body_of(TopicMessage message) {
  Message body = message.take_body();
  return frames_of(std::move(body), message.headers());
}

std::size_t bytes_of(const std::vector<Message>& frames) noexcept {
  std::size_t bytes = 0;
  for (const Message& each : frames) {
    bytes += each.size() + sizeof(Message);
  }
  return bytes;
}

}  // namespace weft::bridge
