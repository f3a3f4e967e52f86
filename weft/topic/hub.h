// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "weft/base/bytes.h"
#include "weft/base/counter_table.h"
#include "weft/base/result.h"
#include "weft/base/time.h"
#include "weft/msg/context.h"

namespace weft::topic {

struct HubOptions {
  std::string directory;                     // LocalDirectory::path(): of this user alone; holds hub.lock and hub.sock
  std::string store{};                       // the path of the file; empty: only streams that survive nothing
  std::string vfs{};                         // SQLite's file layer; empty: the system's
  std::uint64_t store_bytes_max = 0;         // of the file; 0: as much as the disk holds
  std::size_t clients_max = 256;             // connections
  Duration quiet = std::chrono::seconds(1);  // LeaseTable's
  Duration turn_time_max = std::chrono::milliseconds(1);  // for which a turn takes ops before it commits
  std::size_t turn_ops_max = 2000;
  // Called on the hub's thread with each message that was stored, after its commit. It does not wait.
  std::function<void(std::string_view topic, Bytes headers, Bytes body)> on_stored{};
};

// The counters of a hub, in the order that they are shown. weft/base/counter_table.h says what a row is.
struct HubCounters {
  std::atomic<std::uint64_t> ops{0};              // ops that came
  std::atomic<std::uint64_t> malformed{0};        // messages that were no op, and were dropped
  std::atomic<std::uint64_t> appended{0};         // messages that became durable
  std::atomic<std::uint64_t> duplicates{0};       // messages whose id was known
  std::atomic<std::uint64_t> refused{0};          // messages that were refused, or whose commit failed
  std::atomic<std::uint64_t> delivered{0};        // messages to consumers and readers
  std::atomic<std::uint64_t> answers_dropped{0};  // answers to members that are gone, or that do not receive
  std::atomic<std::uint64_t> turns{0};            // commits that wrote something
  std::atomic<std::uint64_t> clients{0};          // connections that sent an op, at the moment
};

// Hub: the server of a local fleet's kept topics and leases. One process of the fleet hosts it: the one that has the
// lock of the directory. The kernel drops the lock when that process dies, and the next one hosts.
// Owner: the process that hosts; destruction stops. Affinity: any thread; its own thread does the work.
// Cost: one thread, one socket, the file of the store. Idle: it wakes for deadlines only.
// Bounds: clients_max connections, 1,024 channels each, 4,096 messages or 8 MiB that a client did not receive yet
// (then its channels stop, and answers are dropped and counted), the store's and the leases' own.
class Hub {
 public:
  // would_block: another process hosts. invalid_state: the directory is not this user's alone. Errors of the store's
  // open, of Socket::bind, resource_exhausted.
  [[nodiscard]] static Result<std::unique_ptr<Hub>> host(Context& context, const HubOptions& options);
  ~Hub();
  Hub(const Hub&) = delete;
  Hub& operator=(const Hub&) = delete;

  // Where the hub of a directory listens, hosted or not.
  [[nodiscard]] static std::string endpoint(const std::string& directory);

  void stop() noexcept;  // waits until the last turn is committed; then another process can host
  // Why the hub ended by itself: the disk failed, or memory ran out. Then the lock is free too.
  [[nodiscard]] Error ended() const noexcept;
  [[nodiscard]] const HubCounters& counters() const noexcept;

 private:
  struct Impl;
  explicit Hub(std::unique_ptr<Impl> impl) noexcept;

  std::unique_ptr<Impl> impl_;
};

}  // namespace weft::topic
