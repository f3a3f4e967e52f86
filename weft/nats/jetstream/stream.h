// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/base/result.h"
#include "weft/base/time.h"
#include "weft/nats/jetstream/api.h"
#include "weft/nats/jetstream/wall_time.h"

namespace weft::nats::jetstream {

// `other`: of a newer server; no request has it.
enum class Retention : std::uint8_t { limits, interest, work_queue, other };
enum class Storage : std::uint8_t { file, memory, other };
enum class DiscardPolicy : std::uint8_t { oldest, refuse, other };  // "old", "new"

// StreamBounds: the bounds of a stream. -1: without a bound.
struct StreamBounds {
  std::int64_t consumers_max = -1;
  std::int64_t messages_max = -1;
  std::int64_t bytes_max = -1;
  std::int64_t messages_per_subject_max = -1;
  std::int64_t message_size_max = -1;       // headers included
  Duration age_max{0};                      // 0: any age
  bool discard_refuse_per_subject = false;  // "discard_new_per_subject": a full subject refuses, too

  friend bool operator==(const StreamBounds&, const StreamBounds&) = default;
};

// StreamConfig: the configuration of a stream. A request has only those members that differ from a server's defaults,
// because current servers refuse a member that they do not know (10025) and old ones ignore it: compare the answer's
// config with the request's, if one of the members since 2.10 matters.
struct StreamConfig : StreamBounds {
  std::string name{};
  std::string description{};
  std::vector<std::string> subjects{};
  Retention retention = Retention::limits;
  Storage storage = Storage::file;
  DiscardPolicy discard = DiscardPolicy::oldest;
  Duration duplicate_window{0};  // 0: the server's default, two minutes or age_max
  std::uint32_t replicas = 1;
  bool no_ack = false;
  bool allow_direct = false;  // DIRECT.GET, from any replica
  bool mirror_direct = false;
  bool allow_rollup = false;  // "allow_rollup_hdrs": Nats-Rollup deletes the older messages
  bool sealed = false;
  bool deny_delete = false;
  bool deny_purge = false;
  // Since 2.10.
  std::uint64_t first_sequence = 0;  // of a new stream; 0: 1
  std::vector<std::pair<std::string, std::string>> metadata{};
  // Since 2.11.
  bool allow_message_ttl = false;
  Duration subject_delete_marker_ttl{0};  // also the least ttl of a message
  // Since 2.12.
  bool allow_atomic = false;
  bool allow_schedules = false;
  bool allow_counter = false;
  bool async_persist = false;  // "persist_mode": an acknowledged message may not be in the file yet

  // Of an answer: other members that have a value, as `mirror` and `republish`; an update would erase them. At most 64.
  std::vector<std::string> others{};

  friend bool operator==(const StreamConfig&, const StreamConfig&) = default;
};

struct StreamCounts {
  std::uint64_t messages = 0;
  std::uint64_t bytes = 0;
  std::uint64_t first_sequence = 0;
  std::uint64_t last_sequence = 0;
  WallTime first_time{};
  WallTime last_time{};
  std::uint64_t consumers = 0;
  std::uint64_t subjects = 0;  // "num_subjects"
  std::uint64_t deleted = 0;   // "num_deleted"
};

// Cluster: the servers of a stream or a consumer. Without a cluster it is empty.
struct Cluster {
  struct Replica {
    std::string name{};
    bool current = false;  // it has every operation of the leader
    bool offline = false;
    std::uint64_t lag = 0;  // operations of the leader that it has not carried out
    Duration active{0};     // since its last answer
  };
  std::string name{};
  std::string leader{};             // empty: there is none now
  std::vector<Replica> replicas{};  // besides the leader
};

struct StreamReport {
  StreamConfig config{};
  WallTime created{};
  StreamCounts state{};
  Cluster cluster{};
  bool did_create = false;
};

// Errors of a request of this room: invalid_argument (a name, a subject or a value that no server takes).
// `create`: the same configuration again is answered with the stream; another one with kStreamNameInUse.
[[nodiscard]] Result<ApiRequest> create_stream(const StreamConfig& config);
[[nodiscard]] Result<ApiRequest> update_stream(const StreamConfig& config);
[[nodiscard]] Result<ApiRequest> stream_info(std::string_view stream);
[[nodiscard]] Result<Reply<StreamReport>> read_stream_info(std::string_view json);  // of these three

[[nodiscard]] Result<ApiRequest> delete_stream(std::string_view stream);  // read_done()

// Page: a part of a long list. Ask again from offset + the number of items, while that is less than `total`.
template <typename T>
struct Page {
  std::uint64_t total = 0;
  std::uint64_t offset = 0;
  std::vector<T> items{};
  std::vector<std::string> missing{};  // names; their leaders did not answer the server
};
// `subject`: only streams that take it; empty: every one.
[[nodiscard]] ApiRequest stream_names(std::uint64_t offset = 0, std::string_view subject = {});
[[nodiscard]] Result<Reply<Page<std::string>>> read_stream_names(std::string_view json);
[[nodiscard]] ApiRequest stream_list(std::uint64_t offset = 0, std::string_view subject = {});
[[nodiscard]] Result<Reply<Page<StreamReport>>> read_stream_list(std::string_view json);

struct Purge {
  std::string_view filter{};  // of subjects; empty: every one
  std::uint64_t before = 0;   // the messages before this sequence; 0: every one
  std::uint64_t keep = 0;     // except the newest ones; not together with `before`
};
[[nodiscard]] Result<ApiRequest> purge_stream(std::string_view stream, const Purge& purge = {});
[[nodiscard]] Result<Reply<std::uint64_t>> read_purged(std::string_view json);  // the number of messages

}  // namespace weft::nats::jetstream
