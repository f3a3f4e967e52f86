// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "weft/base/assert.h"
#include "weft/serve/dispatch/test_caller.h"
#include "weft/serve/dispatch/typed.h"
#include "weft/serve/frame/error_frame.h"

#ifdef WEFT_HAVE_SCHEMAS
#include "weft/serve/schemas/echo_generated.h"
#include "weft/serve/schemas/error_response_generated.h"
#include "weft/serve/schemas/typed_test_generated.h"
#endif

// Bodies from a peer: error responses, and messages to typed handlers, which read all fields. The first byte of
// the input chooses the body's offset. Checks besides the sanitizers: a parsed error response, written again,
// parses as the same; a buffer that FlatBuffers verifies as an error response, parse_error_body() parses as the
// same; each frame is handled or answered once.
namespace {

using namespace weft::serve;

void check_error_body(weft::Bytes body) {
  const auto parsed = parse_error_body(body);
  if (parsed) {
    std::array<std::uint8_t, kErrorBodyMax> out;
    const auto again = parse_error_body(write_error_body(*parsed, out));
    WEFT_ASSERT(again && again->code == parsed->code && again->service_code == parsed->service_code);
    WEFT_ASSERT(again->text == parsed->text.substr(0, kErrorTextMax));
  }
#ifdef WEFT_HAVE_SCHEMAS
  const detail::AlignedBody aligned(body);
  const FileIdentifier identifier{'A', 'E', 'R', 'R'};
  if (body.size() < 8) {
    return;
  }
  if (const auto* theirs = detail::verified<schema::ErrorResponse>(aligned.bytes(), identifier, {})) {
    WEFT_ASSERT(parsed && static_cast<std::uint16_t>(parsed->code) == theirs->code());
    WEFT_ASSERT(parsed->service_code == theirs->service_error_code());
    WEFT_ASSERT(parsed->text == (theirs->message() != nullptr ? theirs->message()->string_view() : ""));
  }
#endif
}

#ifdef WEFT_HAVE_SCHEMAS
struct Handlers {
  Dispatcher<test::Caller> dispatcher;
  std::uint64_t sum = 0;

  Handlers() {
    (void)route<schema::Echo>(dispatcher, 1, "ECHO", [this](test::Caller&, const schema::Echo& echo) {
      if (echo.data() != nullptr) {
        std::for_each(echo.data()->begin(), echo.data()->end(), [this](std::uint8_t byte) { sum += byte; });
      }
    });
    (void)route<schema::Places>(dispatcher, 2, "PLCS", [this](test::Caller&, const schema::Places& places) {
      sum += places.revision();
      for (flatbuffers::uoffset_t i = 0; places.points() != nullptr && i < places.points()->size(); ++i) {
        schema::Point point;  // FlatBuffers does not verify that the structs of a vector are aligned
        std::memcpy(&point, places.points()->Data() + i * sizeof point, sizeof point);
        sum += point.stamp();
      }
    });
    (void)route<schema::Nest>(dispatcher, 3, "NEST", [this](test::Caller&, const schema::Nest& nest) {
      for (const schema::Nest* inner = &nest; inner != nullptr; inner = inner->inner()) {
        ++sum;
      }
    });
  }
};
#endif

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1) {
    return 0;
  }
  // Copies the body into a block of its size, at any offset.
  const std::size_t offset = data[0] % 8;
  test::Buffer block(offset + size - 1);
  std::copy(data + 1, data + size, block.begin() + static_cast<std::ptrdiff_t>(offset));
  const weft::Bytes body = weft::Bytes(block).subspan(offset);
  check_error_body(body);
#ifdef WEFT_HAVE_SCHEMAS
  static Handlers handlers;
  for (std::uint32_t id = 1; id <= 4; ++id) {
    test::Caller caller;
    const std::uint64_t handled = handlers.dispatcher.counts().handled.value();
    handlers.dispatcher.dispatch(caller, {{id, 0}, body});
    WEFT_ASSERT(handlers.dispatcher.counts().handled.value() - handled + caller.sent.size() == 1);
  }
#endif
  return 0;
}
