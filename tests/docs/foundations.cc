// SPDX-License-Identifier: MIT
// The C++ blocks of docs/foundations.md, docs/tuning.md and docs/cores.md. Tests of these names compare them,
// docs.guides runs them.
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "guides.h"
#include "weft/base/time.h"
#include "weft/mem/arena.h"
#include "weft/mem/resource.h"
#include "weft/mem/ring_buffer.h"
#include "weft/mem/slab.h"
#include "weft/rt/bus/event_bus.h"
#include "weft/rt/core/core_task.h"
#include "weft/rt/core/runtime.h"
#include "weft/rt/core/sharded.h"
#include "weft/rt/exec/strand.h"
#include "weft/rt/exec/thread_pool.h"
#include "weft/rt/loop/timer_wheel.h"
#include "weft/rt/task/task_group.h"
#include "weft/rt/task/task_time.h"
#include "weft/sync/spsc_ring.h"
#include "weft/sync/wait_queue.h"
#include "weft/sys/clock.h"
#include "weft/sys/limits.h"
#include "weft/weft.h"

namespace guides {

namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace)

// --- Result ---

weft::Result<int> parse_port(std::string_view text) {
  int port = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), port);
  if (parsed.ec != std::errc() || port < 0 || port > 65535) {
    return weft::Error(weft::Errc::invalid_argument, "a port is a number up to 65535");
  }
  return port;
}

weft::Result<std::string> endpoint_of(std::string_view text) {
  const int port = WEFT_TRY(parse_port(text));  // the value, or the function returns the error
  return "tcp://127.0.0.1:" + std::to_string(port);
}

weft::Result<void> use_results() {
  const std::string endpoint = WEFT_TRY(endpoint_of("4711"));
  WEFT_TRY(expect(endpoint, "tcp://127.0.0.1:4711"));
  const auto wrong = endpoint_of("seventy");
  WEFT_TRY(expect(wrong.error().message(), "invalid argument: a port is a number up to 65535"));
  const int port = parse_port("seventy").value_or(4711);
  return expect(std::to_string(port), "4711");
}

// --- executors ---

weft::Result<void> use_executors() {
  const auto pool = WEFT_TRY(weft::rt::ThreadPool::make_fixed(2));
  weft::rt::Future<int> sum = pool->submit([] { return 1 + 2; });

  int orders = 0;  // no lock: the strand runs one job at a time
  weft::rt::Strand strand(*pool);
  for (int i = 0; i < 100; ++i) {
    WEFT_TRY(strand.execute([&orders] { ++orders; }));
  }
  WEFT_TRY(strand.stop(weft::rt::StopMode::drain, weft::sys::now() + 5s));

  const int three = WEFT_TRY(sum.get());
  return expect(std::to_string(orders + three), "103");
}

// --- runtime ---

weft::rt::Task<weft::Result<unsigned>> visit(weft::rt::Runtime* runtime) {
  WEFT_CO_TRY(unsigned there, co_await runtime->call(1, [] { return weft::rt::Core::current()->index(); }));
  WEFT_CO_TRY(co_await weft::rt::sleep(1ms));  // the core serves others meanwhile
  co_return there;
}

weft::Result<void> use_cores() {
  weft::rt::RuntimeOptions options;
  options.cores = 2;
  const auto runtime = WEFT_TRY(weft::rt::Runtime::start(options));
  auto visiting = WEFT_TRY(weft::rt::spawn(runtime->core(0), visit(runtime.get())));
  const unsigned there = WEFT_TRY(visiting.get());
  WEFT_TRY(runtime->stop(weft::sys::now() + 5s));
  return expect(std::to_string(there), "1");
}

// --- docs/cores.md ---

struct Tally {
  int sum = 0;
};

weft::rt::Task<weft::Result<int>> add_up(weft::rt::Runtime* runtime, weft::rt::Sharded<Tally>* tallies) {
  const auto [near, far, cores] =
      co_await weft::rt::when_all(tallies->invoke_on(0, [](Tally& tally) { return tally.sum; }),
                                  tallies->invoke_on(1, [](Tally& tally) { return tally.sum; }),
                                  runtime->call(1, [runtime] { return static_cast<int>(runtime->size()); }));
  if (!near || !far || !cores) {
    co_return weft::Errc::other;
  }
  co_return *near + *far + *cores;
}

weft::Result<void> use_state_on_cores() {
  weft::rt::RuntimeOptions options;
  options.cores = 2;
  const auto runtime = WEFT_TRY(weft::rt::Runtime::start(options));
  const auto make = [](weft::rt::Core& core) { return Tally{static_cast<int>(core.index()) + 10}; };
  const auto tallies = WEFT_TRY(weft::rt::Sharded<Tally>::start(*runtime, make));
  auto adding = WEFT_TRY(weft::rt::spawn(runtime->core(0), add_up(runtime.get(), tallies.get())));
  const int sum = WEFT_TRY(adding.get());
  WEFT_TRY(tallies->stop(weft::sys::now() + 5s));
  return expect(std::to_string(sum), "23");
}

// --- event bus ---

struct OrderFilled {
  int id;
  double price;
};

weft::Result<void> use_the_bus() {
  weft::rt::EventBus bus;
  double turnover = 0;
  auto subscription = WEFT_TRY(bus.subscribe<OrderFilled>([&](const OrderFilled& order) { turnover += order.price; }));
  const std::size_t took = bus.publish(OrderFilled{7, 99.5});  // calls the handler, in this thread
  subscription.unsubscribe();                                  // after this the handler runs in no thread
  const std::size_t nobody = bus.publish(OrderFilled{8, 1});
  return expect(std::to_string(took) + std::to_string(nobody) + std::to_string(static_cast<int>(turnover)), "1099");
}

// --- queues ---

weft::Result<void> use_queues() {
  const auto queue = WEFT_TRY(weft::sync::WaitQueue<int>::make(2, 64));  // two producers, 64 values each
  auto numbers = WEFT_TRY(queue->producer());
  std::thread other([producer = std::move(numbers)]() mutable {
    for (int i = 1; i <= 1000; ++i) {
      (void)producer.push_until(i, weft::sys::now() + 5s);  // waits while its lane is full
    }
  });
  long sum = 0;
  for (int i = 1; i <= 1000; ++i) {
    const auto value = queue->pop_until(weft::sys::now() + 5s);
    sum += value.value_or(0);
  }
  other.join();
  return expect(std::to_string(sum), "500500");
}

weft::Result<void> use_a_ring() {
  auto ring = WEFT_TRY(weft::sync::SpscRing<int>::make(2));
  const bool taken = ring.try_push(1) && ring.try_push(2);
  const bool full = !ring.try_push(3);
  return expect(taken && full ? "full" : "", "full");
}

// --- allocators ---

weft::Result<void> use_allocators() {
  auto players = WEFT_TRY(weft::mem::Slab::make({.block_size = 200, .blocks_max = 10'000}));
  void* const player = players.allocate();  // null beyond blocks_max
  (void)players.deallocate(player);

  weft::mem::Arena arena({.bytes_max = 64 * 1024});
  weft::mem::ArenaResource resource(arena);
  {
    std::pmr::vector<int> parsed(&resource);  // any container of the standard library
    parsed.assign(1000, 7);
  }
  arena.reset();  // all pieces at once; the blocks stay for the next request
  return expect(std::to_string(arena.used() + players.live_count()), "0");
}

// --- timing wheel ---

weft::Result<void> use_the_wheel() {
  weft::rt::TimerWheel wheel(weft::Instant{});  // the wheel has no clock: the program passes the time
  int fired = 0;
  const weft::rt::TimerCallback count{[](void* context) { ++*static_cast<int*>(context); }, &fired};
  const weft::rt::TimerId late = wheel.schedule(weft::Instant(10s), count);
  (void)wheel.schedule(weft::Instant(1s), count);
  (void)wheel.reschedule(late, weft::Instant(1h));
  wheel.advance(weft::Instant(20s), 100);  // at most 100 callbacks in this call
  return expect(std::to_string(fired) + std::to_string(wheel.size()), "11");
}

// --- tuning ---

weft::Result<void> tune_a_context() {
  weft::ContextOptions options;
  options.wait_mode = weft::WaitMode::eco;  // a thread that waits sleeps at once
  options.io_thread.cpus.set(0);            // the I/O thread runs on this processor
  weft::Context context(options);

  weft::Socket socket = WEFT_TRY(context.socket(weft::SocketType::pull));
  WEFT_TRY(socket.set(weft::option::receive_high_water_mark, 50));
  WEFT_TRY(socket.bind("ipc://@guides-tuning"));
  return {};
}

weft::Result<void> tune_a_runtime() {
  weft::rt::RuntimeOptions options;
  options.cores = 1;
  options.pinning = weft::rt::Pinning::never;         // other programs have these processors, too
  options.poller = weft::sys::PollerKind::automatic;  // epoll
  const auto runtime = WEFT_TRY(weft::rt::Runtime::start(options));
  return runtime->stop(weft::sys::now() + 5s);
}

weft::Result<void> tune_for_latency() {
  weft::rt::RuntimeOptions options;
  options.wait_mode = weft::sync::WaitMode::latency;
  options.latency.cpu_percent = 50;  // of each core's time
  options.cores = 1;
  options.pinning = weft::rt::Pinning::never;
  const auto runtime = WEFT_TRY(weft::rt::Runtime::start(options));
  return runtime->stop(weft::sys::now() + 5s);
}

weft::Result<void> raise_limits() {
  const auto former = weft::sys::set_descriptor_limit(65'536);
  return former ? weft::Result<void>() : former.error();
}

weft::Result<void> read_counters() {
  weft::Context context;
  weft::Socket socket = WEFT_TRY(context.socket(weft::SocketType::pub));
  const weft::Statistics now = WEFT_TRY(socket.statistics());
  if (now.dropped_full != 0 || now.queued_out > 500) {
    return weft::Error(weft::Errc::other, "a subscriber reads too slowly");
  }
  return {};
}

}  // namespace

weft::Result<void> foundations() {
  for (const auto block :
       {use_results, use_executors, use_cores, use_state_on_cores, use_the_bus, use_queues, use_a_ring, use_allocators,
        use_the_wheel, tune_a_context, tune_a_runtime, tune_for_latency, raise_limits, read_counters}) {
    WEFT_TRY(block());
  }
  return {};
}

}  // namespace guides
