// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "weft/base/counter_table.h"
#include "weft/base/result.h"
#include "weft/base/time.h"
#include "weft/msg/context.h"
#include "weft/store/log.h"
#include "weft/topic/hub/counters.h"

namespace weft::topic {

struct HubOptions {
  std::string directory;              // LocalDirectory::path(), of this user only; holds hub.lock and hub.sock
  std::string store{};                // the path of the file; empty: only streams that survive nothing
  std::string vfs{};                  // SQLite's file layer; empty: the system's
  std::uint64_t store_bytes_max = 0;  // of the file; 0: as much as the disk holds
  // Bytes of the file STORE.reserve, whose room lets consumers acknowledge on a full disk.
  std::uint64_t store_reserve_bytes = std::uint64_t{8} << 20U;
  bool store_in_memory = false;    // of the machine: no stream survives power. The hub finds tmpfs itself
  std::size_t clients_max = 1024;  // connections
  // Where members of other hosts connect; empty: nowhere. "tls+tcp://HOST:PORT": with tls_certificate, tls_key and
  // tls_authorities, which are files (PEM); a member without a certificate of these authorities is refused.
  // "tcp://HOST:PORT": with CURVE, by curve_secret_key of the hub and curve_members, the public keys of the members, 32
  // bytes each; a member with another key is refused.
  std::string listen{};
  // Connections of one address to `listen`, which strangers reach, too. Members behind one NAT have one address.
  // 0: clients_max / kAddressShare.
  std::size_t address_clients_max = 0;
  static constexpr std::size_t kAddressShare = 2;
  std::string tls_certificate{};
  std::string tls_key{};
  std::string tls_authorities{};
  std::string curve_secret_key{};
  std::vector<std::string> curve_members{};
  // Where members of other users of this host connect: the path of a socket, in a directory that its group may enter,
  // and the group's name or number. Both or none.
  std::string group_socket{};
  std::string group{};
  Duration quiet = std::chrono::seconds(1);               // the time of LeaseTable's quiet
  Duration turn_time_max = std::chrono::milliseconds(1);  // time for which a turn takes ops before it commits
  std::size_t turn_ops_max = 2000;
  // Waiting ops of a connection while some are large (from kLargeOp bytes on); about 1 MiB each at most.
  static constexpr int kLargeOpsWaitingMax = 128;
  static constexpr std::size_t kLargeOp = 16 * 1024;
  // Called on the hub's thread with the messages of a commit, dead letters included, in the order of each stream,
  // without erasures. It does not wait. Returns the number of messages that it took; the hub counts the others as
  // untold.
  std::function<std::size_t(std::vector<store::ReadMessage>&& messages)> on_stored{};
};

// Hub: the server of a local fleet's kept topics and leases, also for members of other hosts and of other users
// (HubOptions::listen, group_socket). One process of the fleet hosts it: the one that has the lock of the directory.
// The kernel drops the lock when that process dies, and the next one hosts. A second lock stands beside the file of the
// store: no other hub opens the file, even if the directory was removed.
// Owner: the process that hosts; destruction stops. Affinity: any thread; its own thread does the work.
// Cost: one thread, one socket, the file of the store. Idle: it wakes for deadlines only.
// Bounds: clients_max connections; 1,024 channels each; 4,096 messages or 8 MiB that a connection does not take (then
// its channels stop, and the hub drops and counts answers); 64 MiB delivered since the last op of a member (then its
// channels stop); the bounds of the store and of the leases.
class Hub {
 public:
  // Opens the store and begins to host. Errors: would_block (another process hosts); conflict (a hub of another
  // directory has the store open); invalid_state (the directory does not belong to this user only); invalid_argument
  // (`listen` without its keys, or of another transport; a group without a socket); not_found (the group);
  // not_supported (CURVE without libsodium); those of KeyList::replace(), MemberKeys::make(), make_group_directory(),
  // of the store's open and of Socket::bind; resource_exhausted.
  [[nodiscard]] static Result<std::unique_ptr<Hub>> host(Context& context, const HubOptions& options);
  // The same without waiting for the disk: the hub's thread opens the store. wait_open() and ended() return the errors
  // of the store's open and of the bind.
  [[nodiscard]] static Result<std::unique_ptr<Hub>> begin(Context& context, const HubOptions& options);
  [[nodiscard]] Result<void> wait_open();
  ~Hub();
  Hub(const Hub&) = delete;
  Hub& operator=(const Hub&) = delete;

  // Where members of other hosts connect, with the port that the system chose; empty before the hub is open.
  [[nodiscard]] std::string listening() const;
  // The endpoint of the hub of a directory, hosted or not.
  [[nodiscard]] static std::string endpoint(const std::string& directory);

  // HubOptions::curve_members of each later handshake; a connection stays until it ends. Errors: those of
  // KeyList::replace().
  [[nodiscard]] Result<void> set_curve_members(const std::vector<std::string>& keys);

  void stop() noexcept;  // waits until the store is open and the last turn is committed; then another process can host
  // The reason why the hub ended by itself: the store did not open, the disk failed, or memory ran out. Then the lock
  // is free, too.
  [[nodiscard]] Error ended() const noexcept;
  [[nodiscard]] const HubCounters& counters() const noexcept;
  [[nodiscard]] CounterSource counter_source() const;

 private:
  struct Impl;
  explicit Hub(std::unique_ptr<Impl> impl) noexcept;

  std::unique_ptr<Impl> impl_;
};

}  // namespace weft::topic
