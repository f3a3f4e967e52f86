// SPDX-License-Identifier: MIT
// The contract of Listener, Dialer and ByteStream over every transport with sockets. A new transport adds lines at the
// end.
#include <string>
#include <vector>

#include "weft/net/dialer.h"
#include "weft/net/listener.h"
#include "weft/sys/path.h"
#include "weft/sys/poll.h"
#include <gtest/gtest.h>

namespace weft::net {
namespace {

using Status = sys::IoResult::Status;
using sys::Interest;

struct Place {
  const char* name;
  const char* endpoint;  // "DIR" stands for a fresh directory
  bool ipv6 = false;
};

bool wait_for(int fd, Interest interest) {
  sys::PollFd polled{.fd = fd, .want = interest};
  return sys::poll_fds({&polled, 1}, std::chrono::seconds(10)).value_or(std::size_t{0}) == 1;
}

class TransportConformance : public testing::TestWithParam<Place> {
 protected:
  void SetUp() override {
    directory_ = std::move(sys::make_private_directory()).value();
    options_.ipv6 = GetParam().ipv6;
    std::string text = GetParam().endpoint;
    if (const std::size_t at = text.find("DIR"); at != std::string::npos) {
      text.replace(at, 3, directory_);
    }
    auto listener = Listener::open(*parse_endpoint(text, true), options_);
    if (!listener && options_.ipv6) {
      GTEST_SKIP() << "no IPv6 here: " << listener.error().message();
    }
    ASSERT_TRUE(listener) << listener.error().message();
    listener_ = std::move(listener).value();
  }
  void TearDown() override {
    listener_.reset();
    EXPECT_TRUE(sys::remove_directory(directory_));  // empty: close() removed the socket file
  }

  Endpoint target() { return *parse_endpoint(listener_->bound_endpoint(), false); }

  std::unique_ptr<ByteStream> dial() {
    Dialer dialer(target(), options_);
    auto progress = dialer.begin();
    EXPECT_TRUE(progress) << progress.error().message();
    if (progress && *progress == Progress::pending) {
      EXPECT_TRUE(wait_for(dialer.fd(), Interest::writable));
      progress = dialer.finish();
    }
    EXPECT_TRUE(progress) << progress.error().message();
    EXPECT_EQ(*progress, Progress::connected);
    auto stream = dialer.take_stream();
    EXPECT_EQ(dialer.take_stream(), nullptr);
    return stream;
  }
  std::unique_ptr<ByteStream> accept() {
    EXPECT_TRUE(wait_for(listener_->fd(), Interest::readable));
    auto stream = listener_->try_accept();
    EXPECT_TRUE(stream) << stream.error().message();
    return std::move(stream).value();
  }

  std::string directory_;
  sys::SocketOptions options_;
  std::unique_ptr<Listener> listener_;
};

TEST_P(TransportConformance, CarriesManyBytesInOrderAndTellsTheEnd) {
  const auto client = dial();
  const auto server = accept();
  constexpr std::size_t kTotal = 4u << 20;
  std::vector<std::uint8_t> block(100'003);
  std::size_t sent = 0;
  std::size_t received = 0;
  std::uint8_t first[1000];
  std::vector<std::uint8_t> second(65536);
  while (received < kTotal) {
    if (sent < kTotal) {
      const std::size_t size = std::min(block.size(), kTotal - sent);
      for (std::size_t i = 0; i < size; ++i) {
        block[i] = static_cast<std::uint8_t>((sent + i) * 2654435761u >> 24);
      }
      const Bytes parts[] = {Bytes(block).first(size / 3), Bytes(block).first(size).subspan(size / 3)};
      const auto written = client->write(parts);
      ASSERT_NE(written.status, Status::failed);
      sent += written.bytes;
    } else if (received < kTotal) {
      ASSERT_TRUE(wait_for(server->fd(), Interest::readable));
    }
    MutableBytes into[] = {first, second};
    const auto got = server->read(into);
    ASSERT_TRUE(got.status == Status::done || got.status == Status::would_block);
    for (std::size_t i = 0; i < got.bytes; ++i) {
      const std::uint8_t byte = i < sizeof first ? first[i] : second[i - sizeof first];
      ASSERT_EQ(byte, static_cast<std::uint8_t>((received + i) * 2654435761u >> 24));
    }
    received += got.bytes;
  }
  EXPECT_EQ(received, kTotal);
  client->shutdown_write();
  ASSERT_TRUE(wait_for(server->fd(), Interest::readable));
  MutableBytes into[] = {first};
  EXPECT_EQ(server->read(into).status, Status::end_of_stream);
  EXPECT_EQ(server->read(into).status, Status::end_of_stream);

  const Bytes reply[] = {as_bytes("bye")};  // the other direction is still open
  EXPECT_EQ(server->write(reply).bytes, 3u);
  ASSERT_TRUE(wait_for(client->fd(), Interest::readable));
  EXPECT_EQ(client->read(into).bytes, 3u);
}

TEST_P(TransportConformance, PeerAddressNamesTheListener) {
  const auto client = dial();
  const std::string bound = listener_->bound_endpoint();
  if (bound.find("0.0.0.0") == std::string::npos && bound.find("[::]") == std::string::npos) {
    const bool has_path = bound.starts_with("ws");
    EXPECT_EQ(client->peer_address() + (has_path ? "/a" : ""), bound.substr(bound.find("://") + 3));
  } else {
    EXPECT_FALSE(client->peer_address().empty());  // a client reaches a wildcard at some address
  }
}

TEST_P(TransportConformance, AcceptsOneForEachDialAndThenWouldBlock) {
  EXPECT_EQ(listener_->try_accept().error().code(), Errc::would_block);
  std::vector<std::unique_ptr<ByteStream>> clients;
  for (int i = 0; i < 5; ++i) {
    clients.push_back(dial());
  }
  for (int i = 0; i < 5; ++i) {
    EXPECT_NE(accept(), nullptr);
  }
  EXPECT_EQ(listener_->try_accept().error().code(), Errc::would_block);
}

TEST_P(TransportConformance, ASecondListenerIsAddressInUse) {
  const auto second = Listener::open(*parse_endpoint(listener_->bound_endpoint(), true), options_);
  EXPECT_EQ(second.error().code(), Errc::address_in_use) << second.error().message();
  EXPECT_NE(dial(), nullptr);  // the first is unharmed
}

TEST_P(TransportConformance, CloseFreesTheEndpoint) {
  const Endpoint place = target();
  const std::string bound = listener_->bound_endpoint();
  listener_->close();
  listener_->close();
  EXPECT_EQ(listener_->fd(), -1);
  EXPECT_EQ(listener_->try_accept().error().code(), Errc::closed);

  Dialer dialer(place, options_);
  auto progress = dialer.begin();
  if (progress && *progress == Progress::pending) {
    ASSERT_TRUE(wait_for(dialer.fd(), Interest::writable));
    progress = dialer.finish();
  }
  EXPECT_EQ(progress.error().code(), Errc::connection_failed) << progress.error().message();
  EXPECT_EQ(dialer.fd(), -1);
  EXPECT_EQ(dialer.take_stream(), nullptr);
  EXPECT_EQ(dialer.finish().error().code(), Errc::invalid_state);
}

TEST_P(TransportConformance, ADialerCanBeCancelledAndUsedAgain) {
  Dialer dialer(target(), options_);
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(dialer.begin());
    EXPECT_GE(dialer.fd(), 0);
    dialer.cancel();
    dialer.cancel();
    EXPECT_EQ(dialer.fd(), -1);
  }
  auto progress = dialer.begin();
  progress = dialer.begin();  // replaces the attempt under way
  ASSERT_TRUE(progress);
  if (*progress == Progress::pending) {
    ASSERT_TRUE(wait_for(dialer.fd(), Interest::writable));
    progress = dialer.finish();
  }
  EXPECT_EQ(*progress, Progress::connected);
  EXPECT_EQ(*dialer.finish(), Progress::connected);
  EXPECT_NE(dialer.take_stream(), nullptr);
}

std::vector<Place> vsock_places() {
  return sys::has_vsock_loopback() ? std::vector<Place>{{"Vsock", "vsock://1:*"}} : std::vector<Place>{};
}
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(TransportConformance);
INSTANTIATE_TEST_SUITE_P(Loopback, TransportConformance, testing::ValuesIn(vsock_places()),
                         [](const auto& test) { return test.param.name; });
INSTANTIATE_TEST_SUITE_P(All, TransportConformance,
                         testing::Values(Place{"TcpIpv4", "tcp://127.0.0.1:*"}, Place{"TcpWildcard", "tcp://*:0"},
                                         Place{"TcpInterface", "tcp://lo:*"}, Place{"TcpHostName", "tcp://localhost:*"},
                                         Place{"TcpIpv6", "tcp://[::1]:*", true},
                                         Place{"TcpIpv6Wildcard", "tcp://*:*", true}, Place{"Ws", "ws://127.0.0.1:*/a"},
                                         Place{"TlsTcpBelowItsLayer", "tls+tcp://127.0.0.1:*"},
                                         Place{"IpcPath", "ipc://DIR/s"}, Place{"IpcFresh", "ipc://*"},
                                         Place{"IpcAbstract", "ipc://@DIR"}),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace weft::net
