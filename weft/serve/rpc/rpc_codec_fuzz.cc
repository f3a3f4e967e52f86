// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "weft/base/assert.h"
#include "weft/serve/frame/test_codec.h"
#include "weft/serve/rpc/method_list.h"
#include "weft/serve/rpc/rpc_codec.h"
#include "weft/serve/rpc/status.h"

// The first bytes of the input are the bound of the codec and the cuts; the rest is the peer's stream. Checks besides
// the sanitizers and test::feed(): the outcome is the same whole and in pieces, each frame keeps to the bounds, and
// encoded again it has the bytes that it was decoded from. The body of an answer is read as a list of methods, and as
// the text of a refusal.
namespace {

using namespace weft::serve;

void check_frame(const rpc::Codec& codec, const rpc::Codec::Frame& frame, weft::Bytes from) {
  WEFT_ASSERT(frame.body.size() <= codec.body_max());
  WEFT_ASSERT(frame.header.method.size() <= rpc::kNameMax && frame.header.state.size() <= rpc::kStateMax);
  WEFT_ASSERT(frame.header.id != 0);
  std::vector<std::uint8_t> again(from.size());
  const auto size = encode_frame(codec, frame.header, frame.body, again);
  WEFT_ASSERT(size.has_value() && *size == from.size());
  WEFT_ASSERT(std::equal(again.begin(), again.end(), from.begin()));
  if (frame.header.type == rpc::FrameType::answer) {
    const auto methods = rpc::Body<rpc::MethodInfos>::decode(frame.body);
    rpc::Scratch scratch;
    if (methods) {
      const auto lines = rpc::Body<rpc::MethodInfos>::encode(*methods, scratch);
      WEFT_ASSERT(lines.has_value() && rpc::Body<rpc::MethodInfos>::decode(*lines) == methods);
    }
    WEFT_ASSERT(!(rpc::error_of({frame.header.status, 0, weft::as_text(frame.body)}) == weft::Errc::ok));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 4) {
    return 0;
  }
  const rpc::Codec codec(data[0] * std::size_t{data[0]});
  std::uint32_t random = data[1] * 256U + data[2];
  const test::Buffer stream(data + 4, data + size);
  const test::Outcome whole = test::feed_whole(codec, stream);
  const test::Outcome pieces = test::feed(codec, stream, [&random] {
    random = random * 1664525U + 1013904223U;
    return std::size_t{1} + (random >> 24) % 20;
  });
  WEFT_ASSERT(whole.error == pieces.error && whole.frames.size() == pieces.frames.size());
  rpc::Codec reader = codec;
  weft::Bytes rest(stream);
  for (;;) {
    const auto decoded = reader.decode(rest);
    if (!decoded.complete()) {
      return 0;
    }
    check_frame(codec, decoded.frame, rest.first(decoded.size));
    rest = rest.subspan(decoded.size);
  }
}
