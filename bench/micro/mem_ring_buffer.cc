// SPDX-License-Identifier: MIT
// The published RingBuffer_WriteRead never wraps, and its reader touches nothing. RingBuffer_Linearize wraps
// at every second write. NaiveBuffer_CopyWrite measures new and delete. The honest twin is a stream of frames
// of many sizes, written in pieces and read as a whole.
#include <array>
#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "bench/micro/micro.h"
#include "weft/base/random.h"
#include "weft/mem/ring_buffer.h"

namespace {

using weft::Bytes;

struct Ours {
  explicit Ours(std::size_t capacity) : buffer(weft::mem::RingBuffer::make(capacity, capacity).value()) {}
  bool write(Bytes bytes) { return buffer.write(bytes).has_value(); }
  Bytes front(std::size_t) { return buffer.read_view(); }
  void consume(std::size_t count) { benchmark::DoNotOptimize(buffer.consume(count)); }
  weft::mem::RingBuffer buffer;
};
struct OursCopying : Ours {
  explicit OursCopying(std::size_t capacity) : Ours(capacity) {
    buffer = weft::mem::RingBuffer::make_copying(capacity, capacity).value();
  }
};

// The published design: a ring of a power of two. Contents that wrap are copied into a second buffer before
// reading.
struct PublishedModel {
  explicit PublishedModel(std::size_t capacity) : ring(capacity), mask(capacity - 1) {}
  bool write(Bytes bytes) {
    if (ring.size() - (tail - head) < bytes.size()) {
      return false;
    }
    const std::size_t at = tail & mask;
    const std::size_t first = std::min(bytes.size(), ring.size() - at);
    std::memcpy(ring.data() + at, bytes.data(), first);
    std::memcpy(ring.data(), bytes.data() + first, bytes.size() - first);
    tail += bytes.size();
    return true;
  }
  Bytes front(std::size_t count) {
    const std::size_t at = head & mask;
    if (at + count <= ring.size()) {
      return {ring.data() + at, count};
    }
    line.resize(std::max(line.size(), count));
    const std::size_t first = ring.size() - at;
    std::memcpy(line.data(), ring.data() + at, first);
    std::memcpy(line.data() + first, ring.data(), count - first);
    return {line.data(), count};
  }
  void consume(std::size_t count) { head += count; }
  std::vector<std::uint8_t> ring;
  std::vector<std::uint8_t> line;
  std::size_t mask;
  std::size_t head = 0;
  std::size_t tail = 0;
};

// The other usual design: a plain block, whose contents move to the front after every read.
struct Compacting {
  explicit Compacting(std::size_t capacity) : block(capacity) {}
  bool write(Bytes bytes) {
    if (block.size() - size < bytes.size()) {
      return false;
    }
    std::memcpy(block.data() + size, bytes.data(), bytes.size());
    size += bytes.size();
    return true;
  }
  Bytes front(std::size_t) { return {block.data(), size}; }
  void consume(std::size_t count) {
    size -= count;
    std::memmove(block.data(), block.data() + count, size);
  }
  std::vector<std::uint8_t> block;
  std::size_t size = 0;
};

// Writes and reads `payload` bytes; `shift` bytes stay inside all the time.
template <typename Buffer>
bench::Body write_and_read(std::size_t capacity, std::size_t payload, std::size_t shift) {
  return [=](benchmark::State& state) {
    Buffer buffer(capacity);
    const std::vector<std::uint8_t> bytes(payload, 7);
    benchmark::DoNotOptimize(buffer.write(Bytes(bytes).first(shift)));
    for (auto _ : state) {
      benchmark::DoNotOptimize(buffer.write(bytes));
      benchmark::DoNotOptimize(buffer.front(payload).data());
      benchmark::ClobberMemory();
      buffer.consume(payload);
    }
    state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()));
  };
}

void copy_into_new(benchmark::State& state, std::size_t payload) {
  const std::vector<std::uint8_t> bytes(payload, 7);
  for (auto _ : state) {
    auto* copy = new std::uint8_t[payload];
    std::memcpy(copy, bytes.data(), payload);
    benchmark::DoNotOptimize(copy);
    benchmark::ClobberMemory();
    delete[] copy;
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()));
}

// Frames of 1 to 2 * mean bytes arrive in pieces of up to 1448 bytes, as from a network. The reader reads
// each frame in one piece once it is complete, and adds up all of its words.
template <typename Buffer>
bench::Body frames(std::size_t mean) {
  return [mean](benchmark::State& state) {
    constexpr std::size_t kSizes = 1024;
    constexpr std::size_t kPiece = 1448;
    weft::Random random(20261121);
    std::array<std::size_t, kSizes> sizes;
    for (std::size_t& size : sizes) {
      size = 1 + random.below(2 * mean);
    }
    const std::vector<std::uint8_t> piece(kPiece, 3);
    Buffer buffer(16384);
    std::size_t held = 0;
    std::size_t next = 0;
    std::uint64_t sum = 0;
    for (auto _ : state) {
      const std::size_t size = sizes[next++ % kSizes];
      while (held < size) {
        if (!buffer.write(piece)) {
          bench::fail("a ring buffer is full");
        }
        held += kPiece;
      }
      const Bytes frame = buffer.front(size).first(size);
      for (std::size_t at = 0; at + 8 <= size; at += 8) {
        std::uint64_t word;
        std::memcpy(&word, frame.data() + at, 8);
        sum += word;
      }
      buffer.consume(size);
      held -= size;
    }
    benchmark::DoNotOptimize(sum);
    state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()));
  };
}

[[maybe_unused]] const bool kRegistered = [] {
  for (const std::size_t payload : {64u, 512u, 4096u}) {
    const std::string size = std::string("/").append(std::to_string(payload));
    bench::row("RingBuffer_WriteRead" + size)
        .run("weft", write_and_read<Ours>(4 * payload, payload, 0))
        .run("published_model", write_and_read<PublishedModel>(4 * payload, payload, 0))
        .run("compacting", write_and_read<Compacting>(4 * payload, payload, 0));
    bench::row("RingBuffer_Linearize" + size)
        .run("weft", write_and_read<Ours>(2 * payload, payload, payload / 2))
        .run("published_model", write_and_read<PublishedModel>(2 * payload, payload, payload / 2))
        .run("compacting", write_and_read<Compacting>(2 * payload, payload, payload / 2));
    bench::row("NaiveBuffer_CopyWrite" + size)
        .run("weft", write_and_read<Ours>(4 * payload, payload, 0))
        .run("naive", [payload](benchmark::State& state) { copy_into_new(state, payload); });
    bench::row("RingBuffer_WriteRead" + size + " (honest)")
        .run("weft", frames<Ours>(payload))
        .run("weft_copying", frames<OursCopying>(payload))
        .run("published_model", frames<PublishedModel>(payload))
        .run("compacting", frames<Compacting>(payload));
  }
  return true;
}();

}  // namespace
