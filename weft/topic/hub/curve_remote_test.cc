// SPDX-License-Identifier: MIT
// A hub that also serves the handles of other hosts, by CURVE with the keys of its members.
#include <filesystem>
#include <memory>
#include <string>

#include "weft/base/bytes.h"
#include "weft/rt/loop/loop.h"
#include "weft/sys/poll.h"
#include "weft/topic/hub/hub.h"
#include "weft/topic/hub_link_of.h"
#include "weft/topic/kept/hub_link.h"
#include "weft/topic/kept/test_link.h"
#include "weft/topic/test_fleets.h"
#include "weft/topic/topics.h"
#include "weft/zmtp/curve.h"
#include <gtest/gtest.h>

namespace weft::topic {
namespace {

struct Keys {
  std::string public_key;
  std::string secret_key;
};

Keys make_keys() {
  const auto pair = *zmtp::make_curve_key_pair();
  return {std::string(as_text(pair.public_key)), std::string(as_text(pair.secret_key))};
}

class CurveHub : public testing::Test {
 protected:
  void SetUp() override {
    if (!zmtp::curve_available()) {
      GTEST_SKIP() << "built without libsodium";
    }
    hub_keys_ = make_keys();
    member_ = make_keys();
  }
  ~CurveHub() override { std::filesystem::remove_all(directory_); }

  HubOptions hub_options(const std::string& listen = "tcp://127.0.0.1:0") {
    HubOptions options;
    options.directory = directory_;
    options.store = directory_ + "/store.topics";
    options.listen = listen;
    options.curve_secret_key = hub_keys_.secret_key;
    options.curve_members = {make_keys().public_key, member_.public_key};
    return options;
  }
  // Of a handle of another host: a fleet of its own, and the keys.
  TopicsOptions handle_options(const std::string& hub) {
    TopicsOptions options;
    options.fleet = "inproc:other-host";
    options.hub = hub;
    options.security.curve_public = member_.public_key;
    options.security.curve_secret = member_.secret_key;
    options.security.curve_hub_public = hub_keys_.public_key;
    return options;
  }
  // The error of a call that no hub took, once it has a reason.
  std::string refusal(const std::string& hub, const FleetSecurity& keys) {
    auto loop = *rt::Loop::make("topics");
    LinkSettings settings;
    settings.endpoint = hub;
    settings.id = "stranger";
    settings.remote = true;
    settings.make_socket = [this, &keys]() -> Result<Socket> {
      Socket socket = *context_.socket(SocketType::dealer);
      EXPECT_TRUE(set_hub_keys(socket, keys));
      return socket;
    };
    auto link = std::make_shared<HubLink>(*loop, std::move(settings));
    EXPECT_TRUE(loop->start(nullptr));
    const auto call = *HubLink::prepare({.kind = OpKind::probe}, OnLoss::resend, soon());
    EXPECT_TRUE(link->wait(link->place(), soon(), [&] { return link->in_lock(), link->start(call); }));
    const std::string plain = link->untaken().message();
    std::string text = plain;
    for (const Instant end = soon(); text == plain && sys::now() < end; text = link->untaken().message()) {
      (void)sys::poll_fds({}, 1ms);
    }
    loop->stop();
    link->close();
    return text;
  }

  std::string directory_ = *sys::make_private_directory();
  Keys hub_keys_;
  Keys member_;
  Context hub_context_;
  Context context_;
};

TEST_F(CurveHub, AMemberOfAnotherHostKeepsTopicsAndGoesOnWithTheNextHub) {
  auto hub = *Hub::host(hub_context_, hub_options());
  const std::string endpoint = hub->listening();
  ASSERT_TRUE(endpoint.starts_with("tcp://127.0.0.1:")) << endpoint;
  Topics far = *Topics::open(context_, handle_options(endpoint));
  auto orders = far.stream({.name = "orders", .topics = {"orders.>"}});
  ASSERT_TRUE(orders) << orders.error().message();
  EXPECT_EQ(orders->publish("orders.eu", "first")->sequence, 1u);

  hub->stop();
  hub.reset();
  hub = *Hub::host(hub_context_, hub_options(endpoint));  // the same port
  EXPECT_EQ(orders->publish("orders.eu", "second")->sequence, 2u);
  Reader reader = *orders->read();
  EXPECT_EQ(reader.next_until(soon())->text(), "first");
  EXPECT_EQ(reader.next_until(soon())->text(), "second");
}

TEST_F(CurveHub, AMemberOfThisHostNeedsNoKey) {
  auto hub = *Hub::host(hub_context_, hub_options());
  Topics far = *Topics::open(context_, handle_options(hub->listening()));
  Stream jobs = *far.stream({.name = "jobs", .topics = {"jobs.>"}, .keep = Keep::work});
  ASSERT_TRUE(jobs.publish("jobs.a", "one"));
  TestLink near(hub_context_, Hub::endpoint(directory_));
  Stream same = near.stream({.name = "jobs", .topics = {"jobs.>"}, .keep = Keep::work});
  Consumer worker = *same.consumer("workers");
  const auto job = worker.next_until(soon());
  ASSERT_TRUE(job) << job.error().message();
  EXPECT_EQ(job->text(), "one");
}

TEST_F(CurveHub, AKeyThatTheHubDoesNotHaveIsRefusedInWords) {
  auto hub = *Hub::host(hub_context_, hub_options());
  FleetSecurity keys = handle_options("").security;
  const Keys other = make_keys();
  keys.curve_public = other.public_key;
  keys.curve_secret = other.secret_key;
  const std::string text = refusal(hub->listening(), keys);
  EXPECT_NE(text.find("last: " + hub->listening()), std::string::npos) << text;
  EXPECT_NE(text.find("handshake refused: does the hub have this handle's key?"), std::string::npos) << text;
  EXPECT_EQ(hub->counters().clients.load(), 0u);
}

TEST_F(CurveHub, AWrongKeyOfTheHubIsAskedFor) {
  auto hub = *Hub::host(hub_context_, hub_options());
  FleetSecurity keys = handle_options("").security;
  keys.curve_hub_public = make_keys().public_key;
  const std::string text = refusal(hub->listening(), keys);
  EXPECT_NE(text.find("is the server's key right?"), std::string::npos) << text;
  EXPECT_EQ(hub->counters().clients.load(), 0u);
}

TEST_F(CurveHub, AClientWithoutKeysIsRefused) {
  auto hub = *Hub::host(hub_context_, hub_options());
  const std::string text = refusal(hub->listening(), {});
  EXPECT_NE(text.find("last: " + hub->listening()), std::string::npos) << text;
  EXPECT_EQ(hub->counters().clients.load(), 0u);
}

TEST_F(CurveHub, AHubOrAHandleWithoutItsKeysIsRefused) {
  HubOptions lacks = hub_options();
  lacks.curve_secret_key.clear();
  EXPECT_EQ(Hub::host(hub_context_, lacks).error(), Errc::invalid_argument);
  lacks = hub_options();
  lacks.curve_members.clear();
  EXPECT_EQ(Hub::host(hub_context_, lacks).error(), Errc::invalid_argument);
  lacks = hub_options();
  lacks.curve_members.emplace_back("short");
  EXPECT_EQ(Hub::host(hub_context_, lacks).error(), Errc::invalid_argument);

  for (std::string FleetSecurity::* const missing :
       {&FleetSecurity::curve_public, &FleetSecurity::curve_secret, &FleetSecurity::curve_hub_public}) {
    TopicsOptions options = handle_options("tcp://127.0.0.1:1");
    (options.security.*missing).clear();
    EXPECT_EQ(Topics::open(context_, options).error(), Errc::invalid_argument);
  }
  EXPECT_EQ(Topics::open(context_, handle_options("")).error(), Errc::invalid_argument) << "keys without an effect";
  EXPECT_EQ(Topics::open(context_, handle_options("ipc:///tmp/hub.sock")).error(), Errc::invalid_argument);
  // After a refusal the directory has no lock, and the context no authenticator.
  EXPECT_TRUE(Hub::host(hub_context_, hub_options()));
}

TEST_F(CurveHub, AnotherListOfKeysHoldsForTheNextHandshakesAndAWrongOneForNone) {
  auto hub = *Hub::host(hub_context_, hub_options());
  const std::string stranger = make_keys().public_key;
  EXPECT_EQ(hub->set_curve_members({}).error(), Errc::invalid_argument);
  EXPECT_EQ(hub->set_curve_members({stranger, "short"}).error(), Errc::invalid_argument);
  Topics first = *Topics::open(context_, handle_options(hub->listening()));
  auto orders = first.stream({.name = "orders", .topics = {"orders.>"}});
  ASSERT_TRUE(orders) << orders.error().message();

  ASSERT_TRUE(hub->set_curve_members({stranger}));
  const std::string text = refusal(hub->listening(), handle_options("").security);
  EXPECT_NE(text.find("does the hub have this handle's key?"), std::string::npos) << text;
  EXPECT_TRUE(orders->publish("orders.eu", "a connection that is there stays"));
}

TEST_F(CurveHub, AContextWithAnAuthenticatorOfTheProgramIsLeftAlone) {
  Socket authenticator = *hub_context_.socket(SocketType::rep);
  ASSERT_TRUE(authenticator.bind("inproc://zeromq.zap.01"));
  EXPECT_EQ(Hub::host(hub_context_, hub_options()).error(), Errc::address_in_use);
}

}  // namespace
}  // namespace weft::topic
