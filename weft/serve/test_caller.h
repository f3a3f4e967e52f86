// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "weft/base/result.h"
#include "weft/serve/error_frame.h"
#include "weft/serve/header_codec.h"
#include "weft/serve/test_codec.h"

namespace weft::serve::test {

// Stands in for a session: keeps what is sent to the peer.
struct Caller {
  std::vector<Got> sent;

  Result<void> send(const FrameHeader& header, Bytes body) {
    sent.push_back({header, Buffer(body.begin(), body.end())});
    return {};
  }
  // The only answer, which is an error frame.
  [[nodiscard]] ErrorResponse only_error() const {
    if (sent.size() != 1 || sent[0].header.flags != kFlagError) {
      return {};
    }
    return parse_error_body(sent[0].body).value();
  }
};

}  // namespace weft::serve::test
