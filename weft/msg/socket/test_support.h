// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/msg/pattern/pipe.h"
#include "weft/msg/socket/context_core.h"
#include "weft/net/stream/byte_stream.h"
#include "weft/zmtp/frame.h"
#include "weft/zmtp/frame_v1.h"

namespace weft::msg::test {

// FakeStream: reads the input that a test sets, and takes as many bytes as the test allows.
class FakeStream final : public net::ByteStream {
 public:
  static constexpr std::size_t kAll = SIZE_MAX;

  std::string input;            // bytes to read
  std::size_t read_max = kAll;  // bytes in one read
  std::size_t request = 0;      // room offered to the last read
  std::size_t largest_request = 0;
  bool ended = false;            // end of stream follows the input
  std::string output;            // bytes written
  std::size_t room = kAll;       // bytes that the stream takes before a write would block
  std::size_t write_max = kAll;  // bytes in one write
  int failure = 0;               // errno of every write
  int reads = 0;
  int writes = 0;

  [[nodiscard]] int fd() const override { return -1; }
  [[nodiscard]] sys::IoResult read(std::span<MutableBytes> into) override {
    ++reads;
    request = 0;
    for (const MutableBytes& block : into) {
      request += block.size();
    }
    largest_request = std::max(largest_request, request);
    if (input.empty()) {
      return {ended ? sys::IoResult::Status::end_of_stream : sys::IoResult::Status::would_block, 0, 0};
    }
    std::size_t done = 0;
    for (const MutableBytes& block : into) {
      const std::size_t size = std::min({block.size(), input.size(), read_max - done});
      copy_bytes(block.data(), as_bytes(input).first(size));
      input.erase(0, size);
      done += size;
    }
    return {sys::IoResult::Status::done, done, 0};
  }
  [[nodiscard]] sys::IoResult write(std::span<const Bytes> from) override {
    ++writes;
    if (failure != 0) {
      return {sys::IoResult::Status::failed, 0, failure};
    }
    std::size_t done = 0;
    for (const Bytes& block : from) {
      const std::size_t size = std::min({block.size(), room, write_max - done});
      output.append(as_text(block.first(size)));
      room -= room == kAll ? 0 : size;
      done += size;
    }
    return done == 0 ? sys::IoResult{sys::IoResult::Status::would_block, 0, 0}
                     : sys::IoResult{sys::IoResult::Status::done, done, 0};
  }
  void shutdown_write() override {}
  [[nodiscard]] std::string peer_address() const override { return {}; }
};

[[nodiscard]] inline std::string frame(std::uint8_t flags, std::string_view body) {
  std::uint8_t header[zmtp::kFrameHeaderSizeMax];
  const std::size_t size = zmtp::write_frame_header(header, flags, body.size());
  return std::string(as_text(Bytes(header, size))).append(body);
}

[[nodiscard]] inline std::string frame_v1(std::uint8_t flags, std::string_view body) {
  std::uint8_t header[zmtp::kFrameHeaderSizeMaxV1];
  const std::size_t size = zmtp::write_frame_header_v1(header, flags, body.size());
  return std::string(as_text(Bytes(header, size))).append(body);
}

// Bytes that depend on their place, so that a test detects a shifted or mixed copy.
[[nodiscard]] inline std::string pattern(std::size_t size, unsigned seed = 0) {
  std::string text(size, '\0');
  for (std::size_t i = 0; i < size; ++i) {
    text[i] = static_cast<char>((i * 31 + i / 251 + seed) & 0xff);
  }
  return text;
}

// PipePair: two pipes that face each other inside the process. Each receives the messages of the other.
struct PipePair {
  explicit PipePair(SocketCore& owner, int mark = 0) : near(owner, link, 0), far(owner, link, 1) {
    link->set_marks(0, mark, mark);
    link->freeze(0, std::make_shared<const Options>());
    link->freeze(1, link->frozen(0));
  }

  [[nodiscard]] bool send(std::string_view text) {
    Outbound part{as_bytes(text), nullptr, false};
    return static_cast<bool>(near.try_send(part, false));
  }
  void send_parts(std::initializer_list<std::string_view> texts) {
    std::vector<Cell> cells;
    for (const std::string_view text : texts) {
      Outbound part{as_bytes(text), nullptr, cells.size() + 1 < texts.size()};
      cells.emplace_back();
      (void)make_cell(cells.back(), part);
    }
    ASSERT_TRUE(near.send_parts(cells, false, nullptr));
  }

  std::shared_ptr<InprocLink> link = std::make_shared<InprocLink>();
  Pipe near;
  Pipe far;
};

// Owner: a PAIR socket that may own pipes, and its context.
class Owner {
 public:
  Owner() : core_(std::move(context_->make_socket(SocketType::pair)).value()) {}
  Owner(const Owner&) = delete;
  Owner& operator=(const Owner&) = delete;
  ~Owner() {
    core_->close();
    context_->close();
  }
  [[nodiscard]] SocketCore& core() noexcept { return *core_; }

 private:
  std::shared_ptr<ContextCore> context_ = std::make_shared<ContextCore>(ContextOptions{});
  std::shared_ptr<SocketCore> core_;
};

}  // namespace weft::msg::test
