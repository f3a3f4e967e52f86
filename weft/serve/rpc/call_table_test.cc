// SPDX-License-Identifier: MIT
#include "weft/serve/rpc/call_table.h"

#include <map>
#include <memory>
#include <vector>

#include "weft/base/random.h"
#include "weft/serve/rpc/incoming.h"
#include "weft/serve/rpc/test_rpc.h"
#include <gtest/gtest.h>

namespace weft::serve::rpc {
namespace {

// Calls of a session, which the table does not touch.
class CallTableTest : public test::RpcFixture {
 protected:
  // Runs function(session) in a handler.
  void with_session(const std::function<void(Session&)>& function) {
    Methods methods;
    using Run = Method<"run", Empty, Empty>;
    ASSERT_TRUE(methods.add<Run>([&](const Empty&, Call& call) { function(call.session()); }));
    test::RawCaller caller(serve(std::move(methods)));
    caller.write(test::RawCaller::request(1, "run"));
    EXPECT_EQ(caller.receive()->status, Status::ok);
  }
};

TEST_F(CallTableTest, FindsEachCallByItsIdAsAMapDoes) {
  with_session([](Session& session) {
    CallTable table;
    RpcCounters counts;
    std::map<std::uint64_t, std::unique_ptr<Incoming>> model;
    rt::TimerWheel wheel(sys::now());
    Random random(4711);
    for (int step = 0; step < 20'000; ++step) {
      // Some ids share their lower bits, so that they share a bucket.
      const std::uint64_t id = 1 + random.below(64) * (random.below(2) == 0 ? 1 : std::uint64_t{1} << 20U);
      const auto at = model.find(id);
      EXPECT_EQ(table.find(id), at == model.end() ? nullptr : at->second.get());
      if (at != model.end()) {
        model.erase(at);  // leaves the table
      } else {
        Header header;
        header.id = id;
        auto call = std::make_unique<Incoming>(session, counts, header, "f", Bytes(), kNever);
        ASSERT_TRUE(call->enter(table, wheel));
        model.emplace(id, std::move(call));
      }
      ASSERT_EQ(table.size(), model.size());
    }
    model.clear();
    EXPECT_EQ(table.size(), 0u);
    EXPECT_EQ(table.find(1), nullptr);
  });
}

TEST_F(CallTableTest, ACallWithADeadlineHasATimerWhileItIsInTheTable) {
  with_session([](Session& session) {
    CallTable table;
    RpcCounters counts;
    rt::TimerWheel wheel(sys::now());
    Header header;
    header.id = 1;
    {
      Incoming call(session, counts, header, "f", Bytes(), sys::now() + std::chrono::hours(1));
      ASSERT_TRUE(call.enter(table, wheel));
      EXPECT_EQ(wheel.size(), 1u);
    }
    EXPECT_EQ(wheel.size(), 0u);
    EXPECT_EQ(table.size(), 0u);
  });
}

}  // namespace
}  // namespace weft::serve::rpc
