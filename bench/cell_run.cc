// SPDX-License-Identifier: MIT
#include "bench/cell_run.h"

#include <unistd.h>

#include <chrono>
#include <thread>

#include "bench/commands.h"
#include "bench/json.h"

namespace bench {
namespace {

constexpr std::chrono::seconds kUntilIdle(1);  // after this, a connection has released the memory that it does not need

}  // namespace

void SideRun::open() {
  const bool binds = side_ == cell_.binder();
  if (cell_.storms()) {
    if (binds) {
      storm_.bind(plan_.addresses);
    }
    plan_.stage.meet();
    return;
  }
  if (binds) {
    ends_ = engine_.bind(cell_, plan_.addresses);
    plan_.reader = ends_.front().get();
  }
  plan_.stage.meet();
  if (!binds) {
    ends_ = engine_.connect(cell_, plan_.addresses);
  }
  for (const auto& end : ends_) {
    workloads_.push_back(std::make_unique<Workload>(cell_, *end));
  }
  if (cell_.pattern == Pattern::one_thread && !binds) {
    workloads_.front()->read_from(*plan_.reader);
  }
}

void SideRun::run() {
  std::vector<std::thread> others;
  const auto lanes = static_cast<std::size_t>(cell_.lanes(side_));
  for (std::size_t lane = 1; lane < lanes; ++lane) {
    others.emplace_back([this, lane] {
      plan_.stage.meet();  // the binding side has bound
      plan_.stage.meet();  // the connecting side has begun to connect
      follow(lane);
    });
  }
  open();
  plan_.stage.meet();
  side_ == Side::leader ? obey() : follow(0);
  for (std::thread& other : others) {
    other.join();
  }
}

void SideRun::follow(std::size_t lane) {
  if (cell_.pinned) {
    pin(side_);
  }
  for (;;) {
    plan_.stage.meet();  // the plan is ready
    if (plan_.step == Plan::Step::stop) {
      return;
    }
    take_step(lane);
    plan_.stage.meet();  // the results are ready
    if (side_ == Side::follower && cell_.storms()) {
      storm_.close();
    }
  }
}

// Called by the leader's first lane: runs one step on all lanes at the same time.
void SideRun::order(Plan::Step step) {
  plan_.step = step;
  plan_.stage.meet();
  if (step != Plan::Step::stop) {
    take_step(0);
    plan_.stage.meet();
  }
}

void SideRun::obey() {
  if (cell_.pinned) {
    pin(side_);
  }
  alarm(kPatienceS);
  if (!cell_.storms()) {
    order(Plan::Step::greet);
  }
  while (const std::optional<Command> command = next_command()) {
    plan_.task.count = cell_.storms() ? static_cast<std::uint64_t>(cell_.times) : command->count;
    plan_.task.interval_ns = command->interval_ns;
    plan_.task.verify_all = command->verify_all;
    ++plan_.task.run;
    const double before = command->counts ? 0 : probe();
    order(Plan::Step::repetition);
    print(before, command->counts ? 0 : probe(), command->counts);
  }
  order(Plan::Step::stop);
}

double SideRun::probe() {
  if (cell_.one_core) {
    return 0;
  }
  order(Plan::Step::probe);
  return plan_.probe_ns;
}

void SideRun::take_step(std::size_t lane) {
  if (plan_.step == Plan::Step::repetition) {
    repeat(lane);
  } else if (plan_.step == Plan::Step::greet) {
    workloads_[lane]->greet(side_, plan_.greeted);
  } else if (lane == 0) {
    const double ns = plan_.stage.ping_pong(side_, 20, plan_.ping_pongs);
    if (side_ == Side::leader) {
      plan_.probe_ns = ns;
    }
  }
}

void SideRun::repeat(std::size_t lane) {
  const bool leads = side_ == Side::leader;
  const bool counts = lane == 0 && (leads || processes_);
  const std::uint64_t memory = leads && lane == 0 ? private_memory() : 0;
  if (cell_.storms() && !leads) {
    storm_.open(plan_.addresses);
  }
  plan_.stage.meet_awake();
  if (leads && lane == 0) {
    counter_.start();
  }
  const Usage before = counts ? usage_now() : Usage();
  plan_.stage.meet_awake();  // no lane begins before the counters were read
  perform(lane);
  plan_.stage.meet();
  const Usage used = counts ? usage_now() - before : Usage();
  if (lane == 0) {
    plan_.usage[leads ? 0 : 1] = used;
  }
  if (leads && lane == 0) {
    counter_.stop();
    if (cell_.pattern == Pattern::idle_memory) {
      std::this_thread::sleep_for(kUntilIdle);
    }
    const std::uint64_t later = private_memory();
    plan_.memory_bytes = later > memory ? later - memory : 0;
  }
}

void SideRun::perform(std::size_t lane) {
  if (!cell_.storms()) {
    workloads_[lane]->perform(side_, plan_.task, plan_.lanes[lane]);
  } else if (side_ == Side::leader) {
    storm_.receive(plan_.task, plan_.lanes[0]);
  } else {
    storm_.connect(plan_.addresses, plan_.task, plan_.lanes[0]);
  }
}

void SideRun::print(double before, double after, bool counted) const {
  const auto receivers = static_cast<std::size_t>(cell_.measured_lanes());
  std::uint64_t first = plan_.lanes[0].first_ns;
  std::uint64_t last = plan_.lanes[0].last_ns;
  for (std::size_t i = 1; i < receivers; ++i) {
    first = std::min(first, plan_.lanes[i].first_ns);
    last = std::max(last, plan_.lanes[i].last_ns);
  }
  const std::uint64_t messages = plan_.task.count * receivers;
  const auto sum = [&](auto member) { return plan_.usage[0].*member + plan_.usage[1].*member; };
  Json record = {{"messages", messages},
                 {"receivers", receivers},
                 {"seconds", static_cast<double>(last - first) / 1e9},
                 {"cpu_seconds", sum(&Usage::cpu_seconds)},
                 {"switches", sum(&Usage::switches)}};
  if (counted) {
    record["syscalls"] = count_or_null(counter_.count());
    record["allocations"] =
        count_or_null(counts_allocations() ? std::optional(sum(&Usage::allocations)) : std::nullopt);
  } else {
    record["before_ns"] = cell_.one_core ? Json() : Json(before);
    record["after_ns"] = cell_.one_core ? Json() : Json(after);
  }
  if (cell_.storms()) {
    record["memory_bytes"] = plan_.memory_bytes;
  }
  if (cell_.trips()) {
    auto trips = std::make_unique<Histogram>(plan_.lanes[0].trips);
    for (std::size_t i = 1; i < receivers; ++i) {
      trips->add(plan_.lanes[i].trips);
    }
    add_trips(record, *trips);
  }
  print_line(record);
}

}  // namespace bench
