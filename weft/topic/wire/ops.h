// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "weft/base/bytes.h"
#include "weft/base/result.h"
#include "weft/base/time.h"

namespace weft::topic {

// An op is one message of one part between a member of a fleet (DEALER) and the server of its kept topics (ROUTER).
// docs/topics-ops.md has the request and the answer of each kind.
//
// byte  0      version, 1
//       1      OpKind
//       2..3   flags, OpFlags
//       4..7   id: the member's number of a request, or of a channel; an answer and a delivery bear it
//       8..15  number: the first number of the kind
//       16..23 second: the second one
//       24..25 code: of an answer its Errc, of a delivery how often the message was delivered before
//       26     size of the name
//       27     size of the key
//       28     size of the message id
//       29..31 size of the headers
//       32..   with the flag `expires` the time to live in s (4); with `delayed` the delay in ns (8); name, key,
//              message id, headers, body: the rest
// All numbers are big-endian.
inline constexpr std::uint8_t kOpVersion = 1;
inline constexpr std::size_t kOpHeaderSize = 32;
inline constexpr std::size_t kOpNameMax = 255;           // bytes of a name, of a key, and of a message id
inline constexpr std::size_t kOpHeadersMax = 64 * 1024;  // bytes
inline constexpr std::size_t kOpBodyMax = 1024 * 1024;   // bytes
inline constexpr std::size_t kOpExpirySize = 4;
inline constexpr std::size_t kOpDelaySize = 8;
inline constexpr std::size_t kOpSizeMax =
    kOpHeaderSize + kOpExpirySize + kOpDelaySize + 3 * kOpNameMax + kOpHeadersMax + kOpBodyMax;
inline constexpr std::size_t kOpSequencesMax = 4096;  // of one ack, besides its first
inline constexpr std::uint8_t kPriorityMax = 9;       // of a member of a consumer; 0 is served first

[[nodiscard]] Result<std::uint8_t> priority_of(std::uint64_t number) noexcept;  // refuses more than kPriorityMax

enum class OpKind : std::uint8_t {
  // From the server.
  answer = 1,     // to the request of this id
  delivery,       // a stored message, on the channel of this id
  caught_up,      // the channel has delivered the messages that were stored when it was opened
  ended,          // the server closed the channel; `code` has the reason
  lease_changed,  // a lease was taken or changed, or is gone: OpFlags::gone
  // Of streams.
  declare,  // makes the stream `name`; the body holds its settings
  info,     // the settings and counts of the stream `name`, or the names of all
  remove,   // the stream `name`, or its consumer `key`
  purge,    // the messages of the stream `name` before `number`, or of the topic `key`
  append,   // a message to the stream `name` under the topic `key`
  get,      // the newest message of the topic `key`, or the one of the sequence `number`
  list,     // the topics of the stream `name` with a live value, after `key`
  // Of channels.
  consume,  // makes or joins the consumer `key` of the stream `name`; the body holds its settings; opens a channel
  read,     // opens a channel without acknowledgements; the body holds where it begins and its filter
  credit,   // `number` more deliveries on the channel `id`
  end,      // closes the channel `id`
  // Of deliveries of a consumer.
  ack,     // the sequence `number`, and those in the body, 8 bytes each
  nak,     // deliver `number` again after `second` ns
  work,    // `number` takes longer: its ack_wait restarts
  reject,  // never deliver `number` again; the body has the reason
  // Of members.
  lease,    // takes, or renews, the name `name` for `number` ns; 0: for as long as the connection lasts
  release,  // gives the lease of `name` back
  leases,   // lists the leases whose names begin with `name`; with OpFlags::follow also opens a channel of changes
  probe,    // answered at once: the server is there, and everything before this op was handed to it
  // Of consumers whose `consume` had OpFlags::begins.
  begin,   // a program gets `number`, and those in the body: their deliveries count, their times to acknowledge begin
  recall,  // from the server: give up to `number` messages that no program has seen back, for another member
  // Of streams.
  append_all,  // the messages in the body (batch.h) to the stream `name`: all of them, or none
};
inline constexpr OpKind kOpKindFirst = OpKind::answer;
inline constexpr OpKind kOpKindLast = OpKind::append_all;
[[nodiscard]] std::string_view op_name(OpKind kind) noexcept;  // "append"; "unknown" for a number without a kind

struct OpFlags {
  static constexpr std::uint16_t expect_last = 1U << 0U;  // append: the topic's last sequence is `number`, or conflict
  static constexpr std::uint16_t expect_absent = 1U << 1U;  // append: the topic has no live value, or conflict
  static constexpr std::uint16_t erased = 1U << 2U;       // append, delivery, answer: the topic has no value any longer
  static constexpr std::uint16_t duplicate = 1U << 3U;    // answer: a message of this id was stored before
  static constexpr std::uint16_t follow = 1U << 4U;       // leases: also send changes
  static constexpr std::uint16_t gone = 1U << 5U;         // lease_changed: no handle holds the lease any longer
  static constexpr std::uint16_t redeclare = 1U << 6U;    // declare: change the settings of another declaration
  static constexpr std::uint16_t quiet = 1U << 7U;        // ack, nak, work, reject, credit: no answer unless it fails
  static constexpr std::uint16_t by_sequence = 1U << 8U;  // get: the message `number`
  static constexpr std::uint16_t more = 1U << 9U;  // answer of list, info, leases: request the rest after the last one
  // append: one answer may serve this and other appends. answer: it serves the `second` appends from `id` on, whose
  // sequences grow by one from `number` on.
  static constexpr std::uint16_t run = 1U << 10U;
  static constexpr std::uint16_t begins = 1U
                                          << 11U;  // consume: a delivery waits in a queue of the member until `begin`
  // nak: no program received `number` and those in the body: the deliveries do not count as tries
  static constexpr std::uint16_t unseen = 1U << 12U;
  // append: the op has `expires_after`. A hub of a revision without this flag refuses the op with not_supported.
  static constexpr std::uint16_t expires = 1U << 13U;
  // append: the op has `delay_ns`. A hub of a revision without this flag refuses the op, likewise.
  static constexpr std::uint16_t delayed = 1U << 14U;
  // consume: `second` is the priority of the member; likewise. No flag is left: a later option is a kind of its own.
  static constexpr std::uint16_t prioritized = 1U << 15U;
};

// Op: one op. The views point into the bytes that it was parsed from, or to the caller's.
struct Op {
  OpKind kind = OpKind::probe;
  std::uint16_t flags = 0;
  std::uint32_t id = 0;
  std::uint64_t number = 0;
  std::uint64_t second = 0;
  std::uint16_t code = 0;
  std::uint32_t expires_after = 0;  // s, of an append with OpFlags::expires: the time to live; otherwise 0
  std::uint64_t delay_ns = 0;       // of an append with OpFlags::delayed: until it is readable; otherwise 0
  std::string_view name{};
  std::string_view key{};
  std::string_view message_id{};
  Bytes headers{};
  Bytes body{};

  [[nodiscard]] bool has(std::uint16_t flag) const noexcept { return (flags & flag) != 0; }
  [[nodiscard]] Duration time_to_live() const noexcept { return std::chrono::seconds(expires_after); }
  [[nodiscard]] Duration delay() const noexcept {  // Duration::max(): of an op with an impossible one
    return delay_ns > std::uint64_t{INT64_MAX} ? Duration::max() : Duration(static_cast<Duration::rep>(delay_ns));
  }
  // Of an answer or of `ended`; Errc::other for a number that this version does not know.
  [[nodiscard]] Errc error() const noexcept;
};

// Errors: message_too_large (a field exceeds its bound); invalid_argument (an unknown kind; a time to live or a
// delay of another kind than append).
[[nodiscard]] Result<void> check_op(const Op& op) noexcept;
[[nodiscard]] std::size_t encoded_size(const Op& op) noexcept;  // of an op that check_op passes
// Requires: check_op passes, and `into` holds encoded_size(op) bytes.
void encode_op(const Op& op, MutableBytes into) noexcept;

// Errors: protocol_error (the bytes are not an op, or exceed a bound; `text` names it); not_supported (another version,
// an unknown kind; op_id() returns the id for the answer).
[[nodiscard]] Result<Op> parse_op(Bytes bytes) noexcept;
[[nodiscard]] std::uint32_t op_id(Bytes bytes) noexcept;        // 0 if the bytes are too short
void set_op_id(MutableBytes bytes, std::uint32_t id) noexcept;  // of an encoded op

// OpSequences: the body of an ack.
// Requires nothing of the body; if its size is not a multiple of 8, the rest is ignored.
[[nodiscard]] inline std::size_t sequence_count(Bytes body) noexcept { return body.size() / 8; }
[[nodiscard]] std::uint64_t sequence_at(Bytes body, std::size_t index) noexcept;

}  // namespace weft::topic
