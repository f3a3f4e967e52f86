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

// Why somebody was not served.
enum class AdmissionRejection : std::uint8_t {
  not_allowed,          // the address is in none of the allowed prefixes
  address_connections,  // the address has as many connections as one may have
  prefix_connections,   // its prefix has
  accept_rate,          // its prefix connects too often
  table_full,           // as many addresses as are kept have connections
  message_rate,         // told by sessions: messages come too often
};
inline constexpr std::size_t kAdmissionRejections = 6;
[[nodiscard]] const char* describe(AdmissionRejection rejection) noexcept;  // "too many connections of its address" ...

struct RejectionReport {
  AdmissionRejection rejection;
  const sys::SocketAddress& peer;
  std::uint64_t suppressed;  // rejections since the last report that were counted and not told
};

struct AdmissionOptions {
  std::uint32_t address_connections_max = 0;  // of one address; 0: no bound
  std::uint32_t prefix_connections_max = 0;   // of one prefix; 0: no bound
  std::uint8_t ipv4_prefix_bits = 32;
  std::uint8_t ipv6_prefix_bits = 64;    // what one customer of a network has
  RateLimit accept_rate{};               // connections of one prefix
  std::uint32_t entries_max = 65536;     // addresses and prefixes that are kept
  std::vector<net::IpPrefix> allowed{};  // empty: everyone
  std::vector<net::IpPrefix> exempt{};   // allowed, and without bound: load balancers, probes
  // Called for rejections, at most as often as `report_rate` says; on the rejecting thread, with no lock held.
  void (*report)(void* context, const RejectionReport& report) = nullptr;
  void* report_context = nullptr;
  RateLimit report_rate{10, 10};
  std::uint64_t seed = 0;  // of the hash; something that peers cannot know
};

// Admission: from whom connections are taken, and how many. Owner: the server; it outlives its leases. Affinity: any
// thread. Cost: admit() and the end of a lease take one lock of kStripes, those of one prefix the same; the
// table is allocated by make(), 60 bytes an entry, and touched as it fills. Invariants:
//   (1) An address or prefix never has more leases than its bound, and a rejected connection changes no count: each
//       admit() is one step under one lock, and only a lease's end, once, undoes it. Nothing times out, nothing is
//       made good for later.
//   (2) When every lease has ended every count is zero.
//   (3) The table is bounded. Where it is full, the prefix without a connection that has not come for the
//       longest time is forgotten, and with it how often it came; nobody with a connection ever is.
//   (4) Every rejection is counted under its reason. Peers without an IP address (unix sockets) are not rejected.
class Admission {
 public:
  // A connection that counts. Ends when destroyed, on any thread.
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

    void end() noexcept;  // does nothing a second time
    [[nodiscard]] bool counts() const noexcept { return owner_ != nullptr; }

   private:
    friend class Admission;
    Lease(Admission* owner, std::uint32_t stripe, std::uint32_t prefix, std::uint32_t address) noexcept
        : owner_(owner), stripe_(stripe), prefix_(prefix), address_(address) {}

    Admission* owner_ = nullptr;
    std::uint32_t stripe_ = 0;
    std::uint32_t prefix_ = 0;  // entries of the stripe; the same one where the prefix is one address
    std::uint32_t address_ = 0;
  };

  // invalid_argument: prefixes longer than an address, or no entries; resource_exhausted: memory.
  [[nodiscard]] static Result<std::unique_ptr<Admission>> make(AdmissionOptions options);
  ~Admission();
  Admission(const Admission&) = delete;
  Admission& operator=(const Admission&) = delete;

  // resource_exhausted: rejected; the text is describe() of why.
  [[nodiscard]] Result<Lease> admit(const sys::SocketAddress& peer, Instant now);
  // Counts and tells a rejection that somebody else decided on.
  void reject(AdmissionRejection rejection, const sys::SocketAddress& peer, Instant now);

  [[nodiscard]] std::uint64_t rejected(AdmissionRejection rejection) const;
  [[nodiscard]] std::uint32_t connections(const net::IpPrefix& prefix) const;  // of an address, or a prefix as bounded
  [[nodiscard]] std::uint64_t connections() const;                             // that count
  [[nodiscard]] std::uint32_t entries() const;

 private:
  struct Stripe;
  static constexpr std::uint32_t kStripes = 16;

  explicit Admission(AdmissionOptions options);
  [[nodiscard]] Stripe& stripe_of(const net::IpPrefix& prefix) const noexcept;
  [[nodiscard]] net::IpPrefix prefix_of(Bytes address) const noexcept;
  [[nodiscard]] Result<Lease> admit_to(Stripe& stripe, const net::IpPrefix& prefix, const net::IpPrefix& address,
                                       Instant now, AdmissionRejection& rejection);
  void end(const Lease& lease) noexcept;

  AdmissionOptions options_;
  std::unique_ptr<Stripe[]> stripes_;

  mutable std::mutex rejections_mutex_;
  std::array<std::uint64_t, kAdmissionRejections> rejected_{};
  TokenBucket reports_;
  std::uint64_t suppressed_ = 0;
};

}  // namespace weft::serve
