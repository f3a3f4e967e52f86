// SPDX-License-Identifier: MIT
#include "weft/zmtp/mechanism.h"

#include <memory>
#include <string>

#include "weft/zmtp/greeting.h"
#include "weft/zmtp/local_end.h"
#include "weft/zmtp/null.h"
#include "weft/zmtp/test_support.h"
#include <gtest/gtest.h>

namespace weft::zmtp::test {
namespace {

// A mechanism with roles and three steps, the shape of the authenticating ones. The client sends HELLO with
// its metadata; the server grants entry with WELCOME and its own. A test may tell either side to WAIT.
class KnockMechanism final : public Mechanism {
 public:
  explicit KnockMechanism(bool server) : server_(server) {}

  std::string_view name() const noexcept override { return "KNOCK"; }

  void start(Bytes our_metadata) override {
    our_metadata_ = our_metadata;
    owed_ = server_ ? "" : "HELLO";
  }

  bool poll_command(std::vector<std::uint8_t>& body) override {
    if (owed_.empty()) {
      return false;
    }
    append_command_name(body, owed_);
    body.insert(body.end(), our_metadata_.begin(), our_metadata_.end());
    owed_.clear();
    return true;
  }

  Step handle_command(const Command& command) override {
    if (command.name == "WAIT") {
      return {};
    }
    if (command.name != (server_ ? "HELLO" : "WELCOME")) {
      return {Step::Kind::failed, {}, {Errc::handshake_refused, "wrong knock"}};
    }
    owed_ = server_ ? "WELCOME" : "";
    return {Step::Kind::ready, command.data, {}};
  }

 private:
  bool server_;
  Bytes our_metadata_;
  std::string owed_;
};

LocalEnd knocking(WireType type, bool server, const Limits& limits = {}) {
  LocalEndConfig config = config_of(type);
  config.as_server = server;
  config.limits = limits;
  LocalEnd peer(std::move(config), std::make_unique<KnockMechanism>(server));
  peer.start(kStart);
  return peer;
}

// Moves all output of `from` into `to`.
void deliver(LocalEnd& from, LocalEnd& to) {
  const Buffer bytes = copy_of(from.pending_output());
  from.consume_output(bytes.size());
  const std::size_t taken = to.handle_input(bytes, kStart);
  EXPECT_TRUE(taken == bytes.size() || to.fault());
}

TEST(Mechanism, NullSendsReadyOnceAndIsReadyWithThePeers) {
  NullMechanism mechanism;
  const Buffer ours = wire("01 'A' 00000000");
  for (int round = 0; round < 2; ++round) {
    mechanism.start(ours);
    Buffer body;
    EXPECT_TRUE(mechanism.poll_command(body));
    EXPECT_EQ(body, wire("05 'READY'") + ours);
    EXPECT_FALSE(mechanism.poll_command(body));
    const Buffer theirs = wire("01 'B' 00000000");
    const Mechanism::Step step = mechanism.handle_command({"READY", theirs});
    EXPECT_EQ(step.kind, Mechanism::Step::Kind::ready);
    EXPECT_EQ(copy_of(step.metadata), theirs);
  }
  EXPECT_EQ(mechanism.handle_command({"HELLO", {}}).kind, Mechanism::Step::Kind::failed);
}

TEST(Mechanism, AStepwiseMechanismRunsThroughThePeer) {
  LocalEnd client = knocking(WireType::req, false);
  LocalEnd server = knocking(WireType::rep, true);
  EXPECT_EQ(server.pending_output()[32], 1);
  deliver(client, server);
  EXPECT_TRUE(server.pending_output().size() == 64) << "a server that must be knocked at says nothing first";
  deliver(server, client);
  deliver(client, server);
  EXPECT_TRUE(server.ready());
  EXPECT_FALSE(client.ready());
  deliver(server, client);
  EXPECT_TRUE(client.ready());
  EXPECT_EQ(client.peer_type(), WireType::rep);
  EXPECT_EQ(server.peer_type(), WireType::req);
}

TEST(Mechanism, ARefusedPeerIsNotGrantedEntry) {
  LocalEnd client = knocking(WireType::pub, false);
  LocalEnd server = knocking(WireType::rep, true);
  deliver(client, server);
  deliver(server, client);
  deliver(client, server);
  ASSERT_TRUE(server.fault());
  EXPECT_EQ(server.fault()->code, Errc::incompatible_peer);
  deliver(server, client);
  ASSERT_TRUE(client.fault());
  EXPECT_EQ(client.fault()->code, Errc::handshake_refused);
  EXPECT_EQ(client.refusal(), "Socket-Type cannot talk to this socket");
}

TEST(Mechanism, ItsFaultBecomesThePeers) {
  LocalEnd server = knocking(WireType::rep, true);
  (void)run_whole(server, greeting_bytes(3, 1, "KNOCK") + wire("04 06 05 'READY'"));
  ASSERT_TRUE(server.fault());
  EXPECT_STREQ(server.fault()->text, "wrong knock");
}

TEST(Mechanism, TheHandshakeLimitCoversAllItsCommands) {
  Limits limits;
  limits.handshake_bytes_max = 15;
  LocalEnd server = knocking(WireType::rep, true, limits);
  const Buffer greeting = greeting_bytes(3, 1, "KNOCK");
  const Buffer wait = wire("04 05 04 'WAIT'");
  for (int connection = 0; connection < 2; ++connection) {
    server.start(kStart);
    EXPECT_EQ(run_whole(server, greeting + wait + wait + wait).taken, kGreetingSize + 3 * wait.size());
    EXPECT_FALSE(server.fault());
    EXPECT_EQ(server.handle_input(wire("04 01"), kStart), 0U);
    ASSERT_TRUE(server.fault());
    EXPECT_EQ(server.fault()->code, Errc::message_too_large);
  }
}

TEST(Mechanism, NullIsNamedWhenItIsNotOurs) {
  LocalEnd server = knocking(WireType::rep, true);
  (void)run_whole(server, greeting_bytes(3, 1, "NULL"));
  ASSERT_TRUE(server.fault());
  EXPECT_STREQ(server.fault()->text, "peer's security mechanism is NULL, not ours");
}

}  // namespace
}  // namespace weft::zmtp::test
