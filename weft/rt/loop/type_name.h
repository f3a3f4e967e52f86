// SPDX-License-Identifier: MIT
#pragma once

#include <string_view>

namespace weft::rt {

// The name of a type as the compiler spells it: "game::Room". For logs: compilers spell some types differently, and GCC
// leaves out `weft::`. Static storage.
template <typename T>
[[nodiscard]] constexpr auto type_name() noexcept {
  std::string_view name = __PRETTY_FUNCTION__;  // "… [with T = game::Room]" or "… [T = game::Room]"
  constexpr std::string_view kBefore = "T = ";
  name.remove_prefix(name.find(kBefore) + kBefore.size());
  name.remove_suffix(1);
  return name;
}

}  // namespace weft::rt
