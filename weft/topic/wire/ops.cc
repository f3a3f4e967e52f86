// SPDX-License-Identifier: MIT
#include "weft/topic/wire/ops.h"

#include "weft/base/assert.h"
#include "weft/base/endian.h"

namespace weft::topic {
namespace {

constexpr std::size_t kFlagsAt = 2;
constexpr std::size_t kIdAt = 4;
constexpr std::size_t kNumberAt = 8;
constexpr std::size_t kSecondAt = 16;
constexpr std::size_t kCodeAt = 24;
constexpr std::size_t kNameAt = 26;
constexpr std::size_t kKeyAt = 27;
constexpr std::size_t kMessageIdAt = 28;
constexpr std::size_t kHeadersAt = 29;

bool is_known(OpKind kind) noexcept { return kind >= kOpKindFirst && kind <= kOpKindLast; }

}  // namespace

std::string_view op_name(OpKind kind) noexcept {
  switch (kind) {
    case OpKind::answer: return "answer";
    case OpKind::delivery: return "delivery";
    case OpKind::caught_up: return "caught_up";
    case OpKind::ended: return "ended";
    case OpKind::lease_changed: return "lease_changed";
    case OpKind::declare: return "declare";
    case OpKind::info: return "info";
    case OpKind::remove: return "remove";
    case OpKind::purge: return "purge";
    case OpKind::append: return "append";
    case OpKind::get: return "get";
    case OpKind::list: return "list";
    case OpKind::consume: return "consume";
    case OpKind::read: return "read";
    case OpKind::credit: return "credit";
    case OpKind::end: return "end";
    case OpKind::ack: return "ack";
    case OpKind::nak: return "nak";
    case OpKind::work: return "work";
    case OpKind::reject: return "reject";
    case OpKind::lease: return "lease";
    case OpKind::release: return "release";
    case OpKind::leases: return "leases";
    case OpKind::probe: return "probe";
    case OpKind::begin: return "begin";
    case OpKind::recall: return "recall";
    case OpKind::append_all: return "append_all";
  }
  return "unknown";
}

Errc Op::error() const noexcept {
  const auto errc = static_cast<Errc>(code);
  return errc == Errc::ok || describe(errc) != "unknown error" ? errc : Errc::other;
}

Result<std::uint8_t> priority_of(std::uint64_t number) noexcept {
  if (number > kPriorityMax) {
    return Error(Errc::invalid_argument, "a priority is 0 to 9");
  }
  return static_cast<std::uint8_t>(number);
}

Result<void> check_op(const Op& op) noexcept {
  if (!is_known(op.kind)) {
    return Error(Errc::invalid_argument, "an op with an unknown kind");
  }
  if (op.has(OpFlags::expires) != (op.expires_after != 0) || (op.expires_after != 0 && op.kind != OpKind::append)) {
    return Error(Errc::invalid_argument, "a time to live of an op that has none");
  }
  if (op.has(OpFlags::delayed) != (op.delay_ns != 0) || (op.delay_ns != 0 && op.kind != OpKind::append)) {
    return Error(Errc::invalid_argument, "a delay of an op that has none");
  }
  if (op.name.size() > kOpNameMax || op.key.size() > kOpNameMax || op.message_id.size() > kOpNameMax) {
    return Error(Errc::message_too_large, "a name beyond 255 bytes");
  }
  if (op.headers.size() > kOpHeadersMax) {
    return Error(Errc::message_too_large, "headers beyond 64 KiB");
  }
  if (op.body.size() > kOpBodyMax) {
    return Error(Errc::message_too_large, "a body beyond 1 MiB");
  }
  return {};
}

std::size_t encoded_size(const Op& op) noexcept {
  return kOpHeaderSize + (op.has(OpFlags::expires) ? kOpExpirySize : 0) +
         (op.has(OpFlags::delayed) ? kOpDelaySize : 0) + op.name.size() + op.key.size() + op.message_id.size() +
         op.headers.size() + op.body.size();
}

void encode_op(const Op& op, MutableBytes into) noexcept {
  WEFT_ASSERT(check_op(op).has_value() && into.size() >= encoded_size(op));
  std::uint8_t* at = into.data();
  at[0] = kOpVersion;
  at[1] = static_cast<std::uint8_t>(op.kind);
  store_big_endian(at + kFlagsAt, op.flags);
  store_big_endian(at + kIdAt, op.id);
  store_big_endian(at + kNumberAt, op.number);
  store_big_endian(at + kSecondAt, op.second);
  store_big_endian(at + kCodeAt, op.code);
  at[kNameAt] = static_cast<std::uint8_t>(op.name.size());
  at[kKeyAt] = static_cast<std::uint8_t>(op.key.size());
  at[kMessageIdAt] = static_cast<std::uint8_t>(op.message_id.size());
  store_big_endian_24(at + kHeadersAt, static_cast<std::uint32_t>(op.headers.size()));
  at += kOpHeaderSize;
  if (op.has(OpFlags::expires)) {
    store_big_endian(at, op.expires_after);
    at += kOpExpirySize;
  }
  if (op.has(OpFlags::delayed)) {
    store_big_endian(at, op.delay_ns);
    at += kOpDelaySize;
  }
  for (const Bytes field : {as_bytes(op.name), as_bytes(op.key), as_bytes(op.message_id), op.headers, op.body}) {
    copy_bytes(at, field);
    at += field.size();
  }
}

Result<Op> parse_op(Bytes bytes) noexcept {
  if (bytes.size() < kOpHeaderSize) {
    return Error(Errc::protocol_error, "an op shorter than its header");
  }
  const std::uint8_t* at = bytes.data();
  if (at[0] != kOpVersion) {
    return Error(Errc::not_supported, "an op of another version");
  }
  Op op;
  op.kind = static_cast<OpKind>(at[1]);
  op.flags = load_big_endian<std::uint16_t>(at + kFlagsAt);
  if (!is_known(op.kind)) {
    return Error(Errc::not_supported, "an op with an unknown kind");
  }
  op.id = load_big_endian<std::uint32_t>(at + kIdAt);
  op.number = load_big_endian<std::uint64_t>(at + kNumberAt);
  op.second = load_big_endian<std::uint64_t>(at + kSecondAt);
  op.code = load_big_endian<std::uint16_t>(at + kCodeAt);
  const std::size_t name = at[kNameAt];
  const std::size_t key = at[kKeyAt];
  const std::size_t message_id = at[kMessageIdAt];
  const std::size_t headers = load_big_endian_24(at + kHeadersAt);
  Bytes rest = bytes.subspan(kOpHeaderSize);
  if (op.has(OpFlags::expires)) {
    op.expires_after = rest.size() < kOpExpirySize ? 0 : load_big_endian<std::uint32_t>(rest.data());
    if (op.kind != OpKind::append || op.expires_after == 0) {
      return Error(Errc::protocol_error, "an op with a wrong time to live");
    }
    rest = rest.subspan(kOpExpirySize);
  }
  if (op.has(OpFlags::delayed)) {
    op.delay_ns = rest.size() < kOpDelaySize ? 0 : load_big_endian<std::uint64_t>(rest.data());
    if (op.kind != OpKind::append || op.delay_ns == 0) {
      return Error(Errc::protocol_error, "an op with a wrong delay");
    }
    rest = rest.subspan(kOpDelaySize);
  }
  if (headers > kOpHeadersMax || name + key + message_id + headers > rest.size()) {
    return Error(Errc::protocol_error, "an op whose fields exceed its size");
  }
  const auto take = [&rest](std::size_t size) {
    const Bytes field = rest.first(size);
    rest = rest.subspan(size);
    return field;
  };
  op.name = as_text(take(name));
  op.key = as_text(take(key));
  op.message_id = as_text(take(message_id));
  op.headers = take(headers);
  op.body = rest;
  if (op.body.size() > kOpBodyMax) {
    return Error(Errc::protocol_error, "an op with a body beyond 1 MiB");
  }
  return op;
}

std::uint32_t op_id(Bytes bytes) noexcept {
  return bytes.size() < kIdAt + 4 ? 0 : load_big_endian<std::uint32_t>(bytes.data() + kIdAt);
}

void set_op_id(MutableBytes bytes, std::uint32_t id) noexcept {
  WEFT_ASSERT(bytes.size() >= kOpHeaderSize);
  store_big_endian(bytes.data() + kIdAt, id);
}

std::uint64_t sequence_at(Bytes body, std::size_t index) noexcept {
  WEFT_ASSERT(index < sequence_count(body));
  return load_big_endian<std::uint64_t>(body.data() + 8 * index);
}

}  // namespace weft::topic
