// SPDX-License-Identifier: MIT
#include "weft/serve/web/router.h"

#include <algorithm>
#include <optional>

#include "weft/serve/web/form.h"

namespace weft::serve::web {

namespace {

constexpr std::array<std::string_view, kMethods> kMethodNames = {"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"};

std::optional<std::size_t> method_index(std::string_view name) noexcept {
  const auto* const at = std::find(kMethodNames.begin(), kMethodNames.end(), name == "HEAD" ? "GET" : name);
  return at == kMethodNames.end() ? std::nullopt : std::optional(static_cast<std::size_t>(at - kMethodNames.begin()));
}

// Takes "/segment" off the path. Requires that it begins with '/'.
std::string_view take_segment(std::string_view& path) noexcept {
  path.remove_prefix(1);
  const std::string_view segment = path.substr(0, path.find('/'));
  path.remove_prefix(segment.size());
  return segment;
}

bool is_param(std::string_view segment) noexcept {
  return segment.size() > 2 && segment.starts_with('{') && segment.ends_with('}') &&
         segment.find_first_of("{}", 1) == segment.size() - 1;
}

// A literal is decoded in a pattern and in a path, so that "/a%62" is "/ab".
bool is_literal(std::string_view segment, std::string_view literal) {
  return segment == literal || (segment.find('%') != std::string_view::npos && percent_decode(segment) == literal);
}

}  // namespace

Router::Kind Router::kind_of(std::string_view segment) noexcept {
  return !is_param(segment) ? Kind::literal : segment.ends_with("...}") && segment.size() > 5 ? Kind::rest : Kind::any;
}

std::uint32_t Router::child_of(std::uint32_t node, std::string_view segment, Kind kind) {
  if (kind != Kind::literal) {
    const std::uint32_t child = kind == Kind::any ? nodes_[node].any : nodes_[node].rest;
    if (child != kNone) {
      return child;
    }
  } else {
    for (const std::uint32_t child : nodes_[node].literals) {
      if (nodes_[child].literal == segment) {
        return child;
      }
    }
  }
  const auto made = static_cast<std::uint32_t>(nodes_.size());
  nodes_.push_back(Node{});
  if (kind != Kind::literal) {
    (kind == Kind::any ? nodes_[node].any : nodes_[node].rest) = made;
  } else {
    nodes_[made].literal = segment;
    nodes_[node].literals.push_back(made);
  }
  return made;
}

Result<void> Router::add(Method method, std::string_view pattern, Handler handler) {
  constexpr Error kNoPattern(Errc::invalid_argument, "a route is \"/segment/{name}\": segments, and names in braces");
  std::vector<std::string> names;
  std::vector<std::pair<std::string, Kind>> segments;
  for (std::string_view rest = pattern; !rest.empty() || segments.empty();) {
    if (!rest.starts_with('/') || segments.size() == kSegmentsMax) {
      return kNoPattern;
    }
    const std::string_view segment = take_segment(rest);
    const Kind kind = kind_of(segment);
    if (kind == Kind::rest && !rest.empty()) {
      return kNoPattern;
    }
    if (kind != Kind::literal) {
      names.emplace_back(segment.substr(1, segment.size() - (kind == Kind::any ? 2 : 5)));
    } else if (segment.find_first_of("{}?#") != std::string_view::npos) {
      return kNoPattern;
    }
    segments.emplace_back(percent_decode(segment), kind);
  }
  std::vector<std::string> sorted = names;
  std::sort(sorted.begin(), sorted.end());
  if (names.size() > kParamsMax || std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end() ||
      (!handler.call && !handler.start && !handler.receive && handler.websocket == nullptr)) {
    return Error(Errc::invalid_argument, "a route has at most kParamsMax names, each once, and a handler");
  }
  std::uint32_t node = 0;
  for (const auto& [segment, kind] : segments) {
    node = child_of(node, segment, kind);
  }
  std::uint32_t& route = nodes_[node].routes[static_cast<std::size_t>(method)];
  if (route != kNone) {
    return Error(Errc::conflict, "there is a route of this method and path");
  }
  for (auto around = middlewares_.rbegin(); handler.websocket == nullptr && around != middlewares_.rend(); ++around) {
    handler = (*around)(std::move(handler));
  }
  receives_ = receives_ || handler.receive;
  routes_.push_back(Route{std::move(handler), std::move(names), std::string(pattern), method});
  route = static_cast<std::uint32_t>(routes_.size() - 1);
  return {};
}

Result<void> Router::add_websocket(std::string_view pattern, WebSocketRoute route) {
  route.index = websockets_.size();
  auto kept = std::make_shared<const WebSocketRoute>(std::move(route));
  websockets_.reserve(websockets_.size() + 1);
  Handler handler;
  handler.websocket = kept;
  WEFT_TRY(add(Method::get, pattern, std::move(handler)));
  websockets_.push_back(std::move(kept));
  return {};
}

// The node of a "{name...}" below `node`; kNone: there is none.
std::uint32_t Router::find_rest(std::uint32_t node, std::string_view rest, PathParams& values) const {
  if (nodes_[node].rest != kNone && values.count != kParamsMax) {
    values.params[values.count++].value = rest.substr(1);
    return nodes_[node].rest;
  }
  return kNone;
}

// The node of the rest of a path, with a route; kNone: there is none. A literal segment goes before a "{name}", and
// that before a "{name...}".
std::uint32_t Router::find_node(std::uint32_t node, std::string_view rest, PathParams& values) const {
  if (rest.empty()) {
    const auto& routes = nodes_[node].routes;
    const bool ends = std::any_of(routes.begin(), routes.end(), [](std::uint32_t route) { return route != kNone; });
    return ends ? node : kNone;
  }
  const std::string_view whole = rest;
  const std::string_view segment = take_segment(rest);
  for (const std::uint32_t child : nodes_[node].literals) {
    if (is_literal(segment, nodes_[child].literal)) {
      const std::uint32_t found = find_node(child, rest, values);
      if (found != kNone) {
        return found;
      }
      break;
    }
  }
  if (segment.empty() || nodes_[node].any == kNone || values.count == kParamsMax) {
    return find_rest(node, whole, values);
  }
  values.params[values.count++].value = segment;
  const std::uint32_t found = find_node(nodes_[node].any, rest, values);
  if (found == kNone) {
    --values.count;
    return find_rest(node, whole, values);
  }
  return found;
}

Router::Match Router::find(std::string_view method, std::string_view path) const {
  Match match;
  const std::optional<std::size_t> index = method_index(method);
  const std::uint32_t node = path.starts_with('/') ? find_node(0, path, match.params) : kNone;
  if (node == kNone) {
    match.status = index ? 404 : 501;
    match.params.count = 0;
    return match;
  }
  for (std::size_t i = 0; i < kMethods; ++i) {
    if (nodes_[node].routes[i] != kNone) {
      match.methods = static_cast<std::uint8_t>(match.methods | 1U << i);
    }
  }
  if (!index || nodes_[node].routes[*index] == kNone) {
    match.status = index ? 405 : 501;
    return match;
  }
  const Route& route = routes_[nodes_[node].routes[*index]];
  for (std::size_t i = 0; i < match.params.count; ++i) {
    match.params.params[i].name = route.names[i];
  }
  match.params.route = route.pattern;
  match.handler = &route.handler;
  match.route = nodes_[node].routes[*index];
  match.status = 200;
  return match;
}

std::vector<Router::RouteName> Router::routes() const {
  std::vector<RouteName> names;
  names.reserve(routes_.size());
  for (const Route& route : routes_) {
    names.push_back(
        {kMethodNames[static_cast<std::size_t>(route.method)], route.pattern, route.handler.websocket != nullptr});
  }
  return names;
}

std::string Router::allow_of(std::uint8_t methods) {
  std::string allow;
  for (std::size_t i = 0; i < kMethods; ++i) {
    if ((methods & 1U << i) != 0) {
      allow.append(allow.empty() ? "" : ", ").append(kMethodNames[i]).append(i == 0 ? ", HEAD" : "");
    }
  }
  return allow;
}

}  // namespace weft::serve::web
