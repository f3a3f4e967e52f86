// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "weft/base/result.h"

// JetStream: the requests of its API as a subject and a body, and the answers to them. docs.nats.io, reference,
// "JetStream wire API"; ADR-2 and ADR-31.
namespace weft::nats::jetstream {

inline constexpr std::string_view kApiPrefix = "$JS.API.";

// The bounds of an answer. A value beyond its bound is protocol_error.
inline constexpr std::size_t kJsonMax = std::size_t{1} << 20;         // bytes
inline constexpr unsigned kJsonDepthMax = 64;                         // of objects and arrays in each other
inline constexpr std::size_t kTextMax = 4096;                         // bytes of one text
inline constexpr std::size_t kItemsMax = 4096;                        // of one array
inline constexpr std::size_t kStoredJsonMax = std::size_t{12} << 20;  // the answer to get_message(), in base64

// ApiRequest: a question to the API, for nats::Client::request(). A call that makes one throws std::bad_alloc.
struct ApiRequest {
  std::string subject{};
  std::string body{};
};

// The errors that a caller treats in a way of their own.
inline constexpr std::uint32_t kNoPeers = 10005;  // too few servers for the copies, or they do not know each other yet
inline constexpr std::uint32_t kConsumerNotFound = 10014;
inline constexpr std::uint32_t kNoMessageFound = 10037;
inline constexpr std::uint32_t kNotEnabledForAccount = 10039;
inline constexpr std::uint32_t kStreamNameInUse = 10058;  // with another configuration
inline constexpr std::uint32_t kStreamNotFound = 10059;
inline constexpr std::uint32_t kStreamNotMatched = 10060;  // another stream has the subject of a message
inline constexpr std::uint32_t kWrongLastMessageId = 10070;
inline constexpr std::uint32_t kWrongLastSequence = 10071;  // the text has the sequence; 10164: it has none
inline constexpr std::uint32_t kNotEnabled = 10076;         // on the server
inline constexpr std::uint32_t kStoreFailed = 10077;        // also "maximum messages exceeded" of discard_new
inline constexpr std::uint32_t kWrongLastSequenceConstant = 10164;
inline constexpr std::uint32_t kDuplicateInProcess = 10158;  // since 2.11: a message of this id is being stored

inline constexpr std::uint32_t kNotPermittedCode = 403;  // no answer has it: a server refuses the subject

// ApiError: the `error` of an answer. A value.
struct ApiError {
  std::uint32_t code = 0;    // like that of HTTP; 0: not an error
  std::uint32_t number = 0;  // err_code
  std::string description{};

  [[nodiscard]] bool failed() const noexcept { return code != 0 || number != 0; }
  // Whether the same request may succeed later: the cluster elects a leader, a server starts.
  [[nodiscard]] bool is_temporary() const noexcept;
  // conflict, invalid_argument, not_permitted, not_found, resource_exhausted, message_too_large, not_supported,
  // unreachable (if is_temporary()) or other ones, with a static text and Fate::answered; ok if it is not an error.
  [[nodiscard]] Error error() const noexcept;
};

// Reply: an answer of the API: an error, or a value.
template <typename T>
struct Reply {
  ApiError failure{};
  T value{};  // meaningless if failure.failed()

  [[nodiscard]] bool ok() const noexcept { return !failure.failed(); }
};

// Done: the value of an answer that has none.
struct Done {};

// Of requests whose answer is {"success":true}: deletions. Every read_x() of this room fails with protocol_error (the
// text is not JSON, or a member has another type, or exceeds a bound), resource_exhausted (no memory) or not_supported
// (this build has no nlohmann/json). Members that it does not know are skipped.
[[nodiscard]] Result<Reply<Done>> read_done(std::string_view json);

// AccountInfo: the answer to account_info(): whether and how much the account may keep.
struct AccountInfo {
  std::uint64_t memory = 0;   // bytes in use
  std::uint64_t storage = 0;  // the same, of files
  std::uint64_t streams = 0;
  std::uint64_t consumers = 0;
  std::int64_t memory_max = -1;  // -1: without a bound
  std::int64_t storage_max = -1;
  std::int64_t streams_max = -1;
  std::int64_t consumers_max = -1;
  std::string domain{};
  std::uint64_t api_level = 0;  // since 2.11; it grows with the versions
};
[[nodiscard]] ApiRequest account_info();
[[nodiscard]] Result<Reply<AccountInfo>> read_account_info(std::string_view json);

}  // namespace weft::nats::jetstream
