// SPDX-License-Identifier: MIT
#pragma once

#if __has_include(<flatbuffers/flatbuffers.h>)
#include <flatbuffers/flatbuffers.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <type_traits>
#include <utility>

#include "weft/base/result.h"
#include "weft/mem/pool.h"
#include "weft/serve/dispatcher.h"

// Typed handlers: bodies are FlatBuffers. An optional header: it is empty where FlatBuffers is not installed.
namespace weft::serve {

using FileIdentifier = std::array<char, flatbuffers::kFileIdentifierLength>;

// What the verification of one message may cost.
struct TypedLimits {
  std::uint32_t depth_max = 32;
  std::uint32_t tables_max = 10'000;
};

namespace detail {

// A body at an address that is right for every scalar in it: where it is, behind a header of 12 bytes perhaps at 4
// beyond a multiple of 8, or in a copy of its own.
class AlignedBody {
 public:
  static constexpr std::size_t kAlignment = 8;

  AlignedBody(Bytes body, bool copied) noexcept : bytes_(body) {
    if (copied || reinterpret_cast<std::uintptr_t>(body.data()) % kAlignment != 0) {
      copy_.reset(mem::pool_allocate(body.size()));
      bytes_ = {static_cast<const std::uint8_t*>(copy_.get()), copy_ != nullptr ? body.size() : 0};
      if (copy_ != nullptr) {
        copy_bytes(static_cast<std::uint8_t*>(copy_.get()), body);
      }
    }
  }

  [[nodiscard]] Bytes bytes() const noexcept { return bytes_; }  // none: memory ran out

 private:
  struct Free {
    void operator()(void* block) const noexcept { mem::pool_deallocate(block); }
  };

  Bytes bytes_;
  std::unique_ptr<void, Free> copy_;
};

// Null: it is not a T.
template <typename T>
const T* verified(Bytes body, const FileIdentifier& identifier, const TypedLimits& limits) noexcept {
  flatbuffers::Verifier verifier(body.data(), body.size(), limits.depth_max, limits.tables_max);
  return verifier.VerifyBuffer<T>(identifier.data()) ? flatbuffers::GetRoot<T>(body.data()) : nullptr;
}

// A coroutine that keeps its message.
template <typename Task, typename T, typename Caller, typename Handler>
Task run_with_message([[maybe_unused]] AlignedBody body, const T& message, Handler& handler, Caller& caller) {
  co_return co_await handler(caller, message);
}

inline constexpr Error kNotTheMessage = frame_error(ErrorCode::invalid_body, "the body is not the message of this id");

// What route() gives to the dispatcher.
template <typename T, typename Caller, typename Handler>
struct TypedHandler {
  using Outcome = std::invoke_result_t<Handler&, Caller&, const T&>;
  static constexpr bool kPlain =
      std::is_void_v<Outcome> || requires(const Outcome& outcome) { outcome.error() == Error(); };
  static constexpr std::size_t kSmallest = sizeof(flatbuffers::uoffset_t) + sizeof(FileIdentifier);

  Result<void> operator()(Caller& caller, const HeaderCodec::Frame& frame) {
    if (frame.body.size() < kSmallest) {
      return kNotTheMessage;
    }
    AlignedBody body(frame.body, !kPlain);
    if (body.bytes().empty()) {
      return Error(Errc::resource_exhausted, "memory");
    }
    const T* const message = verified<T>(body.bytes(), identifier, limits);
    if (message == nullptr) {
      return kNotTheMessage;
    }
    if constexpr (std::is_void_v<Outcome>) {
      handler(caller, *message);
      return {};
    } else if constexpr (kPlain) {
      return handler(caller, *message).error();
    } else {
      return spawn(caller, run_with_message<Outcome>(std::move(body), *message, handler, caller));
    }
  }

  FileIdentifier identifier;
  TypedLimits limits;
  Handler handler;
};

}  // namespace detail

// Routes frames of an id to handler(Caller&, const T&), whose outcome is what that of any handler may be
// (dispatcher.h). Every body is verified first, with the file identifier (EchoIdentifier() of the generated code, for
// example) and within the limits; what fails is answered with invalid_body and reaches no handler. The message lives as
// long as the call, or until the task has ended when the handler is a coroutine: then the body is copied first.
// invalid_argument: an identifier has 4 characters; and what Dispatcher::on() says.
// Cost: the verification; a copy of a body that does not lie at a multiple of 8 bytes, in pooled memory. What
// FlatBuffers does not verify: a hostile peer may have put the elements of a vector of 8-byte structs at a multiple
// of 4.
template <typename T, typename Caller, typename Handler>
  requires std::invocable<Handler&, Caller&, const T&>
Result<void> route(Dispatcher<Caller>& dispatcher, std::uint32_t id, std::string_view file_identifier, Handler handler,
                   const TypedLimits& limits = {}) {
  FileIdentifier identifier;
  if (file_identifier.size() != identifier.size()) {
    return Error(Errc::invalid_argument, "a file identifier has 4 characters");
  }
  std::copy(file_identifier.begin(), file_identifier.end(), identifier.begin());
  return dispatcher.on(id, detail::TypedHandler<T, Caller, Handler>{identifier, limits, std::move(handler)});
}

}  // namespace weft::serve

#endif
