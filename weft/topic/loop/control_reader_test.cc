// SPDX-License-Identifier: MIT
#include "weft/topic/loop/control_reader.h"

#include <memory>
#include <string>
#include <vector>

#include "weft/msg/context.h"
#include <gtest/gtest.h>

namespace weft::topic {
namespace {

// Wire: the XPUB of a handle, the XSUB of a peer, and the reader of the XPUB. The loop runs in the test's thread until
// the reader has tried as many messages as a test waits for.
struct Wire {
  explicit Wire(const std::string& endpoint) {
    EXPECT_TRUE(node.make(owner, [this] { requested |= node.take(0); }));
    EXPECT_TRUE(out.bind(endpoint));
    EXPECT_TRUE(peer.connect(endpoint));
    EXPECT_TRUE(reader.begin());
  }
  ~Wire() {
    reader.end();
    node.end_turns();
  }
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;

  bool take(Message& message) {
    ++tries;
    const bool taken = tries > refused;
    if (taken) {
      texts.emplace_back(message.text());
    }
    if (tries == wait_for) {
      loop->stop();
    }
    return taken;
  }
  // Without the loop. An inproc message is there when send() returns.
  void read_one() {
    const int before = tries;
    reader.read();
    EXPECT_EQ(tries, before + 1);
  }
  // Once: a loop that was stopped does not run again.
  void run(int tries_more) {
    wait_for = tries + tries_more;
    EXPECT_TRUE(loop->run(nullptr, sync::WaitMode::eco));
  }
  void send(const std::string& text) { EXPECT_TRUE(peer.send(text)); }

  Context context;
  Socket out = context.socket(SocketType::xpub).value();
  Socket peer = context.socket(SocketType::xsub).value();
  std::unique_ptr<rt::Loop> loop = rt::Loop::make("test").value();
  std::shared_ptr<int> owner = std::make_shared<int>();
  NodeLoop node{loop.get()};
  unsigned requested = 0;
  int tries = 0;
  int refused = 0;  // the first tries that find no memory
  int wait_for = 0;
  std::vector<std::string> texts;
  ControlReader reader{node, out, [this](Message& message) { return take(message); }, [] {}};
};

using Texts = std::vector<std::string>;

TEST(ControlReader, MessagesOfPeersAreTakenAndSubscriptionsAreNot) {
  Wire wire("inproc://taken");
  EXPECT_TRUE(wire.peer.subscribe(Filter::exact("topic").value()));
  wire.send("one");
  wire.send("two");
  wire.run(2);
  EXPECT_EQ(wire.texts, Texts({"one", "two"}));
}

TEST(ControlReader, AMessageThatFindsNoMemoryWaitsAndThoseAfterItToo) {
  Wire wire("inproc://waits");
  wire.refused = 2;
  wire.send("one");
  wire.send("two");
  wire.read_one();
  wire.reader.read();
  EXPECT_EQ(wire.tries, 1) << "a read does not pass the message that waits";
  EXPECT_TRUE(wire.reader.retry());
  EXPECT_EQ(wire.texts, Texts());
  EXPECT_TRUE(wire.reader.retry());
  EXPECT_EQ(wire.texts, Texts({"one"}));
  wire.run(1);  // the XPUB is watched again
  EXPECT_EQ(wire.texts, Texts({"one", "two"}));
}

TEST(ControlReader, AMessageIsLostAfterItsLastTryAndTheNextOnesAreTaken) {
  Wire wire("inproc://lost");
  wire.refused = 1 + 64;
  wire.send("one");
  wire.send("two");
  wire.read_one();
  int kept = 0;
  while (wire.reader.retry()) {
    ++kept;
    ASSERT_LT(kept, 1000);
  }
  EXPECT_EQ(kept, 63);
  wire.run(1);
  EXPECT_EQ(wire.texts, Texts({"two"}));
}

}  // namespace
}  // namespace weft::topic
