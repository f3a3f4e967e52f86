// SPDX-License-Identifier: MIT
#include "weft/serve/dispatch/typed.h"

#include <cstring>
#include <stdexcept>
#include <string>

#include "weft/rt/task/async_event.h"
#include "weft/serve/dispatch/test_caller.h"
#include <gtest/gtest.h>

#ifdef WEFT_HAVE_SCHEMAS
#include "weft/serve/schemas/echo_generated.h"
#include "weft/serve/schemas/error_response_generated.h"
#include "weft/serve/schemas/typed_test_generated.h"

namespace weft::serve {
namespace {

using test::Buffer;
using test::Caller;
using Frame = HeaderCodec::Frame;

Buffer finished(const flatbuffers::FlatBufferBuilder& builder) {
  return {builder.GetBufferPointer(), builder.GetBufferPointer() + builder.GetSize()};
}
Buffer echo_body(std::string_view text) {
  flatbuffers::FlatBufferBuilder builder;
  const auto data = builder.CreateVector(reinterpret_cast<const std::uint8_t*>(text.data()), text.size());
  schema::FinishEchoBuffer(builder, schema::CreateEcho(builder, data));
  return finished(builder);
}
Frame frame_of(std::uint32_t id, const Buffer& body) { return {{id, 0}, body}; }

std::string text_of(const schema::Echo& echo) {
  return {reinterpret_cast<const char*>(echo.data()->data()), echo.data()->size()};
}

// A dispatcher with one handler for echoes, which keeps their contents.
struct Echoes {
  Dispatcher<Caller> dispatcher;
  Caller caller;
  std::vector<std::string> got;

  explicit Echoes(const TypedLimits& limits = {}) {
    EXPECT_TRUE(route<schema::Echo>(
        dispatcher, 1, schema::EchoIdentifier(),
        [this](Caller& /*caller*/, const schema::Echo& echo) { got.push_back(text_of(echo)); }, limits));
  }
  void take(const Buffer& body) { dispatcher.dispatch(caller, frame_of(1, body)); }
};

TEST(Typed, AHandlerGetsItsMessage) {
  Echoes echoes;
  echoes.take(echo_body("hello"));
  EXPECT_EQ(echoes.got, std::vector<std::string>{"hello"});
  EXPECT_TRUE(echoes.caller.sent.empty());
}

// The published adapter verifies without the identifier, and takes a buffer of another type that happens to fit.
TEST(Typed, AMessageOfAnotherTypeIsRefusedAlsoWhenItWouldFit) {
  Echoes echoes;
  Buffer body = echo_body("hello");
  std::memcpy(body.data() + 4, "AERR", 4);
  echoes.take(body);
  EXPECT_TRUE(echoes.got.empty());
  EXPECT_EQ(echoes.caller.only_error().code, ErrorCode::invalid_body);
  EXPECT_EQ(echoes.dispatcher.counts().invalid.value(), 1u);
}

TEST(Typed, EveryTruncationAndNoiseIsAnsweredWithAnErrorFrame) {
  Echoes echoes;
  const Buffer body = echo_body("hello");
  std::size_t bad = 0;
  for (std::size_t size = 0; size < body.size() - 4; ++size, ++bad) {
    echoes.take(Buffer(body.begin(), body.begin() + static_cast<std::ptrdiff_t>(size)));
  }
  echoes.take(Buffer(64, 0xFF));
  EXPECT_EQ(echoes.got.size(), 0u);
  EXPECT_EQ(echoes.dispatcher.counts().invalid.value(), bad + 1);
  EXPECT_EQ(echoes.caller.sent.size(), bad + 1);
}

// After a header of 12 bytes the first body of an aligned block lies 4 beyond a multiple of 8; in a stream a body lies
// anywhere. The undefined-behaviour sanitizer finds unaligned reads.
TEST(Typed, ScalarsAreReadAtAlignedAddressesWhereverTheBodyLies) {
  flatbuffers::FlatBufferBuilder builder;
  const schema::Point point(-1.5, 77);
  builder.Finish(schema::CreatePlaces(builder, builder.CreateVectorOfStructs(&point, 1), 42), "PLCS");
  const Buffer body = finished(builder);
  Dispatcher<Caller> dispatcher;
  int calls = 0;
  ASSERT_TRUE(route<schema::Places>(dispatcher, 1, "PLCS", [&calls](Caller&, const schema::Places& places) {
    const schema::Point* first = places.points()->Get(0);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(first) % 8, 0u);
    EXPECT_EQ(first->x(), -1.5);
    EXPECT_EQ(first->stamp(), 77u);
    EXPECT_EQ(places.revision(), 42u);
    ++calls;
  }));
  Caller caller;
  alignas(8) std::array<std::uint8_t, 256> block;
  for (std::size_t offset = 0; offset < 16; ++offset) {
    std::copy(body.begin(), body.end(), block.begin() + static_cast<std::ptrdiff_t>(offset));
    dispatcher.dispatch(caller, {{1, 0}, Bytes(block).subspan(offset, body.size())});
  }
  EXPECT_EQ(calls, 16);
}

Buffer nested(int depth) {
  flatbuffers::FlatBufferBuilder builder;
  flatbuffers::Offset<schema::Nest> inner;
  for (int i = 0; i < depth; ++i) {
    inner = schema::CreateNest(builder, inner);
  }
  builder.Finish(inner, "NEST");
  return finished(builder);
}

TEST(Typed, DepthAndTablesAreBounded) {
  Dispatcher<Caller> dispatcher;
  int calls = 0;
  const auto count = [&calls](Caller&, const schema::Nest&) { ++calls; };
  ASSERT_TRUE(route<schema::Nest>(dispatcher, 1, "NEST", count, {.depth_max = 8}));
  ASSERT_TRUE(route<schema::Nest>(dispatcher, 2, "NEST", count, {.depth_max = 100, .tables_max = 8}));
  Caller caller;
  for (const std::uint32_t id : {1u, 2u}) {
    calls = 0;
    dispatcher.dispatch(caller, frame_of(id, nested(8)));
    EXPECT_EQ(calls, 1);
    dispatcher.dispatch(caller, frame_of(id, nested(9)));
    EXPECT_EQ(calls, 1);
  }
  EXPECT_EQ(dispatcher.counts().invalid.value(), 2u);
}

TEST(Typed, AnErrorOrExceptionIsAnsweredAsThatOfAnyHandler) {
  Dispatcher<Caller> dispatcher;
  ASSERT_TRUE(route<schema::Echo>(dispatcher, 1, "ECHO", [](Caller&, const schema::Echo&) -> Result<void> {
    return frame_error(ErrorCode::refused, "not today");
  }));
  ASSERT_TRUE(route<schema::Echo>(dispatcher, 2, "ECHO",
                                  [](Caller&, const schema::Echo&) { throw std::runtime_error("secret"); }));
  Caller first;
  dispatcher.dispatch(first, frame_of(1, echo_body("x")));
  EXPECT_EQ(first.only_error().text, "not today");
  Caller second;
  dispatcher.dispatch(second, frame_of(2, echo_body("x")));
  EXPECT_EQ(second.only_error().code, ErrorCode::handler_failed);
}

TEST(Typed, AnIdentifierThatCannotBeOneIsRefused) {
  Dispatcher<Caller> dispatcher;
  const auto handler = [](Caller&, const schema::Echo&) {};
  EXPECT_EQ(route<schema::Echo>(dispatcher, 1, "ECHOES", handler).error(), Errc::invalid_argument);
  EXPECT_EQ(route<schema::Echo>(dispatcher, 1, "", handler).error(), Errc::invalid_argument);
}

// The published adapter's message dies at the first co_await.
TEST(Typed, ACoroutinesMessageLivesUntilTheCoroutineHasEnded) {
  rt::test::HandTurned here;
  rt::AsyncEvent proceed;
  std::vector<std::string> got;
  Dispatcher<test::TaskCaller> dispatcher;
  ASSERT_TRUE(route<schema::Echo>(dispatcher, 1, "ECHO",
                                  [&](test::TaskCaller&, const schema::Echo& echo) -> rt::Task<Result<void>> {
                                    got.push_back("begun: " + text_of(echo));
                                    (void)co_await proceed.wait();
                                    got.push_back("ended: " + text_of(echo));
                                    co_return frame_error(ErrorCode::refused, "not today");
                                  }));
  test::TaskCaller caller(here.runner());
  {
    const Buffer body = echo_body("hello");
    dispatcher.dispatch(caller, frame_of(1, body));
  }
  EXPECT_EQ(got, std::vector<std::string>{"begun: hello"});
  proceed.set();
  here.turn();
  EXPECT_EQ(got.back(), "ended: hello");
  EXPECT_EQ(caller.only_error().text, "not today");
  test::TaskCaller other(here.runner());
  dispatcher.dispatch(other, frame_of(1, Buffer(40, 0xFF)));
  EXPECT_EQ(other.only_error().code, ErrorCode::invalid_body);
  EXPECT_EQ(other.tasks.size(), 0u);
}

}  // namespace
}  // namespace weft::serve
#endif
