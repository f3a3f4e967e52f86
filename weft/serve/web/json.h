// SPDX-License-Identifier: MIT
#pragma once

// The bodies of requests and answers as values of nlohmann/json. The library itself neither includes nor needs it;
// where its header is not there, this one is empty, and Response::json() and its relatives do not compile.
#if __has_include(<nlohmann/json.hpp>)

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "weft/base/result.h"

namespace weft::serve::web {

// For Response::json(), Request::json() and those of a client.
struct JsonSupport {
  static constexpr int kDepthMax = 256;  // the library's copies and its dump() recurse

  // Bytes of a string that are not UTF-8 are replaced.
  template <typename Value>
  [[nodiscard]] static std::string write(const Value& value) {
    return nlohmann::json(value).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  }
  // invalid_argument: the text is not JSON, or more follows, or it nests more than kDepthMax deep. Cost: up to 20 bytes
  // of memory for each byte of the text, so the bound of the body bounds it.
  [[nodiscard]] static Result<nlohmann::json> parse(std::string_view text) {
    bool deep = false;
    const auto in_bounds = [&deep](int depth, nlohmann::json::parse_event_t /*event*/,
                                   const nlohmann::json& /*value*/) {
      deep = deep || depth > kDepthMax;
      return !deep;
    };
    nlohmann::json parsed = nlohmann::json::parse(text, in_bounds, false);
    if (deep || parsed.is_discarded()) {
      return Error(Errc::invalid_argument, "the body is not JSON");
    }
    return Result<nlohmann::json>(std::in_place, std::move(parsed));
  }
};

}  // namespace weft::serve::web

#endif
