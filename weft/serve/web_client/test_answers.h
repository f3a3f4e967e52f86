// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>

#include "weft/base/assert.h"
#include "weft/base/bytes.h"
#include "weft/serve/frame/test_codec.h"
#include "weft/serve/web_client/answer_codec.h"

// For tests and fuzzers: an answer as a value, from a stream that comes whole or in pieces.
namespace weft::serve::web::test {

struct SeenAnswers {
  std::string heads;  // "interim " for each interim answer, then the status
  std::string body;
  unsigned fault = 0;
  bool ended = false;

  [[nodiscard]] std::string text() const {
    std::string all = heads + body;
    if (fault != 0) {
      return all.append(body.empty() ? "" : " ").append("fault ").append(std::to_string(fault));
    }
    return ended ? all : all.append("...");
  }
  friend bool operator==(const SeenAnswers&, const SeenAnswers&) = default;
};

// `codec`: after its begin().
template <typename NextPiece>
SeenAnswers feed_answers(AnswerCodec codec, Bytes stream, NextPiece next_piece) {
  SeenAnswers seen;
  serve::test::Buffer held;
  while (!stream.empty() && seen.fault == 0) {
    const std::size_t piece = std::min<std::size_t>(std::max<std::size_t>(next_piece(), 1), stream.size());
    held.insert(held.end(), stream.begin(), stream.begin() + static_cast<std::ptrdiff_t>(piece));
    stream = stream.subspan(piece);
    const serve::test::Buffer input(held);  // exactly as large as the input, so that a sanitizer sees overruns
    const DecodeResult result = decode_all(codec, input, [&](const AnswerFrame& frame) {
      const AnswerHeader& header = frame.header;
      seen.fault = static_cast<unsigned>(header.fault);
      if (seen.fault != 0) {
        return false;
      }
      if (header.part == AnswerPart::interim) {
        seen.heads += "interim ";
      } else if (header.part == AnswerPart::head) {
        seen.heads += std::to_string(header.head.status) + " ";
      }
      seen.body += as_text(frame.body);
      seen.ended = seen.ended || header.last;
      return true;
    });
    WEFT_ASSERT(result.consumed <= input.size() && result.error == Errc::ok);
    WEFT_ASSERT(seen.fault != 0 || result.least > input.size() - result.consumed);
    held.erase(held.begin(), held.begin() + static_cast<std::ptrdiff_t>(result.consumed));
  }
  return seen;
}

}  // namespace weft::serve::web::test
