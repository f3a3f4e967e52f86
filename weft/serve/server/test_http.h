// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "weft/base/assert.h"
#include "weft/base/bytes.h"
#include "weft/serve/frame/test_codec.h"
#include "weft/serve/server/http_codec.h"

// For tests and fuzzers: requests as values, from a stream that comes whole or in pieces.
namespace weft::serve::test {

struct SeenRequest {
  std::string method, target, path, body;
  bool keep_alive = false;
  int refusal = 0;

  friend bool operator==(const SeenRequest&, const SeenRequest&) = default;
};

struct SeenRequests {
  std::vector<SeenRequest> requests;
  Error error;

  friend bool operator==(const SeenRequests&, const SeenRequests&) = default;
};

// As test::feed, which compares only the 12-byte header.
template <typename NextPiece>
SeenRequests feed_http(HttpCodec codec, Bytes stream, NextPiece next_piece) {
  SeenRequests seen;
  Buffer held;
  while (!stream.empty()) {
    const std::size_t piece = std::min<std::size_t>(std::max<std::size_t>(next_piece(), 1), stream.size());
    held.insert(held.end(), stream.begin(), stream.begin() + static_cast<std::ptrdiff_t>(piece));
    stream = stream.subspan(piece);
    const Buffer input(held);  // exactly as large as the input, so that a sanitizer sees overruns
    const DecodeResult result = decode_all(codec, input, [&](const HttpFrame& frame) {
      const HttpRequest& request = frame.header;
      seen.requests.push_back({std::string(request.method), std::string(request.target), std::string(request.path),
                               std::string(as_text(frame.body)), request.keep_alive, request.refusal});
      return true;
    });
    WEFT_ASSERT(result.consumed <= input.size());
    if (!(result.error == Errc::ok)) {
      seen.error = result.error;
      return seen;
    }
    WEFT_ASSERT(result.least > input.size() - result.consumed);
    held.erase(held.begin(), held.begin() + static_cast<std::ptrdiff_t>(result.consumed));
    WEFT_ASSERT(held.size() <= codec.head_max() + codec.body_max());
  }
  return seen;
}
inline SeenRequests feed_http(const HttpCodec& codec, Bytes stream) {
  return feed_http(codec, stream, [&] { return stream.size(); });
}

}  // namespace weft::serve::test
