// SPDX-License-Identifier: MIT
#include "weft/net/admit/admission.h"

#include <algorithm>
#include <bit>
#include <new>
#include <random>

#include "weft/base/assert.h"
#include "weft/sync/atomic.h"

namespace weft::net {
namespace {

constexpr std::uint32_t kNone = ~std::uint32_t{0};

bool contains(const std::vector<IpPrefix>& prefixes, Bytes address) noexcept {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [&](const IpPrefix& prefix) { return prefix.contains(address); });
}

}  // namespace

StaticText describe(AdmissionRejection rejection) noexcept {
  switch (rejection) {
    case AdmissionRejection::not_allowed: return "an address that is not allowed";
    case AdmissionRejection::address_connections: return "too many connections of its address";
    case AdmissionRejection::prefix_connections: return "too many connections of its prefix";
    case AdmissionRejection::accept_rate: return "its prefix connects too often";
    case AdmissionRejection::table_full: return "connections of too many addresses";
    case AdmissionRejection::message_rate: return "messages come too often";
  }
  return "unknown";
}

// Stripe: an entry for each of its addresses and prefixes, behind one lock.
// Invariants:
//   1. An entry is in the chain of its bucket, or free. There are as many buckets as entries have room.
//   2. An entry in use without connections is in the idle list, the one that was unused longest first.
struct alignas(sync::kLineSize) Admission::Stripe {
  struct Entry {
    IpPrefix key;
    std::uint32_t connections = 0;
    std::uint32_t next = kNone;  // of the chain, or of the free list
    std::uint32_t idle_before = kNone;
    std::uint32_t idle_after = kNone;
    TokenBucket accepts;
  };

  mutable sync::StdMutex mutex;
  static constexpr std::uint32_t kEntriesFirst = 4;
  std::vector<Entry> entries WEFT_GUARDED_BY(mutex);
  std::vector<std::uint32_t> buckets WEFT_GUARDED_BY(mutex);
  std::uint32_t free WEFT_GUARDED_BY(mutex) = kNone;
  std::uint32_t idle_first WEFT_GUARDED_BY(mutex) = kNone;
  std::uint32_t idle_last WEFT_GUARDED_BY(mutex) = kNone;
  std::uint64_t leases WEFT_GUARDED_BY(mutex) = 0;
  std::uint64_t seed = 0;
  Budget* budget = nullptr;
  Rules rules WEFT_GUARDED_BY(mutex);

  void set_up(Budget& entries_of_all, const Rules& first) WEFT_REQUIRES(mutex) {
    budget = &entries_of_all;
    seed = first->seed;
    rules = first;
    buckets.assign(kEntriesFirst, kNone);
    entries.reserve(kEntriesFirst);
  }
  // Makes room for one entry more, where none is free. Returns false if there is no memory.
  [[nodiscard]] bool grow() noexcept WEFT_REQUIRES(mutex) {
    if (entries.size() < buckets.size()) {
      return true;
    }
    try {
      std::vector<std::uint32_t> larger(buckets.size() * 2, kNone);
      entries.reserve(larger.size());
      buckets.swap(larger);
    } catch (const std::bad_alloc&) {
      return false;
    }
    for (std::uint32_t at = 0; at < entries.size(); ++at) {  // all are in use
      entries[at].next = std::exchange(bucket(entries[at].key), at);
    }
    return true;
  }

  [[nodiscard]] std::uint32_t& bucket(const IpPrefix& key) noexcept WEFT_REQUIRES(mutex) {
    return buckets[key.hash(seed) >> 8U & (buckets.size() - 1)];  // the lowest bits chose the stripe
  }
  [[nodiscard]] std::uint32_t find(const IpPrefix& key) noexcept WEFT_REQUIRES(mutex) {
    std::uint32_t at = bucket(key);
    while (at != kNone && !(entries[at].key == key)) {
      at = entries[at].next;
    }
    return at;
  }

  // Finds the entry of the key, or adds an idle one; kNone: the table is full, and the other entries of this stripe
  // have connections. Never forgets `spared` to make room.
  std::uint32_t find_or_add(const IpPrefix& key, std::uint32_t spared) WEFT_REQUIRES(mutex) {
    if (const std::uint32_t found = find(key); found != kNone) {
      if (entries[found].connections == 0) {
        make_busy(found);
        make_idle(found);
      }
      return found;
    }
    bool room = budget->try_take();
    while (!room && forget_idle(spared)) {
      room = budget->try_take();
    }
    if (!room) {
      return kNone;
    }
    if (free == kNone && !grow() && !forget_idle(spared)) {
      budget->give_back();
      return kNone;
    }
    std::uint32_t at = free;
    if (at != kNone) {
      free = entries[at].next;
    } else {
      at = static_cast<std::uint32_t>(entries.size());
      entries.emplace_back();
    }
    Entry& entry = entries[at];
    entry = Entry{};
    entry.key = key;
    entry.next = std::exchange(bucket(key), at);
    make_idle(at);
    return at;
  }
  // The entry that was idle longest, but not `spared`. Returns false if there is none.
  [[nodiscard]] bool forget_idle(std::uint32_t spared) noexcept WEFT_REQUIRES(mutex) {
    const std::uint32_t at = idle_first != kNone && idle_first == spared ? entries[idle_first].idle_after : idle_first;
    if (at != kNone) {
      forget(at);
    }
    return at != kNone;
  }
  void forget(std::uint32_t at) noexcept WEFT_REQUIRES(mutex) {
    make_busy(at);
    std::uint32_t* place = &bucket(entries[at].key);
    while (*place != at) {
      place = &entries[*place].next;
    }
    *place = entries[at].next;
    entries[at].next = std::exchange(free, at);
    budget->give_back();
  }

  void make_idle(std::uint32_t at) noexcept WEFT_REQUIRES(mutex) {
    entries[at].idle_before = std::exchange(idle_last, at);
    entries[at].idle_after = kNone;
    (entries[at].idle_before == kNone ? idle_first : entries[entries[at].idle_before].idle_after) = at;
  }
  void make_busy(std::uint32_t at) noexcept WEFT_REQUIRES(mutex) {
    const Entry& entry = entries[at];
    (entry.idle_before == kNone ? idle_first : entries[entry.idle_before].idle_after) = entry.idle_after;
    (entry.idle_after == kNone ? idle_last : entries[entry.idle_after].idle_before) = entry.idle_before;
  }

  void add_connection(std::uint32_t at) noexcept WEFT_REQUIRES(mutex) {
    if (entries[at].connections++ == 0) {
      make_busy(at);
    }
  }
  // `keep`: the entry holds other state that counts.
  void end_connection(std::uint32_t at, bool keep) noexcept WEFT_REQUIRES(mutex) {
    WEFT_ASSERT(entries[at].connections != 0);
    if (--entries[at].connections == 0) {
      make_idle(at);
      if (!keep) {
        forget(at);
      }
    }
  }
  // Forgets an entry that gained no connection.
  void forget_unused(std::uint32_t at, bool keep) noexcept WEFT_REQUIRES(mutex) {
    if (at != kNone && entries[at].connections == 0 && !keep) {
      forget(at);
    }
  }
};

Result<std::unique_ptr<Admission>> Admission::make(AdmissionOptions options) {
  if (options.ipv4_prefix_bits > 32 || options.ipv6_prefix_bits > 128) {
    return Error(Errc::invalid_argument, "a prefix is not longer than an address");
  }
  if (options.entries_max < 2 * kStripes || options.entries_max > 1U << 26U) {
    return Error(Errc::invalid_argument, "entries_max is out of its range");
  }
  try {
    if (options.seed == 0) {
      std::random_device random;
      options.seed = std::uint64_t{random()} << 32U | random();
    }
    return std::unique_ptr<Admission>(new Admission(std::move(options)));
  } catch (const std::exception&) {
    return Error(Errc::resource_exhausted, "no memory for the addresses, or no random number");
  }
}

Admission::Admission(AdmissionOptions options)
    : options_(std::make_shared<const AdmissionOptions>(std::move(options))), stripes_(new Stripe[kStripes]) {
  budget_.set_most(options_->entries_max);
  for (std::uint32_t i = 0; i < kStripes; ++i) {
    stripes_[i].set_up(budget_, options_);
  }
}

Admission::~Admission() = default;

Admission::Stripe& Admission::stripe_of(const IpPrefix& prefix) const noexcept {
  return stripes_[prefix.hash(options_->seed) % kStripes];
}

IpPrefix Admission::prefix_of(Bytes address) const noexcept {
  return IpPrefix::of(address, address.size() == 4 ? options_->ipv4_prefix_bits : options_->ipv6_prefix_bits);
}

Result<Admission::Lease> Admission::admit(const sys::SocketAddress& peer, Instant now) {
  const Bytes bytes = peer.ip_bytes();
  if (bytes.empty()) {
    return Lease();
  }
  AdmissionRejection rejection = AdmissionRejection::not_allowed;
  const IpPrefix prefix = prefix_of(bytes);
  Stripe& stripe = stripe_of(prefix);
  bool again = true;
  for (int rooms = 0; again; ++rooms) {
    Result<Lease> lease = admit_to(stripe, prefix, bytes, now, rejection);
    if (lease) {
      return lease;
    }
    again = rejection == AdmissionRejection::table_full && rooms < kRoomsMade && make_room(stripe);
  }
  reject(rejection, peer, now);
  return Error(Errc::resource_exhausted, describe(rejection));
}

Result<Admission::Lease> Admission::admit_to(Stripe& stripe, const IpPrefix& prefix, Bytes bytes, Instant now,
                                             AdmissionRejection& rejection) {
  const auto over = [](std::uint32_t connections, std::uint32_t bound) { return bound != 0 && connections >= bound; };
  const sync::LockGuard lock(stripe.mutex);
  const AdmissionOptions& rules = *stripe.rules;
  if (contains(rules.exempt, bytes)) {
    return Lease();
  }
  if (!rules.allowed.empty() && !contains(rules.allowed, bytes)) {
    rejection = AdmissionRejection::not_allowed;
    return Error(Errc::resource_exhausted);
  }
  const bool keep = rules.accept_rate.limits();
  const std::uint32_t prefix_at = stripe.find_or_add(prefix, kNone);
  if (prefix_at == kNone) {
    rejection = AdmissionRejection::table_full;
    return Error(Errc::resource_exhausted);
  }
  const std::uint32_t address_at =
      prefix.single() ? prefix_at : stripe.find_or_add(IpPrefix::of(bytes, 128), prefix_at);
  if (address_at == kNone) {
    rejection = AdmissionRejection::table_full;
  } else if (!stripe.entries[prefix_at].accepts.try_take(rules.accept_rate, now)) {
    rejection = AdmissionRejection::accept_rate;
  } else if (over(stripe.entries[address_at].connections, rules.address_connections_max)) {
    rejection = AdmissionRejection::address_connections;
  } else if (over(stripe.entries[prefix_at].connections, rules.prefix_connections_max)) {
    rejection = AdmissionRejection::prefix_connections;
  } else {
    stripe.add_connection(prefix_at);
    if (address_at != prefix_at) {
      stripe.add_connection(address_at);
    }
    ++stripe.leases;
    return Lease(this, static_cast<std::uint32_t>(&stripe - stripes_.get()), prefix_at, address_at);
  }
  if (address_at != prefix_at) {
    stripe.forget_unused(address_at, false);
  }
  stripe.forget_unused(prefix_at, keep);
  return Error(Errc::resource_exhausted);
}

// The rules of all stripes of `other` are the same, except while it adopts others itself.
void Admission::adopt(const Admission& other) noexcept {
  Rules rules;
  {
    const sync::LockGuard lock(other.stripes_[0].mutex);
    rules = other.stripes_[0].rules;
  }
  for (std::uint32_t i = 0; i < kStripes; ++i) {
    Stripe& stripe = stripes_[i];
    const sync::LockGuard lock(stripe.mutex);
    const RateLimit& before = stripe.rules->accept_rate;
    if (before.per_second != rules->accept_rate.per_second || before.burst != rules->accept_rate.burst) {
      for (Stripe::Entry& entry : stripe.entries) {
        entry.accepts = TokenBucket();  // a bucket belongs to one rate
      }
    }
    stripe.rules = rules;
  }
  set_entries_max(rules->entries_max);
}

void Admission::set_entries_max(std::uint32_t entries_max) noexcept {
  budget_.set_most(entries_max);
  for (std::uint32_t i = 0; i < kStripes && budget_.exceeded(); ++i) {
    const sync::LockGuard lock(stripes_[i].mutex);
    while (budget_.exceeded() && stripes_[i].forget_idle(kNone)) {
    }
  }
}

// Forgets an idle entry of another stripe, with no other lock held. Returns false if there is none.
bool Admission::make_room(const Stripe& full) noexcept {
  const auto first = static_cast<std::uint32_t>(&full - stripes_.get());
  for (std::uint32_t i = 1; i < kStripes; ++i) {
    Stripe& other = stripes_[(first + i) % kStripes];
    const sync::LockGuard lock(other.mutex);
    if (other.forget_idle(kNone)) {
      return true;
    }
  }
  return false;
}

void Admission::end(const Lease& lease) noexcept {
  Stripe& stripe = stripes_[lease.stripe_];
  const sync::LockGuard lock(stripe.mutex);
  if (lease.address_ != lease.prefix_) {
    stripe.end_connection(lease.address_, false);
  }
  stripe.end_connection(lease.prefix_, stripe.rules->accept_rate.limits());
  --stripe.leases;
}

void Admission::Lease::end() noexcept {
  if (owner_ != nullptr) {
    std::exchange(owner_, nullptr)->end(*this);
  }
}

void Admission::reject(AdmissionRejection rejection, const sys::SocketAddress& peer, Instant now) {
  std::uint64_t suppressed = 0;
  {
    const sync::LockGuard lock(rejections_mutex_);
    ++rejected_[static_cast<std::size_t>(rejection)];
    if (options_->report == nullptr || !reports_.try_take(options_->report_rate, now)) {
      ++suppressed_;
      return;
    }
    suppressed = std::exchange(suppressed_, 0);
  }
  options_->report(options_->report_context, {rejection, peer, suppressed});
}

std::uint64_t Admission::rejected(AdmissionRejection rejection) const {
  const sync::LockGuard lock(rejections_mutex_);
  return rejected_[static_cast<std::size_t>(rejection)];
}

std::uint32_t Admission::connections(const IpPrefix& prefix) const {
  Stripe& stripe = stripe_of(prefix_of(prefix.bytes()));
  const sync::LockGuard lock(stripe.mutex);
  const std::uint32_t at = stripe.find(prefix);
  return at == kNone ? 0 : stripe.entries[at].connections;
}

std::uint64_t Admission::connections() const {
  std::uint64_t sum = 0;
  for (std::uint32_t i = 0; i < kStripes; ++i) {
    const sync::LockGuard lock(stripes_[i].mutex);
    sum += stripes_[i].leases;
  }
  return sum;
}

std::uint32_t Admission::entries() const { return budget_.used(); }

}  // namespace weft::net
