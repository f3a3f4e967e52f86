// SPDX-License-Identifier: MIT
#include <cstddef>
#include <cstdint>
#include <string>

#include "weft/base/assert.h"
#include "weft/serve/web/http_codec.h"
#include "weft/serve/web/test_http.h"

// The first bytes choose the bounds and the cuts; the rest is the peer's stream. Checks besides the sanitizers and
// feed_http(): the outcome is the same whole and in pieces, bounds are kept, nothing comes after a refusal.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weft::serve::web;
  if (size < 4) {
    return 0;
  }
  HttpLimits limits;
  limits.head_max = data[0] * 8u + 1;
  limits.target_max = data[0] * 4u + 1;
  limits.fields_max = data[0] / 16;
  limits.body_max = data[1];
  limits.framing_max = data[1] * 2u;
  limits.requests_max = data[1] / 8;
  limits.streamed_max = data[1] * 4u;
  const HttpCodec codec(limits);
  std::uint32_t random = data[2] * 256U + data[3];
  const weft::Bytes stream(data + 4, size - 4);
  const test::SeenRequests whole = test::feed_http(codec, stream);
  const test::SeenRequests pieces = test::feed_http(codec, stream, [&random] {
    random = random * 1664525U + 1013904223U;
    return std::size_t{1} + (random >> 24) % 20;
  });
  WEFT_ASSERT(whole == pieces);
  for (const test::SeenRequest& request : whole.requests) {
    WEFT_ASSERT(request.body.size() <= limits.body_max && request.target.size() <= limits.target_max);
    WEFT_ASSERT((request.refusal == 0 && request.keep_alive) || request.part == Part::head ||
                &request == &whole.requests.back());
    WEFT_ASSERT(request.refusal != 0 || request.part == Part::body || !request.path.empty());
  }
  // Bodies that are handed over as they come: the same content, however it is cut.
  HttpCodec streaming(limits);
  streaming.set_streams([](const void*, const weft::net::http::RequestHead&) noexcept { return true; }, nullptr);
  const auto joined = [](const test::SeenRequests& seen) {
    std::string text = std::to_string(static_cast<int>(seen.error.code()));
    for (const test::SeenRequest& request : seen.requests) {
      text += request.part == Part::piece ? request.body : "\n" + request.path + std::to_string(request.refusal) + " ";
    }
    return text;
  };
  const test::SeenRequests at_once = test::feed_http(streaming, stream);
  WEFT_ASSERT(joined(at_once) == joined(test::feed_http(streaming, stream, [&random] {
                random = random * 1664525U + 1013904223U;
                return std::size_t{1} + (random >> 24) % 20;
              })));
  return 0;
}
