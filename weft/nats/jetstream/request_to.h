// SPDX-License-Identifier: MIT
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "weft/base/result.h"
#include "weft/nats/jetstream/api.h"
#include "weft/nats/jetstream/names.h"

namespace weft::nats::jetstream {

// The request "$JS.API.<operation>.<name>…". Errors: invalid_argument (a name that no server takes).
[[nodiscard]] inline Result<ApiRequest> request_to(std::string_view operation,
                                                   std::initializer_list<std::string_view> names,
                                                   std::string body = {}) {
  ApiRequest request;
  request.subject.append(kApiPrefix).append(operation);
  for (const std::string_view name : names) {
    if (!is_name(name)) {
      return Error(Errc::invalid_argument, "not the name of a stream or a consumer");
    }
    request.subject.append(1, '.').append(name);
  }
  request.body = std::move(body);
  return Result<ApiRequest>(std::in_place, std::move(request));
}

}  // namespace weft::nats::jetstream
