// SPDX-License-Identifier: MIT
#include "weft/net/admit/admission.h"

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "weft/base/random.h"
#include <gtest/gtest.h>

namespace weft::net {
namespace {

using Lease = Admission::Lease;

constexpr Instant kStart = Instant(Duration(1'000'000'000'000));

sys::SocketAddress peer(std::string_view host, std::uint16_t port = 1234) {
  return sys::SocketAddress::parse_numeric(host, port).value();
}
std::uint32_t count(const Admission& admission, std::string_view prefix) {
  return admission.connections(*IpPrefix::parse(prefix));
}
std::unique_ptr<Admission> make(AdmissionOptions options) {
  options.seed = 5;
  return Admission::make(std::move(options)).value();
}

TEST(Admission, AnAddressHasNoMoreConnectionsThanItsBoundAndGetsThemBack) {
  const auto admission = make({.address_connections_max = 2});
  auto first = admission->admit(peer("10.0.0.1", 1), kStart);
  auto second = admission->admit(peer("10.0.0.1", 2), kStart);
  EXPECT_TRUE(first && second);
  EXPECT_EQ(admission->admit(peer("10.0.0.1", 3), kStart).error(), Errc::resource_exhausted);
  EXPECT_TRUE(admission->admit(peer("10.0.0.2"), kStart));
  EXPECT_EQ(admission->rejected(AdmissionRejection::address_connections), 1u);
  first->end();
  first->end();
  EXPECT_EQ(count(*admission, "10.0.0.1"), 1u);
  EXPECT_TRUE(admission->admit(peer("10.0.0.1"), kStart));
}

// Without a seed of the program's, a peer cannot know which addresses share a place of the table: a table that is full
// of idle addresses forgets one that shares the place of the new one.
TEST(Admission, TwoTablesWithoutASeedPlaceAddressesDifferently) {
  const auto forgotten = [] {
    const auto admission = std::move(Admission::make({.accept_rate = {1, 1}, .entries_max = 64})).value();
    for (int i = 0; i < 100; ++i) {
      (void)admission->admit(peer("10.0.0." + std::to_string(i)), kStart);
    }
    // Backwards: forwards, each place of too many addresses forgets an address just before its turn.
    std::string addresses;
    for (int i = 99; i >= 0; --i) {
      addresses += admission->admit(peer("10.0.0." + std::to_string(i)), kStart) ? '1' : '0';
    }
    return addresses;
  };
  EXPECT_NE(forgotten(), forgotten());
}

TEST(Admission, ARejectionSaysWhy) {
  const auto admission = make({.address_connections_max = 1});
  const auto lease = admission->admit(peer("::1"), kStart);
  EXPECT_STREQ(admission->admit(peer("::1"), kStart).error().text(), "too many connections of its address");
}

// The published limiter counts IPv6 by address: a /64 holds 2^64 of them.
TEST(Admission, AnIpv6PrefixOfSixtyFourBitsIsBoundedAsOne) {
  const auto admission = make({.address_connections_max = 2, .prefix_connections_max = 3});
  std::vector<Lease> leases;
  for (const char* address : {"2001:db8::1", "2001:db8::1", "2001:db8::2"}) {
    leases.push_back(admission->admit(peer(address), kStart).value());
  }
  EXPECT_FALSE(admission->admit(peer("2001:db8::3"), kStart));
  EXPECT_FALSE(admission->admit(peer("2001:db8::1"), kStart));
  EXPECT_EQ(admission->rejected(AdmissionRejection::prefix_connections), 1u);
  EXPECT_EQ(admission->rejected(AdmissionRejection::address_connections), 1u);
  EXPECT_TRUE(admission->admit(peer("2001:db8:0:1::1"), kStart));
  EXPECT_EQ(count(*admission, "2001:db8::/64"), 3u);
  EXPECT_EQ(count(*admission, "2001:db8::1"), 2u);
  leases.clear();
  EXPECT_EQ(count(*admission, "2001:db8::/64"), 0u);
  EXPECT_EQ(admission->entries(), 0u);
}

TEST(Admission, HowLongPrefixesAreCanBeSaid) {
  const auto admission = make({.prefix_connections_max = 1, .ipv4_prefix_bits = 24});
  const auto lease = admission->admit(peer("10.0.0.1"), kStart);
  EXPECT_FALSE(admission->admit(peer("10.0.0.2"), kStart));
  EXPECT_TRUE(admission->admit(peer("10.0.1.2"), kStart));
}

TEST(Admission, AnIpv4PeerOfAnIpv6ListenerIsTheSameAddress) {
  const auto admission = make({.address_connections_max = 1});
  const auto lease = admission->admit(peer("10.0.0.1"), kStart);
  EXPECT_FALSE(admission->admit(peer("::ffff:10.0.0.1"), kStart));
}

// The published limiter subtracts a count at a time-out although it never added that count, which frees another
// connection's slot. Here a rejection changes no count, whatever its reason.
TEST(Admission, ARefusedConnectionChangesNoCount) {
  const auto admission = make({.address_connections_max = 5, .prefix_connections_max = 2, .accept_rate = {1, 4}});
  std::vector<Lease> leases;
  for (int i = 0; i < 100; ++i) {
    if (auto lease = admission->admit(peer("2001:db8::1"), kStart)) {
      leases.push_back(std::move(lease).value());
    }
  }
  EXPECT_EQ(leases.size(), 2u);
  EXPECT_EQ(count(*admission, "2001:db8::1"), 2u);
  EXPECT_EQ(count(*admission, "2001:db8::/64"), 2u);
  EXPECT_EQ(admission->rejected(AdmissionRejection::prefix_connections), 2u);
  EXPECT_EQ(admission->rejected(AdmissionRejection::accept_rate), 96u);
  EXPECT_EQ(admission->connections(), 2u);
}

TEST(Admission, ALeaseThatIsMovedEndsOnce) {
  const auto admission = make({.address_connections_max = 3});
  {
    Lease first = admission->admit(peer("10.0.0.1"), kStart).value();
    Lease second = std::move(first);
    EXPECT_FALSE(first.counts());  // NOLINT(bugprone-use-after-move)
    first = admission->admit(peer("10.0.0.2"), kStart).value();
    second = std::move(first);
    EXPECT_EQ(count(*admission, "10.0.0.1"), 0u);
    EXPECT_EQ(count(*admission, "10.0.0.2"), 1u);
  }
  EXPECT_EQ(admission->connections(), 0u);
}

TEST(Admission, APrefixThatConnectsTooOftenIsRejectedAndOthersAreNot) {
  const auto admission = make({.accept_rate = {10, 2}});
  EXPECT_TRUE(admission->admit(peer("10.0.0.1"), kStart));
  EXPECT_TRUE(admission->admit(peer("10.0.0.1"), kStart));
  EXPECT_FALSE(admission->admit(peer("10.0.0.1"), kStart));
  EXPECT_TRUE(admission->admit(peer("10.0.0.2"), kStart));
  EXPECT_EQ(admission->rejected(AdmissionRejection::accept_rate), 1u);
  EXPECT_TRUE(admission->admit(peer("10.0.0.1"), kStart + std::chrono::milliseconds(100)));
}

TEST(Admission, OnlyAllowedPrefixesAreTakenAndExemptOnesWithoutBound) {
  const auto admission = make({.address_connections_max = 1,
                               .allowed = parse_ip_prefixes("10.0.0.0/8").value(),
                               .exempt = parse_ip_prefixes("192.168.0.7").value()});
  const auto lease = admission->admit(peer("10.1.2.3"), kStart);
  EXPECT_TRUE(lease);
  EXPECT_FALSE(admission->admit(peer("11.1.2.3"), kStart));
  EXPECT_FALSE(admission->admit(peer("::1"), kStart));
  EXPECT_EQ(admission->rejected(AdmissionRejection::not_allowed), 2u);
  std::vector<Lease> exempt;
  for (int i = 0; i < 10; ++i) {
    exempt.push_back(admission->admit(peer("192.168.0.7"), kStart).value());
  }
  EXPECT_EQ(admission->connections(), 1u);
}

TEST(Admission, PeersWithoutAnAddressAreNotRejected) {
  const auto admission = make({.address_connections_max = 1});
  const auto path = sys::SocketAddress::from_path("/tmp/x").value();
  const auto first = admission->admit(path, kStart);
  EXPECT_TRUE(admission->admit(path, kStart));
}

TEST(Admission, TheTableIsBoundedAndForgetsOnlyAddressesWithoutAConnection) {
  const auto admission = make({.address_connections_max = 1, .accept_rate = {1, 1}, .entries_max = 64});
  const auto held = admission->admit(peer("10.0.0.1"), kStart);
  for (int i = 0; i < 1000; ++i) {
    EXPECT_TRUE(admission->admit(peer("11.0." + std::to_string(i / 256) + "." + std::to_string(i % 256)), kStart));
  }
  EXPECT_LE(admission->entries(), 64u);
  EXPECT_EQ(count(*admission, "10.0.0.1"), 1u);
  EXPECT_FALSE(admission->admit(peer("11.0.3.231"), kStart));  // the last of the addresses has not been forgotten
  std::vector<Lease> leases;
  for (int i = 0; i < 1000; ++i) {
    const auto address = peer("12.0." + std::to_string(i / 256) + "." + std::to_string(i % 256));
    if (auto lease = admission->admit(address, kStart)) {
      leases.push_back(std::move(lease).value());
    }
  }
  EXPECT_EQ(leases.size(), 63u);
  EXPECT_EQ(admission->rejected(AdmissionRejection::table_full), 1000 - 63u);
  EXPECT_EQ(admission->entries(), 64u);
}

TEST(Admission, NoAddressIsRefusedWhileTheTableHasRoom) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    for (const bool ipv6 : {false, true}) {
      const auto admission =
          std::move(Admission::make({.address_connections_max = 9, .entries_max = 64, .seed = seed})).value();
      std::vector<Lease> leases;
      const auto admitted = [&](int i) {
        const std::string number = std::to_string(i);
        auto lease = admission->admit(peer(ipv6 ? "2001:db8:0:" + number + "::1" : "10.0.0." + number), kStart);
        if (lease) {
          leases.push_back(std::move(*lease));
        }
        return lease.has_value();
      };
      const int most = ipv6 ? 32 : 64;
      for (int i = 0; i < most; ++i) {
        EXPECT_TRUE(admitted(i)) << "seed " << seed;
      }
      EXPECT_FALSE(admitted(most));
      admission->set_entries_max(66);
      EXPECT_TRUE(admitted(most));
      admission->set_entries_max(32);
      leases.resize(static_cast<std::size_t>(most) / 2);
      EXPECT_FALSE(admitted(most));  // the connections that are left fill it
      leases.clear();
      EXPECT_TRUE(admitted(most));
    }
  }
}

TEST(Admission, IdleAddressesAnywhereInTheTableMakeRoom) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    const auto admission = std::move(Admission::make({.accept_rate = {1, 1}, .entries_max = 32, .seed = seed})).value();
    for (int i = 0; i < 200; ++i) {
      EXPECT_TRUE(admission->admit(peer("11.0.0." + std::to_string(i)), kStart));
    }
    std::vector<Lease> leases;
    for (int i = 0; i < 16; ++i) {
      auto lease = admission->admit(peer("2001:db8:0:" + std::to_string(i) + "::1"), kStart);
      ASSERT_TRUE(lease) << "seed " << seed << ", connection " << i;
      leases.push_back(std::move(*lease));
    }
    EXPECT_EQ(admission->entries(), 32u);
  }
}

TEST(Admission, ALowerBoundForgetsIdleAddressesAtOnce) {
  const auto admission = make({.accept_rate = {1, 1}, .entries_max = 1000});
  const auto used = admission->admit(peer("12.0.0.1"), kStart);
  for (int i = 0; i < 250; ++i) {
    EXPECT_TRUE(admission->admit(peer("11.0.0." + std::to_string(i)), kStart));
  }
  admission->set_entries_max(32);
  EXPECT_EQ(admission->entries(), 32u);
  EXPECT_EQ(admission->connections(), 1u);
  EXPECT_TRUE(admission->admit(peer("13.0.0.1"), kStart));
}

TEST(Admission, AdoptedRulesHoldFromTheNextConnectionOn) {
  const auto admission = make({.address_connections_max = 3, .accept_rate = {1, 5}});
  std::vector<Lease> leases;
  for (int i = 0; i < 3; ++i) {
    leases.push_back(std::move(admission->admit(peer("10.0.0.1"), kStart)).value());
  }
  admission->adopt(*make({.address_connections_max = 2, .accept_rate = {1, 2}}));
  EXPECT_EQ(count(*admission, "10.0.0.1"), 3u);  // they stay open
  leases.pop_back();
  EXPECT_EQ(admission->admit(peer("10.0.0.1"), kStart).error(), Errc::resource_exhausted);
  leases.pop_back();
  EXPECT_TRUE(admission->admit(peer("10.0.0.1"), kStart));  // the second of the new burst; the rejected one took one
  EXPECT_EQ(admission->admit(peer("10.0.0.1"), kStart).error(), Errc::resource_exhausted);
  EXPECT_EQ(admission->rejected(AdmissionRejection::address_connections), 1u);
  EXPECT_EQ(admission->rejected(AdmissionRejection::accept_rate), 1u);

  admission->adopt(*make({.allowed = {*IpPrefix::parse("192.168.0.0/16")}}));
  EXPECT_FALSE(admission->admit(peer("10.0.0.1"), kStart));
  EXPECT_EQ(admission->rejected(AdmissionRejection::not_allowed), 1u);
  for (int i = 0; i < 10; ++i) {
    leases.push_back(std::move(admission->admit(peer("192.168.0.1"), kStart)).value());
  }
  admission->adopt(*make({.address_connections_max = 1, .exempt = {*IpPrefix::parse("192.168.0.1")}}));
  EXPECT_TRUE(admission->admit(peer("192.168.0.1"), kStart));
  leases.clear();
  EXPECT_EQ(admission->connections(), 0u);
  admission->adopt(*admission);
  EXPECT_TRUE(admission->admit(peer("192.168.0.1"), kStart));
}

TEST(Admission, RulesAreAdoptedWhileOtherThreadsConnect) {
  const auto admission = make({.address_connections_max = 1});
  const auto two = make({.address_connections_max = 2, .accept_rate = {1'000'000, 1'000'000}});
  const auto one = make({.address_connections_max = 1});
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&, i] {
      while (!stop) {
        const auto lease = admission->admit(peer("10.0.0." + std::to_string(i)), kStart);
      }
    });
  }
  for (int i = 0; i < 500; ++i) {
    admission->adopt(i % 2 == 0 ? *two : *one);
  }
  stop = true;
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(admission->connections(), 0u);
  const auto lease = admission->admit(peer("10.0.0.1"), kStart);  // the last rules: one
  EXPECT_TRUE(lease);
  EXPECT_FALSE(admission->admit(peer("10.0.0.1"), kStart));
}

TEST(Admission, FullOfConnectionsItDoesNotForgetThePrefixThatIsJustAskedFor) {
  const auto admission = make({.prefix_connections_max = 1, .entries_max = 32});
  std::vector<Lease> leases;
  for (int i = 0; i < 400; ++i) {
    const auto address = peer("2001:db8:0:" + std::to_string(i) + "::1");
    if (auto lease = admission->admit(address, kStart)) {
      leases.push_back(std::move(lease).value());
    }
  }
  EXPECT_EQ(leases.size(), 16u);
  EXPECT_EQ(admission->entries(), 32u);
  leases.clear();
  EXPECT_EQ(admission->entries(), 0u);
}

// The published limiter writes a warning for each rejected connection: a client that floods the server floods its log.
TEST(Admission, RefusalsAreCountedAllAndToldAtABoundedRate) {
  struct Log {
    int reports = 0;
    std::uint64_t suppressed = 0;
    std::string last;
  } log;
  const auto admission = make({.address_connections_max = 1,
                               .report =
                                   [](void* context, const RejectionReport& report) {
                                     auto& to = *static_cast<Log*>(context);
                                     ++to.reports;
                                     to.suppressed += report.suppressed;
                                     to.last = report.peer.host_text() + ": " + describe(report.rejection).c_str();
                                   },
                               .report_context = &log,
                               .report_rate = {1, 2}});
  const auto lease = admission->admit(peer("10.0.0.1"), kStart);
  for (int i = 0; i < 1000; ++i) {
    EXPECT_FALSE(admission->admit(peer("10.0.0.1"), kStart));
  }
  EXPECT_EQ(log.reports, 2);
  EXPECT_EQ(log.last, "10.0.0.1: too many connections of its address");
  admission->reject(AdmissionRejection::message_rate, peer("10.0.0.9"), kStart + std::chrono::seconds(1));
  EXPECT_EQ(log.reports, 3);
  EXPECT_EQ(log.suppressed, 998u);
  EXPECT_EQ(admission->rejected(AdmissionRejection::address_connections), 1000u);
  EXPECT_EQ(admission->rejected(AdmissionRejection::message_rate), 1u);
}

TEST(Admission, OptionsThatMeanNothingAreRefused) {
  EXPECT_EQ(Admission::make({.ipv4_prefix_bits = 33}).error(), Errc::invalid_argument);
  EXPECT_EQ(Admission::make({.ipv6_prefix_bits = 129}).error(), Errc::invalid_argument);
  EXPECT_EQ(Admission::make({.entries_max = 0}).error(), Errc::invalid_argument);
}

// Threads take and end leases of few addresses, also each other's leases. No thread ever sees more leases than
// the bounds.
TEST(Admission, FromAnyThreadBoundsHoldAndEveryCountReturnsToZero) {
  constexpr std::uint32_t kAddressMax = 3;
  constexpr std::uint32_t kPrefixMax = 5;
  constexpr std::size_t kAddresses = 6;  // three in each of two prefixes
  const auto admission = make({.address_connections_max = kAddressMax, .prefix_connections_max = kPrefixMax});
  std::array<sys::SocketAddress, kAddresses> addresses;
  for (std::size_t i = 0; i < kAddresses; ++i) {
    addresses[i] = peer("2001:db8:0:" + std::to_string(i % 2) + "::" + std::to_string(i));
  }
  std::array<std::atomic<std::uint32_t>, kAddresses> held{};
  std::array<std::atomic<std::uint32_t>, 2> held_of_prefix{};
  std::atomic<std::uint64_t> granted{0};
  std::array<std::mutex, kAddresses> mutexes;
  std::array<std::vector<Lease>, kAddresses> leases;  // by address
  const auto work = [&](std::uint64_t seed) {
    Random random(seed);
    for (int i = 0; i < 4000; ++i) {
      const std::size_t which = random.below(kAddresses);
      if (random.below(2) == 0) {
        if (auto lease = admission->admit(addresses[which], kStart)) {
          EXPECT_LE(++held[which], kAddressMax);
          EXPECT_LE(++held_of_prefix[which % 2], kPrefixMax);
          ++granted;
          const std::lock_guard lock(mutexes[which]);
          leases[which].push_back(std::move(lease).value());
        }
      } else {
        Lease ends;
        const std::lock_guard lock(mutexes[which]);
        if (!leases[which].empty()) {
          ends = std::move(leases[which].back());
          leases[which].pop_back();
          --held[which];
          --held_of_prefix[which % 2];
        }
      }
    }
  };
  std::vector<std::thread> threads;
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    threads.emplace_back(work, seed);
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_GT(granted.load(), kAddresses * kAddressMax);
  for (std::size_t i = 0; i < kAddresses; ++i) {
    EXPECT_EQ(admission->connections(IpPrefix::of(addresses[i].ip_bytes(), 128)), leases[i].size());
    leases[i].clear();
  }
  EXPECT_EQ(admission->connections(), 0u);
  EXPECT_EQ(admission->entries(), 0u);
}

TEST(Admission, TheTableGrowsAndKeepsEachCount) {
  const auto admission = make({.address_connections_max = 2});
  std::vector<Lease> leases;
  const auto address = [](int i) { return peer("10.0." + std::to_string(i / 256) + "." + std::to_string(i % 256)); };
  constexpr int kAddresses = 5000;
  for (int i = 0; i < 2 * kAddresses; ++i) {
    auto lease = admission->admit(address(i / 2), kStart);
    ASSERT_TRUE(lease) << i;
    leases.push_back(std::move(*lease));
  }
  EXPECT_EQ(admission->entries(), static_cast<std::uint32_t>(kAddresses));
  for (int i = 0; i < kAddresses; ++i) {
    ASSERT_FALSE(admission->admit(address(i), kStart)) << i;
  }
  leases.clear();
  EXPECT_EQ(admission->connections(), 0U);
  EXPECT_EQ(admission->entries(), 0U);
}

}  // namespace
}  // namespace weft::net
