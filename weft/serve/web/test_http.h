// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "weft/base/assert.h"
#include "weft/base/bytes.h"
#include "weft/serve/frame/test_codec.h"
#include "weft/serve/web/http_codec.h"

// For tests and fuzzers: requests as values, from a stream that comes whole or in pieces.
namespace weft::serve::web::test {

struct SeenRequest {
  std::string method, target, path, body;
  bool keep_alive = false;
  unsigned refusal = 0;  // its status
  Part part = Part::whole;

  friend bool operator==(const SeenRequest&, const SeenRequest&) = default;
};

struct SeenRequests {
  std::vector<SeenRequest> requests;
  Error error;

  friend bool operator==(const SeenRequests&, const SeenRequests&) = default;
};

inline std::string content_of(const HttpFrame& frame) {
  if (!frame.header.chunked) {
    return std::string(as_text(frame.body));
  }
  std::string content(frame.header.content_size, '\0');
  const std::size_t size = net::http::copy_chunks(frame.body, reinterpret_cast<std::uint8_t*>(content.data()));
  WEFT_ASSERT(size == content.size());
  return content;
}

// As serve::test::feed, which compares only the 12-byte header.
template <typename NextPiece>
SeenRequests feed_http(HttpCodec codec, Bytes stream, NextPiece next_piece) {
  SeenRequests seen;
  serve::test::Buffer held;
  const HttpLimits& limits = codec.limits();
  while (!stream.empty()) {
    const std::size_t piece = std::min<std::size_t>(std::max<std::size_t>(next_piece(), 1), stream.size());
    held.insert(held.end(), stream.begin(), stream.begin() + static_cast<std::ptrdiff_t>(piece));
    stream = stream.subspan(piece);
    const serve::test::Buffer input(held);  // exactly as large as the input, so that a sanitizer sees overruns
    const DecodeResult result = decode_all(codec, input, [&](const HttpFrame& frame) {
      const HttpRequest& request = frame.header;
      const auto refusal = request.refusal == net::http::HttpRefusal::none ? 0 : net::http::status_of(request.refusal);
      seen.requests.push_back({std::string(request.head.method), std::string(request.head.target),
                               std::string(request.head.path), content_of(frame), request.keep_alive, refusal,
                               request.part});
      return true;
    });
    WEFT_ASSERT(result.consumed <= input.size());
    if (!(result.error == Errc::ok)) {
      seen.error = result.error;
      return seen;
    }
    WEFT_ASSERT(result.least > input.size() - result.consumed);
    held.erase(held.begin(), held.begin() + static_cast<std::ptrdiff_t>(result.consumed));
    WEFT_ASSERT(held.size() <= std::size_t{limits.head_max} + limits.body_max + limits.framing_max);
  }
  return seen;
}
inline SeenRequests feed_http(const HttpCodec& codec, Bytes stream) {
  return feed_http(codec, stream, [&] { return stream.size(); });
}

}  // namespace weft::serve::web::test
