// SPDX-License-Identifier: MIT
#include "weft/serve/health/health_checks.h"

#include <atomic>
#include <functional>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "weft/rt/loop/test_signal.h"
#include "weft/sys/clock.h"
#include <gtest/gtest.h>

namespace weft::serve {
namespace {

using rt::test::Signal;
constexpr Duration kRarely = std::chrono::hours(1);
constexpr Duration kCheckLimit = std::chrono::seconds(60);  // never passes unless something is broken

HealthCheck check_of(std::string name, std::function<HealthResult()> run, std::vector<std::string> depends_on = {}) {
  HealthCheck check;
  check.name = std::move(name);
  check.run = std::move(run);
  check.depends_on = std::move(depends_on);
  check.interval = kRarely;
  check.timeout = kCheckLimit;
  return check;
}
HealthResult healthy() { return {}; }
HealthResult failed() { return {HealthState::failed, "no route"}; }

std::shared_ptr<HealthChecks> start(std::vector<HealthCheck> checks) {
  auto started = HealthChecks::start(std::move(checks));
  EXPECT_TRUE(started) << started.error().message();
  return started.value_or(nullptr);
}
// The status of a check when it holds; the last one if it does not in time.
HealthStatus status_when(const HealthChecks& checks, std::size_t at,
                         const std::function<bool(const HealthStatus&)>& holds) {
  HealthStatus status = checks.statuses().at(at);
  for (const Instant limit = sys::now() + kCheckLimit; !holds(status) && sys::now() < limit;) {
    std::this_thread::yield();
    status = checks.statuses().at(at);
  }
  return status;
}
HealthStatus status_after(const HealthChecks& checks, std::size_t at, std::uint64_t runs) {
  return status_when(checks, at, [=](const HealthStatus& status) { return status.runs >= runs; });
}

TEST(HealthChecks, ACheckRunsAtOnceAndWhenItIsTold) {
  Signal may_run;
  const auto checks = start({check_of("db", [&] {
    EXPECT_TRUE(may_run.take());
    return HealthResult{HealthState::degraded, "slow"};
  })});
  EXPECT_EQ(checks->statuses().at(0).state, HealthState::unknown);
  EXPECT_EQ(checks->complaints(false), "check db: not run yet\n");
  EXPECT_EQ(checks->complaints(true), "");
  may_run.give();
  EXPECT_EQ(status_after(*checks, 0, 1).state, HealthState::degraded);
  EXPECT_EQ(checks->complaints(false), "");
  EXPECT_EQ(checks->remarks(), "check db: degraded: slow\n");
  may_run.give();
  EXPECT_TRUE(checks->run_now("db"));
  EXPECT_EQ(status_after(*checks, 0, 2).runs, 2u);
  EXPECT_EQ(checks->run_now("dc").error(), Errc::invalid_argument);
}

TEST(HealthChecks, ACheckRunsAgainAfterItsInterval) {
  HealthCheck check = check_of("db", healthy);
  check.interval = std::chrono::milliseconds(1);
  const auto checks = start({std::move(check)});
  EXPECT_GE(status_after(*checks, 0, 3).runs, 3u);
}

TEST(HealthChecks, ACheckThatThrowsFails) {
  const auto checks = start({check_of("a", []() -> HealthResult { throw std::runtime_error("refused"); }),
                             check_of("b", []() -> HealthResult { throw 1; }),
                             check_of("c", []() -> HealthResult { throw std::bad_alloc(); })});
  for (std::size_t i = 0; i < 3; ++i) {
    const HealthStatus status = status_after(*checks, i, 1);
    EXPECT_EQ(status.state, HealthState::failed);
    EXPECT_EQ(status.failures, 1u);
  }
  EXPECT_EQ(checks->statuses().at(0).reason, "refused");
}

TEST(HealthChecks, ACheckThatDoesNotReturnFailsAndDelaysNoOther) {
  Signal leave;
  HealthCheck hangs = check_of("hangs", [&] {
    EXPECT_TRUE(leave.take());
    return HealthResult{};
  });
  hangs.timeout = std::chrono::milliseconds(1);
  hangs.vital = true;
  const auto checks = start({std::move(hangs), check_of("other", healthy)});
  const auto has_failed = [](const HealthStatus& status) { return status.state == HealthState::failed; };
  const HealthStatus status = status_when(*checks, 0, has_failed);
  EXPECT_TRUE(has_failed(status));
  EXPECT_TRUE(status.reason.starts_with("has not returned for ")) << status.reason;
  EXPECT_EQ(status.runs, 0u);
  EXPECT_EQ(status.failures, 1u);
  EXPECT_EQ(status_after(*checks, 1, 1).state, HealthState::healthy);
  EXPECT_TRUE(checks->complaints(true).starts_with("check hangs: failed: has not returned"));
  leave.give();
  const HealthStatus late = status_after(*checks, 0, 1);  // its result came too late
  EXPECT_EQ(late.state, HealthState::failed);
  EXPECT_TRUE(late.reason.ends_with(", at most 1 ms are permitted")) << late.reason;
  EXPECT_EQ(late.failures, 1u);
}

TEST(HealthChecks, ACheckFailsWithThoseThatItDependsOn) {
  std::atomic<bool> works{false};
  const auto checks = start({check_of("orders", healthy, {"cache"}), check_of("cache", healthy, {"db"}),
                             check_of("db", [&] { return works ? healthy() : failed(); }), check_of("other", healthy)});
  for (std::size_t i = 0; i < 4; ++i) {
    (void)status_after(*checks, i, 1);
  }
  EXPECT_EQ(checks->complaints(false),
            "check orders: failed: depends on cache, which has failed\n"
            "check cache: failed: depends on db, which has failed\n"
            "check db: failed: no route\n");
  works = true;
  EXPECT_TRUE(checks->run_now("db"));
  (void)status_after(*checks, 2, 2);
  EXPECT_EQ(checks->complaints(false), "");
  EXPECT_EQ(checks->statuses().at(0).failures, 0u);
}

TEST(HealthChecks, AReasonIsOneLineAndBounded) {
  const auto checks = start(
      {check_of("a", [] { return HealthResult{HealthState::failed, "two\nlines " + std::string(10'000, 'x')}; })});
  const std::string reason = status_after(*checks, 0, 1).reason;
  EXPECT_TRUE(reason.starts_with("two lines xxx"));
  EXPECT_EQ(reason.size(), HealthChecks::kReasonMax);
}

TEST(HealthChecks, ChecksThatCannotWorkAreRefused) {
  const auto refused = [](std::vector<HealthCheck> checks) {
    const auto started = HealthChecks::start(std::move(checks));
    return !started && started.error() == Errc::invalid_argument;
  };
  EXPECT_TRUE(refused({check_of("", healthy)}));
  EXPECT_TRUE(refused({check_of("a", nullptr)}));
  EXPECT_TRUE(refused({check_of("a", healthy), check_of("a", healthy)}));
  EXPECT_TRUE(refused({check_of("a", healthy, {"b"})}));
  EXPECT_TRUE(refused({check_of("a", healthy, {"a"})}));
  EXPECT_TRUE(refused({check_of("a", healthy, {"b"}), check_of("b", healthy, {"a"})}));
  HealthCheck no_time = check_of("a", healthy);
  no_time.timeout = Duration::zero();
  EXPECT_TRUE(refused({no_time}));
  no_time = check_of("a", healthy);
  no_time.interval = Duration::zero();
  EXPECT_TRUE(refused({no_time}));
  std::vector<HealthCheck> many;
  for (std::size_t i = 0; i <= HealthChecks::kChecksMax; ++i) {
    many.push_back(check_of(std::to_string(i), healthy));
  }
  EXPECT_TRUE(refused(std::move(many)));
  EXPECT_TRUE(start({}));
  EXPECT_TRUE(start({check_of("a", healthy), check_of("b", healthy, {"a", "a"})}));
}

TEST(HealthChecks, TheDestructorWaitsForARun) {
  Signal entered;
  Signal leave;
  std::atomic<bool> returned{false};
  auto checks = start({check_of("db", [&] {
    entered.give();
    EXPECT_TRUE(leave.take());
    returned = true;
    return HealthResult{};
  })});
  const CounterSource source = checks->counter_source();
  ASSERT_TRUE(entered.take());
  std::thread destroys([&] {
    checks.reset();
    EXPECT_TRUE(returned);
  });
  leave.give();
  destroys.join();
  CounterReadings readings;
  source("x", readings);
  EXPECT_TRUE(readings.empty());
}

TEST(HealthChecks, ACheckMayDestroyThem) {
  Signal may_run;
  Signal destroyed;
  std::shared_ptr<HealthChecks> checks;
  checks = start({check_of("db", [&] {
    EXPECT_TRUE(may_run.take());
    checks.reset();
    destroyed.give();
    return HealthResult{};
  })});
  may_run.give();
  EXPECT_TRUE(destroyed.take());
}

TEST(HealthChecks, EachCheckHasCounters) {
  const auto checks = start({check_of("a", failed), check_of("b", healthy)});
  (void)status_after(*checks, 0, 1);
  (void)status_after(*checks, 1, 1);
  CounterReadings readings;
  checks->counter_source()("app", readings);
  ASSERT_EQ(readings.size(), 2u);
  const std::vector<CounterLabel> labels{{"check", "a"}, {"health_checks", "app"}};
  EXPECT_EQ(readings[0].labels, labels);
  EXPECT_EQ(std::vector(readings[0].values.begin(), readings[0].values.begin() + 3),
            (std::vector<std::uint64_t>{3, 1, 1}));
  EXPECT_EQ(std::vector(readings[1].values.begin(), readings[1].values.begin() + 3),
            (std::vector<std::uint64_t>{1, 1, 0}));
}

}  // namespace
}  // namespace weft::serve
