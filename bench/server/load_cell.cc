// SPDX-License-Identifier: MIT
#include "bench/server/load_cell.h"

#include <charconv>
#include <map>
#include <sstream>
#include <string_view>

#include "bench/server/udp_wire.h"

namespace bench {
namespace {

const std::map<std::string_view, LoadPattern> kPatterns{
    {"echo", LoadPattern::echo},       {"http", LoadPattern::echo},         {"websocket", LoadPattern::echo},
    {"one_way", LoadPattern::one_way}, {"storm", LoadPattern::storm},       {"idle", LoadPattern::idle},
    {"bad", LoadPattern::bad},         {"udp", LoadPattern::udp},           {"udp_flood", LoadPattern::udp_flood},
    {"bad_http", LoadPattern::bad},    {"bad_websocket", LoadPattern::bad}, {"publish", LoadPattern::echo},
    {"rpc", LoadPattern::echo},        {"rpc_stream", LoadPattern::echo}};

const std::map<std::string_view, WebStyle> kStyles{
    {"close", WebStyle::close}, {"file", WebStyle::file}, {"publish", WebStyle::publish}};

// Whether there is such a load.
bool fits(const LoadCell& cell) {
  if ((cell.abuse == Abuse::none) == (cell.pattern == LoadPattern::bad)) {
    return false;
  }
  if (cell.abuse != Abuse::none) {
    return cell.style == WebStyle::plain && wire_of(cell.abuse) == cell.wire;
  }
  switch (cell.style) {
    case WebStyle::plain: return true;
    case WebStyle::close: return cell.wire == LoadWire::http && cell.depth == 1;
    case WebStyle::file: return cell.wire == LoadWire::http;
    case WebStyle::publish: return cell.wire == LoadWire::websocket || cell.wire == LoadWire::frames;
  }
  return false;
}

// The number after a word, from 1 to `max`; 0: there is none.
std::uint32_t number_behind(std::string_view part, std::string_view word, std::uint32_t max) {
  std::uint32_t value = 0;
  if (part.starts_with(word)) {
    part.remove_prefix(word.size());
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), value);
    if (error != std::errc() || end != part.data() + part.size() || value > max) {
      value = 0;
    }
  }
  return value;
}

}  // namespace

LoadCell parse_load_cell(const std::string& name) {
  LoadCell cell;
  std::istringstream stream(name);
  std::string part;
  std::getline(stream, part, '/');
  const auto pattern = kPatterns.find(part);
  if (pattern == kPatterns.end()) {
    throw LoadError(
        "no cell '" + name +
        "': it begins with echo, http, websocket, rpc, rpc_stream, publish, udp, udp_flood, one_way, storm, "
        "idle, bad, bad_http or bad_websocket");
  }
  cell.pattern = pattern->second;
  if (part.ends_with("http")) {
    cell.wire = LoadWire::http;
  } else if (part.ends_with("websocket")) {
    cell.wire = LoadWire::websocket;
  } else if (part.starts_with("rpc")) {
    cell.wire = LoadWire::rpc;
    cell.streams = part == "rpc_stream";
  } else if (part == "publish") {
    cell.style = WebStyle::publish;
  }
  const bool datagrams = cell.pattern == LoadPattern::udp || cell.pattern == LoadPattern::udp_flood;
  const auto most = static_cast<std::uint32_t>(datagrams ? kUdpBodyMax : kBodyMax);
  const std::uint32_t least = cell.wire == LoadWire::http ? 1 : kBodyMin;
  while (std::getline(stream, part, '/')) {
    if (const auto size = number_behind(part, "", most); size >= least) {
      cell.size = size;
    } else if (const auto connections = number_behind(part, "x", 1U << 16U); connections > 0) {
      cell.connections = connections;
    } else if (const auto depth = number_behind(part, "depth", 1U << 10U); depth > 0) {
      cell.depth = depth;
    } else if (const auto style = kStyles.find(part); style != kStyles.end()) {
      cell.style = style->second;
    } else if (number_behind(part, "load", 99) == 0) {  // rounds.py makes an interval of it
      cell.abuse = parse_abuse(part);
    }
  }
  if (cell.size == 0 || !fits(cell)) {
    throw LoadError("no cell '" + name + "': echo/64/x16/depth16, bad/64/x16/depth4/flood");
  }
  return cell;
}

}  // namespace bench
