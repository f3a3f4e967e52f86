// SPDX-License-Identifier: MIT
// The published FlatBuffers_Build makes a builder for each message. FlatBuffers_Read fetches a pointer, verifies
// nothing and reads no byte. HeapAlloc_* copy into new memory, one without the header, the other where a view would do.
// Weft's rows do a server's work: a builder that is kept, a frame in pooled memory, a view. The honest twins read every
// byte, and FlatBuffers_Read is then a verified message from a body at any address.
#include "weft/serve/dispatch/typed.h"

#ifdef WEFT_HAVE_SCHEMAS
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "bench/micro/micro.h"
#include "weft/mem/buffer.h"
#include "weft/serve/schemas/echo_generated.h"

namespace weft::serve {
namespace {

void count_items(benchmark::State& state) { state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations())); }

std::uint64_t sum_of(Bytes bytes) {
  std::uint64_t sum = 0;
  for (std::size_t at = 0; at + 8 <= bytes.size(); at += 8) {
    std::uint64_t word;
    std::memcpy(&word, bytes.data() + at, 8);
    sum += word;
  }
  return sum;
}

void build(flatbuffers::FlatBufferBuilder& builder, Bytes payload) {
  schema::FinishEchoBuffer(builder, schema::CreateEcho(builder, builder.CreateVector(payload.data(), payload.size())));
  benchmark::DoNotOptimize(builder.GetBufferPointer());
  benchmark::ClobberMemory();
}

bench::Body build_with_kept_builder(std::size_t size) {
  return [size](benchmark::State& state) {
    const std::vector<std::uint8_t> payload(size, 7);
    flatbuffers::FlatBufferBuilder builder;
    for (auto _ : state) {
      builder.Clear();
      build(builder, payload);
    }
    count_items(state);
  };
}
bench::Body build_with_new_builder(std::size_t size) {
  return [size](benchmark::State& state) {
    const std::vector<std::uint8_t> payload(size, 7);
    for (auto _ : state) {
      flatbuffers::FlatBufferBuilder builder(size + 64);
      build(builder, payload);
    }
    count_items(state);
  };
}

bench::Body frame_in_pooled_memory(std::size_t size) {
  return [size](benchmark::State& state) {
    const std::vector<std::uint8_t> payload(size, 7);
    for (auto _ : state) {
      mem::Buffer* const buffer = mem::Buffer::make(HeaderCodec::kHeaderSize + size);
      const auto written = encode_frame(HeaderCodec(), {1, 0}, payload, {buffer->data(), buffer->capacity()});
      benchmark::DoNotOptimize(written.value());
      benchmark::ClobberMemory();
      buffer->release();
    }
    count_items(state);
  };
}
bench::Body copy_into_new_memory(std::size_t size, std::size_t header, bool read) {
  return [=](benchmark::State& state) {
    const std::vector<std::uint8_t> payload(size, 7);
    std::uint64_t sum = 0;
    for (auto _ : state) {
      auto* copy = new std::uint8_t[header + size];
      std::memcpy(copy + header, payload.data(), size);
      benchmark::DoNotOptimize(copy);
      benchmark::ClobberMemory();
      sum += read ? sum_of({copy + header, size}) : 0;
      delete[] copy;
    }
    benchmark::DoNotOptimize(sum);
    count_items(state);
  };
}

// A message at a multiple of 8, or 4 bytes beyond one, as after a header.
struct Message {
  explicit Message(std::size_t size, std::size_t offset) {
    const std::vector<std::uint8_t> payload(size, 7);
    flatbuffers::FlatBufferBuilder builder;
    build(builder, payload);
    block.resize(offset + builder.GetSize());
    std::memcpy(block.data() + offset, builder.GetBufferPointer(), builder.GetSize());
    body = Bytes(block).subspan(offset);
  }
  std::vector<std::uint8_t> block;
  Bytes body;
};

// As published: fetches the pointer and the size.
bench::Body read_pointer(std::size_t size) {
  return [size](benchmark::State& state) {
    Message message(size, 0);
    for (auto _ : state) {
      const std::uint8_t* data = message.body.data();
      benchmark::DoNotOptimize(data);
      const auto* echo = schema::GetEcho(data);
      benchmark::DoNotOptimize(echo->data()->data());
      benchmark::DoNotOptimize(echo->data()->size());
    }
    count_items(state);
  };
}
bench::Body read_view(std::size_t size, bool read) {
  return [=](benchmark::State& state) {
    std::vector<std::uint8_t> payload(size, 7);
    std::uint64_t sum = 0;
    for (auto _ : state) {
      Bytes view(payload);
      benchmark::DoNotOptimize(view);
      sum += read ? sum_of(view) : 0;
    }
    benchmark::DoNotOptimize(sum);
    count_items(state);
  };
}
// Does the work of route(), with or without verification.
bench::Body read_all(std::size_t size, std::size_t offset, bool verify) {
  return [=](benchmark::State& state) {
    const FileIdentifier identifier{'E', 'C', 'H', 'O'};
    const Message message(size, offset);
    std::uint64_t sum = 0;
    for (auto _ : state) {
      Bytes body = message.body;
      benchmark::DoNotOptimize(body);
      const detail::AlignedBody aligned(body);
      const auto* echo = verify ? detail::verified<schema::Echo>(aligned.bytes(), identifier, {})
                                : schema::GetEcho(aligned.bytes().data());
      sum += sum_of({echo->data()->data(), echo->data()->size()});
    }
    benchmark::DoNotOptimize(sum);
    count_items(state);
  };
}

[[maybe_unused]] const bool kRegistered = [] {
  for (const std::size_t payload : {64u, 512u, 4096u}) {
    const std::string size = "/" + std::to_string(payload);
    bench::row("FlatBuffers_Build" + size)
        .run("weft", build_with_kept_builder(payload))
        .run("new_builder", build_with_new_builder(payload));
    bench::row("HeapAlloc_Build" + size)
        .run("weft", frame_in_pooled_memory(payload))
        .run("naive", copy_into_new_memory(payload, HeaderCodec::kHeaderSize, false));
    bench::row("FlatBuffers_Read" + size).run("weft", read_pointer(payload)).run("view", read_view(payload, false));
    bench::row("HeapAlloc_Read" + size)
        .run("weft", read_view(payload, false))
        .run("naive", copy_into_new_memory(payload, 0, false));
    bench::row("FlatBuffers_Read" + size + " (honest)")
        .run("weft", read_all(payload, 0, true))
        .run("weft_misaligned", read_all(payload, 4, true))
        .run("unverified", read_all(payload, 0, false))
        .run("view", read_view(payload, true))
        .run("copy", copy_into_new_memory(payload, 0, true));
  }
  return true;
}();

}  // namespace
}  // namespace weft::serve
#endif
