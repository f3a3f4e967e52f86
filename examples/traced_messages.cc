// SPDX-License-Identifier: MIT
// One trace over sockets and topics: the span of a receiver is a child of the span of its sender.
#include <cstdio>
#include <memory>
#include <string>

#include "weft/sys/clock.h"
#include "weft/topic/topics.h"
#include "weft/topic/wire/trace_headers.h"
#include "weft/trace/tracer.h"
#include "weft/weft.h"

using namespace weft;
using namespace std::chrono_literals;

Result<void> expect_one_trace(const trace::Span& sent, const trace::Span& handled) {
  std::printf("  %s\n  %s\n", sent.context().traceparent().c_str(), handled.context().traceparent().c_str());
  return sent.context().trace_id() == handled.context().trace_id()
             ? Result<void>()
             : Error(Errc::other, "the trace of the receiver is another one");
}

Result<void> over_sockets(Context& context, trace::Tracer& tracer) {
  Socket push = WEFT_TRY(context.socket(SocketType::push));
  Socket pull = WEFT_TRY(context.socket(SocketType::pull));
  WEFT_TRY(pull.bind("inproc://orders"));
  WEFT_TRY(push.connect("inproc://orders"));
  // [sockets]
  const trace::Span sent = tracer.start("send order", trace::SpanKind::producer);
  WEFT_TRY(push.send(sent.context().to_text(), More::yes));  // a part of its own
  WEFT_TRY(push.send("order 7"));

  const auto parts = WEFT_TRY(pull.recv_all());
  const auto parent = trace::TraceContext::from_text(parts.front().text()).value_or(trace::TraceContext());
  const trace::Span handled = tracer.start("handle order", trace::SpanKind::consumer, parent);
  // [sockets]
  return expect_one_trace(sent, handled);
}

Result<void> over_topics(Context& context, trace::Tracer& tracer) {
  Topics topics = WEFT_TRY(Topics::open(context, {.fleet = "inproc:demonstration"}));
  Subscription orders = WEFT_TRY(topics.subscribe("orders.*"));
  Publisher publisher = WEFT_TRY(topics.publisher("orders.eu"));
  // [topics]
  const trace::Span sent = tracer.start("publish order", trace::SpanKind::producer);
  Headers headers;
  WEFT_TRY(inject(sent.context(), headers));
  WEFT_TRY(publisher.publish("order 7", headers));

  const TopicMessage message = WEFT_TRY(orders.next_until(sys::now() + 10s));
  const trace::Span handled = tracer.start("handle order", trace::SpanKind::consumer, context_of(message.headers()));
  // [topics]
  topics.close();
  return expect_one_trace(sent, handled);
}

Result<void> run() {
  Context context;
  trace::TracerOptions options;
  options.service = "orders";
  const auto tracer = WEFT_TRY(trace::Tracer::make(options));
  WEFT_TRY(over_sockets(context, *tracer));
  return over_topics(context, *tracer);
}

int main() {
  if (const auto result = run(); !result) {
    std::fprintf(stderr, "traced_messages: %s\n", result.error().message().c_str());
    return 1;
  }
}
