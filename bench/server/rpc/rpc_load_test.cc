// SPDX-License-Identifier: MIT
// The load of calls beside servers and clients that lie: any wrong answer must end the measurement.
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "bench/server/load_cell.h"
#include "bench/server/rpc/client_host.h"
#include "bench/server/rpc/client_process.h"
#include "bench/server/rpc/rpc_wire.h"
#include <gtest/gtest.h>

namespace bench {
namespace {

constexpr std::size_t kHead = 32;
constexpr std::uint32_t kSize = 64;

std::vector<std::uint8_t> request_of(std::uint64_t tag) {
  const auto wire = make_rpc_wire(kSize);
  std::vector<std::uint8_t> bytes(wire->request_size());
  wire->encode(tag, bytes.data());
  return bytes;
}

// The right answer.
std::vector<std::uint8_t> answer_to(std::uint64_t tag) {
  std::vector<std::uint8_t> bytes = request_of(tag);
  bytes[1] = 2;                                    // an answer
  std::memset(bytes.data() + 16, 0, 8);            // without a time
  store_big<std::uint32_t>(bytes.data() + 24, 0);  // and without a method
  return bytes;
}

WebWire::Answer verdict_on(Bytes answer, std::uint64_t tag) {
  std::size_t passed = 0;
  return make_rpc_wire(kSize)->take(answer, tag, passed);
}

std::string complaint_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const LoadError& error) {
    return error.what();
  }
  return "";
}

TEST(RpcWire, WritesARequestOfTheFormat) {
  const auto bytes = request_of(5);
  ASSERT_EQ(bytes.size(), kHead + kSize);
  EXPECT_EQ(load_big<std::uint64_t>(bytes.data()), 0x0401'0000'0000'0000u);  // version 4, a request by number
  EXPECT_EQ(load_big<std::uint64_t>(bytes.data() + 8), 6u);
  EXPECT_EQ(load_big<std::uint32_t>(bytes.data() + 24), kEcho);
  EXPECT_EQ(load_big<std::uint32_t>(bytes.data() + 28), kSize);
  EXPECT_TRUE(intact(Bytes(bytes).subspan(kHead)));
}

TEST(RpcWire, TakesAWholeAnswerOnly) {
  const auto answer = answer_to(5);
  const auto whole = verdict_on(answer, 5);
  EXPECT_TRUE(whole.whole);
  EXPECT_EQ(whole.used, answer.size());
  EXPECT_EQ(whole.fault, nullptr);
  for (const std::size_t size : {std::size_t{1}, kHead, answer.size() - 1}) {
    const auto part = verdict_on(Bytes(answer).first(size), 5);
    EXPECT_EQ(part.used, 0u);
    EXPECT_EQ(part.fault, nullptr);
  }
}

TEST(RpcWire, FindsAChangeOfAnyByte) {
  for (std::size_t at = 0; at < kHead + kSize; ++at) {
    auto answer = answer_to(5);
    answer[at] ^= 1;
    EXPECT_NE(verdict_on(answer, 5).fault, nullptr) << at;
  }
}

TEST(RpcWire, FindsTheAnswerToAnotherCall) { EXPECT_NE(verdict_on(answer_to(6), 5).fault, nullptr); }

TEST(RpcCells, NameTheirLoad) {
  const LoadCell call = parse_load_cell("rpc/1024/x16/depth4");
  EXPECT_EQ(call.wire, LoadWire::rpc);
  EXPECT_EQ(call.depth, 4u);
  EXPECT_FALSE(call.streams);
  EXPECT_TRUE(parse_load_cell("rpc_stream/64/x1").streams);
  EXPECT_EQ(parse_load_cell("publish/64/x100").style, WebStyle::publish);
  EXPECT_NE(complaint_of([] { (void)parse_load_cell("rpc/8/x1"); }), "");
}

TEST(RequestBodies, FindAnAnswerThatIsDamagedOrOfAnotherCall) {
  RequestBodies bodies(kSize);
  const Bytes made = bodies.make(7);
  std::vector<std::uint8_t> body(made.begin(), made.end());
  EXPECT_EQ(complaint_of([&] { bodies.check(body, 7); }), "");
  EXPECT_EQ(complaint_of([&] { bodies.check(body, 8); }), "an answer to another call");
  EXPECT_EQ(complaint_of([&] { bodies.check(Bytes(body).first(kSize - 1), 7); }), "an answer has a wrong size");
  body.back() ^= 1;
  EXPECT_EQ(complaint_of([&] { bodies.check(body, 7); }), "an answer is damaged");
}

TEST(RequestBodies, AReportHasTheCountOfGoodMessages) {
  RequestBodies bodies(kSize);
  StreamCheck check;
  check.take(bodies.make(1));
  check.take(bodies.make(2));
  const auto good = check.report();
  EXPECT_EQ(complaint_of([&] { check_report(good, 2); }), "");
  EXPECT_NE(complaint_of([&] { check_report(good, 3); }), "");
  check.take(bodies.make(1));
  check.take(bodies.make(3));
  EXPECT_NE(complaint_of([report = check.report()] { check_report(report, 2); }), "");
}

TEST(ClientProcess, ReportsAProgramThatIsNotThereOrEnds) {
  const ClientProcess::Options options{1, 1, kSize, 1, false};
  EXPECT_NE(complaint_of([&] { ClientProcess("/nowhere/client", options); }).find("/nowhere/client"),
            std::string::npos);
  EXPECT_NE(complaint_of([&] { ClientProcess("/bin/false", options); }).find("it has ended"), std::string::npos);
}

}  // namespace
}  // namespace bench
