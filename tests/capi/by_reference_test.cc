// SPDX-License-Identifier: MIT
// A message with a free function: its bytes go to a receiver of the same process uncopied, and the function runs once
// the last handle is gone.
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "tests/capi/plain_peer.h"

namespace weft::capi {
namespace {

constexpr std::size_t kSizes[] = {0, 1, 48, 49, 112, 113, 1000};

class ByReference : public CapiTest {
 protected:
  [[nodiscard]] zmq_msg_t make(std::size_t size) {
    zmq_msg_t message;
    freed_ = 0;
    EXPECT_EQ(zmq_msg_init_data(&message, bytes_, size, &count, &freed_), 0);
    return message;
  }
  void send(void* socket, std::size_t size, int flags = 0) {
    zmq_msg_t message = make(size);
    EXPECT_EQ(zmq_msg_send(&message, socket, flags), static_cast<int>(size));
  }
  // Receives a part that must be the bytes of send(). They are freed only when `last`.
  void receive(void* socket, std::size_t size, bool last = true) {
    zmq_msg_t message;
    zmq_msg_init(&message);
    EXPECT_EQ(zmq_msg_recv(&message, socket, 0), static_cast<int>(size));
    EXPECT_EQ(zmq_msg_data(&message), bytes_) << size << " bytes were copied";
    EXPECT_EQ(freed_, 0) << size << " bytes were freed while the receiver had them";
    zmq_msg_close(&message);
    EXPECT_EQ(freed_, last ? 1 : 0);
  }
  [[nodiscard]] void* open(int type) {
    void* const socket = zmq_socket(context_, type);
    for (const int option : {ZMQ_RCVTIMEO, ZMQ_SNDTIMEO}) {
      EXPECT_EQ(zmq_setsockopt(socket, option, &kLong, sizeof kLong), 0);
    }
    return socket;
  }
  static void count(void* /*data*/, void* hint) { ++*static_cast<std::atomic<int>*>(hint); }

  char bytes_[1000] = {};
  std::atomic<int> freed_{0};
};

TEST_F(ByReference, OverInprocTheReceiverGetsTheVeryBytes) {
  void* const a = open(ZMQ_PAIR);
  void* const b = open(ZMQ_PAIR);
  ASSERT_EQ(zmq_bind(a, "inproc://pair"), 0);
  ASSERT_EQ(zmq_connect(b, "inproc://pair"), 0);
  for (const std::size_t size : kSizes) {
    send(a, size);
    receive(b, size);
    zmq_msg_t first = make(size);
    ASSERT_EQ(zmq_msg_send(&first, a, ZMQ_SNDMORE), static_cast<int>(size));
    ASSERT_EQ(zmq_send(a, "x", 1, 0), 1);
    receive(b, size);
    char byte = 0;
    EXPECT_EQ(zmq_recv(b, &byte, 1, 0), 1);
  }
  zmq_close(a);
  zmq_close(b);
}

TEST_F(ByReference, EverySubscriberGetsTheVeryBytes) {
  void* const pub = open(ZMQ_XPUB);
  void* const subs[] = {open(ZMQ_SUB), open(ZMQ_SUB)};
  ASSERT_EQ(zmq_bind(pub, "inproc://pub"), 0);
  for (void* const sub : subs) {
    ASSERT_EQ(zmq_setsockopt(sub, ZMQ_SUBSCRIBE, "", 0), 0);
    ASSERT_EQ(zmq_connect(sub, "inproc://pub"), 0);
    char note[2];
    ASSERT_EQ(zmq_recv(pub, note, sizeof note, ZMQ_DONTWAIT), sub == subs[0] ? 1 : -1);
  }
  for (const std::size_t size : kSizes) {
    send(pub, size);
    receive(subs[0], size, false);
    receive(subs[1], size);
  }
  for (void* const sub : subs) {
    zmq_close(sub);
  }
  zmq_close(pub);
}

TEST_F(ByReference, ABufferThatNobodyTakesIsFreed) {
  void* const pub = open(ZMQ_PUB);
  send(pub, 8);
  EXPECT_EQ(freed_, 1);
  zmq_close(pub);
}

TEST_F(ByReference, ACallThatFailsLeavesTheMessageWhole) {
  void* const push = open(ZMQ_PUSH);
  zmq_msg_t message = make(8);
  EXPECT_ERRNO(EAGAIN, zmq_msg_send(&message, push, ZMQ_DONTWAIT));
  EXPECT_EQ(zmq_msg_data(&message), bytes_);
  EXPECT_EQ(freed_, 0);
  zmq_msg_close(&message);
  EXPECT_EQ(freed_, 1);
  zmq_close(push);
}

// While no connection takes the message, its bytes are the application's.
TEST_F(ByReference, OverTcpTheBytesAreFreedOnceAPeerTookThem) {
  for (const bool parts : {false, true}) {
    const Watched push(context_, ZMQ_PUSH);
    int port = 0;
    {
      const Watched pull(context_, ZMQ_PULL);
      port = pull.bind();
    }
    push.connect(port);
    send(push.get(), 8, parts ? ZMQ_SNDMORE : 0);
    if (parts) {
      ASSERT_EQ(zmq_send(push.get(), "x", 1, 0), 1);
    }
    EXPECT_EQ(freed_, 0);
    const Watched pull(context_, ZMQ_PULL);
    while (zmq_bind(pull.get(), ("tcp://127.0.0.1:" + std::to_string(port)).c_str()) != 0) {
      ASSERT_EQ(zmq_errno(), EADDRINUSE);
    }
    char bytes[8];
    EXPECT_EQ(zmq_recv(pull.get(), bytes, sizeof bytes, 0), 8);
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(kLong);
    // The peer may have the bytes before the thread that wrote them frees them.
    while (freed_ == 0 && std::chrono::steady_clock::now() < end) {
      std::this_thread::yield();
    }
    EXPECT_EQ(freed_, 1);
  }
}

}  // namespace
}  // namespace weft::capi
