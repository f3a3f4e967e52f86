// SPDX-License-Identifier: MIT
// Sockets and contexts end while others use them.
#include <unistd.h>

#include <atomic>

#include "tests/conformance/conformance.h"
#include "weft/sys/linux/test_child.h"

namespace weft::conformance {
namespace {

// Waiting calls on a socket that is closed, or whose context is closed.
class Ending : public Conformance {
 protected:
  enum class Call { recv, send, poll_input, poll_output, next_event };
  static constexpr Call kCalls[] = {Call::recv, Call::send, Call::poll_input, Call::poll_output, Call::next_event};

  // Repeats the call until it returns a final error. Soon no message is left to receive, and no room to send, so it
  // waits.
  static Error call(Call what, Socket& socket) {
    static const std::string payload(1'000'000, 'x');
    PollItem item{.socket = &socket, .want_input = what == Call::poll_input, .want_output = what == Call::poll_output};
    for (;;) {
      Error error;
      switch (what) {
        case Call::recv: error = socket.recv().error(); break;
        case Call::send: error = socket.send(payload).error(); break;
        case Call::next_event: error = socket.next_event(kLong).error(); break;
        case Call::poll_input:
        case Call::poll_output:
          if (const auto ready = poll({&item, 1}, kLong); !ready || *ready != 1) {
            return ready ? Error(Errc::timed_out) : ready.error();
          }
          error = what == Call::poll_input ? socket.try_recv().error() : socket.try_send(as_bytes(payload)).error();
      }
      if (error != Errc::ok && error != Errc::would_block) {
        return error;
      }
    }
  }
  // Blocks each call in `threads` threads on a socket that has a peer and no traffic; then calls `end`.
  void expect_every_call_ends(Errc expected, int threads, void (*end)(Context&, Socket&)) {
    for (const Call what : kCalls) {
      Context context;
      Socket socket = make_in(context, SocketType::pair);
      Socket peer = make_in(context, SocketType::pair);
      ASSERT_TRUE(socket.set(option::linger, 0ms));
      ASSERT_TRUE(socket.set(option::send_high_water_mark, 1));
      ASSERT_TRUE(peer.set(option::receive_high_water_mark, 1));
      connect(peer, bind(socket));
      send(peer, "hello");
      EXPECT_EQ(recv_text(socket), "hello");
      std::atomic<int> entered{0};
      std::vector<std::thread> blocked;
      for (int i = 0; i < threads; ++i) {
        blocked.emplace_back([&] {
          entered.fetch_add(1);
          EXPECT_EQ(call(what, socket), expected) << static_cast<int>(what);
        });
      }
      while (entered.load() < threads) {
        std::this_thread::yield();
      }
      for (int i = 0; i < 200; ++i) {  // most likely asleep by now; the answer is the same if not
        std::this_thread::yield();
      }
      end(context, socket);
      for (std::thread& thread : blocked) {
        thread.join();
      }
    }
  }
};
WEFT_EVERY_TRANSPORT(Ending);

TEST_P(Ending, ClosingASocketEndsEveryCallThatWaitsOnIt) {
  expect_every_call_ends(Errc::closed, 1, [](Context&, Socket& socket) { socket.close(); });
  expect_every_call_ends(Errc::closed, 3, [](Context&, Socket& socket) { socket.close(); });
}

TEST_P(Ending, ShuttingTheContextDownEndsEveryCallThatWaits) {
  expect_every_call_ends(Errc::terminated, 1, [](Context& context, Socket&) { context.shut_down(); });
  expect_every_call_ends(Errc::terminated, 3, [](Context& context, Socket&) { context.shut_down(); });
}

TEST_P(Ending, AfterShutDownEveryCallIsRefusedAndSocketsCanBeClosed) {
  Socket socket = make(SocketType::dealer);
  (void)bind(socket);
  context_->shut_down();
  EXPECT_EQ(socket.send("x").error(), Errc::terminated);
  EXPECT_EQ(socket.try_recv().error(), Errc::terminated);
  EXPECT_EQ(socket.bind(new_endpoint()).error(), Errc::terminated);
  EXPECT_EQ(socket.connect(new_endpoint()).error(), Errc::terminated);
  EXPECT_EQ(context_->socket(SocketType::pair).error(), Errc::terminated);
  socket.close();
  EXPECT_EQ(socket.try_recv().error(), Errc::closed);
}

TEST_P(Ending, TheContextClosesWhatIsOpen) {
  Context context;
  Socket pull = make_in(context, SocketType::pull);
  Socket push = make_in(context, SocketType::push);
  ASSERT_TRUE(push.set(option::linger, 0ms));
  connect(push, bind(pull));
  send(push, "never received");
  context.close();
  context.close();
  EXPECT_EQ(pull.try_recv().error(), Errc::closed);
  EXPECT_EQ(push.try_send(as_bytes("x")).error(), Errc::closed);
}

TEST_P(Ending, AForkedChildMayCloseWhatItInheritedAndItsParentGoesOn) {
  Socket pull = make(SocketType::pull);
  Socket push = make(SocketType::push);
  connect(push, bind(pull));
  send(push, "before");
  EXPECT_EQ(recv_text(pull), "before");
  EXPECT_TRUE(sys::test::holds_in_a_child([&] {
    push.close();
    pull.close();
    context().close();
    return true;
  }));
  send(push, "after");
  EXPECT_EQ(recv_text(pull), "after");
}

class EndingOverTcp : public Ending {};
WEFT_TRANSPORTS_WHERE(EndingOverTcp, over_tcp);

// A forked child has duplicates of all descriptors.
TEST_P(EndingOverTcp, AnEndpointIsFreeAtOnceWhileADuplicateOfItsDescriptorIsOpen) {
  Socket pull = make(SocketType::pull);
  ASSERT_TRUE(pull.watch_events());
  const std::string endpoint = bind(pull);
  const sys::Fd duplicate(::dup(wait_for_event(pull, EventKind::listening).fd));
  ASSERT_TRUE(duplicate.valid());
  ASSERT_TRUE(pull.unbind(endpoint));
  Socket other = make(SocketType::pull);
  secure_server(other);
  const auto bound = other.bind(endpoint);
  EXPECT_TRUE(bound) << bound.error().message();
}

TEST_P(Ending, AForkedChildThatClosesABoundSocketLeavesTheEndpointToItsParent) {
  Socket pull = make(SocketType::pull);
  ASSERT_TRUE(pull.watch_events());
  const std::string endpoint = bind(pull);
  {
    Socket push = make(SocketType::push);
    connect(push, endpoint);
    send(push, "before");
    EXPECT_EQ(recv_text(pull), "before");
  }
  if (GetParam().streams) {
    wait_for_event(pull, EventKind::disconnected);
  }
  EXPECT_EQ(pull.try_recv().error(), Errc::would_block);  // forgets the connection: nothing but `pull` keeps the socket
  EXPECT_TRUE(sys::test::holds_in_a_child([&] {
    pull = Socket();  // also destroys the socket
    context().close();
    return true;
  }));
  Socket push = make(SocketType::push);
  connect(push, endpoint);
  send(push, "after");
  EXPECT_EQ(recv_text(pull), "after");
}

TEST_P(Ending, TheNumberOfSocketsIsBounded) {
  Context context({.sockets_max = 3});
  std::vector<Socket> sockets;
  for (int i = 0; i < 3; ++i) {
    sockets.push_back(make_in(context, SocketType::pair));
  }
  EXPECT_EQ(context.socket(SocketType::pair).error(), Errc::too_many_sockets);
  sockets.back().close();
  EXPECT_TRUE(context.socket(SocketType::pair));
}

}  // namespace
}  // namespace weft::conformance
