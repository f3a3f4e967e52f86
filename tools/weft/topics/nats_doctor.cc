// SPDX-License-Identifier: MIT
#include "tools/weft/topics/nats_doctor.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "tools/weft/doctor.h"
#include "tools/weft/topics/nats_streams.h"
#include "weft/nats/client/client.h"
#include "weft/rt/core/runtime.h"
#include "weft/rt/task/task_scope.h"
#include "weft/sys/clock.h"
#include "weft/sys/path.h"

namespace weft::cli {

namespace {

constexpr double kPatience = 5;  // seconds, for each answer
constexpr std::size_t kPayloadLeast = std::size_t{64} << 10;

// Probe: a subject that a handle of the fleet needs, and the answer of the server.
struct Probe {
  const char* name = "";
  std::string subject{};
  bool refused = false;  // the subscription
  bool came = false;     // its own message
};

// Facts: the answers of the servers.
struct Facts {
  Result<void> connected{};
  std::string version{};
  std::size_t max_payload = 0;
  std::size_t servers = 0;
  Duration round_trip{};
  Probe control{};
  Probe inbox{};
  KeptFacts kept{};
};

nats::ClientOptions client_options(const FleetOptions& fleet) {
  nats::ClientOptions options;
  options.servers = fleet.fleet;
  options.name = "weft fleet doctor";
  options.credentials_file = fleet.credentials;
  options.tls_name = fleet.tls_name;
  need(options.use_tls_files(fleet.tls_authorities, fleet.tls_certificate, fleet.tls_key), "--tls-ca");
  return options;
}

// The server answers in order: with a refusal and with the message before it answers flush().
rt::Task<void> probe(nats::Client& client, Probe& what, Duration patience) {
  const auto id = client.subscribe(what.subject, [&what](const nats::Message&) { what.came = true; },
                                   {.on_ended = [&what](const Error&) { what.refused = true; }});
  if (!id) {
    co_return;
  }
  (void)client.publish(what.subject, {});
  (void)co_await client.flush(deadline_after(sys::now(), patience));
  client.unsubscribe(*id);
}

rt::Task<Result<void>> examine(nats::ClientOptions options, Duration patience, Facts* facts) {
  std::unique_ptr<nats::Client> owner;
  auto left = 1 + std::count(options.servers.begin(), options.servers.end(), ',');
  Result<void> last;
  options.on_event = [&](const nats::ClientEvent& event) {
    if (event.kind == nats::ClientEvent::Kind::unconnected && --left == 0) {  // each server has failed once
      last = event.why;
      owner.reset();
    } else if (event.kind == nats::ClientEvent::Kind::refused) {
      facts->kept.refused.emplace_back(event.subject);
    }
  };
  auto opened = nats::Client::open(std::make_shared<serve::ClientHost>(*rt::Core::current()), std::move(options));
  if (!opened) {
    facts->connected = opened.error();
    co_return Result<void>();
  }
  owner = std::move(opened).value();
  nats::Client& client = *owner;
  facts->connected = co_await client.connected(deadline_after(sys::now(), patience));
  if (!facts->connected || owner == nullptr) {
    facts->connected = last ? facts->connected : last;
    co_return Result<void>();
  }
  left = 0;  // the client connects again, should it lose the connection
  facts->version = client.server_version();
  facts->max_payload = client.max_payload();
  facts->servers = client.servers_known();
  const Instant before = sys::now();
  const auto flushed = co_await client.flush(deadline_after(before, patience));
  facts->round_trip = flushed ? sys::now() - before : Duration::zero();
  co_await probe(client, facts->control, patience);
  co_await probe(client, facts->inbox, patience);
  co_return co_await ask_kept(&client, patience, &facts->kept);
}

Finding of_probe(const Probe& what) {
  const bool good = what.came && !what.refused;
  return {what.name, good ? State::good : State::warning,
          good           ? "permitted"
          : what.refused ? "the server refuses the subscription"
                         : "no message came back: the server may refuse to publish",
          good ? ""
               : "the user of the handles needs to publish and subscribe " +
                     what.subject.substr(0, what.subject.find('.') + 1) + ">"};
}

}  // namespace

std::uint64_t version_number(std::string_view text) noexcept {
  std::uint64_t number = 0;
  for (int part = 0; part < 3; ++part) {
    std::uint64_t digits = 0;
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), digits);
    if (failure != std::errc() || digits > 999) {
      return 0;
    }
    number = number * 1000 + digits;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    if (part < 2) {
      if (!text.starts_with('.')) {
        return 0;
      }
      text.remove_prefix(1);
    }
  }
  return number;
}

std::string_view known_faults(std::uint64_t version) noexcept {
  if (version < 2'010'000) {
    return "three copies of 2.9.10 lost acknowledged messages when their leader stood still, and routes and "
           "permissions "
           "can be bypassed: 2.11.16, 2.12.7 or later";
  }
  if (version < 2'011'016 || (version >= 2'012'000 && version < 2'012'007)) {
    return "routes and permissions can be bypassed: 2.11.16, 2.12.7 or later";
  }
  return {};
}

int fleet_doctor(Console& console, const FleetDoctorOptions& asked) {
  const FleetOptions& options = asked.fleet;
  const Duration patience = seconds(options.timeout < 0 ? kPatience : options.timeout);
  const std::string mine = "doctor" + std::to_string(sys::process_id()) + "-" + std::to_string(sys::ticks());
  Facts facts;
  facts.control = {.name = "control messages", .subject = "_WEFT." + mine};
  facts.inbox = {.name = "replies", .subject = "_INBOX." + mine};
  {
    rt::RuntimeOptions one;
    one.cores = 1;
    one.pinning = rt::Pinning::never;
    one.wait_mode = sync::WaitMode::eco;
    const auto runtime = need(rt::Runtime::start(one), "a core");
    auto done = rt::spawn(runtime->core(0).loop(), examine(client_options(options), patience, &facts));
    while (!done.wait_until(deadline_after(sys::now(), std::chrono::milliseconds(50)))) {
      throw_if_stopped();
    }
  }
  need(facts.connected, "the fleet");  // its text may have a password
  std::vector<MonitorFacts> monitors;
  AdminPort tls;
  tls.tls_certificate = options.tls_certificate;
  tls.tls_key = options.tls_key;
  tls.tls_authorities = options.tls_authorities;
  for (const std::string& each : asked.monitors) {
    monitors.push_back(read_monitor(each, tls, deadline_after(sys::now(), patience)));
  }
  Findings all;
  const std::uint64_t version = version_number(facts.version);
  const std::string_view faults = known_faults(version);
  all.push_back({"nats-server", faults.empty() ? State::good : State::warning, facts.version, std::string(faults)});
  all.push_back({"servers", facts.servers > 1 ? State::good : State::warning, std::to_string(facts.servers),
                 facts.servers > 1 ? "" : "one server: while it is away, nothing passes between processes"});
  all.push_back({"largest message", facts.max_payload >= kPayloadLeast ? State::information : State::warning,
                 std::to_string(facts.max_payload) + " bytes",
                 facts.max_payload >= kPayloadLeast ? "" : "max_payload in the configuration of the servers"});
  all.push_back({"round trip", State::information,
                 format("%.2f ms", std::chrono::duration<double, std::milli>(facts.round_trip).count()), ""});
  const bool encrypted = options.fleet.starts_with("tls://") || !options.tls_authorities.empty();
  const bool here =
      options.fleet.find("127.0.0.1") != std::string::npos || options.fleet.find("localhost") != std::string::npos;
  all.push_back({"encryption", encrypted || here ? State::good : State::warning,
                 encrypted ? "TLS" : (here ? "none, on this machine" : "none"),
                 encrypted || here ? "" : "tls://HOST:PORT: passwords and messages cross the network in the clear"});
  all.push_back(of_probe(facts.control));
  all.push_back(of_probe(facts.inbox));
  add_kept_findings(facts.kept, monitors, all);
  return print_findings(console, all, asked.strict);
}

}  // namespace weft::cli
