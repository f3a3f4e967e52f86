// SPDX-License-Identifier: MIT
// The end of a connection, with the order forced: a sender holds the write baton while the input ends and the socket
// closes.
#include "weft/msg/connection/link.h"

#include <atomic>
#include <cerrno>
#include <future>
#include <memory>
#include <string>
#include <thread>

#include "weft/msg/connection/connection.h"
#include "weft/msg/connection/io_service.h"
#include "weft/msg/pattern/pipe.h"
#include "weft/sys/clock.h"
#include "weft/sys/event_fd.h"
#include <gtest/gtest.h>

namespace weft::msg::test {
namespace {

using namespace std::chrono_literals;

// GatedStream: a stream without bytes to read, in whose write() the sender stays until the test opens the gate.
class GatedStream final : public net::ByteStream {
 public:
  std::atomic<bool> ended{false};  // the peer's direction
  std::atomic<bool> fails{false};  // every write, once the gate is open
  std::atomic<bool> entered{false};
  std::atomic<bool> open{false};
  std::atomic<bool> full{false};  // has no room
  const std::shared_ptr<std::atomic<std::size_t>> written = std::make_shared<std::atomic<std::size_t>>(0);

  [[nodiscard]] int fd() const override { return event_.fd(); }
  [[nodiscard]] sys::IoResult read(std::span<MutableBytes> /*into*/) override {
    return {ended ? sys::IoResult::Status::end_of_stream : sys::IoResult::Status::would_block, 0, 0};
  }
  [[nodiscard]] sys::IoResult write(std::span<const Bytes> from) override {
    entered = true;
    entered.notify_all();
    open.wait(false);
    if (fails) {
      return {sys::IoResult::Status::failed, 0, ECONNRESET};
    }
    if (full) {
      return {sys::IoResult::Status::would_block, 0, 0};
    }
    std::size_t size = 0;
    for (const Bytes& block : from) {
      size += block.size();
    }
    *written += size;
    return {sys::IoResult::Status::done, size, 0};
  }
  void shutdown_write() override { ended = true; }
  [[nodiscard]] std::string peer_address() const override { return {}; }

 private:
  sys::EventFd event_ = sys::EventFd::make().value();
};

// LoneOwner: the socket of one raw connection, which needs no handshake.
class LoneOwner final : public ConnectionOwner {
 public:
  LoneOwner() : ConnectionOwner({zmtp::WireType::pair, true, false, false, false}, sync::WaitMode::eco) {
    share_.receive_mutex = &receive_mutex_;
    share_.send_mutex = &send_mutex_;
  }

  [[nodiscard]] bool conflates(const Options& /*options*/) const noexcept override { return false; }
  [[nodiscard]] bool raw() const noexcept override { return true; }
  void batch_begun() noexcept override {}
  [[nodiscard]] std::string last_message(const Options& /*options*/, bool /*outgoing*/) const override { return {}; }
  [[nodiscard]] Monitor& monitor() noexcept override { return monitor_; }
  [[nodiscard]] Result<std::unique_ptr<ZapRequest>> ask_authenticator(rt::Loop& /*loop*/,
                                                                      const ZapQuestion& /*question*/,
                                                                      ZapRequest::Done /*done*/) override {
    return std::unique_ptr<ZapRequest>();
  }
  [[nodiscard]] bool connection_ready(Connection& /*connection*/, Bytes /*identity*/) override { return true; }
  void connection_lost(Connection& /*connection*/) override {}
  void forget_descriptor(Connection& /*connection*/) noexcept override {}
  void connection_finished(Connection& /*connection*/) override { finished_.set_value(); }
  [[nodiscard]] Result<void> handle_subscription(Connection& /*connection*/, bool /*subscribe*/,
                                                 const FilterView& /*topic*/) override {
    return {};
  }
  void handle_inproc_subscription(const InprocLink& /*link*/, int /*end*/, bool /*subscribe*/,
                                  const FilterView& /*topic*/) override {}

  [[nodiscard]] std::future<void> finished() { return finished_.get_future(); }

 private:
  Monitor monitor_;
  sync::Mutex receive_mutex_;
  sync::Mutex send_mutex_;
  std::promise<void> finished_;
};

class LinkEnd : public testing::Test {
 protected:
  LinkEnd() {
    on_loop([&] { connection_->link().start(); });
    sender_ = std::thread([&] {
      Outbound part{as_bytes(text_), nullptr, false};
      (void)pipe_.try_send(part, false);
    });
    stream_->entered.wait(false);
  }
  ~LinkEnd() override {
    open_gate();
    on_loop([&] { connection_->link().close(Instant::min()); });  // at once, if the test failed
    finished_.wait();
    io_.reset();
  }

  template <typename Work>
  void on_loop(Work work) {
    std::promise<void> done;
    io_->loop().post([&] {
      work();
      done.set_value();
    });
    done.get_future().wait();
  }
  // Idempotent. Once the sender has left the stream, the link may free it.
  void open_gate() {
    if (sender_.joinable()) {
      stream_->open = true;
      stream_->open.notify_all();
      sender_.join();
    }
  }
  [[nodiscard]] bool finishes() { return finished_.wait_for(10s) == std::future_status::ready; }
  [[nodiscard]] Link& link() { return connection_->link(); }

  const std::string text_ = std::string(64 * 1024, 'x');
  std::unique_ptr<IoService> io_ = IoService::make({}).value();
  std::shared_ptr<LoneOwner> owner_ = std::make_shared<LoneOwner>();
  std::future<void> finished_ = owner_->finished();
  GatedStream* const stream_ = new GatedStream;  // the connection owns it
  std::shared_ptr<Connection> connection_ =
      std::make_shared<Connection>(owner_, *io_, std::make_shared<const Options>(),
                                   Accepted{std::unique_ptr<net::ByteStream>(stream_)}, "test", nullptr);
  Pipe pipe_{*owner_, *connection_};
  std::thread sender_;
};

// There is no peer to deliver to, so the linger has nothing to wait for.
TEST_F(LinkEnd, AConnectionWhoseInputEndedIsTakenDownAlthoughTheSocketClosesMeanwhile) {
  on_loop([&] {
    stream_->ended = true;
    connection_->receive_side().read(Turn());  // asks for the take-down, which waits for the sender
  });
  on_loop([&] { link().close(sys::now() + 1h); });
  stream_->fails = true;
  open_gate();
  EXPECT_TRUE(finishes()) << "the connection waits for the whole linger";
}

TEST_F(LinkEnd, ATakeDownThatFindsNothingToDoDoesNotStopTheLinger) {
  on_loop([&] {
    link().close(sys::now() + 1h);
    link().take_down();  // asked for by an earlier connection, and waits for the sender too
  });
  open_gate();
  EXPECT_TRUE(finishes()) << "everything was sent, and nobody notices";
}

TEST_F(LinkEnd, AClosingThatComesAfterTheLingerStillWritesOnceWhatWasSent) {
  const auto written = stream_->written;
  stream_->full = true;
  open_gate();
  ASSERT_EQ(*written, 0u);
  on_loop([&] {
    stream_->full = false;
    link().close(sys::now());
  });
  EXPECT_TRUE(finishes());
  EXPECT_EQ(*written, text_.size());
}

TEST_F(LinkEnd, WithoutALingerAClosingWritesNothing) {
  const auto written = stream_->written;
  stream_->full = true;
  open_gate();
  on_loop([&] {
    stream_->full = false;
    link().close(kNoLinger);
  });
  EXPECT_TRUE(finishes());
  EXPECT_EQ(*written, 0u);
}

// A peer that reads as fast as this end writes does not keep the I/O thread, however long the queue is.
TEST(LinkFlush, OfALongQueueTakesTurns) {
  constexpr std::size_t kSize = 1000;
  constexpr std::size_t kCount = 5 * SendSide::kFlushMax / kSize;
  const auto io = IoService::make({}).value();
  const auto owner = std::make_shared<LoneOwner>();
  auto finished = owner->finished();
  auto options = std::make_shared<Options>();
  options->send_high_water_mark = 0;
  auto stream = std::make_unique<GatedStream>();
  stream->open = true;
  const auto written = stream->written;
  const auto connection = std::make_shared<Connection>(owner, *io, std::shared_ptr<const Options>(options),
                                                       Accepted{std::move(stream)}, "test", nullptr);
  connection->apply_marks(*options);
  Pipe pipe(*owner, *connection);
  const std::string text(kSize, 'x');
  for (std::size_t i = 0; i < kCount; ++i) {
    Outbound part{as_bytes(text), nullptr, false};
    ASSERT_TRUE(pipe.try_send(part, false));
  }
  std::size_t at_once = 0;
  io->run([&] {
    connection->link().start();
    at_once = *written;
  });
  EXPECT_GE(at_once, SendSide::kFlushMax);
  EXPECT_LE(at_once, 3 * SendSide::kFlushMax);
  const Instant end = sys::now() + 10s;
  while (*written != kCount * kSize && sys::now() < end) {
    io->run([] {});
  }
  EXPECT_EQ(*written, kCount * kSize);
  io->run([&] { connection->link().close(Instant::min()); });
  EXPECT_EQ(finished.wait_for(10s), std::future_status::ready);
}

}  // namespace
}  // namespace weft::msg::test
