// SPDX-License-Identifier: MIT
#include <rapidcheck.h>

#include <cstdlib>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "weft/net/admit/admission.h"
#include "weft/net/admit/token_bucket.h"
#include <gtest/gtest.h>

namespace weft::net {
namespace {

[[maybe_unused]] const int kSeeded = setenv("RC_PARAMS", "seed=6", 0);

// Any sequence of admissions and ends gives the results of two maps of counts, and ends at zero.
TEST(AdmissionProperty, LeasesAreThoseOfAModelOfTwoCounts) {
  EXPECT_TRUE(rc::check([](const std::vector<std::pair<std::uint8_t, bool>>& steps) {
    const auto address_max = *rc::gen::inRange<std::uint32_t>(0, 4);
    const auto prefix_max = *rc::gen::inRange<std::uint32_t>(0, 5);
    const auto admission =
        Admission::make({.address_connections_max = address_max, .prefix_connections_max = prefix_max, .seed = 9})
            .value();
    std::vector<std::pair<Admission::Lease, int>> leases;
    std::map<int, std::uint32_t> of_address;
    std::map<int, std::uint32_t> of_prefix;
    for (const auto& [pick, admit] : steps) {
      const int address = pick % 6;
      const int prefix = address % 2;
      if (admit) {
        const auto peer = sys::SocketAddress::parse_numeric(
                              "2001:db8:0:" + std::to_string(prefix) + "::" + std::to_string(address), 1)
                              .value();
        auto lease = admission->admit(peer, Instant());
        const bool expected = (address_max == 0 || of_address[address] < address_max) &&
                              (prefix_max == 0 || of_prefix[prefix] < prefix_max);
        RC_ASSERT(lease.has_value() == expected);
        if (expected) {
          ++of_address[address];
          ++of_prefix[prefix];
          leases.emplace_back(std::move(lease).value(), address);
        }
        RC_ASSERT(admission->connections(IpPrefix::of(peer.ip_bytes(), 64)) == of_prefix[prefix]);
        RC_ASSERT(admission->connections(IpPrefix::of(peer.ip_bytes(), 128)) == of_address[address]);
      } else if (!leases.empty()) {
        std::swap(leases[pick % leases.size()], leases.back());
        --of_address[leases.back().second];
        --of_prefix[leases.back().second % 2];
        leases.pop_back();
      }
      RC_ASSERT(admission->connections() == leases.size());
    }
    leases.clear();
    RC_ASSERT(admission->entries() == 0U);
  }));
}

// A bucket whose level is kept in 128 bits from the beginning of time, without rounding.
TEST(TokenBucketProperty, AllowsExactlyWhatARationalNumberAllows) {
  EXPECT_TRUE(rc::check([](const std::vector<std::uint32_t>& steps) {
    using Wide = __int128;
    const RateLimit limit{*rc::gen::oneOf(rc::gen::inRange<std::uint32_t>(1, 20), rc::gen::just(1'000'003U)),
                          *rc::gen::inRange<std::uint32_t>(1, 4)};
    const Wide most = Wide{limit.burst} * 1'000'000'000;
    Wide level = most;
    TokenBucket bucket;
    Instant now{};
    for (const std::uint32_t step : steps) {
      const Duration pause(step % 7 == 0 ? step : step % 500'000'000);
      now += pause;
      level = std::min(most, level + Wide{pause.count()} * limit.per_second);
      const std::uint32_t tokens = 1 + step % 2;
      const bool expected = level >= Wide{tokens} * 1'000'000'000;
      RC_ASSERT(bucket.try_take(limit, now, tokens) == expected);
      level -= expected ? Wide{tokens} * 1'000'000'000 : 0;
    }
  }));
}

}  // namespace
}  // namespace weft::net
