// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "weft/serve/rpc/body.h"
#include "weft/serve/rpc/rpc_codec.h"

namespace weft::serve::rpc {

// Whether it is the name of a method: 1 to kNameMax letters, digits, and of ". _ - /".
[[nodiscard]] constexpr bool is_method_name(std::string_view name) noexcept {
  return !name.empty() && name.size() <= kNameMax && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
           c == '-' || c == '/';
  });
}

// A text as the argument of a template.
template <std::size_t kSize>
struct MethodName {
  char text[kSize]{};
  consteval MethodName(const char (&literal)[kSize]) {  // NOLINT(google-explicit-constructor)
    std::copy_n(literal, kSize, text);
  }
};

// Method: the type of a call, for both ends:
//   using Add = rpc::Method<"calc.add", Sum, std::int64_t>;
// `kId`, if it is not 0, is sent instead of the name: both ends then need the same one. Body<T> (body.h) says how
// each type becomes bytes.
template <MethodName kText, typename RequestType, typename ResponseType, std::uint32_t kId = 0>
struct Method {
  using Request = RequestType;
  using Response = ResponseType;
  static constexpr std::string_view kName{kText.text, sizeof kText.text - 1};
  static constexpr std::uint32_t kNumber = kId;
  static_assert(is_method_name(kName), "weft: a method's name has 1 to 128 letters, digits, and of \". _ - /\"");
};

// Streams: calls with messages besides the request and the response. The server sends Items after a request; or the
// client sends Items before the response; or both send.
template <MethodName kText, typename RequestType, typename Item, std::uint32_t kId = 0>
struct ServerStream : Method<kText, RequestType, Empty, kId> {
  using Out = Item;
};
template <MethodName kText, typename Item, typename ResponseType, std::uint32_t kId = 0>
struct ClientStream : Method<kText, Empty, ResponseType, kId> {
  using In = Item;
};
template <MethodName kText, typename InItem, typename OutItem, std::uint32_t kId = 0>
struct TwoWayStream : Method<kText, Empty, Empty, kId> {
  using In = InItem;
  using Out = OutItem;
};

template <typename M>
concept SendsItems = requires { typename M::In; };  // from the client
template <typename M>
concept GetsItems = requires { typename M::Out; };

// Any type with these members is a method.
template <typename M>
concept IsCall = requires {
  typename M::Request;
  typename M::Response;
  { M::kName } -> std::convertible_to<std::string_view>;
  { M::kNumber } -> std::convertible_to<std::uint32_t>;
};
template <typename M>
concept IsStream = IsCall<M> && (SendsItems<M> || GetsItems<M>);
template <typename M>
concept IsMethod = IsCall<M> && !IsStream<M>;

// Idempotent: a method whose request may be executed twice, so that a client may send it again:
//   using Get = rpc::Idempotent<rpc::Method<"store.get", std::string, std::string>>;
template <IsMethod M>
struct Idempotent : M {
  static constexpr bool kIdempotent = true;
};
template <typename M>
concept IsIdempotent = IsMethod<M> && requires { requires M::kIdempotent; };

}  // namespace weft::serve::rpc
