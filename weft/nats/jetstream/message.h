// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "weft/base/bytes.h"
#include "weft/base/result.h"
#include "weft/nats/jetstream/api.h"
#include "weft/nats/jetstream/wall_time.h"
#include "weft/nats/protocol/headers.h"

namespace weft::nats::jetstream {

// Which message of a stream.
struct Which {
  enum class Kind : std::uint8_t { sequence, last_of_subject, next_of_subject };
  Kind kind = Kind::sequence;
  std::uint64_t sequence = 0;  // next_of_subject: the first one that may be it
  std::string_view subject{};  // of the last two; that of next_of_subject may have wildcards

  [[nodiscard]] static Which at(std::uint64_t sequence) noexcept { return {Kind::sequence, sequence, {}}; }
  [[nodiscard]] static Which last_of(std::string_view subject) noexcept { return {Kind::last_of_subject, 0, subject}; }
  [[nodiscard]] static Which next_of(std::string_view subject, std::uint64_t from) noexcept {
    return {Kind::next_of_subject, from, subject};
  }
};

// StreamMessage: a message of a stream. Of read_message() a value that owns its bytes.
struct StreamMessage {
  std::string subject{};
  std::uint64_t sequence = 0;
  WallTime time{};
  std::string header_block{};
  std::string content{};

  [[nodiscard]] HeadersView headers() const noexcept { return HeadersView(as_bytes(header_block)); }
  [[nodiscard]] Bytes body() const noexcept { return as_bytes(content); }
};

// From the leader of the stream, which has each acknowledged message.
[[nodiscard]] Result<ApiRequest> get_message(std::string_view stream, const Which& which);
// A JSON of at most kStoredJsonMax bytes. A failure with kNoMessageFound: there is none.
[[nodiscard]] Result<Reply<StreamMessage>> read_message(std::string_view json);

// From any replica of a stream with allow_direct, which may not have the newest message yet. Without such a stream the
// request fails with unreachable; nats-server 2.9.10 gives no answer.
[[nodiscard]] Result<ApiRequest> get_direct(std::string_view stream, const Which& which);

// DirectMessage: the answer to get_direct(), whose bytes it refers to.
struct DirectMessage {
  std::string_view stream{};
  std::string_view subject{};
  std::uint64_t sequence = 0;
  WallTime time{};
  HeadersView headers{};  // those of the message, and of the server: Nats-Stream, Nats-Subject, Nats-Sequence, …
  Bytes body{};
};
// Errors: not_found (404); unreachable (503: no such stream, or none with allow_direct); invalid_argument (408: the
// server did not take the request); protocol_error. All of them with Fate::answered.
[[nodiscard]] Result<DirectMessage> read_direct(const HeadersView& headers, Bytes body);
// Whether a header was put there by a server's answer, and is not one of the message.
[[nodiscard]] bool is_direct_header(std::string_view name) noexcept;

// `erase`: also overwrite its bytes in the file.
[[nodiscard]] Result<ApiRequest> delete_message(std::string_view stream, std::uint64_t sequence,
                                                bool erase);  // read_done()

}  // namespace weft::nats::jetstream
