// SPDX-License-Identifier: MIT
#include "weft/serve/server/server_metrics.h"

#include <cstdint>
#include <vector>

namespace weft::serve {

namespace {

using Type = PrometheusWriter::Type;

struct Row {
  std::string_view label;
  std::uint64_t CounterValues::* value;
};
struct CountFamily {
  std::string_view name;
  std::string_view help;
  std::string_view label;  // what tells its rows apart
  std::vector<Row> rows;
};

const std::vector<CountFamily>& count_families() {
  static const std::vector<CountFamily> kFamilies = {
      {"weft_server_sessions_opened_total", "Sessions that began.", "", {{"", &CounterValues::opened}}},
      {"weft_server_frames_total",
       "Whole frames, received and taken for sending.",
       "direction",
       {{"in", &CounterValues::frames_in}, {"out", &CounterValues::frames_out}}},
      {"weft_server_bytes_total",
       "Bytes of sessions.",
       "direction",
       {{"in", &CounterValues::bytes_in}, {"out", &CounterValues::bytes_out}}},
      {"weft_server_system_calls_total",
       "Reads and writes that moved bytes.",
       "direction",
       {{"in", &CounterValues::reads}, {"out", &CounterValues::writes}}},
      {"weft_server_frames_dropped_total",
       "Frames that were not delivered.",
       "reason",
       {{"newest", &CounterValues::dropped_newest},
        {"oldest", &CounterValues::dropped_oldest},
        {"conflated", &CounterValues::conflated},
        {"undelivered", &CounterValues::undelivered}}},
      {"weft_server_accept_pauses_total",
       "How often accepting paused for want of descriptors or memory.",
       "",
       {{"", &CounterValues::accept_pauses}}},
      {"weft_server_rate_pauses_total",
       "How often a session was not read for a while because it sent too many frames.",
       "",
       {{"", &CounterValues::rate_pauses}}},
      {"weft_server_stale_ids_total", "Messages for sessions that had ended.", "", {{"", &CounterValues::stale_ids}}},
  };
  return kFamilies;
}

struct CoreFamily {
  std::string_view name;
  std::string_view help;
  std::uint64_t rt::CoreCounts::* value;
};
constexpr CoreFamily kCoreFamilies[] = {
    {"weft_core_messages_posted_total", "Messages that the core sent.", &rt::CoreCounts::posted},
    {"weft_core_messages_refused_total", "Messages that it could not send.", &rt::CoreCounts::refused},
    {"weft_core_messages_executed_total", "Messages that ran on the core.", &rt::CoreCounts::executed},
    {"weft_core_messages_threw_total", "Messages that ended in an exception.", &rt::CoreCounts::threw},
    {"weft_core_foreign_messages_posted_total", "Messages of other threads to the core.",
     &rt::CoreCounts::foreign_posted},
    {"weft_core_foreign_messages_refused_total", "Those that found no room.", &rt::CoreCounts::foreign_refused},
    {"weft_core_wakes_total", "How often the core had to wake another one.", &rt::CoreCounts::wakes},
};

}  // namespace

// What the writer refuses (a name that came twice) is not there; the rest is.
void write_metrics(PrometheusWriter& writer, std::span<const NamedServer> servers) {
  std::vector<CounterValues> values;
  for (const NamedServer& named : servers) {
    values.push_back(named.server->counters());
  }
  (void)writer.family("weft_server_sessions", Type::gauge, "Sessions that there are.");
  for (const NamedServer& named : servers) {
    (void)writer.sample({{"server", named.name}}, std::uint64_t{named.server->sessions()});
  }
  for (const CountFamily& family : count_families()) {
    (void)writer.family(family.name, Type::counter, family.help);
    for (std::size_t i = 0; i < servers.size(); ++i) {
      for (const Row& row : family.rows) {
        const Label labels[] = {{"server", servers[i].name}, {family.label, row.label}};
        (void)writer.sample(Labels(labels, family.label.empty() ? 1 : 2), values[i].*row.value);
      }
    }
  }
  (void)writer.family("weft_server_sessions_closed_total", Type::counter, "Sessions that ended, and why.");
  for (std::size_t i = 0; i < servers.size(); ++i) {
    for (std::size_t reason = 0; reason < kCloseReasons; ++reason) {
      (void)writer.sample({{"server", servers[i].name}, {"reason", describe(static_cast<CloseReason>(reason))}},
                          values[i].closed[reason]);
    }
  }
  (void)writer.family("weft_server_connections_rejected_total", Type::counter,
                      "Connections that never were sessions, and why.");
  for (std::size_t i = 0; i < servers.size(); ++i) {
    for (std::size_t why = 0; why < kRejections; ++why) {
      (void)writer.sample({{"server", servers[i].name}, {"reason", describe(static_cast<Rejection>(why))}},
                          values[i].rejected[why]);
    }
  }
}

void write_metrics(PrometheusWriter& writer, rt::Runtime& runtime) {
  for (const CoreFamily& family : kCoreFamilies) {
    (void)writer.family(family.name, Type::counter, family.help);
    for (unsigned core = 0; core < runtime.size(); ++core) {
      (void)writer.sample({{"core", std::to_string(core)}}, runtime.core(core).counts().*family.value);
    }
  }
}

}  // namespace weft::serve
