// SPDX-License-Identifier: MIT
#include "weft/serve/inspect/debug_pages.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <utility>

#include "weft/base/text/hex.h"
#include "weft/serve/inspect/json_text.h"
#include "weft/serve/web/form.h"

namespace weft::serve {

namespace {

constexpr std::string_view kOrders[] = {"queued", "received", "age", "silent"};  // as SurveyOrder

double ms_of(std::uint64_t ns) noexcept { return static_cast<double>(ns) / 1e6; }
double ms_of(std::int64_t ns) noexcept { return static_cast<double>(ns) / 1e6; }
double ms_of(Duration duration) noexcept { return static_cast<double>(duration.count()) / 1e6; }

void add_durations(JsonText& json, const sync::DurationValues& values) {
  json.member("count", values.total());
  json.member("sum_ms", ms_of(values.sum_ns));
  json.member("p50_ms", ms_of(values.quantile_ns(0.5)));
  json.member("p99_ms", ms_of(values.quantile_ns(0.99)));
  json.member("max_ms", ms_of(values.max_ns));
}

void add_now(JsonText& json, Instant now) { json.member("now_ms", ms_of(now.time_since_epoch())); }

std::uint64_t memory_of(const CounterValues& values) noexcept {
  std::uint64_t sum = 0;
  for (const std::uint64_t bytes : values.memory) {
    sum += bytes;
  }
  return sum;
}

void add_core(JsonText& json, std::size_t runtime, const CoreHealth& health, unsigned index,
              const std::vector<InspectedServer>& servers, Instant now) {
  rt::Core& core = health.core(index);
  const CoreHealth::Standing standing = health.standing(index, now);
  const rt::CoreCounts counts = core.counts();
  json.member("runtime", runtime);
  json.member("core", index);
  json.member("answers", standing.answered);
  json.member("ended", standing.ended);
  json.member("silent_ms", ms_of(standing.silent));
  json.member("doing", standing.doing);
  json.object("lag", [&] { add_durations(json, core.loop().activity()->lags()); });
  json.member("messages_posted", counts.posted);
  json.member("messages_executed", counts.executed);
  json.member("stalls", counts.stalls);
  std::uint64_t sessions = 0;
  std::uint64_t memory = 0;
  for (const InspectedServer& server : servers) {
    if (server.runtime == &core.runtime()) {
      const CounterValues values = server.counters(index);
      sessions += values.opened - std::min(values.opened, values.closed_total());
      memory += memory_of(values);
    }
  }
  json.member("sessions", sessions);
  json.member("memory_bytes", memory);
}

void add_session(JsonText& json, const SurveyedSession& session) {
  const SessionGlance& glance = session.glance;
  char id[16];
  write_hex(glance.id.value, sizeof id, id);
  json.member("id", std::string_view(id, sizeof id));
  json.member("core", glance.id.core());
  json.member("peer", session.peer);
  json.member("service", glance.service);
  json.member("state", glance.state);
  json.member("age_ms", ms_of(glance.age));
  json.member("silent_ms", ms_of(glance.silent));
  json.member("queued_bytes", glance.queued);
  json.member("received_bytes", glance.received);
  json.member("replies_owed", glance.replies);
  json.member("coroutines", glance.coroutines);
  json.member("reads", glance.reads);
  json.member("blocked", glance.blocked);
  json.member("layered", glance.layered);
  json.member("frames_in", glance.counts.frames_in);
  json.member("frames_out", glance.counts.frames_out);
  json.member("bytes_in", glance.counts.bytes_in);
  json.member("bytes_out", glance.counts.bytes_out);
}

void add_server(JsonText& json, const InspectedServer& server, const SessionsQuery& query, Instant now) {
  std::vector<SessionSurvey::Answer> answers = server.survey->take(now);
  std::vector<SurveyedSession> sessions;
  json.member("name", server.name);
  json.member("running", server.epoch() != 0);
  json.member("sessions_now", server.sessions());
  json.array("cores", [&] {
    for (SessionSurvey::Answer& answer : answers) {
      json.object([&] {
        json.member("core", answer.core);
        json.member("answers", answer.answered);
        json.member("silent_ms", ms_of(answer.silent));
        json.member("looked", answer.looked);
      });
      std::move(answer.sessions.begin(), answer.sessions.end(), std::back_inserter(sessions));
    }
  });
  std::stable_sort(sessions.begin(), sessions.end(), [&query](const SurveyedSession& a, const SurveyedSession& b) {
    return SessionSurvey::is_before(query.order, a.glance, b.glance);
  });
  sessions.resize(std::min(sessions.size(), query.limit));
  json.array("sessions", [&] {
    for (const SurveyedSession& session : sessions) {
      json.object([&] { add_session(json, session); });
    }
  });
}

}  // namespace

Result<SessionsQuery> SessionsQuery::parse(std::string_view query) {
  SessionsQuery parsed;
  parsed.server = web::find_pair(query, "server").value_or("");
  const std::string order = web::find_pair(query, "order").value_or("queued");
  const auto* const at = std::find(std::begin(kOrders), std::end(kOrders), order);
  if (at == std::end(kOrders)) {
    return Error(Errc::invalid_argument, "order is queued, received, age or silent");
  }
  parsed.order = static_cast<SurveyOrder>(at - std::begin(kOrders));
  if (const auto limit = web::find_pair(query, "limit")) {
    const char* const end = limit->data() + limit->size();
    const auto read = std::from_chars(limit->data(), end, parsed.limit);
    if (read.ec != std::errc() || read.ptr != end || parsed.limit == 0 || parsed.limit > SessionSurvey::kMost) {
      return Error(Errc::invalid_argument, "limit is a number from 1 to 200");
    }
  }
  return parsed;
}

std::string cores_page(const std::vector<std::shared_ptr<CoreHealth>>& runtimes,
                       const std::vector<InspectedServer>& servers, Instant now) {
  JsonText json;
  json.object([&] {
    add_now(json, now);
    json.array("cores", [&] {
      for (std::size_t runtime = 0; runtime < runtimes.size(); ++runtime) {
        for (unsigned core = 0; core < runtimes[runtime]->size(); ++core) {
          json.object([&] { add_core(json, runtime, *runtimes[runtime], core, servers, now); });
        }
      }
    });
  });
  return json.text();
}

std::string sessions_page(const std::vector<InspectedServer>& servers, const SessionsQuery& query, Instant now) {
  JsonText json;
  json.object([&] {
    add_now(json, now);
    json.member("order", kOrders[static_cast<std::size_t>(query.order)]);
    json.array("servers", [&] {
      for (const InspectedServer& server : servers) {
        if (query.takes(server)) {
          json.object([&] { add_server(json, server, query, now); });
        }
      }
    });
  });
  return json.text();
}

std::string handlers_page(const MetricSources& sources, Instant now) {
  sync::DurationReadings readings = sources.durations();
  std::erase_if(readings, [](const sync::DurationReading& each) { return each.row == &rt::kCoreLagRow; });
  std::stable_sort(readings.begin(), readings.end(), [](const auto& a, const auto& b) {
    const auto rank = [](const sync::DurationReading& of) {
      return std::pair(of.values.quantile_ns(0.99), of.values.max_ns);
    };
    return rank(a) > rank(b);
  });
  JsonText json;
  json.object([&] {
    add_now(json, now);
    json.member("handlers_all", readings.size());
    readings.resize(std::min(readings.size(), kHandlersMax));
    json.array("handlers", [&] {
      for (const sync::DurationReading& reading : readings) {
        json.object([&] {
          json.member("metric", "weft_" + std::string(reading.row->thing) + "_" + std::string(reading.row->metric));
          json.object("labels", [&] {
            for (const CounterLabel& label : reading.labels) {
              json.member(label.name, label.value);
            }
          });
          add_durations(json, reading.values);
        });
      }
    });
  });
  return json.text();
}

std::string traces_page(const MetricSources& sources, Instant now, std::int64_t wall_ns) {
  auto spans = sources.slow_spans();
  spans.resize(std::min(spans.size(), kTracesMax));
  JsonText json;
  json.object([&] {
    add_now(json, now);
    json.array("traces", [&] {
      for (const auto& [tracer, span] : spans) {
        std::string trace_id;
        std::string span_id;
        append_hex(trace_id, span.trace);
        append_hex(span_id, span.span);
        json.object([&] {
          json.member("tracer", tracer);
          json.member("trace_id", trace_id);
          json.member("span_id", span_id);
          json.member("name", span.name);
          json.member("kind", describe(span.kind));
          json.member("status", describe(span.status));
          json.member("ms", ms_of(span.duration));
          json.member("age_ms", ms_of(std::max<std::int64_t>(wall_ns - span.end_ns, 0)));
        });
      }
    });
  });
  return json.text();
}

}  // namespace weft::serve
