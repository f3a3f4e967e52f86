// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/base/time.h"
#include "weft/rt/core/runtime.h"
#include "weft/serve/inspect/core_health.h"
#include "weft/serve/inspect/session_survey.h"
#include "weft/serve/metrics/counters.h"
#include "weft/serve/metrics/sources.h"

namespace weft::serve {

// InspectedServer: a server as the pages see it. Its functions are called in the thread of the admin port.
struct InspectedServer {
  std::string name;
  rt::Runtime* runtime = nullptr;
  std::function<std::uint16_t()> epoch{};  // 0: it is stopped
  std::function<CounterValues(unsigned core)> counters{};
  std::function<std::size_t()> sessions{};
  std::shared_ptr<SessionSurvey> survey{};
};

// The question of a request for sessions: "?server=shop&order=age&limit=20".
struct SessionsQuery {
  std::string server;  // empty: every server
  SurveyOrder order = SurveyOrder::queued;
  std::size_t limit = 50;

  [[nodiscard]] bool takes(const InspectedServer& of) const { return server.empty() || server == of.name; }
  // Errors: invalid_argument (an unknown order; a limit that is not from 1 to SessionSurvey::kMost).
  [[nodiscard]] static Result<SessionsQuery> parse(std::string_view query);
};

// The pages of /debug as JSON. Affinity: the thread of the admin port. Cost: allocates; bounded by the number of cores,
// by kHandlersMax and by SessionSurvey::kMost.
inline constexpr std::size_t kHandlersMax = 200;
inline constexpr std::size_t kTracesMax = 100;

// {"now_ms":…,"cores":[{"runtime":0,"core":0,"answers":true,…}]}: the loads and lags of the cores; a core that does not
// answer is there with the time since it was asked.
[[nodiscard]] std::string cores_page(const std::vector<std::shared_ptr<CoreHealth>>& runtimes,
                                     const std::vector<InspectedServer>& servers, Instant now);
// {"now_ms":…,"servers":[{"name":…,"cores":[…],"sessions":[…]}]}: the first sessions of each server in the order.
[[nodiscard]] std::string sessions_page(const std::vector<InspectedServer>& servers, const SessionsQuery& query,
                                        Instant now);
// {"now_ms":…,"handlers":[{"metric":…,"labels":{…},"count":…,"p99_ms":…}]}: the slowest ones first.
[[nodiscard]] std::string handlers_page(const MetricSources& sources, Instant now);
// {"now_ms":…,"traces":[{"tracer":"shop","trace_id":…,"span_id":…,"name":"GET /orders","ms":…,"age_ms":…}]}: the
// slowest operations of this minute and the one before.
[[nodiscard]] std::string traces_page(const MetricSources& sources, Instant now, std::int64_t wall_ns);

}  // namespace weft::serve
