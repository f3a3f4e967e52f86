// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/base/result.h"
#include "weft/base/time.h"
#include "weft/nats/jetstream/api.h"
#include "weft/nats/jetstream/stream.h"
#include "weft/nats/jetstream/wall_time.h"

namespace weft::nats::jetstream {

enum class Deliver : std::uint8_t { all, last, fresh, by_start_sequence, by_start_time, last_per_subject, other };
enum class AckPolicy : std::uint8_t { none, all, each, other };  // "explicit"

// ConsumerConfig: the configuration of a pull consumer. As with streams, a request has only the members that differ
// from a server's defaults.
struct ConsumerConfig {
  std::string name{};    // empty: the server chooses the name of an ephemeral one
  bool durable = false;  // it stays without members; otherwise it ends after inactive_threshold
  std::string description{};
  Deliver deliver = Deliver::all;
  std::uint64_t start_sequence = 0;    // of by_start_sequence
  WallTime start_time{};               // of by_start_time
  std::vector<std::string> filters{};  // of subjects; more than one since 2.10
  AckPolicy ack_policy = AckPolicy::each;
  Duration ack_wait{0};                // 0: the server's default, 30 s
  std::int64_t deliver_max = -1;       // deliveries of one message; -1: any number
  std::vector<Duration> backoff{};     // waits after the deliveries instead of ack_wait; at most deliver_max
  std::int64_t ack_pending_max = 0;    // 0: the server's default, 1000; -1: any number
  std::int64_t pulls_waiting_max = 0;  // 0: the server's default, 512
  std::int64_t request_batch_max = 0;  // 0: any number
  std::int64_t request_bytes_max = 0;
  Duration request_expires_max{0};
  Duration inactive_threshold{0};  // 0: the server's default, 5 s of an ephemeral one
  std::uint32_t replicas = 0;      // 0: those of the stream
  bool memory_storage = false;
  bool headers_only = false;                                    // without bodies; Nats-Msg-Size has their sizes
  std::vector<std::pair<std::string, std::string>> metadata{};  // since 2.10
  // Since 2.11.
  std::vector<std::string> priority_groups{};
  std::string priority_policy{};  // "overflow", "pinned_client", since 2.12 "prioritized"; empty: none

  // Of an answer: other members that have a value, as `deliver_subject` of a push consumer. At most 64.
  std::vector<std::string> others{};

  friend bool operator==(const ConsumerConfig&, const ConsumerConfig&) = default;
};

// SequencePair: one message in the counts of a consumer.
struct SequencePair {
  std::uint64_t consumer = 0;  // deliveries of the consumer until then
  std::uint64_t stream = 0;
  WallTime last_active{};
};

struct ConsumerInfo {
  std::string stream{};
  std::string name{};
  WallTime created{};
  ConsumerConfig config{};
  SequencePair delivered{};
  SequencePair ack_floor{};       // every message until it was acknowledged
  std::uint64_t ack_pending = 0;  // delivered and not acknowledged
  std::uint64_t redelivered = 0;
  std::uint64_t pulls_waiting = 0;
  std::uint64_t pending = 0;  // not delivered
  bool paused = false;
  Cluster cluster{};
};

// Whether a request also creates the consumer or changes it. Servers before 2.10 take each as `either`.
enum class ConsumerAction : std::uint8_t { either, create, update };

// Errors: invalid_argument (a name, a filter or a value that no server takes; an ephemeral consumer that is to be
// updated).
[[nodiscard]] Result<ApiRequest> create_consumer(std::string_view stream, const ConsumerConfig& config,
                                                 ConsumerAction action = ConsumerAction::either);
[[nodiscard]] Result<ApiRequest> consumer_info(std::string_view stream, std::string_view consumer);
[[nodiscard]] Result<Reply<ConsumerInfo>> read_consumer_info(std::string_view json);  // of both

// The deliveries begin again at this sequence of the stream; 0: at the acknowledged ones. Newer servers take it (2.15.2
// does, 2.9.10 does not). read_consumer_info()
[[nodiscard]] Result<ApiRequest> reset_consumer(std::string_view stream, std::string_view consumer,
                                                std::uint64_t sequence);
[[nodiscard]] Result<ApiRequest> delete_consumer(std::string_view stream, std::string_view consumer);  // read_done()
[[nodiscard]] Result<ApiRequest> consumer_names(std::string_view stream, std::uint64_t offset = 0);
[[nodiscard]] Result<Reply<Page<std::string>>> read_consumer_names(std::string_view json);
[[nodiscard]] Result<ApiRequest> consumer_list(std::string_view stream, std::uint64_t offset = 0);
[[nodiscard]] Result<Reply<Page<ConsumerInfo>>> read_consumer_list(std::string_view json);

// PullRequest: a request for messages, which come to its reply subject, see delivery.h. Without such a consumer comes
// no_responders; nats-server 2.9.10 gives no answer.
struct PullRequest {
  std::uint32_t batch = 1;
  std::uint64_t bytes_max = 0;  // of the messages with their headers and subjects; 0: without a bound
  Duration expires{0};          // 0: the server waits without an end, or with no_wait not at all
  bool no_wait = false;         // the server answers with 404 if it has no message now
  Duration idle_heartbeat{0};   // at most half of `expires`; 0: none
  std::string_view group{};     // of priority_groups
  std::uint32_t priority = 0;   // in the group of a prioritized consumer: 0 (first) to 9
};
[[nodiscard]] Result<ApiRequest> pull(std::string_view stream, std::string_view consumer, const PullRequest& request);
// The body alone, appended: the subject of a consumer's pulls does not change.
void append_pull(const PullRequest& request, std::string& out);

}  // namespace weft::nats::jetstream
