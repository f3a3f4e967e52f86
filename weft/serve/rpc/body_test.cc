// SPDX-License-Identifier: MIT
// Bodies of protobuf and FlatBuffers.
#include "weft/serve/rpc/body.h"

#include <string>
#include <utility>

#include "weft/serve/rpc/table.h"
#include "weft/serve/rpc/test_rpc.h"
#include <gtest/gtest.h>

#if __has_include(<google/protobuf/wrappers.pb.h>) && defined(WEFT_TEST_PROTOBUF)
#include <google/protobuf/wrappers.pb.h>
#endif
#ifdef WEFT_HAVE_SCHEMAS
#include "weft/serve/schemas/typed_test_generated.h"
#endif

namespace weft::serve::rpc {
namespace {

#ifdef WEFT_TEST_PROTOBUF
using Text = google::protobuf::StringValue;
using Number = google::protobuf::Int64Value;
using Measure = Method<"text.measure", Text, Number>;

class ProtobufBody : public test::RpcFixture {};

rt::Task<void> measure(std::string endpoint) {
  const auto client = test::open_rpc(endpoint);
  co_await test::await_connection(client.get());
  Text text;
  text.set_value("weft");
  const Result<Number> size = co_await client->call<Measure>(text);
  EXPECT_TRUE(size) << size.error().message();
  EXPECT_EQ(size ? size->value() : 0, 4);
  const auto refused = co_await client->call_bytes("text.measure", as_bytes("\x0a\xff"));  // more than there is
  EXPECT_EQ(refused.error(), status_error(Status::invalid_request, ""));
}

TEST_F(ProtobufBody, AMessageIsARequestAndAResponse) {
  Methods methods;
  ASSERT_TRUE(methods.add<Measure>([](const Text& text) {
    Number size;
    size.set_value(static_cast<std::int64_t>(text.value().size()));
    return size;
  }));
  run(measure(serve(std::move(methods))));
}

TEST_F(ProtobufBody, AnEmptyMessageHasNoBytes) {
  Scratch scratch;
  const Result<Bytes> bytes = Body<Text>::encode(Text(), scratch);
  ASSERT_TRUE(bytes);
  EXPECT_TRUE(bytes->empty());
  const Result<Text> back = Body<Text>::decode({});
  ASSERT_TRUE(back);
  EXPECT_EQ(back->value(), "");
}
#endif

#ifdef WEFT_HAVE_SCHEMAS
using schema::Places;
using Shift = Method<"places.shift", Table<Places>, Table<Places>>;

Table<Places> places(std::uint64_t revision, std::vector<schema::Point> points) {
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(schema::CreatePlaces(builder, builder.CreateVectorOfStructs(points), revision));
  return std::move(Table<Places>::of(builder)).value();
}

class TableBody : public test::RpcFixture {};

rt::Task<void> shift(std::string endpoint) {
  const auto client = test::open_rpc(endpoint);
  co_await test::await_connection(client.get());
  const Table<Places> request = places(7, {{1.5, 1}, {2.5, 2}});
  const Result<Table<Places>> answer = co_await client->call<Shift>(request);
  EXPECT_TRUE(answer) << answer.error().message();
  if (answer) {
    EXPECT_EQ((*answer)->revision(), 8u);
    EXPECT_EQ((*answer)->points()->size(), 2u);
    EXPECT_EQ((*answer)->points()->Get(1)->x(), 3.5);
  }
  for (const std::string& bad : {std::string(), std::string(7, '\0'), std::string(64, '\xff')}) {
    const auto refused = co_await client->call_bytes("places.shift", as_bytes(bad));
    EXPECT_EQ(refused.error(), status_error(Status::invalid_request, ""));
  }
}

TEST_F(TableBody, ATableIsARequestAndAResponse) {
  Methods methods;
  ASSERT_TRUE(methods.add<Shift>([](const Table<Places>& request) {
    std::vector<schema::Point> points;
    for (const schema::Point* point : *request->points()) {
      points.emplace_back(point->x() + 1, point->stamp());
    }
    return places(request->revision() + 1, points);
  }));
  run(shift(serve(std::move(methods))));
}

TEST_F(TableBody, EveryCutOfATableIsRefusedOrIsATable) {
  const Table<Places> whole = places(7, {{1.5, 1}, {2.5, 2}});
  for (std::size_t size = 0; size < whole.bytes().size(); ++size) {
    const Result<Table<Places>> cut = Body<Table<Places>>::decode(whole.bytes().first(size));
    if (cut && (*cut)->points() != nullptr) {
      EXPECT_LE((*cut)->points()->size(), 2u);
    }
  }
}
#endif

}  // namespace
}  // namespace weft::serve::rpc
