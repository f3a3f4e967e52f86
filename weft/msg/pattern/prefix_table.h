// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "weft/base/bytes.h"

namespace weft::msg {

// PrefixTable<Value>: topic prefixes with a value each, found by hash.
// Owner: a pattern. Affinity: the lock that its owner names.
// Cost: match() does one hash look-up for each distinct prefix length up to the topic's size; find() does one.
template <typename Value>
class PrefixTable {
 public:
  // The value for `prefix`; insert() makes it if the prefix is new.
  Value& insert(Bytes prefix, bool& is_new) {
    const auto [it, fresh] = entries_.try_emplace(std::string(as_text(prefix)));
    is_new = fresh;
    if (fresh) {
      count_length(prefix.size(), 1);
    }
    return it->second;
  }
  [[nodiscard]] Value* find(Bytes prefix) {
    const auto it = entries_.find(as_text(prefix));
    return it == entries_.end() ? nullptr : &it->second;
  }
  void erase(Bytes prefix) {
    if (const auto it = entries_.find(as_text(prefix)); it != entries_.end()) {
      entries_.erase(it);
      count_length(prefix.size(), -1);
    }
  }

  // Calls visit(value) for every prefix of `topic`, the shortest first; stops when `visit` returns false.
  template <typename Visit>
  void match(Bytes topic, Visit visit) {
    for (const LengthCount& length : lengths_) {
      if (length.size > topic.size()) {
        return;
      }
      if (const auto it = entries_.find(as_text(topic.first(length.size)));
          it != entries_.end() && !visit(it->second)) {
        return;
      }
    }
  }
  [[nodiscard]] bool matches(Bytes topic) {
    if (!lengths_.empty() && lengths_.front().size == 0) {
      return true;  // the empty prefix is one of every topic
    }
    bool found = false;
    match(topic, [&](Value&) { return !(found = true); });
    return found;
  }
  // Calls visit(prefix, value) for every entry. The table must not change meanwhile.
  template <typename Visit>
  void for_each(Visit visit) {
    for (auto& [prefix, value] : entries_) {
      visit(std::string_view(prefix), value);
    }
  }
  // Erases every entry for which `gone(prefix, value)` is true.
  template <typename Gone>
  void erase_if(Gone gone) {
    for (auto it = entries_.begin(); it != entries_.end();) {
      if (gone(std::string_view(it->first), it->second)) {
        count_length(it->first.size(), -1);
        it = entries_.erase(it);
      } else {
        ++it;
      }
    }
  }
  [[nodiscard]] std::size_t size() const noexcept { return entries_.size(); }
  // The bytes of `topic` that match() depends on.
  [[nodiscard]] Bytes decisive(Bytes topic) const noexcept {
    const std::size_t longest = lengths_.empty() ? 0 : lengths_.back().size;
    return topic.size() <= longest ? topic : topic.first(longest);
  }

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const noexcept { return std::hash<std::string_view>()(text); }
  };
  struct LengthCount {
    std::size_t size;
    std::size_t count;
  };

  void count_length(std::size_t size, int change) {
    auto it = lengths_.begin();
    while (it != lengths_.end() && it->size < size) {
      ++it;
    }
    if (it == lengths_.end() || it->size != size) {
      it = lengths_.insert(it, {size, 0});
    }
    it->count += static_cast<std::size_t>(change);
    if (it->count == 0) {
      lengths_.erase(it);
    }
  }

  std::unordered_map<std::string, Value, Hash, std::equal_to<>> entries_;
  std::vector<LengthCount> lengths_;  // ascending
};

}  // namespace weft::msg
