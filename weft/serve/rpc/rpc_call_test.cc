// SPDX-License-Identifier: MIT
#include <stdexcept>
#include <string>
#include <vector>

#include "weft/rt/task/task_time.h"
#include "weft/serve/rpc/test_rpc.h"
#include <gtest/gtest.h>

namespace weft::serve::rpc {
namespace {

using test::Add;
using test::open_rpc;
using test::Ping;
using test::Sum;
using test::Upper;

std::string in_capitals(std::string text) {
  for (char& c : text) {
    c = static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  }
  return text;
}

// A method for each form of a handler.
using Divide = Method<"calc.divide", Sum, std::int64_t>;
using Later = Method<"later", std::string, std::string>;
using Refuse = Method<"refuse", std::string, Empty>;
using Throw = Method<"throw", Empty, Empty>;
using ThrowLater = Method<"throw.later", Empty, Empty>;
using Length = Method<"length", Bytes, std::int64_t>;
using Copy = Method<"copy", std::vector<std::uint8_t>, OwnedBytes>;

constexpr ErrorDomain kShop("shop");

Methods all_forms() {
  Methods methods;
  EXPECT_TRUE(methods.add<Add>([](const Sum& sum) { return sum.a + sum.b; }));
  EXPECT_TRUE(methods.add<Divide>([](const Sum& sum) -> Result<std::int64_t> {
    if (sum.b == 0) {
      return Error(kShop, 33, "division by zero");
    }
    return sum.a / sum.b;
  }));
  EXPECT_TRUE(methods.add<Upper>([](const std::string& text) { return in_capitals(text); }));
  EXPECT_TRUE(methods.add<Later>([](const std::string& text, Call& call) -> rt::Task<Result<std::string>> {
    (void)co_await rt::yield();
    (void)co_await rt::yield();
    co_return std::string(call.method()) + ": " + text;
  }));
  EXPECT_TRUE(methods.add<Refuse>([](const std::string& text, Call& call) -> rt::Task<Result<void>> {
    (void)co_await rt::yield();
    co_return call.refuse(17, text);
  }));
  EXPECT_TRUE(methods.add<Ping>([] {}));
  EXPECT_TRUE(methods.add<Throw>([] { throw std::runtime_error("a secret of the server"); }));
  EXPECT_TRUE(methods.add<ThrowLater>([]() -> rt::Task<> {
    (void)co_await rt::yield();
    throw std::runtime_error("a secret of the server");
  }));
  EXPECT_TRUE(methods.add<Length>([](Bytes bytes) { return static_cast<int>(bytes.size()); }));
  EXPECT_TRUE(methods.add<Copy>([](const std::vector<std::uint8_t>& bytes) {
    OwnedBytes copy;
    EXPECT_TRUE(copy.assign(Bytes(bytes)));
    return copy;
  }));
  return methods;
}

class RpcCall : public test::RpcFixture {};

rt::Task<void> call_each(std::string endpoint) {
  const auto client = open_rpc(endpoint);
  co_await test::await_connection(client.get());
  const auto sum = co_await client->call<Add>({20, 22});
  EXPECT_EQ(sum, 42);
  const auto half = co_await client->call<Divide>({84, 2});
  EXPECT_EQ(half, 42);
  const std::string text = "by number";
  const auto capitals = co_await client->call<Upper>(text);
  EXPECT_EQ(capitals, "BY NUMBER");
  const auto later = co_await client->call<Later>(text);
  EXPECT_EQ(later, "later: by number");
  const auto pong = co_await client->call<Ping>(Empty());
  EXPECT_TRUE(pong) << pong.error().message();
  const auto length = co_await client->call<Length>(as_bytes("12345"));
  EXPECT_EQ(length, 5);
  const std::vector<std::uint8_t> bytes(100'000, 7);
  const auto copy = co_await client->call<Copy>(bytes);
  EXPECT_TRUE(copy && copy->bytes().size() == bytes.size() && copy->bytes()[99'999] == 7);
  const auto raw = co_await client->call_bytes("later", as_bytes("bytes"));
  EXPECT_TRUE(raw && as_text(raw->bytes()) == "later: bytes");
  co_await test::end_client(client.get());
  EXPECT_EQ(client->connection().requests().answered.value(), 8u);
}
TEST_F(RpcCall, EachFormOfAHandlerAnswersItsCaller) {
  run(call_each(serve(all_forms())));
  until_counted([](const RpcCounts& counts) { return counts.answered == 8; });
}

rt::Task<void> call_refusals(std::string endpoint) {
  const auto client = open_rpc(endpoint);
  co_await test::await_connection(client.get());
  const auto divided = co_await client->call<Divide>({1, 0});
  EXPECT_EQ(divided.error(), Error(kServiceDomain, 33)) << divided.error().message();
  EXPECT_STREQ(divided.error().text(), "division by zero");
  EXPECT_EQ(divided.error().fate(), Fate::answered);

  const std::string account = "there is no account of this name";
  const auto refused = co_await client->call<Refuse>(account);
  EXPECT_EQ(refused.error(), Error(kServiceDomain, 17));
  EXPECT_EQ(refused.error().text(), account);

  const std::string essay(2 * kTextMax, 'e');
  std::string whole;
  CallOptions options;
  options.refusal = &whole;
  const auto long_text = co_await client->call<Refuse>(essay, options);
  EXPECT_EQ(long_text.error(), Error(kServiceDomain, 17));
  EXPECT_EQ(whole, std::string(kTextMax, 'e'));

  const auto thrown = co_await client->call<Throw>(Empty());
  EXPECT_EQ(thrown.error(), status_error(Status::failed, ""));
  EXPECT_EQ(std::string(thrown.error().text()).find("secret"), std::string::npos);
  const auto thrown_later = co_await client->call<ThrowLater>(Empty());
  EXPECT_EQ(thrown_later.error(), status_error(Status::failed, ""));

  const auto unknown = co_await client->call_bytes("calc.subtract", {});
  EXPECT_EQ(unknown.error(), status_error(Status::unknown_method, ""));
  const auto unnamed = co_await client->call_bytes("two words", {});
  EXPECT_EQ(unnamed.error(), Errc::invalid_argument);
  EXPECT_EQ(unnamed.error().fate(), Fate::not_sent);

  const auto invalid = co_await client->call_bytes("calc.add", as_bytes("five?"));
  EXPECT_EQ(invalid.error(), status_error(Status::invalid_request, ""));
  EXPECT_STREQ(invalid.error().text(), "a sum has 16 bytes");
  using AddAsText = Method<"calc.add", Sum, Sum>;
  const auto misread = co_await client->call<AddAsText>({1, 2});
  EXPECT_EQ(misread.error(), Errc::protocol_error) << "the response is not a Sum";
  EXPECT_EQ(misread.error().fate(), Fate::answered);

  const auto still = co_await client->call<Add>({1, 2});
  EXPECT_EQ(still, 3);
  EXPECT_EQ(client->connection().requests().error_frames.value(), 7u);
}
TEST_F(RpcCall, AnErrorReachesTheCallerWithItsCodeAndText) {
  std::vector<std::string> thrown;
  ServerOptions options;
  options.on_exception = [&](const HandlerException& exception) { thrown.emplace_back(exception.what); };
  make_server(options);
  run(call_refusals(serve(all_forms())));
  until_counted([](const RpcCounts& counts) {
    return counts.refused == 3 && counts.failed == 2 && counts.unknown == 1 && counts.invalid == 1 &&
           counts.answered == 2;
  });
  (void)stop_now();
  EXPECT_EQ(thrown, std::vector<std::string>(2, "a secret of the server"));
}

rt::Task<void> list_methods(std::string endpoint) {
  const auto client = open_rpc(endpoint);
  co_await test::await_connection(client.get());
  const auto methods = co_await client->methods();
  const MethodInfos expected = {{"calc.add", 0}, {"text.upper", 7}, {"other.add", 0}, {"weft.methods", 0}};
  EXPECT_EQ(methods, expected);
  const auto other = co_await client->call_bytes("other.add", {});
  EXPECT_EQ(other.error(), status_error(Status::invalid_request, "")) << "the method has another name, too";
}
TEST_F(RpcCall, AServerListsItsMethods) {
  Methods methods;
  const auto add = [](const Sum& sum) { return sum.a + sum.b; };
  ASSERT_TRUE(methods.add<Add>(add));
  ASSERT_TRUE(methods.add<Upper>(&in_capitals));
  ASSERT_TRUE(methods.add<Add>("other.add", add));
  EXPECT_EQ(methods.add<Add>(add).error(), Errc::conflict);
  using SameNumber = Method<"another", std::string, std::string, 7>;
  EXPECT_EQ(methods.add<SameNumber>(&in_capitals).error(), Errc::conflict);
  EXPECT_EQ(methods.add<Add>("two words", add).error(), Errc::invalid_argument);
  EXPECT_EQ(methods.add<Add>("", add).error(), Errc::invalid_argument);
  EXPECT_EQ(methods.add<Add>(std::string(kNameMax + 1, 'n'), add).error(), Errc::invalid_argument);
  EXPECT_EQ(methods.add<Add>("weft.methods", add).error(), Errc::invalid_argument);
  EXPECT_EQ(methods.size(), 3u);
  run(list_methods(serve(std::move(methods))));
}

rt::Task<void> call_large(std::string endpoint) {
  ClientOptions options;
  options.body_max = 1000;
  const auto client = open_rpc(endpoint, options);
  co_await test::await_connection(client.get());
  const std::string long_text(1001, 'l');
  const auto unsent = co_await client->call<Upper>(long_text);
  EXPECT_EQ(unsent.error(), Errc::message_too_large);
  EXPECT_EQ(unsent.error().fate(), Fate::not_sent);
  const std::string grown(99, 'g');
  const auto too_large = co_await client->call<Later>(grown);
  EXPECT_EQ(too_large.error(), status_error(Status::too_large, "")) << too_large.error().message();
  const std::string above(101, 'a');
  const auto refused = co_await client->call<Upper>(above);
  EXPECT_EQ(refused.error(), Errc::connection_closed) << "the server refuses such a frame";
  EXPECT_EQ(refused.error().fate(), Fate::outcome_unknown);
}
TEST_F(RpcCall, ABodyAboveTheBoundOfEitherEndIsRefused) {
  ServiceOptions limits;
  limits.body_max = 100;
  run(call_large(serve(all_forms(), limits)));
  until_counted([](const RpcCounts& counts) { return counts.too_large == 1; });
  until([](const CounterValues& counters) { return counters.closed_for(CloseReason::refused_frame) == 1; });
}

// Bodies of Body<T>, without a connection.
template <typename T>
T there_and_back(const T& value) {
  Scratch scratch;
  const auto bytes = Body<T>::encode(value, scratch);
  EXPECT_TRUE(bytes);
  auto back = Body<T>::decode(*bytes);
  EXPECT_TRUE(back);
  return std::move(back).value();
}
TEST(RpcBody, AValueComesBackAsItWas) {
  EXPECT_EQ(there_and_back<std::int64_t>(-5), -5);
  EXPECT_EQ(there_and_back<std::uint16_t>(0xFFFF), 0xFFFF);
  EXPECT_EQ(there_and_back<std::string>("text"), "text");
  EXPECT_EQ(there_and_back(std::vector<std::uint8_t>(1000, 3)), std::vector<std::uint8_t>(1000, 3));
  EXPECT_EQ(there_and_back(Empty()), Empty());
  EXPECT_EQ(there_and_back(MethodInfos{{"a", 0}, {"b", 4'294'967'295}}), (MethodInfos{{"a", 0}, {"b", 4'294'967'295}}));
}
TEST(RpcBody, BytesThatAreNotAValueAreRefused) {
  EXPECT_EQ(Body<std::int64_t>::decode(as_bytes("1234567")).error(), Errc::protocol_error);
  EXPECT_EQ(Body<std::uint16_t>::decode(as_bytes("123")).error(), Errc::protocol_error);
  EXPECT_EQ(Body<Empty>::decode(as_bytes(".")).error(), Errc::protocol_error);
  for (const char* const list :
       {"a", "a b\n", "a 0\n", "a 4294967296\n", "a -1\n", "\n", "a  1\n", "a 1 \n", "a/?\n"}) {
    EXPECT_EQ(Body<MethodInfos>::decode(as_bytes(list)).error(), Errc::protocol_error) << list;
  }
}

TEST(RpcBody, AScratchIsGivenAgain) {
  Scratch scratch;
  for (const std::size_t size :
       {std::size_t{1}, std::size_t{128}, std::size_t{129}, std::size_t{100'000}, std::size_t{0}}) {
    const auto room = scratch.take(size);
    ASSERT_TRUE(room);
    EXPECT_EQ(room->size(), size);
    std::fill(room->begin(), room->end(), std::uint8_t{1});
  }
}

TEST(RpcStatus, AnErrorThatTravelsKeepsItsMeaning) {
  const auto travelled = [](const Error& error) { return error_of(refusal_of(error)); };
  EXPECT_EQ(travelled(Error(kShop, 7, "sold out")), Error(kServiceDomain, 7));
  EXPECT_STREQ(travelled(Error(kShop, 7, "sold out")).text(), "sold out");
  EXPECT_EQ(travelled(Errc::not_found), Error(kServiceDomain, static_cast<std::uint16_t>(Errc::not_found)));
  EXPECT_FALSE(std::string(travelled(Errc::not_found).text()).empty());
  EXPECT_EQ(travelled(status_error(Status::busy, "later")), status_error(Status::busy, ""));
  EXPECT_TRUE(is_busy(travelled(status_error(Status::busy, "later"))));
  EXPECT_FALSE(is_busy(Error(kServiceDomain, 6)));
  EXPECT_EQ(travelled(status_error(Status::timed_out, "")), Errc::timed_out);
  EXPECT_EQ(travelled(status_error(static_cast<Status>(99), "")), Error(kServiceDomain, 99)) << "not a status";
  EXPECT_EQ(error_of({static_cast<Status>(99), 0, "from the future"}), Errc::protocol_error);
  EXPECT_EQ(error_of({Status::ok, 0, ""}), Errc::protocol_error);
  EXPECT_STREQ(error_of({Status::refused, 3, "two\nlines"}).text(), "two?lines");
  EXPECT_FALSE(std::string(error_of({Status::refused, 3, ""}).text()).empty());
}

}  // namespace
}  // namespace weft::serve::rpc
