// SPDX-License-Identifier: MIT
// A socket that closed delivers the bytes that the kernel took from it and for which the peer's system has no room yet.
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <future>
#include <optional>
#include <string>

#include "tests/conformance/conformance.h"
#include "tests/conformance/wire.h"

namespace weft::conformance {
namespace {

constexpr int kLateMessages = 60;

std::string numbered_message(int i) { return std::to_string(i) + std::string(5000, '.'); }

// CapturedErrors: the standard error of the process, written by any thread.
class CapturedErrors {
 public:
  CapturedErrors() : stderr_(::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3)) {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    EXPECT_EQ(::dup2(ends[1], STDERR_FILENO), STDERR_FILENO);
    ::close(ends[1]);
    pipe_ = ends[0];
  }
  CapturedErrors(const CapturedErrors&) = delete;
  CapturedErrors& operator=(const CapturedErrors&) = delete;
  ~CapturedErrors() {
    end();
    ::close(pipe_);
    ::close(stderr_);
  }

  // Waits for the next line, without its newline. Empty: none came within `patience`.
  std::string line(Duration patience) {
    for (const Instant end = sys::now() + patience; text_.find('\n') == std::string::npos;) {
      sys::PollFd polled{.fd = pipe_, .want = sys::Interest::readable};
      if (sys::poll_fds({&polled, 1}, time_left(end, sys::now())).value_or(std::size_t{0}) == 0 || !read_more()) {
        return {};
      }
    }
    const std::size_t size = text_.find('\n');
    const std::string line = text_.substr(0, size);
    text_.erase(0, size + 1);
    return line;
  }
  // Gives standard error back, and returns the text after the last line.
  std::string end() {
    ::dup2(stderr_, STDERR_FILENO);  // closes the last writing end of the pipe
    while (read_more()) {
    }
    return std::exchange(text_, {});
  }

 private:
  bool read_more() {
    char bytes[1024];
    const ssize_t size = ::read(pipe_, bytes, sizeof bytes);
    text_.append(bytes, static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
    return size > 0;
  }

  int stderr_;
  int pipe_ = -1;
  std::string text_;
};

class LateReader : public Conformance {
 protected:
  // A socket closes that has sent more than the window of its peer has room for, and less than its own kernel takes.
  void send_and_close(Duration linger) {
    Socket push = make(SocketType::push);
    ASSERT_TRUE(push.set(option::linger, linger));
    ASSERT_TRUE(push.set(option::send_buffer, 1 << 20));
    peer_.emplace(WirePeer::dial(bind(push), zmtp::WireType::pull));
    const int little = 32 * 1024;  // whatever this system's sockets have at first
    ASSERT_EQ(::setsockopt(peer_->stream().fd(), SOL_SOCKET, SO_RCVBUF, &little, sizeof little), 0);
    for (int i = 0; i < kLateMessages; ++i) {
      send(push, numbered_message(i));
    }
    push.close();
    ends_ = std::async(std::launch::async, [this] { context().close(); });
  }

  std::future<void> ends_;  // waits in its destructor, after the peer has gone
  std::optional<WirePeer> peer_;
};
bool by_hand_over_tcp(const Transport& row) { return over_tcp(row) && in_the_clear(row); }
WEFT_TRANSPORTS_WHERE(LateReader, by_hand_over_tcp);

TEST_P(LateReader, GetsEverythingAlthoughItReadsAndSpeaksLongAfterTheSenderClosed) {
  CapturedErrors errors;
  send_and_close(Duration(-1));
  const std::string said = errors.line(kLong);
  EXPECT_EQ(ends_.wait_for(0s), std::future_status::timeout) << "the context closed with bytes in its kernel";
  EXPECT_TRUE(said.find("waits without a limit") != std::string::npos &&
              said.find("does not read") != std::string::npos)
      << said;
  peer_->write(wire_frame(zmtp::kCommand, std::string("\4PING\0\0", 7)));  // to a closed descriptor: a reset
  for (int i = 0; i < kLateMessages; ++i) {
    EXPECT_TRUE(peer_->read_frame().body == numbered_message(i)) << i;
  }
  EXPECT_EQ(peer_->read_to_end(), "");
  peer_->end_writing();
  EXPECT_EQ(ends_.wait_for(kLong), std::future_status::ready);
}

TEST_P(LateReader, KeepsTheSendersContextOpenForItsLingerOnly) {
  send_and_close(100ms);
  EXPECT_EQ(ends_.wait_for(kLong), std::future_status::ready);
}

TEST_P(LateReader, ThatLeavesLetsTheSendersContextClose) {
  send_and_close(Duration(-1));
  peer_.reset();
  EXPECT_EQ(ends_.wait_for(kLong), std::future_status::ready);
}

// A program without a peer gets one line about the reason why its end takes so long.
TEST(Linger, OfAnEndpointWhereNobodyIsConnectedIsSaid) {
  constexpr Duration kLong = 20s;
  const std::string directory = sys::make_private_directory().value();
  const std::string endpoints[] = {"ipc://" + directory + "/1", "ipc://" + directory + "/2"};
  Context context;
  {
    Socket push = context.socket(SocketType::push).value();
    ASSERT_TRUE(push.set(option::linger, Duration(-1)));
    ASSERT_TRUE(push.set(option::reconnect_interval_max, 20ms));
    for (const std::string& endpoint : endpoints) {
      ASSERT_TRUE(push.connect(endpoint));
    }
    for (int i = 0; i < 2; ++i) {
      ASSERT_TRUE(push.send("unread"));
    }
  }
  CapturedErrors errors;
  const auto ends = std::async(std::launch::async, [&context] { context.close(); });
  const std::string said = errors.line(kLong);
  Context readers;  // they let the context end
  for (const std::string& endpoint : endpoints) {
    Socket pull = readers.socket(SocketType::pull).value();
    ASSERT_TRUE(pull.set(option::receive_timeout, kLong));
    ASSERT_TRUE(pull.bind(endpoint));
    EXPECT_TRUE(pull.recv());
  }
  EXPECT_EQ(ends.wait_for(kLong), std::future_status::ready);
  EXPECT_EQ(said.find("weft: the context's end waits without a limit"), 0U) << said;
  EXPECT_NE(said.find("nobody is connected there"), std::string::npos) << said;
  EXPECT_EQ(errors.end(), "");
  readers.close();
  EXPECT_TRUE(sys::remove_directory(directory));
}

}  // namespace
}  // namespace weft::conformance
