// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "weft/base/result.h"
#include "weft/serve/rpc/body.h"
#include "weft/serve/rpc/method.h"

namespace weft::serve::rpc {

// MethodInfo: a method of a server, as it lists them.
struct MethodInfo {
  std::string name;
  std::uint32_t number = 0;  // 0: none

  friend bool operator==(const MethodInfo&, const MethodInfo&) = default;
};
using MethodInfos = std::vector<MethodInfo>;

// The body of the list: a line for each method: its name, and after a space its number, if it has one.
template <>
struct Body<MethodInfos> {
  static Result<Bytes> encode(const MethodInfos& methods, Scratch& scratch);
  // Errors: protocol_error (not such lines, or more than Methods::kMethodsMax).
  static Result<MethodInfos> decode(Bytes bytes);
};

// The method that each server has: its methods, in the order in which they were added.
using ListMethods = Method<"weft.methods", Empty, MethodInfos>;

}  // namespace weft::serve::rpc
