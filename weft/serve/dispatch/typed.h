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

// Typed handlers: their bodies are FlatBuffers. An optional header: empty where FlatBuffers is not installed.
namespace weft::serve {

using FileIdentifier = std::array<char, flatbuffers::kFileIdentifierLength>;

// Bounds on the verification of one message.
struct TypedLimits {
  std::uint32_t depth_max = 32;
  std::uint32_t tables_max = 10'000;
};

namespace detail {

// A body at an address that is aligned for every scalar in it: in place, or in a copy of its own. After a header of 12
// bytes a body may be 4 bytes beyond a multiple of 8.
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

  [[nodiscard]] Bytes bytes() const noexcept { return bytes_; }  // empty if there is no memory

 private:
  struct Free {
    void operator()(void* block) const noexcept { mem::pool_deallocate(block); }
  };

  Bytes bytes_;
  std::unique_ptr<void, Free> copy_;
};

// Returns null if the body is not a T.
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

// A typed handler may take the header, too.
template <typename T, typename Caller, typename Handler>
decltype(auto) call_typed(Handler& handler, Caller& caller, const T& message, const FrameHeader& header) {
  if constexpr (std::is_invocable_v<Handler&, Caller&, const T&, const FrameHeader&>) {
    return handler(caller, message, header);
  } else {
    return handler(caller, message);
  }
}
template <typename T, typename Caller, typename Handler>
using TypedOutcome = decltype(call_typed<T>(std::declval<Handler&>(), std::declval<Caller&>(), std::declval<const T&>(),
                                            std::declval<const FrameHeader&>()));

// The handler that route() gives to the dispatcher.
template <typename T, typename Caller, typename Handler>
struct TypedHandler {
  using Outcome = TypedOutcome<T, Caller, Handler>;
  static constexpr bool kIsTask = HandlerTask<Outcome>::kIs;
  using Answer = std::conditional_t<kIsTask, Result<rt::Task<typename TaskValueOr<Outcome>::Type>>, Result<void>>;
  static constexpr std::size_t kSmallest = sizeof(flatbuffers::uoffset_t) + sizeof(FileIdentifier);

  Answer operator()(Caller& caller, const HeaderCodec::Frame& frame) {
    if (frame.body.size() < kSmallest) {
      return kNotTheMessage;
    }
    // The body of a coroutine is already a copy, and aligned.
    const AlignedBody body(frame.body);
    if (body.bytes().empty()) {
      return Error(Errc::resource_exhausted, "no memory for an aligned copy of the body");
    }
    const T* const message = verified<T>(body.bytes(), identifier, limits);
    if (message == nullptr) {
      return kNotTheMessage;
    }
    if constexpr (kIsTask) {
      return call_typed<T>(handler, caller, *message, frame.header);
    } else if constexpr (std::is_void_v<Outcome>) {
      call_typed<T>(handler, caller, *message, frame.header);
      return {};
    } else {
      return call_typed<T>(handler, caller, *message, frame.header).error();
    }
  }

  FileIdentifier identifier;
  TypedLimits limits;
  Handler handler;
};

}  // namespace detail

// Routes frames of an id to handler(Caller&, const T&) or handler(Caller&, const T&, const FrameHeader&), which may
// return the types of any handler (dispatcher.h). With NumberedCodec an answer is sent with that header, because the
// request's number is in it. Each body is verified first, with the file identifier (EchoIdentifier() of the generated
// code, for example) and within the limits. A body that fails is answered with invalid_body and reaches no
// handler. The message lives as long as the call. For a coroutine the body is copied first, and the message
// lives until the coroutine has ended.
// Errors: invalid_argument (the identifier does not have 4 characters); those of Dispatcher::on().
// Cost: the verification, and a copy in pooled memory of a body whose address is not a multiple of 8 bytes. FlatBuffers
// does not verify one thing: a hostile peer may have put the elements of a vector of 8-byte structs at a multiple of 4.
template <typename T, typename Caller, typename Handler>
Result<void> route(Dispatcher<Caller>& dispatcher, std::uint32_t id, std::string_view file_identifier, Handler handler,
                   const TypedLimits& limits = {}) {
  static_assert(std::is_invocable_v<Handler&, Caller&, const T&> ||
                    std::is_invocable_v<Handler&, Caller&, const T&, const FrameHeader&>,
                "weft: the handler cannot be called with (Caller&, const T&); the message is const");
  detail::check_outcome<detail::TypedOutcome<T, Caller, Handler>>();
  FileIdentifier identifier;
  if (file_identifier.size() != identifier.size()) {
    return Error(Errc::invalid_argument, "a file identifier has 4 characters");
  }
  std::copy(file_identifier.begin(), file_identifier.end(), identifier.begin());
  return dispatcher.on(id, detail::TypedHandler<T, Caller, Handler>{identifier, limits, std::move(handler)});
}

}  // namespace weft::serve

#endif
