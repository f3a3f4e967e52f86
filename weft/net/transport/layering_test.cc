// SPDX-License-Identifier: MIT
// SharedStream: the bytes that its writer keeps while the layer holds bytes.
#include "weft/net/transport/layering.h"

#include <cerrno>
#include <string>
#include <thread>

#include <gtest/gtest.h>

namespace weft::net {
namespace {

using Status = sys::IoResult::Status;

// A layer that takes all bytes and passes on as many bytes as the test allows.
class HoldingLayer final : public ByteStream {
 public:
  std::string held;
  std::string passed;
  std::size_t room = 0;
  std::size_t takes = 1000;  // of one write
  bool established = true;
  bool broken = false;

  [[nodiscard]] int fd() const override { return 7; }
  [[nodiscard]] sys::IoResult read(std::span<MutableBytes> /*into*/) override {
    ++reads;  // a data race, if another thread writes at the same time
    return {};
  }
  [[nodiscard]] sys::IoResult write(std::span<const Bytes> from) override {
    ++reads;
    if (broken) {
      return {Status::failed, 0, EPIPE};
    }
    pass();
    if (!held.empty() || !established) {
      return {};
    }
    std::size_t left = takes;
    for (const Bytes& part : from) {
      const Bytes some = part.first(std::min(left, part.size()));
      held += as_text(some);
      left -= some.size();
    }
    pass();
    return {takes == left ? Status::would_block : Status::done, takes - left, 0};
  }
  void shutdown_write() override {}
  [[nodiscard]] std::string peer_address() const override { return "peer"; }
  [[nodiscard]] StreamState state() const noexcept override { return {established, broken, !held.empty(), {}}; }

  int reads = 0;

 private:
  void pass() {
    const std::size_t size = std::min(room, held.size());
    passed += held.substr(0, size);
    held.erase(0, size);
    room -= size;
  }
};

class SharedStreamTest : public testing::Test {
 protected:
  // Writes `text_` from `sent_` on, like a writer that keeps the rest.
  sys::IoResult write() {
    const Bytes rest = as_bytes(text_).subspan(sent_);
    const Bytes parts[] = {rest.first(rest.size() / 2), rest.subspan(rest.size() / 2)};
    const sys::IoResult result = stream_->write(parts);
    sent_ += result.bytes;
    return result;
  }

  std::string text_ = "0123456789";
  std::size_t sent_ = 0;
  HoldingLayer* layer_ = new HoldingLayer;  // the stream owns it
  std::unique_ptr<ByteStream> stream_ = make_shared_stream(std::unique_ptr<ByteStream>(layer_));
};

TEST_F(SharedStreamTest, TheWriterKeepsAByteWhileTheLayerHoldsAny) {
  EXPECT_EQ(write().bytes, 9u);
  EXPECT_EQ(layer_->held, "0123456789");
  EXPECT_FALSE(stream_->state().unsent);  // the writer comes again
  EXPECT_EQ(write().status, Status::would_block);
  layer_->room = 9;
  EXPECT_EQ(write().status, Status::would_block);
  layer_->room = 1;
  EXPECT_EQ(write().bytes, 1u);
  EXPECT_EQ(layer_->passed, text_);
  EXPECT_EQ(sent_, text_.size());
}

TEST_F(SharedStreamTest, EveryByteGoesOutOnceHoweverTheSocketAndTheLayerTakeThem) {
  text_ = std::string(200, ' ');
  for (std::size_t i = 0; i < text_.size(); ++i) {
    text_[i] = static_cast<char>(i);
  }
  for (std::size_t step = 1; sent_ < text_.size(); ++step) {
    ASSERT_LT(step, 1000u);
    layer_->room = step * 7 % 5;
    layer_->takes = 1 + step * 5 % 3;
    (void)write();
    EXPECT_TRUE(layer_->held.empty() || sent_ < text_.size());
    EXPECT_EQ(layer_->passed, text_.substr(0, layer_->passed.size()));
  }
  EXPECT_EQ(layer_->passed, text_);
}

TEST_F(SharedStreamTest, BytesThatNoWriterKnowsOfAreUnsent) {
  layer_->held = "pong";
  EXPECT_TRUE(stream_->state().unsent);
  layer_->room = 4;
  EXPECT_EQ(stream_->write({}).bytes, 0u);
  EXPECT_EQ(layer_->passed, "pong");
  EXPECT_FALSE(stream_->state().unsent);
}

TEST_F(SharedStreamTest, BeforeTheHandshakeIsOverAWriteTakesNothing) {
  layer_->established = false;
  layer_->room = 100;
  EXPECT_EQ(write().status, Status::would_block);
  layer_->established = true;
  EXPECT_EQ(write().bytes, 10u);
}

TEST_F(SharedStreamTest, AFailureOfTheLayerIsTheWritesFailure) {
  (void)write();
  layer_->broken = true;
  EXPECT_EQ(write().status, Status::failed);
  EXPECT_TRUE(stream_->state().ended);
}

TEST_F(SharedStreamTest, OneThreadReadsWhileAnotherWrites) {
  layer_->room = 1 << 20;
  std::thread reader([&] {
    for (int i = 0; i < 1000; ++i) {
      std::uint8_t byte = 0;
      MutableBytes into(&byte, 1);
      EXPECT_EQ(stream_->read({&into, 1}).status, Status::would_block);
    }
  });
  for (int i = 0; i < 1000; ++i) {
    sent_ = 0;
    EXPECT_EQ(write().bytes, 10u);
  }
  reader.join();
  EXPECT_EQ(layer_->reads, 2000);
}

TEST_F(SharedStreamTest, TheLayerIsBelow) {
  EXPECT_EQ(stream_->below(), layer_);
  EXPECT_EQ(stream_->fd(), 7);
  EXPECT_EQ(stream_->peer_address(), "peer");
}

}  // namespace
}  // namespace weft::net
