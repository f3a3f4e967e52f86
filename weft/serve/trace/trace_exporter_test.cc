// SPDX-License-Identifier: MIT
#include "weft/serve/trace/trace_exporter.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "weft/serve/web_client/test_web_client.h"
#include <gtest/gtest.h>

// The exporter against a collector that is a site of this library, or a peer that sends any bytes.
namespace weft::serve::web {
namespace {

using serve::test::kLong;
using test::patient;

class TraceExporterTest : public test::HttpClientFixture {
 protected:
  void SetUp() override {
    HttpClientFixture::SetUp();
    make_tracer();
    options_.interval = Duration(-1);
    options_.timeout = kLong;
    options_.backoff_first = options_.backoff_max = std::chrono::milliseconds(1);
    options_.http = patient();
  }
  void TearDown() override {
    exporter_.reset();
    HttpClientFixture::TearDown();
  }
  void make_tracer(std::size_t queue_spans = 4096) {
    trace::TracerOptions made;
    made.service = "test";
    made.queue_spans = queue_spans;
    tracer_ = trace::Tracer::make(std::move(made)).value();
  }
  // A collector that answers with the statuses in turn, and then with 200.
  void serve_collector(std::vector<unsigned> statuses = {}, std::string body = "{}") {
    statuses_ = std::move(statuses);
    ASSERT_TRUE(router_.post("/v1/traces", [this, body = std::move(body)](const Request& request) {
      const std::lock_guard lock(mutex_);
      bodies_.emplace_back(request.body());
      fields_ = std::string(request["Content-Type"]).append(" ").append(request["Authorization"]);
      const std::size_t turn = bodies_.size() - 1;
      const unsigned status = turn < statuses_.size() ? statuses_[turn] : 200;
      Response response(status, body, "application/json");
      if (status == 429) {
        response.set("Retry-After", "86400");  // backoff_max is shorter
      }
      return response;
    }));
    options_.url = serve_site() + "/v1/traces";
  }
  void open() {
    run(open_on_core(this));
    ASSERT_NE(exporter_, nullptr);
  }
  void stop() { run(stop_on_core(this, sys::now() + kLong, Errc::ok)); }
  void finish_spans(int count, const std::string& name = "span") {
    for (int i = 0; i < count; ++i) {
      (void)tracer_->start(name + std::to_string(i));
    }
  }
  template <typename Condition>
  void until(Condition condition) {
    for (const Instant limit = sys::now() + kLong; !condition(tracer_->counts()) && sys::now() < limit;) {
      std::this_thread::yield();
    }
    EXPECT_TRUE(condition(tracer_->counts()));
  }
  std::vector<std::string> bodies() {
    const std::lock_guard lock(mutex_);
    return bodies_;
  }
  static std::size_t spans_in(const std::string& body) {
    std::size_t count = 0;
    for (std::size_t at = body.find("\"spanId\""); at != std::string::npos; at = body.find("\"spanId\"", at + 1)) {
      ++count;
    }
    return count;
  }
  void expect_balance() {
    const trace::TraceCounts counts = tracer_->counts();
    EXPECT_EQ(counts.sampled, counts.exported + counts.dropped_spans + counts.dropped_bytes + counts.dropped_memory +
                                  counts.dropped_forked + counts.dropped_refused + counts.dropped_failed +
                                  counts.dropped_stopped + counts.queued);
  }

  static rt::Task<void> open_on_core(TraceExporterTest* self) {
    auto opened =
        TraceExporter::open(std::make_shared<ClientHost>(*rt::Core::current()), self->tracer_, self->options_);
    EXPECT_TRUE(opened) << opened.error().message();
    if (opened) {
      self->exporter_ = std::move(*opened);
    }
    co_return;
  }
  static rt::Task<void> stop_on_core(TraceExporterTest* self, Instant deadline, Errc expected) {
    const Result<void> stopped = co_await self->exporter_->stop(deadline);
    EXPECT_EQ(stopped.error(), expected) << stopped.error().message();
  }

  std::shared_ptr<trace::Tracer> tracer_;
  TraceExporterOptions options_;
  std::unique_ptr<TraceExporter> exporter_;
  std::mutex mutex_;
  std::vector<std::string> bodies_;  // guarded by mutex_
  std::string fields_;               // guarded by mutex_
  std::vector<unsigned> statuses_;
};

TEST_F(TraceExporterTest, StopSendsWhatHasFinishedInBatches) {
  serve_collector();
  options_.batch_spans = 2;
  options_.fields = {{"Authorization", "Bearer x"}};
  finish_spans(5);  // before there is an exporter
  open();
  stop();
  const auto seen = bodies();
  ASSERT_EQ(seen.size(), 3U);
  EXPECT_EQ(spans_in(seen[0]), 2U);
  EXPECT_EQ(spans_in(seen[2]), 1U);
  EXPECT_NE(seen[0].find("\"name\":\"span0\""), std::string::npos);
  EXPECT_NE(seen[2].find("\"name\":\"span4\""), std::string::npos);
  EXPECT_EQ(fields_, "application/json Bearer x");
  EXPECT_EQ(tracer_->counts().exported, 5U);
  EXPECT_EQ(tracer_->counts().exports, 3U);
  EXPECT_EQ(tracer_->counts().queued, 0U);
  stop();  // idempotent
  finish_spans(1);
  EXPECT_EQ(tracer_->counts().queued, 1U);
  expect_balance();
}

TEST_F(TraceExporterTest, AFullBatchLeavesAtOnceAndTheRestWaits) {
  serve_collector();
  options_.batch_spans = 3;
  open();
  finish_spans(7);
  until([](const trace::TraceCounts& counts) { return counts.exported == 6; });
  EXPECT_EQ(tracer_->counts().queued, 1U);
  finish_spans(2);
  until([](const trace::TraceCounts& counts) { return counts.exported == 9; });
  EXPECT_EQ(tracer_->counts().queued, 0U);
  expect_balance();
}

TEST_F(TraceExporterTest, TheRestLeavesAfterTheInterval) {
  serve_collector();
  options_.interval = std::chrono::milliseconds(2);
  open();
  for (std::uint64_t i = 1; i <= 3; ++i) {
    finish_spans(1);
    until([i](const trace::TraceCounts& counts) { return counts.exported == i; });
  }
}

TEST_F(TraceExporterTest, ABatchIsBoundedInBytes) {
  serve_collector();
  options_.batch_bytes = 1;
  finish_spans(3);
  open();
  stop();
  EXPECT_EQ(bodies().size(), 3U);
  EXPECT_EQ(tracer_->counts().exported, 3U);
}

TEST_F(TraceExporterTest, ACollectorThatCannotNowIsAskedAgainWithTheSameBytes) {
  serve_collector({503, 429, 502, 504});
  finish_spans(2);
  open();
  stop();
  const auto seen = bodies();
  ASSERT_EQ(seen.size(), 5U);
  EXPECT_EQ(std::count(seen.begin(), seen.end(), seen[0]), 5);
  EXPECT_EQ(tracer_->counts().exported, 2U);
  EXPECT_EQ(tracer_->counts().exports, 5U);
  EXPECT_EQ(tracer_->counts().exports_failed, 4U);
  expect_balance();
}

TEST_F(TraceExporterTest, AfterItsAttemptsABatchIsDroppedAndTheNextOneIsSent) {
  serve_collector({503, 503});
  options_.batch_spans = 2;
  options_.attempts_max = 2;
  finish_spans(3);
  open();
  stop();
  EXPECT_EQ(tracer_->counts().dropped_failed, 2U);
  EXPECT_EQ(tracer_->counts().exported, 1U);
  EXPECT_EQ(tracer_->counts().exports, 3U);
  expect_balance();
}

TEST_F(TraceExporterTest, AnAnswerThatWillNotChangeDropsTheBatch) {
  serve_collector({400, 404, 500, 301});
  options_.batch_spans = 1;
  finish_spans(5);
  open();
  stop();
  EXPECT_EQ(tracer_->counts().dropped_refused, 4U);
  EXPECT_EQ(tracer_->counts().exported, 1U);
  EXPECT_EQ(tracer_->counts().exports, 5U);
  expect_balance();
}

TEST_F(TraceExporterTest, SpansThatTheCollectorRejectsCountAsRefused) {
  serve_collector({}, R"({"partialSuccess":{"rejectedSpans":"2","errorMessage":"old"}})");
  finish_spans(3);
  open();
  stop();
  EXPECT_EQ(tracer_->counts().exported, 1U);
  EXPECT_EQ(tracer_->counts().dropped_refused, 2U);
  EXPECT_EQ(tracer_->counts().exports_failed, 0U);
  expect_balance();
}

TEST_F(TraceExporterTest, AConnectionThatEndsIsAFailedAttempt) {
  options_.url = serve_lies([](test::RawSession& session, const std::string& /*text*/) { session.close(); });
  options_.attempts_max = 3;
  finish_spans(1);
  open();
  stop();
  EXPECT_EQ(tracer_->counts().dropped_failed, 1U);
  EXPECT_EQ(tracer_->counts().exports, 3U);
  expect_balance();
}

TEST_F(TraceExporterTest, StopGivesUpAtItsDeadlineAndCountsTheRest) {
  options_.url = serve_lies([](test::RawSession& /*session*/, const std::string& /*text*/) {});  // never answers
  options_.batch_spans = 2;
  finish_spans(7);
  open();
  run(stop_on_core(this, sys::now() + std::chrono::milliseconds(20), Errc::timed_out));
  EXPECT_EQ(tracer_->counts().dropped_stopped, 7U);
  EXPECT_EQ(tracer_->counts().queued, 0U);
  expect_balance();
}

TEST_F(TraceExporterTest, StopEndsTheWaitBetweenTwoAttempts) {
  serve_collector({503});
  options_.batch_spans = 1;
  options_.backoff_first = options_.backoff_max = std::chrono::hours(10);
  open();
  finish_spans(1);
  until([](const trace::TraceCounts& counts) { return counts.exports_failed == 1; });
  stop();
  EXPECT_EQ(tracer_->counts().exported, 1U);
  expect_balance();
}

TEST_F(TraceExporterTest, AnExporterThatEndsDropsTheBatchUnderWay) {
  options_.url = serve_lies([](test::RawSession& /*session*/, const std::string& /*text*/) {});
  options_.batch_spans = 1;
  open();
  finish_spans(2);
  until([](const trace::TraceCounts& counts) { return counts.exports == 1; });
  exporter_.reset();  // on a thread that is not the core's
  until([](const trace::TraceCounts& counts) { return counts.dropped_stopped == 1; });
  EXPECT_EQ(tracer_->counts().queued, 1U);
  finish_spans(1);
  EXPECT_EQ(tracer_->counts().queued, 2U);
  expect_balance();
}

TEST_F(TraceExporterTest, SpansOfManyThreadsAreExportedOrCounted) {
  make_tracer(64);
  serve_collector();
  options_.batch_spans = 16;
  open();
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([this] { finish_spans(500); });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  stop();
  std::size_t seen = 0;
  for (const std::string& body : bodies()) {
    seen += spans_in(body);
  }
  EXPECT_EQ(tracer_->counts().exported, seen);
  EXPECT_EQ(tracer_->counts().sampled, 1500U);
  expect_balance();
}

rt::Task<void> open_wrongly(std::shared_ptr<trace::Tracer> tracer) {
  const auto host = std::make_shared<ClientHost>(*rt::Core::current());
  std::vector<TraceExporterOptions> wrong(6);
  wrong[0].url = "collector:4318";
  wrong[1].url = "ws://collector/v1/traces";
  wrong[2].batch_spans = 0;
  wrong[3].attempts_max = 0;
  wrong[4].interval = Duration::zero();
  wrong[5].fields = {{"a b", "c"}};
  for (const TraceExporterOptions& options : wrong) {
    EXPECT_EQ(TraceExporter::open(host, tracer, options).error(), Errc::invalid_argument) << options.url;
  }
  co_return;
}

TEST_F(TraceExporterTest, RefusesWrongOptionsAndOtherThreads) {
  run(open_wrongly(tracer_));
  auto opened = TraceExporter::open(std::make_shared<ClientHost>(runtime_->core(0)), tracer_, options_);
  EXPECT_EQ(opened.error(), Errc::invalid_state);
}

}  // namespace
}  // namespace weft::serve::web
