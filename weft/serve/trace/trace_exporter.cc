// SPDX-License-Identifier: MIT
#include "weft/serve/trace/trace_exporter.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdint>
#include <new>
#include <string_view>

#include "weft/net/backoff.h"
#include "weft/net/http/url.h"
#include "weft/rt/core/runtime.h"
#include "weft/rt/task/async_event.h"
#include "weft/rt/task/task_scope.h"
#include "weft/rt/task/task_time.h"
#include "weft/serve/trace/otlp_json.h"
#include "weft/serve/web_client/http_client.h"

namespace weft::serve {

namespace {

using trace::SpanRecord;

// How the export of a batch ended.
struct Export {
  enum class End : std::uint8_t { taken, refused, failed, stopped, no_memory };
  End end = End::no_memory;
  std::uint64_t rejected = 0;  // of the spans, if it was taken
};

// Whether the collector may take the same request later, by the specification of OTLP/HTTP.
bool is_passing(unsigned status) noexcept { return status == 429 || status == 502 || status == 503 || status == 504; }

// The seconds of the field Retry-After; 0 for a date and for no field.
Duration retry_after(const Result<web::ClientResponse>& answer) noexcept {
  std::uint32_t seconds = 0;
  if (answer) {
    const std::string_view text = (*answer)["Retry-After"];
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
    if (error != std::errc() || end != text.data() + text.size()) {
      return Duration::zero();
    }
  }
  return std::chrono::seconds(seconds);
}

rt::Task<Result<void>> wait_for(rt::AsyncEvent* event) {
  const Result<void> waited = co_await event->wait();
  co_return waited;
}

// Relaxed: a number stands alone.
void add(std::atomic<std::uint64_t>& number, std::uint64_t by) noexcept {
  number.fetch_add(by, std::memory_order_relaxed);
}

}  // namespace

// The exporter. Owner: the TraceExporter, its coroutines and a signal under way. Affinity: its core.
class TraceExporter::State : public std::enable_shared_from_this<TraceExporter::State> {
 public:
  State(std::shared_ptr<ClientHost> host, std::shared_ptr<trace::Tracer> tracer, TraceExporterOptions options,
        std::unique_ptr<web::HttpClient> http)
      : host_(std::move(host)),
        tracer_(std::move(tracer)),
        options_(std::move(options)),
        writer_(tracer_->options()),
        http_(std::move(http)),
        signal_(*this),
        scope_(host_->core().loop()) {
    batch_.reserve(std::min(options_.batch_spans, tracer_->options().queue_spans));  // take() needs no memory
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  [[nodiscard]] Result<void> start() {
    tracer_->queue().notify(options_.batch_spans, [this] { signal_.give(); });
    return scope_.spawn(run(shared_from_this()));
  }
  [[nodiscard]] static rt::Task<Result<void>> stop(std::shared_ptr<State> self, Instant deadline);
  void shut_down() noexcept {
    tracer_->queue().notify(0, {});
    scope_.cancel();
  }
  [[nodiscard]] rt::Core& core() noexcept { return host_->core(); }

  Farewell<State> farewell;

 private:
  // Signal: wakes the exporter's core from the thread whose span made a batch full.
  class Signal final : public rt::CoreJob {
   public:
    explicit Signal(State& state) noexcept : CoreJob(run), state_(state) {}
    // Under the lock of the queue: one thread at a time, and not after shut_down().
    void give() noexcept {
      if (!given_.exchange(true)) {
        held_ = state_.shared_from_this();
        state_.core().give(*this);
      }
    }

   private:
    static void run(rt::CoreJob& job) noexcept {
      auto& self = static_cast<Signal&>(job);
      const std::shared_ptr<State> state = std::move(self.held_);  // owns the job
      self.given_ = false;
      state->wake_.set();
    }

    State& state_;
    std::atomic<bool> given_{false};
    std::shared_ptr<State> held_;  // until the job has run
  };

  [[nodiscard]] Instant now() noexcept { return core().loop().now(); }
  [[nodiscard]] std::size_t waiting() noexcept { return tracer_->queue().spans(); }
  static rt::Task<void> run(std::shared_ptr<State> self);
  static rt::Task<void> export_batch(State* self);
  static rt::Task<Export> send(State* self, const std::string* body);
  static rt::Task<void> pause(State* self, Duration wait);
  void count(const Export& ended, std::uint64_t spans) noexcept;
  void drop_waiting() noexcept;

  const std::shared_ptr<ClientHost> host_;
  const std::shared_ptr<trace::Tracer> tracer_;
  const TraceExporterOptions options_;
  const OtlpWriter writer_;
  const std::unique_ptr<web::HttpClient> http_;
  std::vector<std::unique_ptr<SpanRecord>> batch_;
  bool stopping_ = false;
  Instant stop_deadline_ = kNever;
  rt::AsyncEvent wake_;      // a batch is full, or stop() was called
  rt::AsyncEvent stop_;      // stop() was called
  rt::AsyncEvent finished_;  // run() has ended
  Signal signal_;
  rt::TaskScope scope_;  // run()
};

// The life of the exporter.
rt::Task<void> TraceExporter::State::run(std::shared_ptr<State> self) {
  const std::size_t full = self->options_.batch_spans;
  Instant flush = deadline_after(self->now(), self->options_.interval);  // then those leave that fill no batch, too
  bool ends = false;
  while (!ends) {
    if (self->waiting() < full && !self->stopping_) {
      rt::Task<Result<void>> waiting = wait_for(&self->wake_);
      (void)co_await rt::with_timeout(std::move(waiting), time_left(flush, self->now()));
    }
    self->wake_.reset();
    ends = co_await rt::is_cancelled();
    const bool last = self->stopping_;
    std::size_t due = self->waiting();
    if (last || self->now() >= flush) {
      flush = deadline_after(self->now(), self->options_.interval);
    } else {
      due -= due % full;
    }
    while (due != 0 && !ends) {
      self->tracer_->queue().take(std::min(due, full), self->options_.batch_bytes, self->batch_);
      due -= std::min(due, std::max<std::size_t>(self->batch_.size(), 1));
      co_await export_batch(self.get());
      ends = co_await rt::is_cancelled();
    }
    ends = ends || last;
  }
  self->finished_.set();
}

rt::Task<void> TraceExporter::State::export_batch(State* self) {
  const std::size_t spans = self->batch_.size();
  Export ended;
  try {
    const std::string body = self->writer_.write(self->batch_);
    self->batch_.clear();
    ended = co_await send(self, &body);
  } catch (...) {  // NOLINT(bugprone-empty-catch): no memory: `ended` has that
  }
  self->batch_.clear();
  self->count(ended, spans);
}

rt::Task<Export> TraceExporter::State::send(State* self, const std::string* body) {
  const TraceExporterOptions& options = self->options_;
  trace::Tracer::RecordCounters& counters = self->tracer_->record_counters();
  net::Backoff backoff(options.backoff_first, options.backoff_max, net::Backoff::seed_for(self));
  for (unsigned attempt = 1;; ++attempt) {
    web::ClientRequest request = web::ClientRequest::post(options.url, *body, "application/json");
    for (const auto& [name, value] : options.fields) {
      request.set(name, value);
    }
    request.set_repeatable(true).set_deadline(
        std::min(deadline_after(self->now(), options.timeout), self->stop_deadline_));
    add(counters.exports, 1);
    const Result<web::ClientResponse> answer = co_await self->http_->request(std::move(request));
    const bool cancelled = co_await rt::is_cancelled();
    if (answer && answer->is_success()) {
      co_return Export{Export::End::taken, rejected_spans(answer->body())};
    }
    add(counters.exports_failed, 1);
    if (cancelled) {
      co_return Export{Export::End::stopped};
    }
    if (answer && !is_passing(answer->status())) {
      co_return Export{Export::End::refused};
    }
    if (attempt >= options.attempts_max) {
      co_return Export{Export::End::failed};
    }
    co_await pause(self, std::min(std::max(backoff.next(), retry_after(answer)), options.backoff_max));
    const bool ended = co_await rt::is_cancelled();
    if (ended) {
      co_return Export{Export::End::stopped};
    }
  }
}

// Waits between two attempts. stop() ends the wait once: its deadline may be near.
rt::Task<void> TraceExporter::State::pause(State* self, Duration wait) {
  if (self->stopping_) {
    (void)co_await rt::sleep(wait);
  } else {
    rt::Task<Result<void>> waiting = wait_for(&self->stop_);
    (void)co_await rt::with_timeout(std::move(waiting), wait);
  }
}

void TraceExporter::State::count(const Export& ended, std::uint64_t spans) noexcept {
  trace::Tracer::RecordCounters& counters = tracer_->record_counters();
  const std::uint64_t rejected = std::min(ended.rejected, spans);
  switch (ended.end) {
    case Export::End::taken: add(counters.exported, spans - rejected); return add(counters.dropped_refused, rejected);
    case Export::End::refused: return add(counters.dropped_refused, spans);
    case Export::End::failed: return add(counters.dropped_failed, spans);
    case Export::End::stopped: return add(counters.dropped_stopped, spans);
    case Export::End::no_memory: return add(counters.dropped_memory, spans);
  }
}

void TraceExporter::State::drop_waiting() noexcept {
  for (std::size_t left = waiting(); left != 0;) {
    tracer_->queue().take(std::min(left, options_.batch_spans), ~std::size_t{0}, batch_);
    if (batch_.empty()) {
      return;
    }
    left -= std::min(left, batch_.size());
    add(tracer_->record_counters().dropped_stopped, batch_.size());
    batch_.clear();
  }
}

rt::Task<Result<void>> TraceExporter::State::stop(std::shared_ptr<State> self, Instant deadline) {
  if (rt::Core::current() != &self->core()) {
    co_return rt::used_elsewhere("trace exporter", &self->core());
  }
  self->tracer_->queue().notify(0, {});
  self->stopping_ = true;
  self->stop_deadline_ = std::min(self->stop_deadline_, deadline);
  self->stop_.set();
  self->wake_.set();
  rt::Task<Result<void>> waiting = wait_for(&self->finished_);
  const Result<void> ended = co_await rt::with_timeout(std::move(waiting), time_left(deadline, self->now()));
  if (ended) {
    co_return Result<void>();
  }
  self->scope_.cancel();
  (void)co_await self->scope_.join();
  self->drop_waiting();
  co_return ended.error();
}

TraceExporter::TraceExporter(std::shared_ptr<State> state) noexcept : state_(std::move(state)) {}

TraceExporter::~TraceExporter() {
  State& state = *state_;
  state.farewell.begin(state.core(), std::move(state_));
}

Result<std::unique_ptr<TraceExporter>> TraceExporter::open(std::shared_ptr<ClientHost> host,
                                                           std::shared_ptr<trace::Tracer> tracer,
                                                           TraceExporterOptions options) {
  if (options.batch_spans == 0 || options.attempts_max == 0 || options.interval == Duration::zero()) {
    return Error(Errc::invalid_argument, "a batch has a span, an attempt and an interval");
  }
  const net::http::Url url = WEFT_TRY(net::http::parse_url(options.url));
  if (url.websocket) {
    return Error(Errc::invalid_argument, "the URL of a collector is one of http or https");
  }
  try {
    web::ClientRequest sample = web::ClientRequest::post(options.url, "", "application/json");
    for (const auto& [name, value] : options.fields) {
      sample.set(name, value);
    }
    if (const Error mistake = sample.error(); !(mistake == Errc::ok)) {
      return mistake;
    }
    std::unique_ptr<web::HttpClient> http = WEFT_TRY(web::HttpClient::open(host, options.http));
    auto state = std::make_shared<State>(std::move(host), std::move(tracer), std::move(options), std::move(http));
    std::unique_ptr<TraceExporter> exporter(new TraceExporter(std::move(state)));
    WEFT_TRY(exporter->state_->start());
    return exporter;
  } catch (const std::bad_alloc&) {
    return Error(Errc::resource_exhausted, "no memory for an exporter of traces");
  }
}

rt::Task<Result<void>> TraceExporter::stop(Instant deadline) { return State::stop(state_, deadline); }

}  // namespace weft::serve
