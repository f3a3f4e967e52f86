// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "weft/base/result.h"
#include "weft/base/time.h"
#include "weft/rt/task/task.h"
#include "weft/serve/client/client_host.h"
#include "weft/serve/web_client/http_client_options.h"
#include "weft/trace/tracer.h"

namespace weft::serve {

struct TraceExporterOptions {
  std::string url = "http://127.0.0.1:4318/v1/traces";        // of the collector
  std::vector<std::pair<std::string, std::string>> fields{};  // of each request, such as Authorization
  std::size_t batch_spans = 512;                              // of a request
  std::size_t batch_bytes = std::size_t{512} << 10;           // the memory of these; JSON has a few times as many
  Duration interval = std::chrono::seconds(5);  // a finished span waits for so long at most; negative: for a batch.
  Duration timeout = std::chrono::seconds(10);  // of a request with its answer
  unsigned attempts_max = 5;                    // of a batch; then it is dropped
  Duration backoff_first = std::chrono::seconds(1);  // between two attempts
  Duration backoff_max = std::chrono::seconds(30);   // also of the field Retry-After
  web::HttpClientOptions http{};                     // TLS and the bounds of its connection
};

// TraceExporter: sends the finished spans of a tracer to a collector: OTLP over HTTP, in JSON.
//   const auto exporter = WEFT_TRY(serve::TraceExporter::open(host, tracer, {.url = "http://host:4318/v1/traces"}));
// A request leaves when a batch is full, and after `interval`. If the collector does not answer, or answers with 429,
// 502, 503 or 504, the request is repeated after a while, and the next spans wait in the tracer's queue, which drops
// beyond its bound. Any other answer without success drops the batch.
// Owner: the program. The destructor ends the exporter at once and drops the batch under way; in another thread than
// the core's, the destructor posts this to the core and does not wait. The runtime must outlive the exporter.
// Affinity: its core's thread, which also awaits stop().
// Cost: one coroutine; a batch is copied once into JSON, and once for each request. Spans cost the other cores nothing.
// Invariants:
//   1. One request is under way at a time.
//   2. A span that the exporter took is counted once: as exported, or as dropped with its reason.
class TraceExporter {
 public:
  // Errors: invalid_state (not on the core of the host); invalid_argument (not a URL of http or https, a field that
  // cannot be one, a batch of 0 spans, no attempt, an interval of 0); resource_exhausted.
  [[nodiscard]] static Result<std::unique_ptr<TraceExporter>> open(std::shared_ptr<ClientHost> host,
                                                                   std::shared_ptr<trace::Tracer> tracer,
                                                                   TraceExporterOptions options = {});
  TraceExporter(const TraceExporter&) = delete;
  TraceExporter& operator=(const TraceExporter&) = delete;
  ~TraceExporter();

  // Sends the spans that have finished until now, and ends the exporter. Spans that finish later stay in the queue.
  // Errors: timed_out (the deadline passed: the spans that were left are counted as dropped); kCancelled (the same);
  // invalid_state (not on the core). Idempotent.
  [[nodiscard]] rt::Task<Result<void>> stop(Instant deadline);

 private:
  class State;
  explicit TraceExporter(std::shared_ptr<State> state) noexcept;

  std::shared_ptr<State> state_;
};

}  // namespace weft::serve
