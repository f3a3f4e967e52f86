// SPDX-License-Identifier: MIT
#include "weft/serve/frame/error_frame.h"

#include <algorithm>

#include "weft/sync/kept_text.h"

namespace weft::serve {
namespace {

constexpr std::string_view kIdentifier = "AERR";
constexpr std::size_t kTable = 20;
constexpr std::size_t kText = 36;

// root | identifier | offsets: their size, the table's size, of code, message, service code | padding | table:
// back to the offsets, forward to the message
constexpr std::array<std::uint8_t, 28> kFront = {kTable, 0, 0,  0, 'A', 'E', 'R', 'R', 10, 0, 12, 0, 8, 0,
                                                 4,      0, 10, 0, 0,   0,   12,  0,   0,  0, 8,  0, 0, 0};

template <typename T>
void store_little_endian(std::uint8_t* to, T value) noexcept {
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    to[i] = static_cast<std::uint8_t>(value >> (8 * i));
  }
}

// Reads a FlatBuffer that was not verified. A read outside of the bytes returns 0 and sets failed().
class Reader {
 public:
  explicit Reader(Bytes bytes) noexcept : bytes_(bytes) {}

  template <typename T>
  T read(std::size_t at) noexcept {
    if (at > bytes_.size() || bytes_.size() - at < sizeof(T)) {
      failed_ = true;
      return 0;
    }
    T value = 0;
    for (std::size_t i = 0; i < sizeof(T); ++i) {
      value = static_cast<T>(value | T{bytes_[at + i]} << (8 * i));
    }
    return value;
  }
  std::string_view text(std::size_t at) noexcept {
    const std::size_t size = read<std::uint32_t>(at);
    if (failed_ || bytes_.size() - at - 4 < size) {
      failed_ = true;
      return {};
    }
    return as_text(bytes_.subspan(at + 4, size));
  }
  [[nodiscard]] bool failed() const noexcept { return failed_; }

 private:
  Bytes bytes_;
  bool failed_ = false;
};

}  // namespace

ErrorResponse response_of(const Error& error) noexcept {
  if (error.domain() == kFrameDomain) {
    return {static_cast<ErrorCode>(error.value()), 0, error.text()};
  }
  return {ErrorCode::refused, error.value(), *error.text() != '\0' ? error.text() : describe(error.code())};
}

Error error_of(const ErrorResponse& response) noexcept {
  StaticText fallback = "the peer's service refused";
  switch (response.code) {
    case ErrorCode::unknown_message: fallback = "the peer has no handler for this message"; break;
    case ErrorCode::invalid_body: fallback = "the peer did not understand the body"; break;
    case ErrorCode::handler_failed: fallback = "the peer's handler threw"; break;
    case ErrorCode::refused: break;
    default: return {Errc::protocol_error, "the error frame has an unknown code"};
  }
  const StaticText text = response.text.empty() ? fallback : sync::keep_peer_text({response.text}, fallback);
  if (response.code == ErrorCode::refused && response.service_code != 0) {
    return {kServiceDomain, response.service_code, text};
  }
  return frame_error(response.code, text);
}

Error error_of_frame(Bytes body) noexcept {
  const auto response = parse_error_body(body);
  return (response ? error_of(*response) : response.error()).with_fate(Fate::answered);
}

Bytes write_error_body(const ErrorResponse& response, std::span<std::uint8_t, kErrorBodyMax> out) noexcept {
  const std::string_view text = response.text.substr(0, kErrorTextMax);
  const std::size_t size = (kText + text.size() + 1 + 3) / 4 * 4;  // 4: the largest alignment in the table
  copy_bytes(out.data(), kFront);
  store_little_endian(out.data() + 28, static_cast<std::uint16_t>(response.code));
  store_little_endian(out.data() + 30, response.service_code);
  store_little_endian(out.data() + 32, static_cast<std::uint32_t>(text.size()));
  copy_bytes(out.data() + kText, as_bytes(text));
  std::fill(out.begin() + static_cast<std::ptrdiff_t>(kText + text.size()),
            out.begin() + static_cast<std::ptrdiff_t>(size), std::uint8_t{0});
  return out.first(size);
}

Result<ErrorResponse> parse_error_body(Bytes body) noexcept {
  constexpr Error kNone(Errc::protocol_error, "the body of an error frame");
  Reader reader(body);
  if (body.size() < 8 || as_text(body.subspan(4, 4)) != kIdentifier) {
    return kNone;
  }
  const std::size_t table = reader.read<std::uint32_t>(0);
  const auto back = static_cast<std::int32_t>(reader.read<std::uint32_t>(table));
  const std::int64_t offsets = static_cast<std::int64_t>(table) - back;
  if (reader.failed() || offsets < 0) {
    return kNone;
  }
  const auto base = static_cast<std::size_t>(offsets);
  const std::size_t offsets_size = reader.read<std::uint16_t>(base);
  // The position of a field; 0: the table lacks it.
  const auto field = [&](std::size_t number) -> std::size_t {
    const std::size_t at = 4 + 2 * number;
    const std::size_t offset = at + 2 <= offsets_size ? reader.read<std::uint16_t>(base + at) : 0;
    return offset == 0 ? 0 : table + offset;
  };
  const auto number = [&](std::size_t at) { return at == 0 ? std::uint16_t{0} : reader.read<std::uint16_t>(at); };
  ErrorResponse response;
  response.code = static_cast<ErrorCode>(number(field(0)));
  response.service_code = number(field(2));
  if (const std::size_t message = field(1); message != 0) {
    response.text = reader.text(message + reader.read<std::uint32_t>(message));
  }
  if (reader.failed()) {
    return kNone;
  }
  return response;
}

}  // namespace weft::serve
