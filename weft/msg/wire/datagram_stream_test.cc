// SPDX-License-Identifier: MIT
#include "weft/msg/wire/datagram_stream.h"

#include <string>
#include <vector>

#include "weft/net/transport/udp.h"
#include "weft/sys/poll.h"
#include <gtest/gtest.h>

namespace weft::msg {
namespace {

using Form = DatagramStream::Form;
using Status = sys::IoResult::Status;
constexpr std::uint64_t kNoLimit = zmtp::kFrameBodySizeMax;

net::UdpSocket open(const std::string& endpoint, bool for_bind, int receive_buffer = -1) {
  sys::SocketOptions options;
  options.receive_buffer = receive_buffer;
  auto udp = net::open_udp(*net::parse_endpoint(endpoint, for_bind), for_bind, {}, options);
  EXPECT_TRUE(udp) << udp.error().message();
  return std::move(udp).value();
}

// A stream of each side, from one to the other.
class DatagramStreamTest : public testing::Test {
 protected:
  void open_pair(std::uint64_t part_max = kNoLimit, int receive_buffer = -1) {
    net::UdpSocket bound = open("udp://127.0.0.1:*", true, receive_buffer);
    endpoint_ = bound.text;
    dish_ = std::make_unique<DatagramStream>(std::move(bound.fd), Form::grouped, sys::SocketAddress(), part_max, in_);
    net::UdpSocket out = open(endpoint_, false);
    radio_ = std::make_unique<DatagramStream>(std::move(out.fd), Form::grouped, out.to, kNoLimit, out_);
  }
  static std::vector<std::uint8_t> message(std::string_view group, std::string_view body) {
    std::vector<std::uint8_t> frames(group.size() + body.size() + 2 * zmtp::kFrameHeaderSizeMax);
    std::size_t size = zmtp::write_frame_header(frames.data(), zmtp::kMore, group.size());
    copy_bytes(frames.data() + size, as_bytes(group));
    size += group.size();
    size += zmtp::write_frame_header(frames.data() + size, 0, body.size());
    copy_bytes(frames.data() + size, as_bytes(body));
    frames.resize(size + body.size());
    return frames;
  }
  sys::IoResult write(const std::vector<std::uint8_t>& frames) {
    const Bytes from(frames);
    return radio_->write({&from, 1});
  }
  // Waits for a datagram. The frames as "group|body;", and "!" for a part alone.
  std::string read(std::size_t room = 1 << 18) {
    sys::PollFd polled{.fd = dish_->fd(), .want = sys::Interest::readable};
    EXPECT_EQ(sys::poll_fds({&polled, 1}, std::chrono::seconds(10)).value_or(0u), 1u);
    std::string text;
    for (;;) {
      const sys::IoResult got = read_into(*dish_, room);
      if (got.status != Status::done) {
        break;
      }
    }
    const Bytes bytes(bytes_);
    zmtp::OutgoingFrames frames({&bytes, 1});
    zmtp::OutgoingFrames::Frame frame;
    bool inside = false;
    while (frames.next(frame)) {
      const bool more = (frame.header.flags & zmtp::kMore) != 0;
      text += std::string(!more && !inside ? "!" : "") + std::string(as_text(frame.body)) + (more ? "|" : ";");
      inside = more;
    }
    bytes_.clear();
    return text;
  }
  sys::IoResult read_into(DatagramStream& stream, std::size_t room) {
    const std::size_t before = bytes_.size();
    bytes_.resize(before + room);
    MutableBytes into(bytes_.data() + before, room);
    const sys::IoResult got = stream.read({&into, 1});
    bytes_.resize(before + got.bytes);
    return got;
  }

  std::string endpoint_;
  MessageDrops in_;
  MessageDrops out_;
  std::unique_ptr<DatagramStream> dish_;
  std::unique_ptr<DatagramStream> radio_;
  std::vector<std::uint8_t> bytes_;
};

TEST_F(DatagramStreamTest, MessagesAreDatagramsInOrder) {
  open_pair();
  std::vector<std::uint8_t> frames;
  std::string expected;
  for (int i = 0; i < 100; ++i) {
    const auto one = message("g" + std::to_string(i % 3), std::to_string(i));
    frames.insert(frames.end(), one.begin(), one.end());
    expected += "g" + std::to_string(i % 3) + "|" + std::to_string(i) + ";";
  }
  EXPECT_EQ(write(frames).bytes, frames.size());
  EXPECT_EQ(read(), expected);
}

TEST_F(DatagramStreamTest, AReadIntoLittleRoomLosesNothing) {
  open_pair();
  const std::string body(3000, 'b');
  ASSERT_EQ(write(message("news", body)).status, Status::done);
  ASSERT_EQ(write(message("news", "")).status, Status::done);
  EXPECT_EQ(read(7), "news|" + body + ";news|;");
}

TEST_F(DatagramStreamTest, TheFirstPartMayComeInAWriteOfItsOwn) {
  open_pair();
  const auto frames = message("news", "body");
  EXPECT_EQ(write({frames.begin(), frames.begin() + 6}).bytes, 6u);
  EXPECT_EQ(write({frames.begin() + 6, frames.end()}).bytes, frames.size() - 6);
  EXPECT_EQ(write(message("next", "one")).status, Status::done);
  EXPECT_EQ(read(), "news|body;next|one;");
}

TEST_F(DatagramStreamTest, AMessageThatNoDatagramHoldsIsDroppedAndTheOthersAreSent) {
  open_pair();
  auto frames = message("news", std::string(70'000, 'x'));
  const auto one = message("news", "short");
  frames.insert(frames.end(), one.begin(), one.end());
  frames.insert(frames.begin(), one.begin(), one.end());
  EXPECT_EQ(write(frames).bytes, frames.size());
  EXPECT_EQ(read(), "news|short;news|short;");
  EXPECT_EQ(out_.dropped_too_long.load(), 1u);
}

TEST_F(DatagramStreamTest, TheLongestDatagramArrives) {
  open_pair();
  const std::string body(65'507 - 5, 'x');
  ASSERT_EQ(write(message("news", body)).status, Status::done);
  EXPECT_EQ(read(), "news|" + body + ";");
}

TEST_F(DatagramStreamTest, WhatTheSystemRefusesToSendIsCounted) {
  net::UdpSocket out = open("udp://255.255.255.255:9", false);  // a broadcast, without the permission for it
  DatagramStream stream(std::move(out.fd), Form::grouped, out.to, kNoLimit, out_);
  const auto frames = message("news", "body");
  const Bytes from(frames);
  EXPECT_EQ(stream.write({&from, 1}).bytes, frames.size());
  EXPECT_EQ(out_.dropped_refused.load(), 1u);
}

TEST_F(DatagramStreamTest, NobodyNeedsToListen) {
  net::UdpSocket bound = open("udp://127.0.0.1:*", true);
  net::UdpSocket out = open(bound.text, false);
  bound.fd.close();
  DatagramStream stream(std::move(out.fd), Form::grouped, out.to, kNoLimit, out_);
  const auto frames = message("news", "body");
  const Bytes from(frames);
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(stream.write({&from, 1}).bytes, frames.size());
    MutableBytes nothing;
    ASSERT_NE(stream.read({&nothing, 1}).status, Status::failed);
  }
}

TEST_F(DatagramStreamTest, DatagramsWithoutRoomInTheSystemAreCounted) {
  open_pair(kNoLimit, 4096);
  const auto frames = message("news", std::string(1000, 'x'));
  constexpr std::uint64_t kSent = 200;
  for (std::uint64_t i = 0; i < kSent; ++i) {
    ASSERT_EQ(write(frames).status, Status::done);
  }
  (void)read();
  ASSERT_EQ(write(frames).status, Status::done);  // the system returns the number with the next one
  EXPECT_EQ(read(), "news|" + std::string(1000, 'x') + ";");
  EXPECT_GT(in_.dropped_overflow.load(), 0u);
  EXPECT_LT(in_.dropped_overflow.load(), kSent);
}

TEST_F(DatagramStreamTest, ADatagramThatIsNoMessageIsAnEmptyPartAlone) {
  open_pair();
  net::UdpSocket raw = open(endpoint_, false);
  for (const std::string_view bytes : {"", "\5news", "\xFF"}) {
    const sys::OutgoingDatagram datagram{raw.to.raw(), raw.to.raw_size(), {as_bytes(bytes), Bytes()}};
    ASSERT_EQ(sys::send_datagrams(raw.fd.fd(), {&datagram, 1}).count, 1u);
  }
  EXPECT_EQ(read(), "!;!;!;");
}

TEST_F(DatagramStreamTest, OneReadReceivesABoundedNumberOfTimes) {
  open_pair(kNoLimit, 1 << 20);
  const auto frames = message("n", "");
  constexpr std::size_t kMost = DatagramStream::kRooms * static_cast<std::size_t>(DatagramStream::kCallsMax);
  for (std::size_t i = 0; i < kMost + 10; ++i) {
    ASSERT_EQ(write(frames).status, Status::done);
  }
  std::size_t arrived = kMost + 10 - in_.dropped_overflow.load();
  const sys::IoResult first = read_into(*dish_, 1 << 18);
  EXPECT_EQ(first.status, Status::done);
  EXPECT_LE(first.bytes, kMost * 5);
  if (in_.dropped_overflow.load() == 0 && arrived > kMost) {
    EXPECT_EQ(first.bytes, kMost * 5);  // two frames, one of an empty part
    EXPECT_TRUE(first.cut);
    const sys::IoResult second = read_into(*dish_, 1 << 18);
    EXPECT_EQ(second.bytes, 50u);
    EXPECT_FALSE(second.cut);
  }
}

TEST_F(DatagramStreamTest, ASenderDropsWhatComes) {
  open_pair();
  ASSERT_EQ(write(message("news", "body")).status, Status::done);
  (void)read();
  const auto radio_at = sys::local_address(radio_->fd());
  ASSERT_TRUE(radio_at);
  net::UdpSocket raw = open("udp://127.0.0.1:" + std::to_string(radio_at->port()), false);
  const sys::OutgoingDatagram datagram{raw.to.raw(), raw.to.raw_size(), {as_bytes("\4newsbody"), Bytes()}};
  ASSERT_EQ(sys::send_datagrams(raw.fd.fd(), {&datagram, 1}).count, 1u);
  std::swap(dish_, radio_);
  EXPECT_EQ(read(), "!;");
}

TEST_F(DatagramStreamTest, AfterShutdownReadFindsTheEnd) {
  open_pair();
  std::uint8_t byte = 0;
  MutableBytes into(&byte, 1);
  EXPECT_EQ(dish_->read({&into, 1}).status, Status::would_block);
  dish_->shutdown_write();
  EXPECT_EQ(dish_->read({&into, 1}).status, Status::end_of_stream);
  EXPECT_TRUE(dish_->state().datagrams);
}

TEST_F(DatagramStreamTest, AnAddressedStreamSaysFromWhereADatagramCame) {
  net::UdpSocket bound = open("udp://127.0.0.1:*", true);
  endpoint_ = bound.text;
  dish_ = std::make_unique<DatagramStream>(std::move(bound.fd), Form::addressed, sys::SocketAddress(), kNoLimit, in_);
  const auto at = sys::SocketAddress::parse_numeric(
      "127.0.0.1", static_cast<std::uint16_t>(std::stoi(endpoint_.substr(endpoint_.rfind(':') + 1))));
  ASSERT_TRUE(at);
  const auto frames = message({static_cast<const char*>(at->raw()), at->raw_size()}, "to itself");
  const Bytes from(frames);
  EXPECT_EQ(dish_->write({&from, 1}).bytes, frames.size());
  EXPECT_EQ(read(), at->to_text() + '\0' + "|to itself;");
}

}  // namespace
}  // namespace weft::msg
