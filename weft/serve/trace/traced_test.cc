// SPDX-License-Identifier: MIT
#include "weft/serve/trace/traced.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "weft/rt/task/task_time.h"
#include "weft/serve/web/body_stream.h"
#include "weft/serve/web/middleware.h"
#include "weft/serve/web_client/test_web_client.h"
#include <gtest/gtest.h>

namespace weft::serve::web {
namespace {

using serve::test::Client;
using test::kHost;
using test::open_http;
using test::outcome_text;
using test::read_reply;
using test::Reply;
using trace::SpanRecord;

const std::string kTrace = "0af7651916cd43dd8448eb211c80319c";
const std::string kTraceparent = "00-" + kTrace + "-b7ad6b7169203331-01";

std::string attribute_of(const SpanRecord& record, std::string_view wanted) {
  std::string found = "none";
  record.attributes.for_each([&](std::string_view name, const trace::Attributes::Value& value) {
    if (name == wanted) {
      found = value.type == trace::Attributes::Type::text ? std::string(value.text) : std::to_string(value.integer);
    }
  });
  return found;
}

class TracedTest : public test::HttpClientFixture {
 protected:
  void trace_routes(double ratio = 1, TracedOptions options = {}) {
    trace::TracerOptions made;
    made.service = "test";
    made.ratio = ratio;
    tracer_ = trace::Tracer::make(std::move(made)).value();
    router_.use(traced(tracer_, options));
  }
  std::vector<std::unique_ptr<SpanRecord>> finished() {
    std::vector<std::unique_ptr<SpanRecord>> records;
    tracer_->queue().take(1000, std::size_t{1} << 30, records);
    return records;
  }
  static Reply ask(Client& client, const std::string& path, const std::string& fields = "") {
    client.write("POST " + path + kHost + fields + "Content-Length: 0\r\n\r\n");
    return read_reply(client);
  }

  std::shared_ptr<trace::Tracer> tracer_;
};

TEST_F(TracedTest, EachKindOfHandlerHasASpanOfItsRequest) {
  trace_routes();
  const auto name_of = [](const Request& request) {
    EXPECT_TRUE(request.span().is_recording());
    request.span().set("mine", request.param("name"));
    return Response(request.span().context().traceparent());
  };
  ASSERT_TRUE(router_.post("/call/{name}", name_of));
  ASSERT_TRUE(router_.post("/task/{name}", [name_of](const Request& request) -> rt::Task<Response> {
    (void)co_await rt::yield();
    co_return name_of(request);
  }));
  ASSERT_TRUE(router_.post("/body/{name}", [name_of](const Request& request, BodyReader& body) -> rt::Task<Response> {
    (void)co_await body.read_rest(100);
    co_return name_of(request);
  }));
  Client client(listen_web());
  for (const std::string kind : {"call", "task", "body"}) {
    const Reply reply = ask(client, "/" + kind + "/a%20b?secret=1", "User-Agent: me\r\n");
    const auto records = finished();
    ASSERT_EQ(records.size(), 1U) << kind;
    const SpanRecord& record = *records[0];
    EXPECT_EQ(record.context.traceparent(), reply.body);
    EXPECT_FALSE(record.parent);
    EXPECT_EQ(record.kind, trace::SpanKind::server);
    EXPECT_EQ(record.name, "POST /" + kind + "/{name}");
    EXPECT_EQ(record.status, trace::SpanStatus::unset);
    EXPECT_EQ(attribute_of(record, "http.request.method"), "POST");
    EXPECT_EQ(attribute_of(record, "http.route"), "/" + kind + "/{name}");
    EXPECT_EQ(attribute_of(record, "url.path"), "/" + kind + "/a%20b");
    EXPECT_EQ(attribute_of(record, "url.scheme"), "http");
    EXPECT_EQ(attribute_of(record, "url.query"), "none");
    EXPECT_EQ(attribute_of(record, "network.protocol.version"), "1.1");
    EXPECT_EQ(attribute_of(record, "user_agent.original"), "me");
    EXPECT_EQ(attribute_of(record, "http.response.status_code"), "200");
    EXPECT_EQ(attribute_of(record, "error.type"), "none");
    EXPECT_EQ(attribute_of(record, "mine"), "a b");
  }
}

TEST_F(TracedTest, AFailureOfTheServerIsAnErrorAndOneOfTheClientIsNot) {
  trace_routes();
  ASSERT_TRUE(router_.post("/404", []() -> Result<Response> { return Error(Errc::not_found, "no such user"); }));
  ASSERT_TRUE(router_.post("/504", []() -> Result<Response> { return Error(Errc::timed_out, "the database"); }));
  ASSERT_TRUE(router_.post("/503", [] { return Response(503); }));
  ASSERT_TRUE(router_.post("/500", []() -> Response { throw std::runtime_error("broken"); }));
  ASSERT_TRUE(router_.post("/500/task", []() -> rt::Task<Response> {
    (void)co_await rt::yield();
    throw std::runtime_error("broken");
  }));
  ASSERT_TRUE(router_.post("/500/fields", [] { return Response("x").set("a b", "c"); }));
  Client client(listen_web());
  const std::tuple<const char*, int, const char*> kCases[] = {
      {"/404", 404, ""},       {"/504", 504, "the database"}, {"/503", 503, ""},
      {"/500", 500, "broken"}, {"/500/task", 500, "broken"},  {"/500/fields", 500, ""}};
  for (const auto& [path, status, text] : kCases) {
    EXPECT_EQ(ask(client, path).status, status);
    const auto records = finished();
    ASSERT_EQ(records.size(), 1U) << path;
    EXPECT_EQ(attribute_of(*records[0], "http.response.status_code"), std::to_string(status)) << path;
    EXPECT_EQ(attribute_of(*records[0], "error.type"), status == 404 ? "none" : std::to_string(status)) << path;
    EXPECT_EQ(records[0]->status, status == 404 ? trace::SpanStatus::unset : trace::SpanStatus::error) << path;
    EXPECT_NE(records[0]->status_text.find(text), std::string::npos) << path << ": " << records[0]->status_text;
  }
}

TEST_F(TracedTest, TheTraceOfTheRequestGoesOn) {
  trace_routes(0);
  ASSERT_TRUE(router_.post("/", [](const Request& request) {
    const trace::TraceContext& context = request.span().context();
    return context.traceparent() + " " + context.tracestate();
  }));
  Client client(listen_web());
  const std::string fields = "TraceParent: " + kTraceparent + "\r\ntracestate: a=b\r\nTracestate: c=d\r\n";
  const Reply reply = ask(client, "/", fields);
  EXPECT_EQ(reply.body.substr(0, 36), "00-" + kTrace + "-");
  EXPECT_EQ(reply.body.substr(52), "-01 a=b,c=d");
  const auto records = finished();
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(records[0]->parent, trace::SpanId{0xb7ad6b7169203331});

  // One that is not recorded is continued, too.
  const Reply unsampled = ask(client, "/", "traceparent: " + kTraceparent.substr(0, 53) + "00\r\n");
  EXPECT_EQ(unsampled.body.substr(0, 36), "00-" + kTrace + "-");
  EXPECT_EQ(unsampled.body.substr(52), "-00 ");
  EXPECT_TRUE(finished().empty());
  EXPECT_EQ(tracer_->counts().started, 2U);
}

TEST_F(TracedTest, AFieldThatIsNotATraceparentOrStandsTwiceBeginsATrace) {
  trace_routes();
  ASSERT_TRUE(router_.post("/", [](const Request& request) { return request.span().context().to_text(); }));
  Client client(listen_web());
  const std::string line = "traceparent: " + kTraceparent + "\r\n";
  for (const std::string& fields :
       {std::string("traceparent: " + kTraceparent + "0\r\n"), line + line, std::string("tracestate: a=b\r\n"),
        std::string("traceparent:\r\n"), line + "tracestate: a=b\r\ntracestate: c=" + std::string(510, 'x') + "\r\n"}) {
    const Reply reply = ask(client, "/", fields);
    EXPECT_EQ(reply.status, 200);
    const bool continued = fields.size() > 300;  // its tracestate is too long, and dropped
    EXPECT_EQ(reply.body.find(kTrace) != std::string::npos, continued) << fields;
    EXPECT_EQ(reply.body.find('\n'), std::string::npos) << fields;
  }
}

TEST_F(TracedTest, ARouteForStrangersBeginsATrace) {
  trace_routes(0, {.take_parent = false});
  ASSERT_TRUE(router_.post("/", [](const Request& request) { return request.span().context().traceparent(); }));
  Client client(listen_web());
  const Reply reply = ask(client, "/", "traceparent: " + kTraceparent + "\r\n");
  EXPECT_EQ(reply.body.find(kTrace), std::string::npos);
  EXPECT_EQ(reply.body.size(), 55U);
  EXPECT_TRUE(finished().empty());
}

TEST_F(TracedTest, WithoutTheMiddlewareARequestHasASpanOfNoTrace) {
  ASSERT_TRUE(router_.post("/", [](const Request& request) {
    request.span().set("a", 1);
    EXPECT_FALSE(request.span().child("x").is_recording());
    return "<" + request.span().context().traceparent() + ">" + std::string(request.route());
  }));
  Client client(listen_web());
  EXPECT_EQ(ask(client, "/").body, "<>/");
}

TEST_F(TracedTest, TheSpanIsReachableInsideTheMiddlewareAlone) {
  const auto mark = [](const char* name) {
    return filter({}, [name](const Request& request, Response& response) {
      response.body() += std::string(name) + (request.span().is_recording() ? "+" : "-");
    });
  };
  router_.use(mark("outer"));
  trace_routes();
  router_.use(mark("inner"));
  ASSERT_TRUE(router_.post("/call", [] { return ""; }));
  ASSERT_TRUE(router_.post("/task", []() -> rt::Task<Response> {
    (void)co_await rt::yield();
    co_return Response("");
  }));
  Client client(listen_web());
  EXPECT_EQ(ask(client, "/call").body, "inner+outer-");
  EXPECT_EQ(ask(client, "/task").body, "inner+outer-");
}

TEST_F(TracedTest, AHandlerWhosePeerLeavesEndsItsSpan) {
  trace_routes();
  std::atomic<bool> begun{false};
  ASSERT_TRUE(router_.post("/", [&](const Request& request) -> rt::Task<Response> {
    request.span().set("begun", true);
    begun = true;
    (void)co_await rt::sleep(Duration(-1));  // until it is cancelled
    co_return Response();
  }));
  const std::string endpoint = listen_web();
  {
    Client client(endpoint);
    client.write("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n");
    for (const Instant limit = sys::now() + test::kLong; !begun && sys::now() < limit;) {
      std::this_thread::yield();
    }
  }
  for (const Instant limit = sys::now() + test::kLong; tracer_->queue().spans() == 0 && sys::now() < limit;) {
    std::this_thread::yield();
  }
  EXPECT_EQ(finished().size(), 1U);
}

// --- clients ---

rt::Task<void> ask_twice(std::shared_ptr<trace::Tracer> tracer, std::string url) {
  const auto http = open_http();
  trace::Span mine = tracer->start("mine");
  const auto found = co_await traced_request(*http, mine, ClientRequest::get(url + "/found?secret=1"));
  EXPECT_EQ(outcome_text(found).substr(0, 4), "200 ");
  const auto missing = co_await traced_request(*http, mine, ClientRequest::get(url + "/missing"));
  EXPECT_EQ(outcome_text(missing).substr(0, 4), "404 ");
  const auto refused = co_await traced_request(*http, mine, ClientRequest::get("ftp://x/"));
  EXPECT_FALSE(refused);
}

TEST_F(TracedTest, ARequestOfAClientIsTheParentOfTheServersSpan) {
  trace_routes();
  ASSERT_TRUE(router_.get("/found", [](const Request& request) { return request.span().context().traceparent(); }));
  const std::string url = serve_site();
  run(ask_twice(tracer_, url));
  const auto records = finished();
  ASSERT_EQ(records.size(), 5U);  // in the order of their ends
  const SpanRecord& server = *records[0];
  const SpanRecord& found = *records[1];
  const SpanRecord& missing = *records[2];
  const SpanRecord& refused = *records[3];
  const SpanRecord& mine = *records[4];
  EXPECT_EQ(server.kind, trace::SpanKind::server);
  EXPECT_EQ(server.parent, found.context.span_id());
  for (const SpanRecord* record : {&found, &missing, &refused}) {
    EXPECT_EQ(record->kind, trace::SpanKind::client);
    EXPECT_EQ(record->name, "GET");
    EXPECT_EQ(record->parent, mine.context.span_id());
    EXPECT_EQ(record->context.trace_id(), mine.context.trace_id());
    EXPECT_EQ(attribute_of(*record, "http.request.method"), "GET");
  }
  EXPECT_EQ(server.context.trace_id(), mine.context.trace_id());
  EXPECT_EQ(attribute_of(found, "url.full"), url + "/found");
  EXPECT_EQ(attribute_of(found, "server.address"), "127.0.0.1");
  EXPECT_EQ(attribute_of(found, "server.port"), url.substr(url.rfind(':') + 1));
  EXPECT_EQ(attribute_of(found, "http.response.status_code"), "200");
  EXPECT_EQ(found.status, trace::SpanStatus::unset);
  EXPECT_EQ(attribute_of(missing, "error.type"), "404");
  EXPECT_EQ(missing.status, trace::SpanStatus::error);
  EXPECT_EQ(attribute_of(refused, "error.type"), describe(Errc::invalid_argument));
  EXPECT_EQ(refused.status, trace::SpanStatus::error);
}

TEST(TracedRequest, FieldsAreInjectedAndAnEmptyContextChangesNothing) {
  ClientRequest request = ClientRequest::get("http://x/");
  inject(trace::TraceContext(), request);
  EXPECT_EQ(request.fields().lines(), "");
  inject(trace::TraceContext::parse(kTraceparent, "a=b").value(), request);
  inject(trace::TraceContext::parse(kTraceparent, " a=c ").value(), request);
  EXPECT_EQ(request.fields().lines(), "traceparent: " + kTraceparent + "\r\ntracestate: a=c\r\n");
  EXPECT_EQ(request.error(), Error());
}

}  // namespace
}  // namespace weft::serve::web
