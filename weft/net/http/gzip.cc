// SPDX-License-Identifier: MIT
#include "weft/net/http/gzip.h"

#include <algorithm>
#include <new>

#include "weft/net/http/chars.h"
#include "weft/net/http/field.h"

#ifdef WEFT_HAVE_ZLIB
#define ZLIB_CONST
#include <zlib.h>
#endif

namespace weft::net::http {

namespace {

// The part before the separator; `text` keeps the rest.
std::string_view next_part(std::string_view& text, char separator) noexcept {
  const std::string_view part = text.substr(0, text.find(separator));
  text.remove_prefix(std::min(text.size(), part.size() + 1));
  return without_spaces_around(part);
}

// A weight of zero is "0", "0.", or "0." with zeros.
bool is_zero(std::string_view weight) noexcept {
  return weight.starts_with('0') && weight.find_first_not_of("0.") == std::string_view::npos;
}

}  // namespace

bool takes_gzip(std::string_view accept_encoding) noexcept {
  bool any = false;
  while (!accept_encoding.empty()) {
    std::string_view rest = next_part(accept_encoding, ',');
    const std::string_view coding = next_part(rest, ';');
    bool taken = true;
    while (!rest.empty()) {
      const std::string_view parameter = next_part(rest, ';');
      taken =
          taken && !(parameter.size() > 2 && same_text(parameter.substr(0, 2), "q=") && is_zero(parameter.substr(2)));
    }
    if (same_text(coding, "gzip") || same_text(coding, "x-gzip")) {
      return taken;
    }
    any = coding == "*" ? taken : any;
  }
  return any;
}

#ifdef WEFT_HAVE_ZLIB

bool gzip_available() noexcept { return true; }

std::optional<std::string> gzip(std::string_view text, int level) {
  constexpr int kGzip = 15 + 16;  // a window of 32 KiB, and the head and tail of gzip
  z_stream stream{};
  if (text.size() > UINT32_MAX / 2 || deflateInit2(&stream, level, Z_DEFLATED, kGzip, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
    return std::nullopt;
  }
  std::string packed;
  try {
    packed.resize(text.size());  // a larger one is useless
  } catch (const std::bad_alloc&) {
    (void)deflateEnd(&stream);
    return std::nullopt;
  }
  stream.next_in = reinterpret_cast<const Bytef*>(text.data());
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  const bool whole = deflate(&stream, Z_FINISH) == Z_STREAM_END;
  packed.resize(packed.size() - stream.avail_out);
  (void)deflateEnd(&stream);
  return whole && packed.size() < text.size() ? std::optional(std::move(packed)) : std::nullopt;
}

#else

bool gzip_available() noexcept { return false; }
std::optional<std::string> gzip(std::string_view, int) { return std::nullopt; }

#endif

}  // namespace weft::net::http
