// SPDX-License-Identifier: MIT
// Counts every allocation of the test program, to prove that a span that is not recorded makes none.
#include <string>

#include "tests/support/count_allocations.h"
#include "weft/trace/tracer.h"
#include <gtest/gtest.h>

#ifdef WEFT_COUNTS_ALLOCATIONS

namespace weft::trace {
namespace {

TEST(QuietTracer, ASpanThatIsNotRecordedAllocatesNothing) {
  TracerOptions options;
  options.service = "test";
  options.ratio = 0;
  const auto tracer = Tracer::make(std::move(options)).value();
  (void)tracer->start("the thread gets its seed");
  const std::string name(100, 'n');
  const std::size_t before = allocations.load();
  for (int i = 0; i < 1000; ++i) {
    Span span = tracer->start(name, SpanKind::server);
    span.set("text", name);
    span.set_status(SpanStatus::error, name);
    const Span child = span.child(name);
    const auto parsed = TraceContext::parse("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00");
    const Span continued = tracer->start(name, SpanKind::server, *parsed);
  }
  EXPECT_EQ(allocations.load() - before, 0U);
}

}  // namespace
}  // namespace weft::trace

#endif
