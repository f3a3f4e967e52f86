// SPDX-License-Identifier: MIT
#include "tools/weft/doctor.h"

#include <algorithm>
#include <cstdlib>
#include <set>
#include <sstream>
#include <string>

#include "weft/msg/version.h"
#include "weft/net/tls/tls.h"
#include "weft/sys/cpu.h"
#include "weft/sys/poller.h"
#include "weft/sys/small_file.h"
#include "weft/sys/topology.h"
#include "weft/zmtp/curve.h"

namespace weft::cli {

namespace {

constexpr std::uint64_t kDescriptors = 65'536;  // the default of connections_max
constexpr std::uint64_t kBacklog = 1024;        // connections that arrive in one moment
constexpr std::uint64_t kBuffer = 1 << 20;      // bytes
constexpr std::uint64_t kPorts = 20'000;
constexpr std::uint64_t kUnlimited = UINT64_MAX;

std::string first_line(const std::string& path) {
  const std::string text = sys::read_small_file(path);
  return text.substr(0, text.find('\n'));
}

// The soft limit on the line of /proc/self/limits that begins with `name`; 0: there is none.
std::uint64_t limit(const char* name) {
  std::istringstream lines(sys::read_small_file("/proc/self/limits"));
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(name)) {
      std::istringstream rest(line.substr(std::string(name).size()));
      std::string soft;
      rest >> soft;
      return soft == "unlimited" ? kUnlimited : std::strtoull(soft.c_str(), nullptr, 10);
    }
  }
  return 0;
}

std::string number_text(std::uint64_t number) {
  return number == kUnlimited ? std::string("unlimited") : std::to_string(number);
}

void check_build(Findings& all) {
  all.push_back({"weft", State::information, version(), ""});
  all.push_back({"kernel", State::information, first_line("/proc/sys/kernel/osrelease"), ""});
  const auto feature = [&](const char* name, bool there, const char* advice) {
    all.push_back({name, there ? State::good : State::warning, there ? "built in" : "missing", there ? "" : advice});
  };
  feature("curve", zmtp::curve_available(),
          "build Weft where libsodium-dev is: tcp is encrypted by nothing else than TLS");
  feature("tls", net::tls_available(), "build Weft where libssl-dev (OpenSSL 3) is, for tls+tcp and wss");
}

void check_limits(Findings& all) {
  const std::uint64_t files = limit("Max open files");
  all.push_back(
      {"open files", files >= kDescriptors ? State::good : State::warning, number_text(files),
       files >= kDescriptors ? "" : "ulimit -n 65536, or LimitNOFILE=65536 in the unit: each connection is one"});
  const std::uint64_t locked = limit("Max locked memory");
  all.push_back({"locked memory", State::information, number_text(locked) + " bytes", ""});
}

// A number in /proc/sys; nothing when the file cannot be read, as in some containers.
void check_sysctl(Findings& all, const char* name, std::uint64_t least, const char* why) {
  std::string path = "/proc/sys/" + std::string(name);
  std::replace(path.begin() + 10, path.end(), '.', '/');
  const std::string text = first_line(path);
  if (text.empty()) {
    all.push_back({name, State::information, "not readable", ""});
    return;
  }
  const bool good = std::strtoull(text.c_str(), nullptr, 10) >= least;
  all.push_back({name, good ? State::good : State::warning, text,
                 good ? "" : "sysctl -w " + std::string(name) + "=" + std::to_string(least) + ": " + why});
}

void check_network(Findings& all) {
  check_sysctl(all, "net.core.somaxconn", kBacklog, "a burst of new connections overflows a shorter backlog");
  check_sysctl(all, "net.ipv4.tcp_max_syn_backlog", kBacklog, "the same, before their handshake is over");
  check_sysctl(all, "net.core.rmem_max", kBuffer, "the option receive_buffer, and udp, get no more than this");
  check_sysctl(all, "net.core.wmem_max", kBuffer, "the option send_buffer gets no more than this");
  std::istringstream range(first_line("/proc/sys/net/ipv4/ip_local_port_range"));
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  if (range >> low >> high) {
    const bool good = high - low >= kPorts;
    all.push_back({"net.ipv4.ip_local_port_range", good ? State::good : State::warning,
                   std::to_string(low) + " to " + std::to_string(high),
                   good ? "" : "widen it: each outgoing connection to one address takes a port"});
  }
}

void check_processors(Findings& all) {
  const unsigned cpus = sys::allowed_cpus();
  const bool quota = sys::quota_limited();
  all.push_back({"processors", quota || cpus < 2 ? State::warning : State::good,
                 std::to_string(cpus) + (quota ? ", by the quota of the control group" : ""),
                 quota ? "pin to whole processors (cpuset) instead: a quota stops all threads until its period ends"
                 : cpus < 2 ? "give the process two: a sender and a receiver take turns on one"
                            : ""});
  std::set<unsigned> nodes;
  for (const sys::PhysicalCore& core : sys::physical_cores(sys::allowed_cpu_ids())) {
    nodes.insert(core.node);
  }
  all.push_back({"NUMA nodes", State::information, std::to_string(nodes.size()),
                 nodes.size() == 1 ? ""
                                   : "list the processors of one node in RuntimeOptions::cpus, or start a process for "
                                     "each node: memory of another node is slower"});
  const std::string huge = first_line("/sys/kernel/mm/transparent_hugepage/enabled");
  if (!huge.empty()) {
    all.push_back({"transparent huge pages", State::information, huge, ""});
  }
  const std::string memory = first_line("/sys/fs/cgroup/memory.max");
  if (!memory.empty()) {
    all.push_back(
        {"memory of the control group", State::information, memory == "max" ? "unlimited" : memory + " bytes", ""});
  }
  const std::string source = first_line("/sys/devices/system/clocksource/clocksource0/current_clocksource");
  const bool fast = source == "tsc" || source == "kvm-clock" || source == "arch_sys_counter" ||
                    source == "hyperv_clocksource_tsc_page";
  all.push_back({"clock source",
                 source.empty() ? State::information
                 : fast         ? State::good
                                : State::warning,
                 source.empty() ? "not readable" : source,
                 source.empty() || fast
                     ? ""
                     : "boot with clocksource=tsc if it is stable: each look at this clock is a system call"});
  const std::string governor = first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
  if (!governor.empty()) {
    const bool slow = governor == "powersave";
    all.push_back({"cpu governor", slow ? State::warning : State::good, governor,
                   slow ? "cpupower frequency-set -g performance: a core that slept answers late" : ""});
  }
}

void check_pollers(Findings& all) {
  const auto ring = sys::make_poller(sys::PollerKind::io_uring);
  const Error refusal = ring ? ring->choice.refusal : ring.error();
  const bool there = refusal == Errc::ok;
  all.push_back({"io_uring", State::information, there ? "permitted" : "refused: " + refusal.message(), ""});
  const auto chosen = sys::make_poller();
  all.push_back({"poller", chosen ? State::good : State::warning,
                 chosen ? sys::describe(chosen->choice.kind) : chosen.error().message(),
                 chosen ? "" : "no loop can run: see the open files"});
}

}  // namespace

Findings examine_machine() {
  Findings all;
  check_build(all);
  check_limits(all);
  check_network(all);
  check_processors(all);
  check_pollers(all);
  return all;
}

std::string_view state_name(State state) noexcept {
  static constexpr std::string_view kStates[] = {"ok", "info", "warning"};
  return kStates[static_cast<std::size_t>(state)];
}

int print_findings(Console& console, const Findings& findings, bool strict) {
  bool warned = false;
  for (const Finding& each : findings) {
    static constexpr Colour kColours[] = {Colour::green, Colour::bold, Colour::yellow};
    warned |= each.state == State::warning;
    if (console.json) {
      console.record({{"name", each.name},
                      {"state", std::string(state_name(each.state))},
                      {"value", each.value},
                      {"advice", each.advice}});
      continue;
    }
    std::string name = each.name;
    name.resize(std::max<std::size_t>(name.size(), 29), ' ');
    const std::string word(state_name(each.state));
    const std::string gap(8 - word.size(), ' ');
    console.prose(word + gap + name + " " + printable(each.value), 38, word,
                  console.paint(kColours[static_cast<std::size_t>(each.state)], word));
    if (!each.advice.empty()) {
      console.prose("        -> " + each.advice, 11);
    }
  }
  return strict && warned ? kExitFailed : 0;
}

int doctor(Console& console, bool strict) { return print_findings(console, examine_machine(), strict); }

}  // namespace weft::cli
