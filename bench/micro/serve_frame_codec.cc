// SPDX-License-Identifier: MIT
// The published FrameCodec_Encode writes header and body into a hot ring and never reads them; its Decode times
// the encoding too and reads no body. The honest twins: frames appended to a batch as a session writes them; a
// block of frames as a session reads it, only decoded, with every word of the bodies added up.
// FrameCodec_DecodePieces: the same, but the stream comes in pieces as from a network, through a ring.
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <string>
#include <vector>

#include "bench/micro/micro.h"
#include "weft/base/random.h"
#include "weft/mem/ring_buffer.h"
#include "weft/serve/frame/header_codec.h"

namespace weft::serve {
namespace {

constexpr std::size_t kHeader = HeaderCodec::kHeaderSize;

// The result of the model's codec for the bytes at the front; as Decoded.
struct View {
  HeaderCodec::Frame frame;
  std::size_t size = 0;  // 0: the frame is incomplete
};

// Weft's codec on a mirrored ring.
class Ours {
 public:
  explicit Ours(std::size_t capacity) : ring_(mem::RingBuffer::make(capacity, capacity).value()) {}

  [[gnu::always_inline]] static auto decode(Bytes input) {
    return HeaderCodec().decode(input);
  }  // inlined, as in a reading loop
  static std::size_t encode(std::uint32_t id, Bytes body, MutableBytes out) {
    return encode_frame(HeaderCodec(), {id, 0}, body, out).value();
  }
  bool write(std::uint32_t id, Bytes body) {
    const auto room = ring_.write_view(kHeader + body.size());
    return room && ring_.commit(encode(id, body, *room)).has_value();
  }
  bool write(Bytes bytes) { return ring_.write(bytes).has_value(); }
  auto front() { return decode(ring_.read_view()); }
  void consume(std::size_t size) { benchmark::DoNotOptimize(ring_.consume(size)); }

 private:
  mem::RingBuffer ring_;
};

// The published design: writes the header byte by byte into an array of its own. The ring has a power of two as
// its size, and copies wrapped bytes into a second buffer, the header first and then the frame.
class PublishedModel {
 public:
  explicit PublishedModel(std::size_t capacity) : ring_(capacity), mask_(capacity - 1) {}

  static std::array<std::uint8_t, kHeader> header(std::uint32_t id, std::size_t size) {
    const auto byte = [](std::uint64_t value, unsigned shift) { return static_cast<std::uint8_t>(value >> shift); };
    return {2,
            0,
            byte(id, 24),
            byte(id, 16),
            byte(id, 8),
            byte(id, 0),
            byte(size, 24),
            byte(size, 16),
            byte(size, 8),
            byte(size, 0),
            0,
            0};
  }
  static std::size_t encode(std::uint32_t id, Bytes body, MutableBytes out) {
    const auto front = header(id, body.size());
    if (out.size() < kHeader + body.size()) {
      return 0;
    }
    std::memcpy(out.data(), front.data(), kHeader);
    std::memcpy(out.data() + kHeader, body.data(), body.size());
    return kHeader + body.size();
  }
  static std::uint32_t number(const std::uint8_t* at) {
    return std::uint32_t{at[0]} << 24U | std::uint32_t{at[1]} << 16U | std::uint32_t{at[2]} << 8U | at[3];
  }
  [[gnu::always_inline]] static View decode(Bytes input) {  // inlined, as in a reading loop
    if (input.size() < kHeader || input[0] != 2 || number(&input[6]) > kBodyMax) {
      return {};
    }
    const std::size_t size = kHeader + number(&input[6]);
    return input.size() < size ? View{}
                               : View{{{number(&input[2]), input[1]}, input.subspan(kHeader, size - kHeader)}, size};
  }

  bool write(std::uint32_t id, Bytes body) {
    if (room() < kHeader + body.size()) {
      return false;
    }
    return write(Bytes(header(id, body.size()))) && write(body);
  }
  bool write(Bytes bytes) {
    if (room() < bytes.size()) {
      return false;
    }
    const std::size_t at = tail_ & mask_;
    const std::size_t first = std::min(bytes.size(), ring_.size() - at);
    std::memcpy(ring_.data() + at, bytes.data(), first);
    std::memcpy(ring_.data(), bytes.data() + first, bytes.size() - first);
    tail_ += bytes.size();
    return true;
  }
  View front() {
    if (tail_ - head_ < kHeader) {
      return {};
    }
    const std::size_t size = kHeader + number(&linearize(kHeader)[6]);
    return tail_ - head_ < size ? View{} : decode(linearize(size));
  }
  void consume(std::size_t size) { head_ += size; }

 private:
  [[nodiscard]] std::size_t room() const { return ring_.size() - (tail_ - head_); }
  Bytes linearize(std::size_t count) {
    const std::size_t at = head_ & mask_;
    if (at + count <= ring_.size()) {
      return {ring_.data() + at, count};
    }
    line_.resize(std::max(line_.size(), count));
    const std::size_t first = ring_.size() - at;
    std::memcpy(line_.data(), ring_.data() + at, first);
    std::memcpy(line_.data() + first, ring_.data(), count - first);
    return {line_.data(), count};
  }

  std::vector<std::uint8_t> ring_;
  std::vector<std::uint8_t> line_;
  std::size_t mask_;
  std::size_t head_ = 0;
  std::size_t tail_ = 0;
};

std::uint64_t sum_of(Bytes body) {
  std::uint64_t sum = 0;
  for (std::size_t at = 0; at + 8 <= body.size(); at += 8) {
    std::uint64_t word;
    std::memcpy(&word, body.data() + at, 8);
    sum += word;
  }
  return sum;
}

void count_items(benchmark::State& state) { state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations())); }

template <typename Codec>
bench::Body encode_published(std::size_t payload) {
  return [payload](benchmark::State& state) {
    Codec ring(std::bit_ceil(4 * (kHeader + payload)));
    const std::vector<std::uint8_t> body(payload, 7);
    for (auto _ : state) {
      if (!ring.write(1, body)) {
        bench::fail("the ring is full");
      }
      benchmark::ClobberMemory();
      ring.consume(kHeader + payload);
    }
    count_items(state);
  };
}

template <typename Codec>
bench::Body decode_published(std::size_t payload) {
  return [payload](benchmark::State& state) {
    Codec ring(std::bit_ceil(4 * (kHeader + payload)));
    const std::vector<std::uint8_t> body(payload, 7);
    for (auto _ : state) {
      benchmark::DoNotOptimize(ring.write(1, body));
      benchmark::ClobberMemory();
      const auto view = ring.front();
      benchmark::DoNotOptimize(view.frame.body.data());
      if (view.size == 0) {
        bench::fail("no frame");
      }
      ring.consume(view.size);
    }
    count_items(state);
  };
}

// Bodies of 1 to 2 * mean bytes.
std::vector<std::vector<std::uint8_t>> make_bodies(std::size_t mean) {
  Random random(20261122);
  std::vector<std::vector<std::uint8_t>> bodies(256);
  for (auto& body : bodies) {
    body.assign(1 + random.below(2 * mean), static_cast<std::uint8_t>(random.next()));
  }
  return bodies;
}

// A session's batch: frames one after another in a block, which starts again when it is full.
template <typename Codec>
bench::Body encode_batches(std::size_t mean) {
  return [mean](benchmark::State& state) {
    const auto bodies = make_bodies(mean);
    std::vector<std::uint8_t> batch(std::size_t{64} << 10);
    std::size_t used = 0;
    std::uint32_t next = 0;
    for (auto _ : state) {
      const auto& body = bodies[next++ % bodies.size()];
      if (batch.size() - used < kHeader + body.size()) {
        benchmark::DoNotOptimize(batch.data());
        benchmark::ClobberMemory();
        used = 0;
      }
      used += Codec::encode(next, body, MutableBytes(batch).subspan(used));
    }
    benchmark::DoNotOptimize(batch.data());
    benchmark::ClobberMemory();
    count_items(state);
  };
}

std::vector<std::uint8_t> make_stream(std::size_t mean, std::size_t size, std::uint64_t& sum) {
  std::vector<std::uint8_t> stream;
  const auto bodies = make_bodies(mean);
  for (std::uint32_t next = 0; stream.size() < size; ++next) {
    const auto& body = bodies[next % bodies.size()];
    const std::size_t at = stream.size();
    stream.resize(at + kHeader + body.size());
    (void)encode_frame(HeaderCodec(), {next, 0}, body, MutableBytes(stream).subspan(at)).value();
    sum += sum_of(body);
  }
  return stream;
}

template <typename Codec>
bench::Body decode_block(std::size_t mean) {
  return [mean](benchmark::State& state) {
    std::uint64_t expected = 0;
    const auto stream = make_stream(mean, std::size_t{128} << 10, expected);
    Bytes rest(stream);
    std::uint64_t sum = 0;
    for (auto _ : state) {
      const auto view = Codec::decode(rest);
      sum += sum_of(view.frame.body);
      rest = rest.subspan(view.size);
      if (rest.empty()) {
        if (sum != expected) {
          bench::fail("a body is not what was sent");
        }
        sum = 0;
        rest = stream;
      }
    }
    benchmark::DoNotOptimize(sum);
    count_items(state);
  };
}

template <typename Codec>
bench::Body decode_pieces(std::size_t mean, std::size_t piece) {
  return [=](benchmark::State& state) {
    std::uint64_t expected = 0;
    const auto stream = make_stream(mean, std::size_t{128} << 10, expected);
    Codec ring(32768);
    Bytes rest(stream);
    std::uint64_t sum = 0;
    for (auto _ : state) {
      auto view = ring.front();
      while (view.size == 0) {
        if (rest.empty()) {
          if (sum != expected) {
            bench::fail("a body is not what was sent");
          }
          sum = 0;
          rest = stream;
        }
        const Bytes arrived = rest.first(std::min(piece, rest.size()));
        rest = rest.subspan(arrived.size());
        if (!ring.write(arrived)) {
          bench::fail("the ring is full");
        }
        view = ring.front();
      }
      sum += sum_of(view.frame.body);
      ring.consume(view.size);
    }
    benchmark::DoNotOptimize(sum);
    count_items(state);
  };
}

[[maybe_unused]] const bool kRegistered = [] {
  for (const std::size_t payload : {64u, 512u, 4096u, 16384u}) {
    const std::string size = "/" + std::to_string(payload);
    bench::row("FrameCodec_Encode" + size)
        .run("weft", encode_published<Ours>(payload))
        .run("published_model", encode_published<PublishedModel>(payload));
    bench::row("FrameCodec_Decode" + size)
        .run("weft", decode_published<Ours>(payload))
        .run("published_model", decode_published<PublishedModel>(payload));
    bench::row("FrameCodec_Encode" + size + " (honest)")
        .run("weft", encode_batches<Ours>(payload))
        .run("published_model", encode_batches<PublishedModel>(payload));
    bench::row("FrameCodec_Decode" + size + " (honest)")
        .run("weft", decode_block<Ours>(payload))
        .run("published_model", decode_block<PublishedModel>(payload));
  }
  for (const std::size_t piece : {1u, 1448u}) {
    bench::row("FrameCodec_DecodePieces/64/" + std::to_string(piece))
        .run("weft", decode_pieces<Ours>(64, piece))
        .run("published_model", decode_pieces<PublishedModel>(64, piece));
  }
  return true;
}();

}  // namespace
}  // namespace weft::serve
