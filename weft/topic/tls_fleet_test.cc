// SPDX-License-Identifier: MIT
// Fleets of tls+tcp: handles with a certificate of the fleet's authority meet, and others are refused.
#ifdef WEFT_HAVE_OPENSSL

#include <string>

#include "weft/net/tls/test_certificates.h"
#include "weft/topic/test_fleets.h"
#include "weft/topic/topics.h"
#include <gtest/gtest.h>

namespace weft::topic {
namespace {

class TlsFleet : public testing::Test {
 protected:
  // Of a handle whose certificate `signer` signed, and that trusts the fleet's authority.
  TopicsOptions options(net::test::TestAuthority& signer, const std::string& seed = "tls+tcp://") {
    const auto files = signer.issue("handle");
    TopicsOptions options;
    options.fleet = seed;
    options.security.tls_certificate = files.certificate;
    options.security.tls_key = files.key;
    options.security.tls_authorities = fleet_.file();
    options.security.tls_server_name = "localhost";
    return options;
  }

  net::test::TestAuthority fleet_;
  net::test::TestAuthority others_{"others"};
  Context context_;
  Context second_;
  Context third_;
};

TEST_F(TlsFleet, HandlesMeetAndAPeerOfAnotherAuthorityIsRefusedAndCounted) {
  auto a = Topics::open(context_, options(fleet_));
  ASSERT_TRUE(a) << a.error().message();
  EXPECT_TRUE(a->endpoint().starts_with("tls+tcp://127.0.0.1:")) << a->endpoint();
  Topics b = *Topics::open(second_, options(fleet_, a->endpoint()));
  Subscription s = *b.subscribe("px.*");
  Publisher p = *a->publisher("px.AAPL");
  const auto ready = p.wait_subscribers(1, soon());
  ASSERT_TRUE(ready) << ready.error().message();
  ASSERT_TRUE(b.sync(soon()));
  ASSERT_TRUE(p.publish("secret"));
  EXPECT_EQ(s.next_until(soon())->text(), "secret");

  Topics stranger = *Topics::open(third_, options(others_, a->endpoint()));
  Subscription none = *stranger.subscribe(">");
  const Instant end = soon();
  while (a->statistics().peers_refused == 0 && sys::now() < end) {
    (void)stranger.sync(sys::now() + 10ms);
  }
  EXPECT_GE(a->statistics().peers_refused, 1u);
  ASSERT_TRUE(p.publish("secret"));
  EXPECT_EQ(s.next_until(soon())->text(), "secret");
  EXPECT_EQ(none.try_next().error(), Errc::would_block);
  EXPECT_EQ(a->statistics().peers, 1u);
  EXPECT_EQ(stranger.statistics().peers, 0u);
}

TEST_F(TlsFleet, AnEndpointOrAKeyThatWouldLeaveItOpenIsRefused) {
  for (std::string FleetSecurity::* const missing :
       {&FleetSecurity::tls_certificate, &FleetSecurity::tls_key, &FleetSecurity::tls_authorities}) {
    TopicsOptions lacks = options(fleet_);
    (lacks.security.*missing).clear();
    EXPECT_EQ(Topics::open(context_, lacks).error(), Errc::invalid_argument);
  }
  TopicsOptions open = options(fleet_);
  open.listen = "tcp://127.0.0.1:0";
  EXPECT_EQ(Topics::open(context_, open).error(), Errc::invalid_argument);
  open = options(fleet_, "tcp://");
  EXPECT_EQ(Topics::open(context_, open).error(), Errc::invalid_argument) << "certificates without an effect";
  Topics a = *Topics::open(context_, options(fleet_));
  EXPECT_EQ(a.add_peer("tcp://127.0.0.1:1").error(), Errc::invalid_argument);
}

}  // namespace
}  // namespace weft::topic

#endif
