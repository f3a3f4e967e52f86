// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/weft/admin_port.h"
#include "tools/weft/doctor.h"
#include "weft/nats/client/client.h"
#include "weft/nats/jetstream/consumer.h"
#include "weft/nats/jetstream/stream.h"
#include "weft/rt/task/task.h"

// The kept topics of a fleet on NATS, for `fleet doctor`: each stream compared with the servers that keep it.
namespace weft::cli {

// KeptFacts: the answers of JetStream.
struct KeptFacts {
  std::string trouble{};               // the reason of a part that is missing; empty: the answers are whole
  bool answers = false;                // JetStream
  bool silent = false;                 // nothing answers
  bool away = false;                   // the same, of a server that has JetStream
  std::vector<std::string> refused{};  // the subjects of messages that the server did not permit
  nats::jetstream::AccountInfo account{};
  std::uint64_t streams_total = 0;
  std::vector<nats::jetstream::StreamReport> streams{};    // the first ones
  std::vector<std::string> leaderless{};                   // streams without an answer of their leaders
  std::vector<nats::jetstream::ConsumerInfo> consumers{};  // of those streams
  std::vector<std::pair<std::string, std::string>> leaderless_consumers{};  // stream and consumer: the same
};
// Asks for at most 256 streams and 1,024 consumers, and again while the servers choose a leader. Each answer within
// `patience`.
[[nodiscard]] rt::Task<Result<void>> ask_kept(nats::Client* client, Duration patience, KeptFacts* facts);

// MonitorFacts: a server's own report, at http://HOST:PORT/varz.
struct MonitorFacts {
  std::string server{};      // its name
  bool keeps = false;        // with JetStream
  bool tells_sync = false;   // servers before 2.10 do not
  bool sync_always = false;  // before each acknowledgement
  Duration sync_interval{0};
};
// `url`: http://HOST:PORT or https://HOST:PORT; `tls`: the files for https. Usage: it is another text. Failure: no
// server of NATS answers there until `end`.
[[nodiscard]] MonitorFacts read_monitor(const std::string& url, const AdminPort& tls, Instant end);

void add_kept_findings(const KeptFacts& facts, const std::vector<MonitorFacts>& monitors, Findings& all);

}  // namespace weft::cli
