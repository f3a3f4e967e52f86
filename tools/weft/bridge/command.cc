// SPDX-License-Identifier: MIT
#include "tools/weft/bridge/command.h"

#include <atomic>
#include <utility>
#include <vector>

#include "tools/weft/bridge/bridge.h"
#include "tools/weft/configuration.h"
#include "tools/weft/keys.h"
#include "tools/weft/topics/fleet.h"
#include "weft/serve/config/toml_file.h"
#include "weft/sys/clock.h"
#include "weft/sys/files/whole_file.h"
#include "weft/sys/limits.h"
#include "weft/sys/linux/service_manager.h"

namespace weft::cli {

namespace {

namespace config = serve::config;

constexpr std::uint64_t kDescriptors = 65'536;

// The state of the bridge, for /readyz on the thread of the admin port.
enum class Phase : std::uint8_t { opens, serves, stops };

Result<void> readiness(Phase phase) {
  switch (phase) {
    case Phase::opens: return Error(Errc::would_block, "the bridge opens its sections");
    case Phase::serves: return {};
    case Phase::stops: break;
  }
  return Error(Errc::closed, "the bridge stops");
}

FleetOptions fleet_options(const bridge::FleetSettings& settings) {
  FleetOptions fleet;
  fleet.fleet = settings.fleet;
  fleet.space = settings.space;
  fleet.directory = settings.directory;
  fleet.listen = settings.listen;
  fleet.curve_key = settings.curve_key;
  fleet.credentials = settings.credentials;
  fleet.tls_certificate = settings.tls_certificate;
  fleet.tls_key = settings.tls_key;
  fleet.tls_authorities = settings.tls_authorities;
  fleet.tls_name = settings.tls_name;
  return fleet;
}

void read_keys(bridge::Curve& curve) {
  if (!curve.server && curve.server_key_text.empty()) {
    return;
  }
  const KeyPair pair = curve.key_file.empty() ? make_key_pair() : read_key_pair(curve.key_file);
  curve.public_key = decode_key(pair.public_key);
  curve.secret_key = decode_key(pair.secret_key);
  if (!curve.server) {
    curve.server_key = decode_key(read_public_key(curve.server_key_text));
  }
}

// The settings of the file, with the keys in the files that it names; problems, if it is refused.
bridge::Settings read_file(const std::string& file, config::Problems& problems) {
  const std::string text = need(sys::read_whole_file(file, config::kFileMax), printable(file));
  bridge::Settings settings = bridge::read_settings(text, file, problems);
  for (bridge::Section& section : settings.sections) {
    try {
      read_keys(section.curve);
    } catch (const Failure& failure) {
      problems.add({{file, section.at}, section.name, failure.what()});
    }
  }
  problems.sort();
  return settings;
}

Record counts_of(const bridge::Line& line) {
  Record record = {
      {"event", std::string("counts")}, {"section", line.name}, {"kind", std::string(bridge::name_of(line.role))}};
  const std::vector<std::uint64_t> values = sync::read_counters(*line.counters);
  for (std::size_t i = 0; i < values.size(); ++i) {
    record.emplace_back(std::string(bridge::kBridgeTable.rows[i].member), values[i]);
  }
  return record;
}

int accept(Console& console, const std::string& file, const bridge::Settings& settings) {
  const std::size_t count = settings.sections.size();
  if (console.json) {
    console.record({{"file", file},
                    {"good", true},
                    {"problems", std::vector<Object>()},
                    {"omitted", std::uint64_t{0}},
                    {"sections", std::uint64_t{count}}});
  } else {
    console.line(printable(file) + ": good: " + std::to_string(count) + (count == 1 ? " section" : " sections"));
  }
  return 0;
}

// SocketCounts: a source of counters as a thing of an admin port.
struct SocketCounts {
  CounterSource source;
  [[nodiscard]] CounterSource counter_source() const { return source; }
};

void show_lines(Console& console, const bridge::Bridge& bridge) {
  for (const bridge::Line& line : bridge.lines()) {
    std::string endpoints;
    for (const std::string& each : line.endpoints) {
      endpoints += " " + each;
    }
    if (console.json) {
      console.record({{"event", std::string("section")},
                      {"section", line.name},
                      {"kind", std::string(bridge::name_of(line.role))},
                      {"endpoints", line.endpoints}});
    } else {
      console.note(line.name + " (" + std::string(bridge::name_of(line.role)) + "):" + printable(endpoints));
    }
  }
}

// From the bridge's core: one write, so that no other line comes between.
void tell_trouble(const std::string& trouble) {
  const std::string line = "weft: " + printable(trouble) + "\n";
  (void)std::fwrite(line.data(), 1, line.size(), stderr);
}

void show_counts(Console& console, const bridge::Bridge& bridge) {
  for (const bridge::Line& line : bridge.lines()) {
    const Record record = counts_of(line);
    if (console.json) {
      console.record(record);
      continue;
    }
    std::string text = line.name + ":";
    for (const auto& [name, value] : record) {
      if (const auto* const number = std::get_if<std::uint64_t>(&value); number != nullptr && *number != 0) {
        text += " " + name + " " + std::to_string(*number);
      }
    }
    console.note(text);
  }
}

}  // namespace

int run_bridge(Console& console, const BridgeOptions& options) {
  if (!config::toml_available()) {
    throw Failure("this build reads no TOML: it was built without toml++");
  }
  config::Problems problems;
  bridge::Settings settings = read_file(options.file, problems);
  if (!problems.empty()) {
    return refuse_file(console, options.file, "the configuration is refused", problems);
  }
  if (options.check) {
    return accept(console, options.file, settings);
  }
  (void)sys::set_descriptor_limit(kDescriptors);  // as far as the hard limit permits
  std::atomic<Phase> phase = Phase::opens;
  ServingPort port(console, options.serving, [&phase] { return readiness(phase.load(std::memory_order_acquire)); });
  std::string why;
  const auto bridge = bridge::Bridge::start(settings, topics_options(fleet_options(settings.fleet)), tell_trouble, why);
  if (bridge == nullptr) {
    throw Failure(printable(why));
  }
  for (const bridge::Line& line : bridge->lines()) {
    port.add(line.name, line);
    const SocketCounts socket{line.socket};
    port.add(line.name, socket);
  }
  port.add("bridge", *bridge);
  show_lines(console, *bridge);
  phase.store(Phase::serves, std::memory_order_release);
  const std::string serves = "the bridge " + bridge->name() + " serves the fleet " + printable(settings.fleet.fleet);
  if (console.json) {
    console.record({{"event", std::string("serves")}, {"bridge", bridge->name()}, {"fleet", settings.fleet.fleet}});
  } else {
    console.note(serves);
  }
  (void)sys::notify_service_manager("READY=1\nSTATUS=" + serves);
  try {
    sleep_until(kNever);
  } catch (const Stopped&) {
    phase.store(Phase::stops, std::memory_order_release);
    (void)sys::notify_service_manager("STOPPING=1\nSTATUS=the bridge stops");
    bridge->stop();
    show_counts(console, *bridge);
  }
  return 0;
}

}  // namespace weft::cli
