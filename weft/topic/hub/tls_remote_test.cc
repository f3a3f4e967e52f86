// SPDX-License-Identifier: MIT
// A hub that also serves the handles of other hosts, by TLS with certificates of both sides.
#ifdef WEFT_HAVE_OPENSSL

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "weft/net/stream/endpoint.h"
#include "weft/net/tls/test_certificates.h"
#include "weft/rt/loop/loop.h"
#include "weft/sys/address.h"
#include "weft/sys/poll.h"
#include "weft/sys/socket.h"
#include "weft/topic/hub/hub.h"
#include "weft/topic/hub_link_of.h"
#include "weft/topic/kept/hub_link.h"
#include "weft/topic/kept/test_link.h"
#include "weft/topic/test_fleets.h"
#include "weft/topic/topics.h"
#include <gtest/gtest.h>

namespace weft::topic {
namespace {

class RemoteHub : public testing::Test {
 protected:
  RemoteHub() : directory_(*sys::make_private_directory()), certificate_(authority_.issue("hub")) {}
  ~RemoteHub() override { std::filesystem::remove_all(directory_); }

  HubOptions hub_options(const std::string& listen = "tls+tcp://127.0.0.1:0") {
    HubOptions options;
    options.directory = directory_;
    options.store = directory_ + "/store.topics";
    options.listen = listen;
    options.tls_certificate = certificate_.certificate;
    options.tls_key = certificate_.key;
    options.tls_authorities = authority_.file();
    return options;
  }
  // Of a handle of another host: a fleet of its own, and a certificate that `signer` signed.
  TopicsOptions handle_options(const std::string& hub, net::test::TestAuthority& signer) {
    const auto files = signer.issue("handle");
    TopicsOptions options;
    options.fleet = "inproc:other-host";
    options.hub = hub;
    options.security.tls_certificate = files.certificate;
    options.security.tls_key = files.key;
    options.security.tls_authorities = authority_.file();
    return options;
  }

  net::test::TestAuthority authority_;
  net::test::TestAuthority others_{"others"};
  std::string directory_;
  net::test::CertificateFiles certificate_;
  Context hub_context_;
  Context context_;
};

TEST_F(RemoteHub, AHandleOfAnotherHostKeepsTopicsAndGoesOnWithTheNextHub) {
  auto hub = *Hub::host(hub_context_, hub_options());
  const std::string endpoint = hub->listening();
  ASSERT_TRUE(endpoint.starts_with("tls+tcp://127.0.0.1:")) << endpoint;
  Topics far = *Topics::open(context_, handle_options(endpoint, authority_));
  auto orders = far.stream({.name = "orders", .topics = {"orders.>"}});
  ASSERT_TRUE(orders) << orders.error().message();
  EXPECT_EQ(orders->publish("orders.eu", "first")->sequence, 1u);
  KeyValue config = *far.key_value("config");
  ASSERT_TRUE(config.put("color", "blue"));

  hub->stop();
  hub.reset();
  hub = *Hub::host(hub_context_, hub_options(endpoint));  // the same port
  EXPECT_EQ(hub->listening(), endpoint);
  EXPECT_EQ(orders->publish("orders.eu", "second")->sequence, 2u);
  Reader reader = *orders->read();
  EXPECT_EQ(reader.next_until(soon())->text(), "first");
  EXPECT_EQ(reader.next_until(soon())->text(), "second");
  EXPECT_EQ(config.value("color")->text(), "blue");
  EXPECT_EQ(far.kept_statistics().hosted, 0u) << "a handle hosts a hub that stands elsewhere";
}

TEST_F(RemoteHub, AMemberOfThisHostGetsWhatAnotherHostPublished) {
  auto hub = *Hub::host(hub_context_, hub_options());
  Topics far = *Topics::open(context_, handle_options(hub->listening(), authority_));
  Stream jobs = *far.stream({.name = "jobs", .topics = {"jobs.>"}, .keep = Keep::work});
  ASSERT_TRUE(jobs.publish("jobs.a", "one"));
  TestLink near(hub_context_, Hub::endpoint(directory_));  // it needs no certificate
  Stream same = near.stream({.name = "jobs", .topics = {"jobs.>"}, .keep = Keep::work});
  Consumer worker = *same.consumer("workers");
  const auto job = worker.next_until(soon());
  ASSERT_TRUE(job) << job.error().message();
  EXPECT_EQ(job->text(), "one");
}

TEST_F(RemoteHub, AForeignCertificateIsRefusedAndTheErrorHasTheReason) {
  auto hub = *Hub::host(hub_context_, hub_options());
  const FleetSecurity keys = handle_options("", others_).security;
  auto loop = *rt::Loop::make("topics");
  LinkSettings settings;
  settings.endpoint = hub->listening();
  settings.id = "stranger";
  settings.remote = true;
  settings.make_socket = [this, &keys]() -> Result<Socket> {
    Socket socket = *context_.socket(SocketType::dealer);
    EXPECT_TRUE(set_hub_keys(socket, keys));
    return socket;
  };
  auto link = std::make_shared<HubLink>(*loop, std::move(settings));
  ASSERT_TRUE(loop->start(nullptr));
  const auto call = *HubLink::prepare({.kind = OpKind::probe}, OnLoss::resend, soon());
  ASSERT_TRUE(link->wait(link->place(), soon(), [&] { return link->in_lock(), link->start(call); }));
  const std::string plain = link->untaken().message();
  const Instant end = soon();
  while (link->untaken().message() == plain && sys::now() < end) {
    (void)sys::poll_fds({}, 1ms);
  }
  const Error error = link->untaken();
  EXPECT_EQ(error, Errc::timed_out);
  EXPECT_NE(error.message().find("last: " + hub->listening()), std::string::npos) << error.message();
  EXPECT_NE(error.message().find("alert unknown ca"), std::string::npos) << error.message();
  EXPECT_EQ(hub->counters().clients.load(), 0u);
  loop->stop();
  link->close();
}

// Strangers: connections that say nothing.
class Strangers {
 public:
  Strangers(const std::string& endpoint, std::size_t count) {
    const auto port = net::parse_endpoint(endpoint, false)->port;
    const auto address = *sys::SocketAddress::parse_numeric("127.0.0.1", port);
    for (std::size_t i = 0; i < count; ++i) {
      auto connecting = sys::open_tcp_connection(address, nullptr, {});
      open_.push_back(std::move(connecting->fd));
    }
  }
  // Waits until the hub closed so many.
  bool wait_closed(std::size_t count) {
    const Instant end = soon();
    for (std::size_t closed = 0; sys::now() < end;) {
      std::vector<sys::PollFd> fds;
      for (const sys::Fd& fd : open_) {
        fds.push_back({.fd = fd.fd(), .want = sys::Interest::readable});
      }
      (void)sys::poll_fds(fds, 100ms);
      for (std::size_t i = fds.size(); i-- > 0;) {
        if (fds[i].failed ||
            fds[i].got != sys::Interest::none) {  // a server of TLS sends nothing first: this is the end
          open_.erase(open_.begin() + static_cast<std::ptrdiff_t>(i));
          ++closed;
        }
      }
      if (closed >= count) {
        return true;
      }
    }
    return false;
  }

 private:
  std::vector<sys::Fd> open_;
};

// Without the share the strangers have every place until their handshakes time out.
TEST_F(RemoteHub, StrangersOfOneAddressLeaveRoomForMembersOfThisHost) {
  HubOptions options = hub_options();
  options.clients_max = 8;
  int attempts = 0;
  for (int round = 0; round < 2 && attempts != 1; ++round) {  // a busy machine may take a second attempt
    const auto hub = *Hub::host(hub_context_, options);
    Strangers strangers(hub->listening(), 32);
    ASSERT_TRUE(strangers.wait_closed(24));
    auto loop = *rt::Loop::make("topics");
    LinkSettings settings;
    settings.endpoint = Hub::endpoint(directory_);
    settings.id = "member" + std::to_string(round);
    attempts = 0;
    settings.make_socket = [this, &attempts] {
      ++attempts;
      return context_.socket(SocketType::dealer);
    };
    auto link = std::make_shared<HubLink>(*loop, std::move(settings));
    ASSERT_TRUE(loop->start(nullptr));
    EXPECT_TRUE(Stream::declare(link, {.name = "orders"}));
    loop->stop();
    link->close();
  }
  EXPECT_EQ(attempts, 1);
}

TEST_F(RemoteHub, AnAddressHasThePlacesThatTheHubIsGivenForIt) {
  HubOptions options = hub_options();
  options.clients_max = 8;
  options.address_clients_max = 2;
  const auto hub = *Hub::host(hub_context_, options);
  Strangers strangers(hub->listening(), 8);
  EXPECT_TRUE(strangers.wait_closed(6));
}

TEST_F(RemoteHub, AHubOrAHandleWithoutCertificatesIsRefused) {
  for (std::string HubOptions::* const missing :
       {&HubOptions::tls_certificate, &HubOptions::tls_key, &HubOptions::tls_authorities}) {
    HubOptions lacks = hub_options();
    (lacks.*missing).clear();
    EXPECT_EQ(Hub::host(hub_context_, lacks).error(), Errc::invalid_argument);
  }
  for (const char* const listen : {"tcp://0.0.0.0:0", "tcp://127.0.0.1:0", "ws://127.0.0.1:0", "ipc://hub"}) {
    EXPECT_EQ(Hub::host(hub_context_, hub_options(listen)).error(), Errc::invalid_argument) << listen;
  }
  HubOptions absent = hub_options();
  absent.tls_key = directory_ + "/absent";
  EXPECT_EQ(Hub::host(hub_context_, absent).error(), Errc::invalid_argument);

  for (std::string FleetSecurity::* const missing :
       {&FleetSecurity::tls_certificate, &FleetSecurity::tls_key, &FleetSecurity::tls_authorities}) {
    TopicsOptions lacks = handle_options("tls+tcp://127.0.0.1:1", authority_);
    (lacks.security.*missing).clear();
    EXPECT_EQ(Topics::open(context_, lacks).error(), Errc::invalid_argument);
  }
  EXPECT_EQ(Topics::open(context_, handle_options("tcp://127.0.0.1:1", authority_)).error(), Errc::invalid_argument);
  EXPECT_FALSE(Topics::open(context_, handle_options("tls+tcp://no-port", authority_)));
  TopicsOptions no_hub = handle_options("", authority_);
  EXPECT_EQ(Topics::open(context_, no_hub).error(), Errc::invalid_argument) << "certificates without an effect";
  // After a refusal the directory has no lock.
  EXPECT_TRUE(Hub::host(hub_context_, hub_options()));
}

TEST_F(RemoteHub, ASecondListenerOfAnAddressSaysSo) {
  auto hub = *Hub::host(hub_context_, hub_options());
  HubOptions same = hub_options(hub->listening());
  same.directory = *sys::make_private_directory();
  same.store = same.directory + "/store.topics";
  EXPECT_EQ(Hub::host(hub_context_, same).error(), Errc::address_in_use);
  std::filesystem::remove_all(same.directory);
}

}  // namespace
}  // namespace weft::topic

#endif
