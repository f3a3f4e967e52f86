// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "weft/base/result.h"
#include "weft/base/time.h"
#include "weft/net/ip_prefix.h"
#include "weft/serve/admission/token_bucket.h"
#include "weft/sys/address.h"

namespace weft::serve {

// Why a connection, or a message, was refused.
enum class Refusal : std::uint8_t {
  not_allowed,          // the address is in none of the allowed prefixes
  address_connections,  // the address has its maximum of connections
  prefix_connections,   // the prefix has its maximum of connections
  accept_rate,          // the prefix connects too often
  table_full,           // the table holds its maximum of addresses, all with connections
  message_rate,         // reported by sessions: messages come too often
};
inline constexpr std::size_t kRefusals = 6;
[[nodiscard]] const char* describe(Refusal refusal) noexcept;  // "too many connections of its address" ...

struct RefusalReport {
  Refusal refusal;
  const sys::SocketAddress& peer;
  std::uint64_t suppressed;  // refusals since the last report that were counted and not reported
};

struct AdmissionOptions {
  std::uint32_t address_connections_max = 0;  // connections of one address; 0: no bound
  std::uint32_t prefix_connections_max = 0;   // connections of one prefix; 0: no bound
  std::uint8_t ipv4_prefix_bits = 32;
  std::uint8_t ipv6_prefix_bits = 64;    // the addresses that one customer of a network has
  RateLimit accept_rate{};               // connections of one prefix, over time
  std::uint32_t entries_max = 65536;     // addresses and prefixes in the table
  std::vector<net::IpPrefix> allowed{};  // empty: every address
  std::vector<net::IpPrefix> exempt{};   // allowed and not bounded: load balancers, probes
  // Called for refusals, at most as often as `report_rate` allows; on the refusing thread, with no lock held.
  void (*report)(void* context, const RefusalReport& report) = nullptr;
  void* report_context = nullptr;
  RateLimit report_rate{10, 10};
  std::uint64_t seed = 0;  // of the hash; a number that peers cannot know
};

// Admission: decides from which addresses connections are taken, and how many. Owner: the server; admission
// outlives its leases. Affinity: any thread.
// Cost: admit() and the end of a lease take one of kShards locks; addresses of one prefix share a lock. make()
// allocates the table, 60 bytes an entry; its memory is touched as it fills.
// Invariants:
//   (1) An address or prefix never has more leases than its bound, and a refused connection changes no count.
//       Each admit() is one step under one lock. Only the end of a lease undoes it, once; nothing times out,
//       nothing is corrected later.
//   (2) When every lease has ended, every count is zero.
//   (3) The table is bounded. When it is full, admission forgets the prefix without connections that was idle
//       longest, and its rate. An address or prefix with a connection is never forgotten.
//   (4) Every refusal is counted under its reason. Peers without an IP address (unix sockets) are not refused.
class Admission {
 public:
  // One counted connection. Ends in its destructor, on any thread.
  class Lease {
   public:
    Lease() noexcept = default;
    Lease(Lease&& other) noexcept
        : owner_(std::exchange(other.owner_, nullptr)),
          shard_(other.shard_),
          prefix_(other.prefix_),
          address_(other.address_) {}
    Lease& operator=(Lease&& other) noexcept {
      if (this != &other) {
        end();
        owner_ = std::exchange(other.owner_, nullptr);
        shard_ = other.shard_;
        prefix_ = other.prefix_;
        address_ = other.address_;
      }
      return *this;
    }
    ~Lease() { end(); }

    void end() noexcept;  // idempotent
    [[nodiscard]] bool counts() const noexcept { return owner_ != nullptr; }

   private:
    friend class Admission;
    Lease(Admission* owner, std::uint32_t shard, std::uint32_t prefix, std::uint32_t address) noexcept
        : owner_(owner), shard_(shard), prefix_(prefix), address_(address) {}

    Admission* owner_ = nullptr;
    std::uint32_t shard_ = 0;
    std::uint32_t prefix_ = 0;  // entries of the shard; equal to address_ where the prefix is one address
    std::uint32_t address_ = 0;
  };

  // invalid_argument: a prefix longer than an address, or no entries; resource_exhausted: no memory.
  [[nodiscard]] static Result<std::unique_ptr<Admission>> make(AdmissionOptions options);
  ~Admission();
  Admission(const Admission&) = delete;
  Admission& operator=(const Admission&) = delete;

  // resource_exhausted: refused; the text is describe() of the reason.
  [[nodiscard]] Result<Lease> admit(const sys::SocketAddress& peer, Instant now);
  // Counts and reports a refusal that another part of the server decided.
  void refuse(Refusal refusal, const sys::SocketAddress& peer, Instant now);

  [[nodiscard]] std::uint64_t refused(Refusal refusal) const;
  // Of an address, or of a prefix of the bounded length.
  [[nodiscard]] std::uint32_t connections(const net::IpPrefix& prefix) const;
  [[nodiscard]] std::uint64_t connections() const;  // all that hold a lease
  [[nodiscard]] std::uint32_t entries() const;

 private:
  struct Shard;
  static constexpr std::uint32_t kShards = 16;

  explicit Admission(AdmissionOptions options);
  [[nodiscard]] Shard& shard_of(const net::IpPrefix& prefix) const noexcept;
  [[nodiscard]] net::IpPrefix prefix_of(Bytes address) const noexcept;
  [[nodiscard]] Result<Lease> admit_to(Shard& shard, const net::IpPrefix& prefix, const net::IpPrefix& address,
                                       Instant now, Refusal& refusal);
  void end(const Lease& lease) noexcept;

  AdmissionOptions options_;
  std::unique_ptr<Shard[]> shards_;

  mutable std::mutex refusals_mutex_;
  std::array<std::uint64_t, kRefusals> refused_{};
  TokenBucket reports_;
  std::uint64_t suppressed_ = 0;
};

}  // namespace weft::serve
