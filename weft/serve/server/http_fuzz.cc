// SPDX-License-Identifier: MIT
#include <cstddef>
#include <cstdint>

#include "weft/base/assert.h"
#include "weft/serve/server/http_codec.h"
#include "weft/serve/server/test_http.h"

// The first bytes choose the bounds and the cuts; the rest is the peer's stream. Checks besides the sanitizers and
// feed_http(): the outcome is the same whole and in pieces, bounds are kept, nothing comes behind a refusal.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weft::serve;
  if (size < 4) {
    return 0;
  }
  const HttpCodec codec(data[0] * 8u + 1, data[1]);
  std::uint32_t random = data[2] * 256U + data[3];
  const weft::Bytes stream(data + 4, size - 4);
  const test::SeenRequests whole = test::feed_http(codec, stream);
  const test::SeenRequests pieces = test::feed_http(codec, stream, [&random] {
    random = random * 1664525U + 1013904223U;
    return std::size_t{1} + (random >> 24) % 20;
  });
  WEFT_ASSERT(whole == pieces);
  for (const test::SeenRequest& request : whole.requests) {
    WEFT_ASSERT(request.body.size() <= codec.body_max() && request.target.size() <= codec.head_max());
    WEFT_ASSERT(request.refusal == 0 || &request == &whole.requests.back());
    WEFT_ASSERT(request.path.size() <= request.target.size());
  }
  return 0;
}
