// SPDX-License-Identifier: MIT
#include "weft/nats/jetstream/api.h"

#include <algorithm>
#include <iterator>

#include "weft/nats/jetstream/json_fields.h"

namespace weft::nats::jetstream {

namespace {

struct Meaning {
  std::uint32_t number;
  Error error;
};

// server/errors.json of nats-server.
constexpr Meaning kMeanings[] = {
    {kNoPeers, Error(Errc::not_supported, "the servers cannot hold so many copies of the stream")},
    {10012, Error(Errc::invalid_argument, "the server does not take the configuration of the consumer")},
    {10013, Error(Errc::conflict, "another consumer has the name")},
    {10014, Error(Errc::not_found, "the consumer")},
    {10023, Error(Errc::resource_exhausted, "the servers have no room for the stream")},
    {10025, Error(Errc::not_supported, "the server does not know a member of the request")},
    {10026, Error(Errc::resource_exhausted, "the account's bound on consumers is reached")},
    {10027, Error(Errc::resource_exhausted, "the account's bound on streams is reached")},
    {10028, Error(Errc::resource_exhausted, "the account's memory is used up")},
    {10037, Error(Errc::not_found, "the message")},
    {10039, Error(Errc::not_supported, "the account has no JetStream")},
    {10047, Error(Errc::resource_exhausted, "the account's storage is used up")},
    {10052, Error(Errc::invalid_argument, "the server does not take the configuration of the stream")},
    {10053, Error(Errc::invalid_argument, "the server does not take the bounds of the stream")},
    {10054, Error(Errc::message_too_large, "the stream does not take so large a message")},
    {10058, Error(Errc::conflict, "the stream exists with another configuration")},
    {10059, Error(Errc::not_found, "the stream")},
    {10060, Error(Errc::invalid_argument, "another stream has the subject")},
    {10063, Error(Errc::conflict, "the sequence of the stream differs from the expectation")},
    {10065, Error(Errc::invalid_argument, "another stream has one of the subjects")},
    {10070, Error(Errc::conflict, "the last message's id differs from the expectation")},
    {10071, Error(Errc::conflict, "the last sequence differs from the expectation")},
    {10074, Error(Errc::not_supported, "one server holds no copies of a stream")},
    {10076, Error(Errc::not_supported, "the server has no JetStream")},
    {10077, Error(Errc::resource_exhausted, "the stream is full, or its server cannot store")},
    {10100, Error(Errc::invalid_argument, "another consumer of the work stream has a subject of the filter")},
    {10148, Error(Errc::conflict, "the consumer exists with another configuration")},
    {10149, Error(Errc::not_found, "the consumer")},
    {10158, Error(Errc::conflict, "a message of the same id is being stored")},
    {10164, Error(Errc::conflict, "the last sequence differs from the expectation")},
    {10166, Error(Errc::not_supported, "the stream does not take messages with a time to live")},
    {10167, Error(Errc::resource_exhausted, "the stream has too many messages under way")},
    {10174, Error(Errc::not_supported, "the stream does not take batches")},
    {10176, Error(Errc::unreachable, "a message of the batch did not reach the server: it has stored none")},
    {10177, Error(Errc::not_supported, "the server takes no id in a batch")},
    {10185, Error(Errc::not_supported, "the server is too old for the request")},
    {10188, Error(Errc::not_supported, "the stream does not take messages for later")},
    {10201, Error(Errc::conflict, "a message of the batch was stored before")},
};
static_assert(std::is_sorted(std::begin(kMeanings), std::end(kMeanings),
                             [](const Meaning& a, const Meaning& b) { return a.number < b.number; }));

// Of a cluster without a leader or with a change under way, and of a stream or a consumer that is offline.
constexpr std::uint32_t kTemporary[] = {10008, 10009, 10118, 10119, 10194, 10195, 10202, 10226};
constexpr std::uint32_t kMessageDeleteFailed = 10057;

[[nodiscard]] const Meaning* meaning_of(std::uint32_t number) noexcept {
  const auto* const found = std::lower_bound(std::begin(kMeanings), std::end(kMeanings), number,
                                             [](const Meaning& each, std::uint32_t n) { return each.number < n; });
  return found != std::end(kMeanings) && found->number == number ? found : nullptr;
}

[[nodiscard]] Error error_of_code(std::uint32_t code) noexcept {
  switch (code) {
    case 400: return {Errc::invalid_argument, "the server does not take the request"};
    case kNotPermittedCode: return {Errc::not_permitted, "the server does not permit the request"};
    case 404: return {Errc::not_found, "the server does not find what the request names"};
    case 429: return {Errc::resource_exhausted, "the server has too many requests"};
    default: return {Errc::system, "the server failed to carry out the request"};
  }
}

}  // namespace

bool ApiError::is_temporary() const noexcept {
  return std::find(std::begin(kTemporary), std::end(kTemporary), number) != std::end(kTemporary) ||
         (code == 503 && meaning_of(number) == nullptr);
}

Error ApiError::error() const noexcept {
  if (!failed()) {
    return {};
  }
  const Meaning* const meaning = meaning_of(number);
  const Error error = is_temporary()       ? Error(Errc::unreachable, "the stream is not available now")
                      : meaning != nullptr ? meaning->error
                      : number == kMessageDeleteFailed && description == "no message found"
                          ? Error(Errc::not_found, "the message")
                          : error_of_code(code);
  return error.with_fate(Fate::answered);
}

Result<Reply<Done>> read_done(std::string_view json) {
  bool success = false;
  return read_reply<Done>(
      json, [&success](JsonFields& fields, Done&) { fields.add("", "success", success); },
      [&success](Done&) { return success; });
}

ApiRequest account_info() { return {std::string(kApiPrefix) + "INFO", {}}; }

Result<Reply<AccountInfo>> read_account_info(std::string_view json) {
  std::string type;
  return read_reply<AccountInfo>(
      json,
      [&type](JsonFields& fields, AccountInfo& info) {
        fields.add("", "type", type);
        fields.add("", "memory", info.memory);
        fields.add("", "storage", info.storage);
        fields.add("", "streams", info.streams);
        fields.add("", "consumers", info.consumers);
        fields.add("", "domain", info.domain);
        fields.add("limits", "max_memory", info.memory_max);
        fields.add("limits", "max_storage", info.storage_max);
        fields.add("limits", "max_streams", info.streams_max);
        fields.add("limits", "max_consumers", info.consumers_max);
        fields.add("api", "level", info.api_level);
      },
      [&type](AccountInfo&) { return type == "io.nats.jetstream.api.v1.account_info_response"; });
}

}  // namespace weft::nats::jetstream
