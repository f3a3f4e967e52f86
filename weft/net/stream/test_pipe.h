// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/bytes.h"
#include "weft/base/random.h"
#include "weft/net/stream/byte_stream.h"

// Streams that are joined by two strings instead of a kernel.
namespace weft::net::test {

using Status = sys::IoResult::Status;

// One direction between two streams, in place of a kernel.
struct Pipe {
  std::string bytes;
  std::size_t room = 1 << 20;  // bytes that still fit in
  bool ended = false;
  bool broken = false;
};

class PipeStream final : public ByteStream {
 public:
  PipeStream(Pipe& in, Pipe& out, Random* random) : in_(in), out_(out), random_(random) {}

  [[nodiscard]] int fd() const override { return -1; }
  [[nodiscard]] sys::IoResult read(std::span<MutableBytes> into) override {
    if (in_.broken) {
      return {Status::failed, 0, ECONNRESET};
    }
    if (in_.bytes.empty()) {
      return {in_.ended ? Status::end_of_stream : Status::would_block, 0, 0};
    }
    const std::size_t size = cut(std::min(into[0].size(), in_.bytes.size()));
    copy_bytes(into[0].data(), as_bytes(in_.bytes).first(size));
    in_.bytes.erase(0, size);
    return {Status::done, size, 0};
  }
  [[nodiscard]] sys::IoResult write(std::span<const Bytes> from) override {
    if (out_.broken) {
      return {Status::failed, 0, EPIPE};
    }
    const std::size_t free = out_.room - std::min(out_.room, out_.bytes.size());
    if (free == 0) {
      return {};
    }
    const std::size_t size = cut(std::min(free, from[0].size()));
    out_.bytes += as_text(from[0].first(size));
    return {Status::done, size, 0};
  }
  void shutdown_write() override { out_.ended = true; }
  [[nodiscard]] std::string peer_address() const override { return "pipe"; }

 private:
  std::size_t cut(std::size_t size) { return random_ == nullptr || size == 0 ? size : 1 + random_->below(size); }

  Pipe& in_;
  Pipe& out_;
  Random* random_;
};

inline std::string read_all(ByteStream& stream, Status* last = nullptr, std::size_t room = 20 * 1024) {
  std::string bytes;
  std::vector<std::uint8_t> block(room);
  for (;;) {
    MutableBytes into(block);
    const sys::IoResult result = stream.read({&into, 1});
    if (last != nullptr) {
      *last = result.status;
    }
    if (result.status != Status::done) {
      return bytes;
    }
    bytes += as_text(Bytes(block).first(result.bytes));
  }
}
inline sys::IoResult write(ByteStream& stream, std::string_view bytes) {
  const Bytes from = as_bytes(bytes);
  return stream.write({&from, 1});
}
inline Status touch(ByteStream& stream) { return stream.read({}).status; }
inline std::string numbered(std::size_t size) {
  std::string bytes;
  while (bytes.size() < size) {
    bytes += std::to_string(bytes.size()) + ",";
  }
  bytes.resize(size);
  return bytes;
}

}  // namespace weft::net::test
