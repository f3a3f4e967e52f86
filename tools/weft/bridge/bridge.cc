// SPDX-License-Identifier: MIT
#include "tools/weft/bridge/bridge.h"

#include <algorithm>
#include <array>
#include <random>
#include <utility>

#include "tools/weft/bridge/unit.h"
#include "weft/rt/core/core_task.h"
#include "weft/rt/task/async_event.h"
#include "weft/rt/task/task_time.h"
#include "weft/sys/clock.h"

namespace weft::bridge {

namespace {

constexpr Duration kDrainLook = std::chrono::milliseconds(2);

std::string random_name() {
  std::random_device device;
  std::string name;
  for (unsigned i = 0; i < 16; ++i) {
    name += "0123456789abcdef"[device() % 16];
  }
  return name;
}

}  // namespace

CounterSource Line::counter_source() const {
  return [all = counters, kind = std::string(name_of(role))](std::string_view section, CounterReadings& into) {
    into.push_back({&kBridgeTable, {{"kind", kind}, {"section", std::string(section)}}, sync::read_counters(*all)});
  };
}

// Core: the part of the bridge that lives on its core.
struct Bridge::Core {
  Settings settings;
  TopicsOptions fleet;
  std::function<void(const std::string&)> tell;
  std::promise<std::string> opened;  // the reason of a failure, or nothing
  rt::AsyncEvent stop;
  std::vector<Line> lines;
  CounterSource topics;  // of the handle of the fleet

  // Makes the units of the sections. Returns the reason of a failure.
  std::string open(Surroundings& around, std::vector<std::unique_ptr<Unit>>& units) {
    constexpr std::array kMakers{make_publishers, make_subscribers, make_clients, make_workers};
    for (Section& section : settings.sections) {
      const Role role = section.role;
      units.push_back(kMakers[static_cast<std::size_t>(role)](around, std::move(section)));
      Unit& unit = *units.back();
      if (std::string why = unit.open(); !why.empty()) {
        return unit.section().name + ": " + why;
      }
      lines.push_back({unit.section().name, role, unit.endpoints(), unit.socket_source(), unit.counters()});
    }
    return {};
  }

  static rt::Task<Result<void>> run(rt::Loop* loop, Context* context, std::shared_ptr<Core> self) {
    Result<AsyncTopics> topics = co_await AsyncTopics::open(*loop, *context, self->fleet);
    if (!topics) {
      self->opened.set_value("the fleet " + self->fleet.fleet + ": " + topics.error().message());
      co_return topics.error();
    }
    self->topics = topics->counter_source();
    Surroundings around{*loop, *context, *topics, self->settings.name, self->tell};
    std::vector<std::unique_ptr<Unit>> units;
    std::string why = self->open(around, units);
    const bool good = why.empty();
    self->opened.set_value(std::move(why));
    if (!good) {
      co_return Error(Errc::invalid_argument, "a section did not open");
    }
    rt::TaskScope scope(*loop);
    for (const auto& unit : units) {
      unit->start(scope);
    }
    (void)co_await self->stop.wait();
    const Instant end = deadline_after(sys::now(), self->settings.drain);
    for (const auto& unit : units) {
      unit->drain();
    }
    const auto is_idle = [](const std::unique_ptr<Unit>& unit) { return unit->idle(); };
    while (sys::now() < end && !std::all_of(units.begin(), units.end(), is_idle)) {
      const Result<void> slept = co_await rt::sleep(kDrainLook);
      if (!slept) {
        break;
      }
    }
    scope.cancel();
    (void)co_await scope.join();
    for (const auto& unit : units) {
      unit->close(std::max<Duration>(end - sys::now(), Duration(0)));
    }
    topics->close();
    co_return Result<void>();
  }
};

std::unique_ptr<Bridge> Bridge::start(Settings settings, TopicsOptions fleet,
                                      std::function<void(const std::string&)> tell, std::string& why) {
  std::unique_ptr<Bridge> bridge(new Bridge());
  if (settings.name.empty()) {
    settings.name = random_name();
  }
  bridge->name_ = settings.name;
  rt::RuntimeOptions one;
  one.cores = 1;
  auto runtime = rt::Runtime::start(one);
  if (!runtime) {
    why = "a core: " + runtime.error().message();
    return nullptr;
  }
  bridge->runtime_ = *std::move(runtime);
  bridge->core_ = std::make_shared<Core>();
  bridge->core_->settings = std::move(settings);
  bridge->core_->fleet = std::move(fleet);
  bridge->core_->tell = std::move(tell);
  std::future<std::string> opened = bridge->core_->opened.get_future();
  rt::Core& core = bridge->runtime_->core(0);
  auto ended = rt::spawn(core, Core::run(&core.loop(), &bridge->context_, bridge->core_));
  if (!ended) {
    why = "a core: " + ended.error().message();
    return nullptr;
  }
  bridge->ended_ = *std::move(ended);
  why = opened.get();
  if (!why.empty()) {
    return nullptr;
  }
  bridge->lines_ = bridge->core_->lines;
  bridge->topics_ = bridge->core_->topics;
  return bridge;
}

Bridge::~Bridge() { stop(); }

void Bridge::stop() {
  if (runtime_ == nullptr) {
    return;
  }
  (void)runtime_->post(0, [core = core_] { core->stop.set(); });
  (void)ended_.get();
  runtime_.reset();
}

}  // namespace weft::bridge
