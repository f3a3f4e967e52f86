// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "weft/base/result.h"
#include "weft/base/time.h"
#include "weft/net/admit/ip_prefix.h"
#include "weft/net/admit/token_bucket.h"
#include "weft/sync/lock.h"
#include "weft/sys/address.h"

namespace weft::net {

// The reason why a connection, or a message, was rejected.
enum class AdmissionRejection : std::uint8_t {
  not_allowed,          // the address is in none of the allowed prefixes
  address_connections,  // the address has its maximum of connections
  prefix_connections,   // the prefix has its maximum of connections
  accept_rate,          // the prefix connects too often
  table_full,           // the table holds its maximum of addresses, all with connections
  message_rate,         // reported by sessions: messages come too often
};
inline constexpr std::size_t kAdmissionRejections = 6;
[[nodiscard]] StaticText describe(AdmissionRejection rejection) noexcept;  // "too many connections of its address" ...

struct RejectionReport {
  AdmissionRejection rejection;
  const sys::SocketAddress& peer;
  std::uint64_t suppressed;  // rejections since the last report that were counted and not reported
};

struct AdmissionOptions {
  std::uint32_t address_connections_max = 0;  // connections of one address; 0: no bound
  std::uint32_t prefix_connections_max = 0;   // connections of one prefix; 0: no bound
  std::uint8_t ipv4_prefix_bits = 32;
  std::uint8_t ipv6_prefix_bits = 64;  // the addresses that one customer of a network has
  RateLimit accept_rate{};             // connections of one prefix, over time
  std::uint32_t entries_max = 65536;   // addresses and prefixes in the table
  std::vector<IpPrefix> allowed{};     // empty: every address
  std::vector<IpPrefix> exempt{};      // allowed and not bounded: load balancers, probes
  // Called for rejections, at most as often as `report_rate` allows; on the rejecting thread, with no lock held.
  void (*report)(void* context, const RejectionReport& report) = nullptr;
  void* report_context = nullptr;
  RateLimit report_rate{10, 10};
  std::uint64_t seed = 0;  // of the hash; 0: a random number, which peers cannot guess
};

// Admission: decides which addresses may connect, and how many connections each may have. Owner: a server or a socket;
// admission outlives its leases. Affinity: any thread.
// Cost: admit() and the end of a lease take one of kStripes locks; addresses of one prefix share a lock. The
// table doubles as it fills, to 60 bytes an entry; a small one takes 4 KB.
// Invariants:
//   1. An address or prefix never has more leases than its bound, and a rejected connection changes no count. Each
//      admit() is one step under one lock. Only the end of a lease undoes it, once. No time-out and no later correction
//      changes a count.
//   2. When every lease has ended, every count is zero.
//   3. The table is bounded as a whole, however unevenly the stripes fill. When it is full, admission forgets a prefix
//      without connections, and its rate: the one of the stripe that was idle longest, otherwise one of another stripe.
//      An address or prefix with a connection is never forgotten.
//   4. Every rejection is counted under its reason. Peers without an IP address (unix sockets) are not rejected.
class Admission {
 public:
  // One counted connection. Ends in its destructor, on any thread.
  class Lease {
   public:
    Lease() noexcept = default;
    Lease(Lease&& other) noexcept
        : owner_(std::exchange(other.owner_, nullptr)),
          stripe_(other.stripe_),
          prefix_(other.prefix_),
          address_(other.address_) {}
    Lease& operator=(Lease&& other) noexcept {
      if (this != &other) {
        end();
        owner_ = std::exchange(other.owner_, nullptr);
        stripe_ = other.stripe_;
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
    Lease(Admission* owner, std::uint32_t stripe, std::uint32_t prefix, std::uint32_t address) noexcept
        : owner_(owner), stripe_(stripe), prefix_(prefix), address_(address) {}

    Admission* owner_ = nullptr;
    std::uint32_t stripe_ = 0;
    std::uint32_t prefix_ = 0;  // entries of the stripe; equal to address_ if the prefix is one address
    std::uint32_t address_ = 0;
  };

  // Errors: invalid_argument (a prefix longer than an address, or no entries); resource_exhausted (no memory).
  [[nodiscard]] static Result<std::unique_ptr<Admission>> make(AdmissionOptions options);
  ~Admission();
  Admission(const Admission&) = delete;
  Admission& operator=(const Admission&) = delete;

  // Fails with resource_exhausted if rejected; the text is describe() of the reason.
  [[nodiscard]] Result<Lease> admit(const sys::SocketAddress& peer, Instant now);
  // The same as AdmissionOptions::entries_max. A lower bound than before forgets idle addresses, but none with a
  // connection.
  void set_entries_max(std::uint32_t entries_max) noexcept;
  // Decides by the rules of another one from now on: its bounds, rate, allowed and exempt prefixes, and entries_max.
  // The lengths of prefixes, the seed and `report` stay, and connections that exceed a lower bound stay open. A
  // different accept_rate starts with full bursts.
  void adopt(const Admission& other) noexcept;
  // Counts and reports a rejection that another part of the owner decided.
  void reject(AdmissionRejection rejection, const sys::SocketAddress& peer, Instant now);

  [[nodiscard]] std::uint64_t rejected(AdmissionRejection rejection) const;
  // The number of connections of an address, or of a prefix of the bounded length.
  [[nodiscard]] std::uint32_t connections(const IpPrefix& prefix) const;
  [[nodiscard]] std::uint64_t connections() const;  // all connections with a lease
  [[nodiscard]] std::uint32_t entries() const;

 private:
  struct Stripe;
  static constexpr std::uint32_t kStripes = 16;
  static constexpr int kRoomsMade = 8;  // in one admit(): it needs two entries, and other threads may take them

  // Budget: the entries that all stripes use together, and how many they may use. Relaxed, because the counts order
  // nothing.
  class Budget {
   public:
    void set_most(std::uint32_t most) noexcept { most_.store(most, std::memory_order_relaxed); }
    [[nodiscard]] bool try_take() noexcept {
      std::uint32_t used = used_.load(std::memory_order_relaxed);
      while (used < most_.load(std::memory_order_relaxed)) {
        if (used_.compare_exchange_weak(used, used + 1, std::memory_order_relaxed)) {
          return true;
        }
      }
      return false;
    }
    void give_back() noexcept { used_.fetch_sub(1, std::memory_order_relaxed); }
    [[nodiscard]] bool exceeded() const noexcept { return used() > most_.load(std::memory_order_relaxed); }
    [[nodiscard]] std::uint32_t used() const noexcept { return used_.load(std::memory_order_relaxed); }

   private:
    std::atomic<std::uint32_t> most_{0};
    std::atomic<std::uint32_t> used_{0};
  };

  using Rules = std::shared_ptr<const AdmissionOptions>;  // each stripe has them

  explicit Admission(AdmissionOptions options);
  [[nodiscard]] Stripe& stripe_of(const IpPrefix& prefix) const noexcept;
  [[nodiscard]] IpPrefix prefix_of(Bytes address) const noexcept;
  [[nodiscard]] Result<Lease> admit_to(Stripe& stripe, const IpPrefix& prefix, Bytes address, Instant now,
                                       AdmissionRejection& rejection);
  [[nodiscard]] bool make_room(const Stripe& full) noexcept;
  void end(const Lease& lease) noexcept;

  const Rules options_;  // of make(); admit() decides by the rules of the stripe
  Budget budget_;
  std::unique_ptr<Stripe[]> stripes_;

  mutable sync::StdMutex rejections_mutex_;
  std::array<std::uint64_t, kAdmissionRejections> rejected_ WEFT_GUARDED_BY(rejections_mutex_){};
  TokenBucket reports_ WEFT_GUARDED_BY(rejections_mutex_);
  std::uint64_t suppressed_ WEFT_GUARDED_BY(rejections_mutex_) = 0;
};

}  // namespace weft::net
