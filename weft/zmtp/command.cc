// SPDX-License-Identifier: MIT
#include "weft/zmtp/command.h"

#include <algorithm>

#include "weft/base/assert.h"
#include "weft/base/endian.h"

namespace weft::zmtp {
namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

std::size_t write_command_name(std::uint8_t* to, std::string_view name) noexcept {
  to[0] = static_cast<std::uint8_t>(name.size());
  copy_bytes(to + 1, as_bytes(name));
  return 1 + name.size();
}

void append_bytes(std::vector<std::uint8_t>& to, Bytes bytes) { to.insert(to.end(), bytes.begin(), bytes.end()); }

constexpr std::string_view join_name(bool join) { return join ? "JOIN" : "LEAVE"; }
constexpr std::string_view filter_name(bool on) { return on ? "FILTER" : "UNFILTER"; }
constexpr std::string_view subscription_name(bool subscribe) { return subscribe ? "SUBSCRIBE" : "CANCEL"; }

std::size_t subscription_body_size(bool subscribe, std::size_t topic_size, int peer_minor) noexcept {
  return 1 + topic_size + (peer_minor >= 1 ? subscription_name(subscribe).size() : 0);
}

}  // namespace

ParseStatus parse_command(Bytes body, Command& out) noexcept {
  if (body.empty() || body[0] == 0 || body[0] > body.size() - 1) {
    return ParseStatus::malformed;
  }
  out.name = as_text(body.subspan(1, body[0]));
  out.data = body.subspan(std::size_t{1} + body[0]);
  return ParseStatus::complete;
}

ParseStatus take_property(Bytes& metadata, Property& out) noexcept {
  constexpr std::size_t kSizeBytes = 4;
  WEFT_DCHECK(!metadata.empty());
  const std::size_t name_size = metadata[0];
  if (name_size == 0 || metadata.size() < 1 + name_size + kSizeBytes) {
    return ParseStatus::malformed;
  }
  const Bytes rest = metadata.subspan(1 + name_size + kSizeBytes);
  const auto value_size = load_big_endian<std::uint32_t>(metadata.data() + 1 + name_size);
  if (value_size > rest.size()) {
    return ParseStatus::malformed;
  }
  out.name = as_text(metadata.subspan(1, name_size));
  out.value = rest.first(value_size);
  metadata = rest.subspan(value_size);
  return ParseStatus::complete;
}

bool same_name(std::string_view a, std::string_view b) noexcept {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) { return lower(x) == lower(y); });
}

ParseStatus parse_ping(Bytes data, Ping& out) noexcept {
  if (data.size() < 2) {
    return ParseStatus::malformed;
  }
  out.ttl_deciseconds = load_big_endian<std::uint16_t>(data.data());
  // RFC 37 allows 16 bytes of context. Like libzmq, answer a longer one with its first 16 bytes.
  out.context = data.subspan(2, std::min(data.size() - 2, kPingContextMax));
  return ParseStatus::complete;
}

ParseStatus parse_pong(Bytes data, Bytes& context) noexcept {
  if (data.size() > kPingContextMax) {
    return ParseStatus::malformed;
  }
  context = data;
  return ParseStatus::complete;
}

ParseStatus parse_error(Bytes data, std::string_view& reason) noexcept {
  if (data.empty() || data[0] != data.size() - 1) {
    return ParseStatus::malformed;
  }
  reason = as_text(data.subspan(1));
  return ParseStatus::complete;
}

std::size_t subscribe_frame_size(bool subscribe, std::size_t topic_size, int peer_minor) noexcept {
  const std::size_t body_size = subscription_body_size(subscribe, topic_size, peer_minor);
  return frame_header_size(body_size) + body_size;
}

std::size_t write_subscribe(std::uint8_t* to, bool subscribe, Bytes topic, int peer_minor) noexcept {
  const bool command = peer_minor >= 1;
  const std::size_t body_size = subscription_body_size(subscribe, topic.size(), peer_minor);
  std::size_t size = write_frame_header(to, command ? kCommand : std::uint8_t{0}, body_size);
  if (command) {
    size += write_command_name(to + size, subscription_name(subscribe));
  } else {
    to[size++] = subscribe ? 1 : 0;
  }
  copy_bytes(to + size, topic);
  return size + topic.size();
}

std::size_t filter_frame_size(bool on, std::size_t text_size) noexcept {
  const std::size_t body_size = 1 + filter_name(on).size() + 1 + text_size;
  return frame_header_size(body_size) + body_size;
}

std::size_t write_filter(std::uint8_t* to, bool on, const FilterView& filter) noexcept {
  const std::string_view name = filter_name(on);
  std::size_t size = write_frame_header(to, kCommand, 1 + name.size() + 1 + filter.text.size());
  size += write_command_name(to + size, name);
  to[size++] = static_cast<std::uint8_t>(filter.kind);
  copy_bytes(to + size, as_bytes(filter.text));
  return size + filter.text.size();
}

ParseStatus parse_filter(Bytes data, FilterView& out) noexcept {
  if (data.empty()) {
    return ParseStatus::malformed;
  }
  out = {static_cast<FilterKind>(data[0]), as_text(data.subspan(1))};
  return Filter::make(out.kind, out.text) ? ParseStatus::complete : ParseStatus::malformed;
}

std::size_t join_frame_size(bool join, std::size_t group_size) noexcept {
  const std::size_t body_size = 1 + join_name(join).size() + group_size;
  return frame_header_size(body_size) + body_size;
}

std::size_t write_join(std::uint8_t* to, bool join, Bytes group) noexcept {
  std::size_t size = write_frame_header(to, kCommand, 1 + join_name(join).size() + group.size());
  size += write_command_name(to + size, join_name(join));
  copy_bytes(to + size, group);
  return size + group.size();
}

std::size_t write_ping(std::uint8_t* to, std::uint16_t ttl_deciseconds, Bytes context) noexcept {
  WEFT_ASSERT(context.size() <= kPingContextMax);
  std::size_t size = write_frame_header(to, kCommand, 1 + 4 + 2 + context.size());
  size += write_command_name(to + size, "PING");
  store_big_endian<std::uint16_t>(to + size, ttl_deciseconds);
  copy_bytes(to + size + 2, context);
  return size + 2 + context.size();
}

std::size_t write_pong(std::uint8_t* to, Bytes context) noexcept {
  WEFT_ASSERT(context.size() <= kPingContextMax);
  std::size_t size = write_frame_header(to, kCommand, 1 + 4 + context.size());
  size += write_command_name(to + size, "PONG");
  copy_bytes(to + size, context);
  return size + context.size();
}

void append_command_name(std::vector<std::uint8_t>& to, std::string_view name) {
  WEFT_ASSERT(!name.empty() && name.size() <= 255);
  to.push_back(static_cast<std::uint8_t>(name.size()));
  append_bytes(to, as_bytes(name));
}

void append_property(std::vector<std::uint8_t>& to, std::string_view name, Bytes value) {
  WEFT_ASSERT(value.size() <= INT32_MAX);
  append_command_name(to, name);  // a property's name has the same form
  std::uint8_t size[4];
  store_big_endian<std::uint32_t>(size, static_cast<std::uint32_t>(value.size()));
  append_bytes(to, size);
  append_bytes(to, value);
}

void append_command_frame(std::vector<std::uint8_t>& to, Bytes body) {
  std::uint8_t header[kFrameHeaderSizeMax];
  to.reserve(to.size() + kFrameHeaderSizeMax + body.size());  // first: a vector that grows leaves a copy of a password
  append_bytes(to, Bytes(header, write_frame_header(header, kCommand, body.size())));
  append_bytes(to, body);
}

void append_error_frame(std::vector<std::uint8_t>& to, std::string_view reason) {
  WEFT_ASSERT(reason.size() <= 255);
  std::vector<std::uint8_t> body;
  append_command_name(body, "ERROR");
  body.push_back(static_cast<std::uint8_t>(reason.size()));
  append_bytes(body, as_bytes(reason));
  append_command_frame(to, body);
}

}  // namespace weft::zmtp
