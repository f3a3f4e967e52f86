// SPDX-License-Identifier: MIT
// High-water marks, time-outs, and calls that do not wait.
#include <atomic>

#include "tests/conformance/conformance.h"
#include "tests/conformance/wire.h"

namespace weft::conformance {
namespace {

class Flow : public Conformance {
 protected:
  struct Line {
    Socket push;
    Socket pull;
  };
  Line make_line(int send_mark, int receive_mark) {
    Line line{make(SocketType::push), make(SocketType::pull)};
    EXPECT_TRUE(line.push.set(option::send_high_water_mark, send_mark));
    EXPECT_TRUE(line.pull.set(option::receive_high_water_mark, receive_mark));
    EXPECT_TRUE(line.push.set(option::send_buffer, 4096));
    EXPECT_TRUE(line.pull.set(option::receive_buffer, 4096));
    connect(line.push, bind(line.pull));
    return line;
  }
  // Sends numbers from `next` on until there is no room, and returns how many.
  static int fill(Socket& socket, int& next, std::string_view payload = "") {
    int sent = 0;
    for (; sent < 1'000'000; ++sent, ++next) {
      const std::string text = std::to_string(next) + ' ' + std::string(payload);
      if (const auto result = socket.try_send(as_bytes(text)); !result) {
        EXPECT_EQ(result.error(), Errc::would_block);
        return sent;
      }
    }
    ADD_FAILURE() << "there is no bound";
    return sent;
  }
  static int number(Socket& socket) { return std::stoi(recv_text(socket)); }
};
WEFT_EVERY_TRANSPORT(Flow);
class FlowInProcess : public Flow {};
WEFT_TRANSPORTS_WHERE(FlowInProcess, in_process);
class FlowOverStreams : public Flow {};
WEFT_TRANSPORTS_WHERE(FlowOverStreams, over_streams);

TEST_P(Flow, AFullQueueRefusesAndTakesAgainWhenHalfWasRead) {
  for (const auto& [send_mark, receive_mark] : {std::pair{3, 4}, {1, 1}, {10, 1}, {1, 2}, {50, 51}}) {
    Line line = make_line(send_mark, receive_mark);
    int next = 0;
    const int room = fill(line.push, next, std::string(GetParam().streams ? 50'000 : 0, 'x'));
    if (!GetParam().streams) {
      EXPECT_EQ(room, send_mark + receive_mark);
      const int half = (room + 1) / 2;
      for (int i = 0; i < half; ++i) {
        EXPECT_EQ(line.push.try_send(as_bytes("early")).error(), Errc::would_block) << i << " of " << half;
        EXPECT_EQ(number(line.pull), i);
      }
      EXPECT_EQ(fill(line.push, next), half) << send_mark << '+' << receive_mark;
    } else {
      EXPECT_GE(room, send_mark);  // plus the receiver's room, once it is connected
    }
    for (int i = GetParam().streams ? 0 : (room + 1) / 2; i < next; ++i) {
      ASSERT_EQ(number(line.pull), i);
    }
    EXPECT_EQ(line.pull.try_recv().error(), Errc::would_block);
    send(line.push, "0 again");
    EXPECT_EQ(recv_text(line.pull), "0 again");
  }
}

TEST_P(Flow, BothMarksHaveRoomThoughThePeerReadsNothing) {
  const std::string payload(8'000, 'x');
  for (const int mark : {50, 100, 101, 130, 200}) {
    Line line = make_line(mark, mark);
    ASSERT_TRUE(line.push.set(option::linger, 0ms));
    for (int i = 0; i < 2 * mark; ++i) {
      ASSERT_TRUE(line.push.send(payload)) << i << " of mark " << mark;
    }
  }
}

TEST_P(FlowInProcess, AMultipartMessageCountsAsOne) {
  Line line = make_line(2, 2);
  for (int i = 0; i < 4; ++i) {
    send(line.push, {"a", "b", "c"});
  }
  EXPECT_EQ(line.push.try_send(as_bytes("a"), More::yes).error(), Errc::would_block);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(recv(line.pull), (Texts{"a", "b", "c"}));
  }
  send(line.push, {"a", "b"});
  send(line.push, {"a", "b"});
  EXPECT_EQ(line.push.try_send(as_bytes("a"), More::yes).error(), Errc::would_block);
}

TEST_P(Flow, OnceAMessageIsBegunItsOtherPartsAreNotRefused) {
  Line line = make_line(1, 1);
  ASSERT_TRUE(line.push.try_send(as_bytes("first"), More::yes));
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(line.push.try_send(as_bytes("middle"), More::yes)) << i;
  }
  ASSERT_TRUE(line.push.try_send(as_bytes("last")));
  EXPECT_EQ(recv(line.pull).size(), 102u);
}

TEST_P(Flow, AMarkOfZeroMeansNone) {
  Line line = make_line(0, 0);
  for (int i = 0; i < 20'000; ++i) {
    ASSERT_TRUE(line.push.try_send(as_bytes(std::to_string(i)))) << i;
  }
  for (int i = 0; i < 20'000; ++i) {
    ASSERT_EQ(number(line.pull), i);
  }
}

TEST_P(Flow, ABlockedSenderGoesOnWhenThereIsRoom) {
  Line line = make_line(2, 2);
  constexpr int kCount = 500;
  std::thread sender([&] {
    for (int i = 0; i < kCount; ++i) {
      send(line.push, std::to_string(i) + ' ' + std::string(i % 3 == 0 ? 20'000 : 60'000, 'p'));
    }
  });
  for (int i = 0; i < kCount; ++i) {
    EXPECT_EQ(number(line.pull), i);
  }
  sender.join();
}

TEST_P(Flow, LargePartsAreQueuedUpToTheMarkWhileThePeerDoesNotRead) {
  constexpr int kCount = 100;
  Line line = make_line(kCount, kCount);
  const std::string payload(60'000, 'p');
  for (int i = 0; i < kCount; ++i) {
    send(line.push, std::to_string(i) + ' ' + payload);  // by the thread that would have to read
  }
  for (int i = 0; i < kCount; ++i) {
    EXPECT_EQ(number(line.pull), i);
  }
}

// A small mark asks for fresh messages, so little may lie in the buffers of the kernel, too. Without a bound these hold
// 4 MB and more on the way to a peer that reads nothing.
TEST_P(Flow, WithMarksOfOneFewMessagesAreUnderWay) {
  Socket push = make(SocketType::push);
  Socket pull = make(SocketType::pull);
  ASSERT_TRUE(push.set(option::send_high_water_mark, 1));
  ASSERT_TRUE(pull.set(option::receive_high_water_mark, 1));
  connect(push, bind(pull));
  send(push, "0");
  EXPECT_EQ(recv_text(pull), "0");
  const std::string payload(65'536, 'p');
  int sent = 0;
  for (bool room = true; room && sent < 100;) {
    if (push.try_send(as_bytes(std::to_string(sent + 1) + ' ' + payload))) {
      ++sent;
      continue;
    }
    PollItem item{.socket = &push, .want_output = true};
    room = *poll({&item, 1}, 100ms) == 1;
  }
  EXPECT_LE(sent, 15);  // 1 MB
  for (int i = 1; i <= sent; ++i) {
    EXPECT_EQ(number(pull), i);
  }
  EXPECT_EQ(pull.try_recv().error(), Errc::would_block);
}

// The sender writes a large part from the caller's memory while the peer keeps reading, and copies the rest.
TEST_P(Flow, LargePartsArriveAsTheyWereWhenTheyWereSent) {
  struct Sent {
    std::size_t size;
    bool moved;
    More more;
  };
  constexpr Sent kSent[] = {{40'000, false, More::no},    {1'500'000, false, More::no}, {5'000'000, true, More::no},
                            {3, false, More::yes},        {300'000, false, More::yes},  {2'000'000, true, More::no},
                            {3'000'000, false, More::no}, {7, false, More::no},         {140'000, true, More::yes},
                            {140'000, false, More::no}};
  constexpr int kRounds = 3;
  const auto bytes_of = [](const Sent& sent, int round) {
    std::string bytes(sent.size, static_cast<char>('a' + round));
    bytes.back() = '.';
    return bytes;
  };
  Socket push = make(SocketType::push);
  Socket pull = make(SocketType::pull);
  connect(push, bind(pull));
  std::thread sender([&] {
    for (int round = 0; round < kRounds; ++round) {
      for (const Sent& sent : kSent) {
        std::string bytes = bytes_of(sent, round);
        if (sent.moved) {
          ASSERT_TRUE(push.send(*Message::copy_of(bytes), sent.more));
        } else {
          ASSERT_TRUE(push.send(as_bytes(bytes), sent.more));
        }
        bytes.assign(bytes.size(), '!');  // after send() the bytes are the caller's again
      }
    }
  });
  for (int round = 0; round < kRounds; ++round) {
    for (std::size_t i = 0; i < std::size(kSent); ++i) {
      if (i == 2) {
        std::this_thread::sleep_for(std::chrono::milliseconds(2));  // a peer that stops reading for a while
      }
      const auto message = pull.recv();
      ASSERT_TRUE(message);
      ASSERT_TRUE(message->text() == bytes_of(kSent[i], round)) << "part " << i << " of round " << round;
      EXPECT_EQ(message->more(), kSent[i].more == More::yes);
    }
  }
  sender.join();
}

TEST_P(FlowInProcess, RaisingAMarkLetsABlockedSenderGoOn) {
  Line line = make_line(1, 1);
  int next = 0;
  EXPECT_EQ(fill(line.push, next), 2);
  std::thread sender([&] { send(line.push, "2 blocked"); });
  ASSERT_TRUE(line.push.set(option::send_high_water_mark, 2));
  sender.join();
  EXPECT_EQ(line.push.try_send(as_bytes("x")).error(), Errc::would_block);
  std::thread another([&] { send(line.push, "3 blocked"); });
  ASSERT_TRUE(line.pull.set(option::receive_high_water_mark, 2));
  another.join();
  EXPECT_EQ(line.push.try_send(as_bytes("x")).error(), Errc::would_block);
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(number(line.pull), i);
  }
}

TEST_P(Flow, AFullPeerIsPassedOverAndTheOthersGetMore) {
  Socket push = make(SocketType::push);
  ASSERT_TRUE(push.set(option::send_high_water_mark, 1));
  Socket full = make(SocketType::pull);
  Socket reading = make(SocketType::pull);
  ASSERT_TRUE(full.set(option::receive_high_water_mark, 1));
  for (Socket* pull : {&full, &reading}) {
    ASSERT_TRUE(push.set(option::send_buffer, 4096));
    ASSERT_TRUE(pull->set(option::receive_buffer, 4096));
    connect(push, bind(*pull));
  }
  const std::string payload(200'000, 'p');
  constexpr int kCount = 200;
  std::atomic<int> taken{0};
  std::atomic<bool> stop{false};
  std::thread reader([&] {
    while (!stop.load()) {
      taken += reading.recv_until(sys::now() + 1ms) ? 1 : 0;
    }
  });
  for (int i = 0; i < kCount; ++i) {
    send(push, payload);
  }
  int left = 0;
  while (left + taken.load() < kCount && !HasFailure()) {
    left += full.recv_until(sys::now() + 1ms) ? 1 : 0;
  }
  stop = true;
  reader.join();
  EXPECT_LT(left, kCount / 2);
}

TEST_P(Flow, ReceivingWithNothingThereWouldBlockOrTimesOut) {
  Line line = make_line(10, 10);
  EXPECT_EQ(line.pull.try_recv().error(), Errc::would_block);
  std::uint8_t target[8];
  EXPECT_EQ(line.pull.try_recv_into(target).error(), Errc::would_block);
  EXPECT_EQ(line.pull.recv_until(sys::now() - 1s).error(), Errc::timed_out);
  ASSERT_TRUE(line.pull.set(option::receive_timeout, 20ms));
  const Instant before = sys::now();
  EXPECT_EQ(line.pull.recv().error(), Errc::timed_out);
  EXPECT_GE(sys::now() - before, 20ms);
  EXPECT_EQ(line.pull.recv_into(target).error(), Errc::timed_out);
  ASSERT_TRUE(line.pull.set(option::receive_timeout, 0ms));
  EXPECT_EQ(line.pull.recv().error(), Errc::timed_out);
  ASSERT_TRUE(line.pull.set(option::receive_timeout, kLong));
  send(line.push, "works still");
  EXPECT_EQ(recv_text(line.pull), "works still");
}

TEST_P(Flow, SendingWithoutRoomTimesOutAndLeavesTheMessageToTheCaller) {
  Socket push = make(SocketType::push);
  EXPECT_EQ(push.try_send(as_bytes("nobody")).error(), Errc::would_block);
  ASSERT_TRUE(push.set(option::send_timeout, 20ms));
  const Instant before = sys::now();
  EXPECT_EQ(push.send("nobody").error(), Errc::timed_out);
  EXPECT_GE(sys::now() - before, 20ms);
  for (const std::size_t size : {10u, 100u, 1000u, 100'000u}) {
    Message message = std::move(Message::copy_of(std::string(size, 'm'))).value();
    EXPECT_EQ(push.send(std::move(message)).error(), Errc::timed_out);
    EXPECT_EQ(message.size(), size);  // NOLINT(bugprone-use-after-move): checks that it was not moved
    EXPECT_EQ(push.try_send(std::move(message)).error(), Errc::would_block);
    EXPECT_TRUE(message.text() == std::string(size, 'm'));  // NOLINT(bugprone-use-after-move)
  }
  Socket pull = make(SocketType::pull);
  connect(push, bind(pull));
  ASSERT_TRUE(push.set(option::send_timeout, kLong));
  send(push, "somebody");
  EXPECT_EQ(recv_text(pull), "somebody");
}

TEST_P(Flow, AMessageRefusedByAFullQueueIsTheCallersStill) {
  Line line = make_line(1, 1);
  const std::string payload(100'000, 'x');
  int taken = -1;
  Message message;
  Result<void> sent;
  for (; sent && taken < 10'000; ++taken) {
    message = std::move(Message::copy_of(payload)).value();
    sent = line.push.try_send(std::move(message));
  }
  EXPECT_EQ(sent.error(), Errc::would_block);
  EXPECT_TRUE(message.text() == payload);  // NOLINT(bugprone-use-after-move): checks that it was not moved
  for (int i = 0; i < taken; ++i) {
    ASSERT_TRUE(recv_text(line.pull) == payload);
  }
  EXPECT_TRUE(line.push.send(std::move(message)));
  EXPECT_TRUE(recv_text(line.pull) == payload);
}

TEST_P(Flow, AnOptionOutsideItsRangeIsRefusedAndChangesNothing) {
  Socket push = make(SocketType::push);
  EXPECT_EQ(push.set(option::send_high_water_mark, -1).error(), Errc::invalid_argument);
  EXPECT_EQ(push.set("send_high_water_mark", "-1").error(), Errc::invalid_argument);
  EXPECT_EQ(push.set("no_such_option", "1").error(), Errc::unknown_option);
  EXPECT_EQ(*push.get(option::send_high_water_mark), 1000);
  EXPECT_TRUE(push.set("send_high_water_mark", "7"));
  EXPECT_EQ(*push.get(option::send_high_water_mark), 7);
}

TEST_P(FlowOverStreams, APartAboveTheMaximumEndsTheConnectionAndNothingOfItArrives) {
  Socket pull = make(SocketType::pull);
  ASSERT_TRUE(pull.set(option::max_message_size, 1000));
  ASSERT_TRUE(pull.watch_events());
  Socket push = make(SocketType::push);
  connect(push, bind(pull));
  send(push, std::string(1000, 'a'));
  EXPECT_EQ(recv_text(pull).size(), 1000u);
  send(push, std::string(1001, 'b'));
  EXPECT_EQ(wait_for_event(pull, EventKind::disconnected).reason, Errc::message_too_large);
  wait_for_peers(pull);  // it reconnects
  send(push, "small");
  EXPECT_EQ(recv_text(pull), "small");
}

// The suite measures, so it runs alone.
class QuietTimeout : public Flow {};
INSTANTIATE_TEST_SUITE_P(QuietTcp, QuietTimeout, testing::Values(kTransports[1]),
                         [](const auto& row) { return std::string(row.param.name); });

// A large part waits for room in the kernel while the peer reads a little all the time: not beyond the time-out. The
// peer reads less than one part in all, so every call but one or two has no room. A call that returns while the peer
// still reads did not wait for the end of the reading.
TEST_P(QuietTimeout, ALargePartWaitsNoLongerThanTheTimeout) {
  constexpr Duration kTimeout = 30ms;
  constexpr std::size_t kPart = std::size_t{32} << 20;
  constexpr int kTimedCalls = 5;
  auto listener = net::Listener::open(*net::parse_endpoint("tcp://127.0.0.1:*", true), {}).value();
  Socket push = make(SocketType::push);
  ASSERT_TRUE(push.set(option::send_high_water_mark, 1));
  ASSERT_TRUE(push.set(option::send_buffer, 256 * 1024));
  ASSERT_TRUE(push.set(option::linger, 0ms));
  ASSERT_TRUE(push.connect(listener->bound_endpoint()));
  WirePeer peer = WirePeer::accept(*listener, zmtp::WireType::pull);
  ASSERT_TRUE(push.set(option::send_timeout, kTimeout));
  const std::string part(kPart, 'p');
  while (push.send(part)) {
  }
  int while_it_reads = 0;
  const Instant deadline = sys::now() + kLong;
  while (while_it_reads == 0 && sys::now() < deadline) {  // this thread may not run for as long as the peer reads
    std::atomic<bool> reads{true};
    std::atomic<bool> ends{false};
    std::thread reader([&] {
      std::uint8_t some[64];
      MutableBytes into(some);
      for (std::size_t taken = 0; taken < kPart / 4 * 3 && !ends; taken += sizeof some) {
        (void)peer.stream().read({&into, 1});
      }
      reads = false;
    });
    int timed_out = 0;
    for (int taken = 0; timed_out < kTimedCalls && taken < 10;) {
      const Instant begin = sys::now();
      if (push.send(part)) {
        ++taken;  // the I/O thread has made room since the last call
        continue;
      }
      EXPECT_GE(sys::now() - begin, kTimeout);
      ++timed_out;
      while_it_reads += reads ? 1 : 0;
    }
    ends = true;
    reader.join();
    EXPECT_EQ(timed_out, kTimedCalls);
  }
  EXPECT_GE(while_it_reads, 1);
}

}  // namespace
}  // namespace weft::conformance
