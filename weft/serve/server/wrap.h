// SPDX-License-Identifier: MIT
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <new>
#include <utility>

#include "weft/base/result.h"
#include "weft/net/stream/byte_stream.h"

namespace weft::serve {

// Wrap: makes a stream from a stream: a program's layer between a session and its socket.
using Wrap = std::function<Result<std::unique_ptr<net::ByteStream>>(std::unique_ptr<net::ByteStream>)>;

// Calls the program's function. Errors: the function's own; resource_exhausted, system (the function threw);
// invalid_argument (it made no stream).
[[nodiscard]] inline Result<std::unique_ptr<net::ByteStream>> wrap_stream(
    const Wrap& wrap, std::unique_ptr<net::ByteStream> stream) noexcept {
  try {
    auto made = wrap(std::move(stream));
    if (made && *made == nullptr) {
      return Error(Errc::invalid_argument, "the wrap function made no stream");
    }
    return made;
  } catch (const std::bad_alloc&) {
    return Error(Errc::resource_exhausted, "no memory for the wrapped stream");
  } catch (...) {
    return Error(Errc::system, "the wrap function threw");
  }
}

}  // namespace weft::serve
