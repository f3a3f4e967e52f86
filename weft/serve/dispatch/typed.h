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
#include "weft/serve/dispatch/dispatcher.h"

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

  explicit AlignedBody(Bytes body) noexcept : bytes_(body) {
    if (reinterpret_cast<std::uintptr_t>(body.data()) % kAlignment != 0) {
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

inline constexpr Error kNotTheMessage = frame_error(ErrorCode::invalid_body, "the body is not the message of this id");

template <typename Outcome>
struct TaskValueOr {
  using Type = void;
};
template <typename Outcome>
  requires(HandlerTask<Outcome>::kIs)
struct TaskValueOr<Outcome> {
  using Type = typename HandlerTask<Outcome>::Value;
};

// What route() gives to the dispatcher.
template <typename T, typename Caller, typename Handler>
struct TypedHandler {
  using Outcome = std::invoke_result_t<Handler&, Caller&, const T&>;
  static constexpr bool kIsTask = HandlerTask<Outcome>::kIs;
  using Answer = std::conditional_t<kIsTask, Result<rt::Task<typename TaskValueOr<Outcome>::Type>>, Result<void>>;
  static constexpr std::size_t kSmallest = sizeof(flatbuffers::uoffset_t) + sizeof(FileIdentifier);

  Answer operator()(Caller& caller, const HeaderCodec::Frame& frame) {
    if (frame.body.size() < kSmallest) {
      return kNotTheMessage;
    }
    // The body of a coroutine is a copy already, and lies right.
    const AlignedBody body(frame.body);
    if (body.bytes().empty()) {
      return Error(Errc::resource_exhausted, "memory");
    }
    const T* const message = verified<T>(body.bytes(), identifier, limits);
    if (message == nullptr) {
      return kNotTheMessage;
    }
    if constexpr (kIsTask) {
      return handler(caller, *message);
    } else if constexpr (std::is_void_v<Outcome>) {
      handler(caller, *message);
      return {};
    } else {
      return handler(caller, *message).error();
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
// long as the call, or until the handler has ended when it is a coroutine: then the body is copied first.
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
