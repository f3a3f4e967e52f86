// SPDX-License-Identifier: MIT
#include "weft/serve/rpc/methods.h"

#include <utility>

namespace weft::serve::rpc {

Result<void> Methods::add_entry(Entry entry) {
  if (!is_method_name(entry.name)) {
    return Error(Errc::invalid_argument, "a method's name has 1 to 128 letters, digits, and of \". _ - /\"");
  }
  if (entries_.size() >= kMethodsMax) {
    return Error(Errc::resource_exhausted, "a server has at most 4,096 methods");
  }
  if (names_.contains(entry.name)) {
    return Error(Errc::conflict, "there is a method of this name");
  }
  if (entry.number != 0 && numbers_.contains(entry.number)) {
    return Error(Errc::conflict, "there is a method of this number");
  }
  entry.index = entries_.size();
  const Entry& added = entries_.emplace_back(std::move(entry));
  names_.emplace(added.name, &added);
  if (added.number != 0) {
    numbers_.emplace(added.number, &added);
  }
  return {};
}

const Methods::Entry* Methods::find(const Header& request) const noexcept {
  if (request.number != 0) {
    const auto at = numbers_.find(request.number);
    return at == numbers_.end() ? nullptr : at->second;
  }
  const auto at = names_.find(request.method);
  return at == names_.end() ? nullptr : at->second;
}

MethodInfos Methods::list() const {
  MethodInfos infos;
  for (const Entry& entry : entries_) {
    infos.push_back({entry.name, entry.number});
  }
  return infos;
}

}  // namespace weft::serve::rpc
