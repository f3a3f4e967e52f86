// SPDX-License-Identifier: MIT
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/weft/bridge/names.h"
#include "weft/base/assert.h"

// The first byte chooses: the rest is a value of Weft-Parts, or the frames themselves, each with its size in front.
// Checked besides the sanitizers: the bounds, and that frames survive the way to a value and back.
namespace {

using weft::bridge::decode_parts;
using weft::bridge::encode_parts;
using weft::bridge::kPartsMax;

void check_value(std::string_view value) {
  const auto parts = decode_parts(value);
  if (!parts) {
    return;
  }
  WEFT_ASSERT(!parts->empty() && parts->size() <= kPartsMax);
  std::vector<weft::Message> frames;
  std::size_t bytes = 0;
  for (const std::string& part : *parts) {
    frames.emplace_back(part);
    bytes += part.size();
  }
  WEFT_ASSERT(bytes <= value.size());
  const auto again = decode_parts(encode_parts(frames));
  WEFT_ASSERT(again && *again == *parts);
}

void check_frames(std::string_view text) {
  std::vector<weft::Message> frames;
  std::vector<std::string> expected;
  while (!text.empty() && frames.size() < kPartsMax) {
    const std::size_t size = static_cast<std::uint8_t>(text[0]);
    const std::string_view frame = text.substr(1, size);
    frames.emplace_back(frame);
    expected.emplace_back(frame);
    text.remove_prefix(1 + frame.size());
  }
  if (!frames.empty()) {
    WEFT_ASSERT(decode_parts(encode_parts(frames)) == std::optional(expected));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size != 0) {
    const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
    data[0] % 2 == 0 ? check_value(text) : check_frames(text);
  }
  return 0;
}
