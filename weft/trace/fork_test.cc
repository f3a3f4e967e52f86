// SPDX-License-Identifier: MIT
#include <cstdint>
#include <memory>

#include "weft/sys/linux/test_child.h"
#include "weft/trace/id_source.h"
#include "weft/trace/tracer.h"
#include <gtest/gtest.h>

namespace weft::trace {
namespace {

TEST(ForkedTracer, EachChildMakesIdsOfItsOwn) {
  (void)random_trace_id();  // the parent has its seeds
  constexpr int kChildren = 24;
  int odd = 0;
  for (int i = 0; i < kChildren; ++i) {  // children with the same seeds would all make the same first id
    odd += sys::test::holds_in_a_child([] { return (random_trace_id().low & 1U) != 0; }) ? 1 : 0;
  }
  EXPECT_GT(odd, 0);
  EXPECT_LT(odd, kChildren);
}

TEST(ForkedTracer, ASpanThatEndsInAChildIsDroppedAndCounted) {
  TracerOptions options;
  options.service = "test";
  const auto tracer = Tracer::make(options).value();
  Span begun = tracer->start("begun");
  EXPECT_TRUE(sys::test::holds_in_a_child([&] {
    begun.end();
    (void)tracer->start("own");
    return tracer->counts().dropped_forked == 2 && tracer->queue().spans() == 0;
  }));
  begun.end();
  EXPECT_EQ(tracer->counts().queued, 1U);
  EXPECT_EQ(tracer->counts().dropped_forked, 0U);
}

}  // namespace
}  // namespace weft::trace
