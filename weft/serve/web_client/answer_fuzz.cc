// SPDX-License-Identifier: MIT
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "weft/base/assert.h"
#include "weft/net/http/url.h"
#include "weft/serve/web_client/answer_codec.h"
#include "weft/serve/web_client/test_answers.h"

// The first bytes choose the bounds and the cuts; the rest is the server's stream, and a reference to a URL. Checks
// besides the sanitizers and feed_answers(): the outcome is the same whole and in pieces, and bounds are kept.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weft::serve::web;
  if (size < 4) {
    return 0;
  }
  AnswerLimits limits;
  limits.head_max = data[0] * 8u + 1;
  limits.fields_max = data[0] / 16;
  limits.framing_max = data[1] * 2u;
  std::uint32_t random = data[2] * 256U + data[3];
  const weft::Bytes stream(data + 4, size - 4);
  AnswerCodec codec(limits);
  codec.begin((data[3] & 1) != 0, (data[3] & 2) != 0, data[1]);
  const test::SeenAnswers whole = test::feed_answers(codec, stream, [&] { return stream.size(); });
  const test::SeenAnswers pieces = test::feed_answers(codec, stream, [&random] {
    random = random * 1664525U + 1013904223U;
    return std::size_t{1} + (random >> 24) % 20;
  });
  // Bytes of a body to the end of the connection count when they come: a refusal may come after some of them.
  WEFT_ASSERT(whole.heads == pieces.heads && whole.fault == pieces.fault && whole.ended == pieces.ended);
  WEFT_ASSERT(whole.fault != 0 || whole.body == pieces.body);
  WEFT_ASSERT(whole.body.size() <= data[1] && pieces.body.size() <= data[1]);

  const std::string_view text = weft::as_text(stream);
  if (const auto url = weft::net::http::parse_url(text)) {
    WEFT_ASSERT(url->target.starts_with('/') && url->text().find_first_of(" \r\n") == std::string_view::npos);
    const auto again = weft::net::http::parse_url(url->text());
    WEFT_ASSERT(again && again->text() == url->text() && again->origin() == url->origin());
  }
  (void)weft::net::http::resolve_url(*weft::net::http::parse_url("https://a/b/c?d"), text);
  return 0;
}
