// SPDX-License-Identifier: MIT
#include "bench/cell.h"

#include <charconv>
#include <map>
#include <optional>
#include <sstream>
#include <string_view>
#include <vector>

namespace bench {
namespace {

const std::map<std::string_view, Pattern> kPatterns{
    {"push_pull", Pattern::push_pull},
    {"pub_sub", Pattern::pub_sub},
    {"router_router", Pattern::router_router},
    {"dealer_router", Pattern::dealer_router},
    {"pair", Pattern::pair},
    {"round_trip", Pattern::round_trip},
    {"one_thread", Pattern::one_thread},
    {"pipeline", Pattern::pipeline},
    {"service", Pattern::service},
    {"broker", Pattern::broker},
    {"burst", Pattern::burst},
    {"connect_storm", Pattern::connect_storm},
    {"idle_memory", Pattern::idle_memory},
};

const std::map<std::string_view, bool Cell::*> kFlags{
    {"hwm0", &Cell::unlimited}, {"moved", &Cell::moved}, {"curve", &Cell::curve},   {"tls", &Cell::tls},
    {"ws", &Cell::ws},          {"eco", &Cell::eco},     {"pinned", &Cell::pinned}, {"one_core", &Cell::one_core},
    {"io2", &Cell::io2},
};

std::optional<std::size_t> number_in(std::string_view text, std::size_t min, std::size_t max) {
  std::size_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole && value >= min && value <= max ? std::optional(value) : std::nullopt;
}

// Parses one word after the size: a flag, x8, or load50.
bool take_word(Cell& cell, std::string_view word) {
  if (const auto flag = kFlags.find(word); flag != kFlags.end()) {
    cell.*flag->second = true;
    return true;
  }
  if (word.starts_with("x")) {
    const std::size_t max = cell.storms() ? kPeersMax : kLanesMax;
    const auto times = number_in(word.substr(1), 1, max);
    cell.times = static_cast<int>(times.value_or(1));
    const bool one =
        cell.pattern == Pattern::burst || cell.pattern == Pattern::one_thread || cell.pattern == Pattern::pipeline;
    return times.has_value() && cell.pattern != Pattern::pair && (!one || cell.times == 1);
  }
  if (word.starts_with("load") && cell.pattern == Pattern::round_trip) {
    const auto load = number_in(word.substr(4), 1, 100);
    cell.load = static_cast<int>(load.value_or(0));
    return load.has_value();
  }
  if (word.starts_with("rest") && cell.pattern == Pattern::round_trip) {
    const auto rest = number_in(word.substr(4), 1, kRestMaxMs);
    cell.rest_ms = static_cast<int>(rest.value_or(0));
    return rest.has_value();
  }
  return false;
}

}  // namespace

Cell parse_cell(const std::string& name) {
  std::vector<std::string> parts;
  std::istringstream stream(name);
  for (std::string part; std::getline(stream, part, '/');) {
    parts.push_back(part);
  }
  Cell cell;
  cell.name = name;
  const auto refuse = [&](const std::string& why) { fail("no cell '" + name + "': " + why); };
  if (parts.size() < 3 || !kPatterns.contains(parts[0])) {
    refuse("a pattern, a transport and a size, for example push_pull/tcp/64");
  }
  cell.pattern = kPatterns.at(parts[0]);
  cell.transport = parts[1];
  if (cell.transport != "tcp" && cell.transport != "ipc" && cell.transport != "inproc") {
    refuse("the transport is tcp, ipc or inproc");
  }
  const auto size = number_in(parts[2], 16, std::size_t{64} << 20U);
  if (!size) {
    refuse("the size is 16 bytes to 64 MiB");
  }
  cell.size = *size;
  for (std::size_t i = 3; i < parts.size(); ++i) {
    if (!take_word(cell, parts[i])) {
      refuse("'" + parts[i] +
             "' is not one of hwm0, moved, curve, tls, ws, eco, pinned, one_core, io2, "
             "x8 (not with pair, burst, one_thread, pipeline), load50 and rest100 (round_trip)");
    }
  }
  if (cell.curve && cell.transport == "inproc") {
    refuse("inproc has no handshake");
  }
  if (cell.tls && (cell.transport != "tcp" || cell.curve || cell.storms())) {
    refuse("TLS is over tcp, and without CURVE");
  }
  if (cell.ws && (cell.transport != "tcp" || cell.curve || cell.tls || cell.storms())) {
    refuse("WebSocket is over tcp, and without CURVE or TLS");
  }
  if (cell.storms() && cell.transport == "inproc") {
    refuse("inproc has no connections");
  }
  return cell;
}

}  // namespace bench
