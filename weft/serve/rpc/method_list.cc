// SPDX-License-Identifier: MIT
#include "weft/serve/rpc/method_list.h"

#include <charconv>
#include <string_view>
#include <utility>

#include "weft/serve/rpc/methods.h"

namespace weft::serve::rpc {

namespace {
constexpr Error kNotAList(Errc::protocol_error, "the answer is not a list of methods");
}  // namespace

Result<Bytes> Body<MethodInfos>::encode(const MethodInfos& methods, Scratch& scratch) {
  std::string lines;
  for (const MethodInfo& method : methods) {
    lines += method.name;
    if (method.number != 0) {
      lines += ' ' + std::to_string(method.number);
    }
    lines += '\n';
  }
  const MutableBytes room = WEFT_TRY(scratch.take(lines.size()));
  copy_bytes(room.data(), as_bytes(lines));
  return Bytes(room);
}

Result<MethodInfos> Body<MethodInfos>::decode(Bytes bytes) {
  MethodInfos methods;
  std::string_view rest = as_text(bytes);
  while (!rest.empty()) {
    const std::size_t end = rest.find('\n');
    if (end == std::string_view::npos || methods.size() >= Methods::kMethodsMax) {
      return kNotAList;
    }
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end + 1);
    const std::size_t space = line.find(' ');
    MethodInfo method{std::string(line.substr(0, space))};
    if (!is_method_name(method.name)) {
      return kNotAList;
    }
    if (space != std::string_view::npos) {
      const std::string_view digits = line.substr(space + 1);
      const auto [last, error] = std::from_chars(digits.data(), digits.data() + digits.size(), method.number);
      if (error != std::errc() || last != digits.data() + digits.size() || method.number == 0) {
        return kNotAList;
      }
    }
    methods.push_back(std::move(method));
  }
  return methods;
}

}  // namespace weft::serve::rpc
