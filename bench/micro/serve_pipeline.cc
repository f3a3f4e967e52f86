// SPDX-License-Identifier: MIT
// The published FramePipeline puts a ready frame into a ring, decodes it and starts an event loop for a
// coroutine that dispatches it. It encodes nothing and counts nothing. The honest twin is a stream: a message
// is built and framed, passes a ring, is decoded, verified and dispatched, and its answer is built and framed
// into a batch. Every message is counted, and its bytes are added up.
#include "weft/serve/dispatch/typed.h"

#ifdef WEFT_HAVE_SCHEMAS
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "bench/micro/micro.h"
#include "weft/mem/ring_buffer.h"
#include "weft/serve/schemas/echo_generated.h"

#if __has_include(<boost/asio/awaitable.hpp>) && __has_include(<boost/unordered/unordered_flat_map.hpp>)
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/unordered/unordered_flat_map.hpp>
#define WEFT_PIPELINE_MODEL
#endif

namespace weft::serve {
namespace {

constexpr std::uint32_t kId = 0x1001;
using Frame = HeaderCodec::Frame;

// The peer's end: collects answers in a batch, which is flushed when it is full.
struct Batch {
  std::vector<std::uint8_t> block = std::vector<std::uint8_t>(std::size_t{64} << 10);
  std::size_t used = 0;
  std::uint64_t answers = 0;

  void send(const FrameHeader& header, Bytes body) {
    if (block.size() - used < HeaderCodec::kHeaderSize + body.size()) {
      benchmark::DoNotOptimize(block.data());
      benchmark::ClobberMemory();
      used = 0;
    }
    used += encode_frame(HeaderCodec(), header, body, MutableBytes(block).subspan(used)).value();
    ++answers;
  }
};

std::uint64_t sum_of(const flatbuffers::Vector<std::uint8_t>& data) {
  std::uint64_t sum = 0;
  for (flatbuffers::uoffset_t at = 0; at + 8 <= data.size(); at += 8) {
    std::uint64_t word;
    std::memcpy(&word, data.data() + at, 8);
    sum += word;
  }
  return sum;
}
Bytes build_echo(flatbuffers::FlatBufferBuilder& builder, Bytes payload) {
  builder.Clear();
  schema::FinishEchoBuffer(builder, schema::CreateEcho(builder, builder.CreateVector(payload.data(), payload.size())));
  return {builder.GetBufferPointer(), builder.GetSize()};
}
Bytes bytes_of(const schema::Echo& echo) { return {echo.data()->data(), echo.data()->size()}; }

void check(bool right) {
  if (!right) {
    bench::fail("a message is lost or changed");
  }
}

std::vector<std::uint8_t> ready_frame(std::size_t payload) {
  const std::vector<std::uint8_t> body(payload, 7);
  std::vector<std::uint8_t> frame(HeaderCodec::kHeaderSize + payload);
  (void)encode_frame(HeaderCodec(), {kId, 0}, body, frame).value();
  return frame;
}

bench::Body published(std::size_t payload) {
  return [payload](benchmark::State& state) {
    const auto frame = ready_frame(payload);
    auto ring = mem::RingBuffer::make(4 * frame.size(), 4 * frame.size()).value();
    std::uint64_t count = 0;
    Batch batch;
    Dispatcher<Batch> dispatcher;
    (void)dispatcher.on(kId, [&count](Batch&, const Frame&) { ++count; });
    for (auto _ : state) {
      benchmark::DoNotOptimize(ring.write(frame));
      const auto decoded = HeaderCodec().decode(ring.read_view());
      dispatcher.dispatch(batch, decoded.frame);
      benchmark::DoNotOptimize(ring.consume(decoded.size));
    }
    check(count == static_cast<std::uint64_t>(state.iterations()));
    state.SetItemsProcessed(static_cast<std::int64_t>(count));
  };
}

bench::Body stream(std::size_t payload) {
  return [payload](benchmark::State& state) {
    const std::vector<std::uint8_t> body(payload, 7);
    auto ring = mem::RingBuffer::make(16 * (payload + 128), 16 * (payload + 128)).value();
    flatbuffers::FlatBufferBuilder requests;
    flatbuffers::FlatBufferBuilder answers;
    std::uint64_t count = 0;
    std::uint64_t sum = 0;
    Batch batch;
    Dispatcher<Batch> dispatcher;
    (void)route<schema::Echo>(dispatcher, kId, "ECHO", [&](Batch& caller, const schema::Echo& echo) {
      ++count;
      sum += sum_of(*echo.data());
      caller.send({kId, 0}, build_echo(answers, bytes_of(echo)));
    });
    for (auto _ : state) {
      const Bytes message = build_echo(requests, body);
      const MutableBytes room = ring.write_view(HeaderCodec::kHeaderSize + message.size()).value();
      benchmark::DoNotOptimize(ring.commit(encode_frame(HeaderCodec(), {kId, 0}, message, room).value()));
      const auto decoded = HeaderCodec().decode(ring.read_view());
      dispatcher.dispatch(batch, decoded.frame);
      benchmark::DoNotOptimize(ring.consume(decoded.size));
    }
    check(count == static_cast<std::uint64_t>(state.iterations()) && batch.answers == count);
    check(sum == count * (payload / 8) * 0x0707'0707'0707'0707U);
    state.SetItemsProcessed(static_cast<std::int64_t>(count));
  };
}

#ifdef WEFT_PIPELINE_MODEL
namespace asio = boost::asio;
using Handler = std::function<asio::awaitable<bool>(std::uint32_t id, Bytes body)>;

// The published design: a coroutine for the dispatch, one for the handler, a function object in between.
struct Model {
  boost::unordered_flat_map<std::uint32_t, Handler> handlers;

  asio::awaitable<bool> dispatch(std::uint32_t id, Bytes body) {
    const auto found = handlers.find(id);
    if (found == handlers.end()) {
      co_return false;
    }
    co_return co_await found->second(id, body);
  }
};

bench::Body published_model(std::size_t payload) {
  return [payload](benchmark::State& state) {
    const auto frame = ready_frame(payload);
    auto ring = mem::RingBuffer::make(4 * frame.size(), 4 * frame.size()).value();
    asio::io_context loop(1);
    std::uint64_t count = 0;
    Model model;
    model.handlers[kId] = [&count](std::uint32_t, Bytes) -> asio::awaitable<bool> {
      ++count;
      co_return true;
    };
    for (auto _ : state) {
      benchmark::DoNotOptimize(ring.write(frame));
      const auto decoded = HeaderCodec().decode(ring.read_view());
      asio::co_spawn(loop, model.dispatch(decoded.frame.header.id, decoded.frame.body), asio::detached);
      loop.run();
      loop.restart();
      benchmark::DoNotOptimize(ring.consume(decoded.size));
    }
    check(count == static_cast<std::uint64_t>(state.iterations()));
    state.SetItemsProcessed(static_cast<std::int64_t>(count));
  };
}

// A coroutine that lives as long as the stream, as the published design has one for each connection.
bench::Body model_stream(std::size_t payload) {
  return [payload](benchmark::State& state) {
    const std::vector<std::uint8_t> body(payload, 7);
    auto ring = mem::RingBuffer::make(16 * (payload + 128), 16 * (payload + 128)).value();
    flatbuffers::FlatBufferBuilder requests;
    flatbuffers::FlatBufferBuilder answers;
    asio::io_context loop(1);
    std::uint64_t count = 0;
    std::uint64_t sum = 0;
    Batch batch;
    Model model;
    model.handlers[kId] = [&](std::uint32_t id, Bytes bytes) -> asio::awaitable<bool> {
      flatbuffers::Verifier verifier(bytes.data(), bytes.size());
      if (!schema::VerifyEchoBuffer(verifier)) {
        co_return false;
      }
      const schema::Echo& echo = *schema::GetEcho(bytes.data());
      ++count;
      sum += sum_of(*echo.data());
      batch.send({id, 0}, build_echo(answers, bytes_of(echo)));
      co_return true;
    };
    const auto connection = [&]() -> asio::awaitable<void> {
      for (auto _ : state) {
        const Bytes message = build_echo(requests, body);
        const MutableBytes room = ring.write_view(HeaderCodec::kHeaderSize + message.size()).value();
        benchmark::DoNotOptimize(ring.commit(encode_frame(HeaderCodec(), {kId, 0}, message, room).value()));
        const auto decoded = HeaderCodec().decode(ring.read_view());
        check(co_await model.dispatch(decoded.frame.header.id, decoded.frame.body));
        benchmark::DoNotOptimize(ring.consume(decoded.size));
      }
    };
    asio::co_spawn(loop, connection(), asio::detached);
    loop.run();
    check(count == static_cast<std::uint64_t>(state.iterations()) && batch.answers == count);
    check(sum == count * (payload / 8) * 0x0707'0707'0707'0707U);
    state.SetItemsProcessed(static_cast<std::int64_t>(count));
  };
}
#endif

[[maybe_unused]] const bool kRegistered = [] {
  for (const std::size_t payload : {64u, 512u, 4096u}) {
    const std::string name = "FramePipeline/" + std::to_string(payload);
    auto row = bench::row(name).run("weft", published(payload));
    auto honest = bench::row(name + " (honest)").run("weft", stream(payload));
#ifdef WEFT_PIPELINE_MODEL
    row.run("published_model", published_model(payload));
    honest.run("published_model", model_stream(payload));
#endif
  }
  return true;
}();

}  // namespace
}  // namespace weft::serve
#endif
