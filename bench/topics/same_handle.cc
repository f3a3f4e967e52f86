// SPDX-License-Identifier: MIT
// same_handle: one thread publishes a message and takes it from a subscription of the same handle.
#include <memory>
#include <optional>

#include "bench/topics/runs.h"
#include "bench/topics/stamp.h"
#include "weft/msg/context.h"
#include "weft/rt/core/core_task.h"
#include "weft/rt/core/runtime.h"
#include "weft/rt/exec/future.h"
#include "weft/topic/async_topics.h"
#include "weft/topic/topics.h"

namespace bench {
namespace {

weft::TopicsOptions options() {
  weft::TopicsOptions options;
  options.fleet = "inproc:bench";
  return options;
}

RunResult result_of(std::uint64_t count, std::uint64_t start_ns) {
  return {count, 1, static_cast<double>(thread_ns() - start_ns) / 1e9};
}

void run_blocking(std::size_t size) {
  weft::Context context;
  weft::Topics topics = must(weft::Topics::open(context, options()), "open");
  weft::Subscription subscription = must(topics.subscribe(kFlow), "subscribe");
  weft::Publisher publisher = must(topics.publisher(kFlow), "publisher");
  Stamp sent(size);
  Stamp received(size);
  std::uint64_t run = 0;
  serve_runs("weft::Topics", [&](std::uint64_t count, bool /*verify*/) {
    sent.begin(++run);
    received.begin(run);
    const std::uint64_t start = thread_ns();
    for (std::uint64_t i = 0; i < count; ++i) {
      if (!publisher.publish(sent.write())) [[unlikely]] {
        fail("a publish was refused");
      }
      const weft::Result<weft::TopicMessage> message = subscription.next();
      if (!message) [[unlikely]] {
        fail(message.error().message());
      }
      received.read(message->body());
    }
    const RunResult result = result_of(count, start);
    received.check(count);
    return result;
  });
}

// OnCore: the handle of the coroutine, on its core.
struct OnCore {
  explicit OnCore(std::size_t size) : sent(size), received(size) {}
  std::optional<weft::AsyncTopics> topics;
  std::optional<weft::AsyncSubscription> subscription;
  std::optional<weft::AsyncPublisher> publisher;
  Stamp sent;
  Stamp received;
};

weft::rt::Task<weft::Result<void>> open_on(weft::rt::Core* core, weft::Context* context, OnCore* self) {
  weft::Result<weft::AsyncTopics> topics = co_await weft::AsyncTopics::open(*core, *context, options());
  self->topics.emplace(must(std::move(topics), "open"));
  self->subscription.emplace(must(self->topics->subscribe(kFlow), "subscribe"));
  self->publisher.emplace(must(self->topics->publisher(kFlow), "publisher"));
  co_return weft::Result<void>();
}

weft::rt::Task<weft::Result<void>> close_on(OnCore* self) {
  self->subscription.reset();
  self->publisher.reset();
  self->topics.reset();
  co_return weft::Result<void>();
}

weft::rt::Task<weft::Result<RunResult>> repeat_on(OnCore* self, std::uint64_t count, std::uint64_t run) {
  self->sent.begin(run);
  self->received.begin(run);
  const std::uint64_t start = thread_ns();
  for (std::uint64_t i = 0; i < count; ++i) {
    if (!self->publisher->publish(self->sent.write())) [[unlikely]] {
      fail("a publish was refused");
    }
    const weft::Result<weft::TopicMessage> message = co_await self->subscription->next();
    if (!message) [[unlikely]] {
      co_return message.error();
    }
    self->received.read(message->body());
  }
  const RunResult result = result_of(count, start);
  self->received.check(count);
  co_return result;
}

void run_on_core(std::size_t size) {
  weft::Context context;
  weft::rt::RuntimeOptions runtime_options;
  runtime_options.cores = 1;
  const auto runtime = must(weft::rt::Runtime::start(runtime_options), "the core");
  weft::rt::Core& core = runtime->core(0);
  OnCore self(size);
  must(must(weft::rt::spawn(core, open_on(&core, &context, &self)), "spawn").get(), "open");
  std::uint64_t run = 0;
  serve_runs("weft::AsyncTopics", [&](std::uint64_t count, bool /*verify*/) {
    return must(must(weft::rt::spawn(core, repeat_on(&self, count, ++run)), "spawn").get(), "the core");
  });
  must(must(weft::rt::spawn(core, close_on(&self)), "spawn").get(), "close");
}

}  // namespace

void run_same_handle(const std::string& cell, const std::string& engine) {
  if (engine == "topics") {
    run_blocking(size_in(cell));
  } else if (engine == "async") {
    run_on_core(size_in(cell));
  } else {
    fail("no engine '" + engine + "' in one handle");
  }
}

}  // namespace bench
