// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/msg/message/message.h"

namespace weft::bridge {

// Newest: the newest message of each topic, bounded in topics and bytes. The topic that was silent longest is forgotten
// first.
// Affinity: one thread. Invariant: bytes() is the sum of the sizes of the kept messages, and at most its bound.
class Newest {
 public:
  Newest(std::size_t topics_max, std::size_t bytes_max) noexcept : topics_max_(topics_max), bytes_max_(bytes_max) {}

  // Shares the frames. Returns the number of topics that were forgotten for it; a message beyond the bound is not kept,
  // and the older one of its topic is forgotten, too.
  std::size_t keep(const std::string& topic, const std::vector<Message>& frames) {
    forget(topic);
    std::size_t bytes = topic.size() + sizeof(Entry);
    for (const Message& each : frames) {
      bytes += each.size() + sizeof(Message);
    }
    if (bytes > bytes_max_) {
      return 1;
    }
    std::size_t forgotten = 0;
    for (; entries_.size() == topics_max_ || bytes > bytes_max_ - bytes_; ++forgotten) {
      forget(std::string(entries_.front().topic));
    }
    entries_.push_back({topic, share(frames), bytes});
    places_[topic] = std::prev(entries_.end());
    bytes_ += bytes;
    return forgotten;
  }
  // Calls give(frames) for the newest message of each topic that begins with the prefix, in the order of the topics,
  // until it returns false. Returns the number of topics that are left.
  template <typename Give>
  std::size_t give_each(std::string_view prefix, Give give) const {
    std::size_t left = 0;
    for (auto each = places_.lower_bound(prefix); each != places_.end() && each->first.starts_with(prefix); ++each) {
      left += left != 0 || !give(share(each->second->frames)) ? 1 : 0;
    }
    return left;
  }
  [[nodiscard]] std::size_t topics() const noexcept { return entries_.size(); }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

 private:
  struct Entry {
    std::string topic;
    std::vector<Message> frames;
    std::size_t bytes;
  };

  static std::vector<Message> share(const std::vector<Message>& frames) {
    std::vector<Message> shared;
    shared.reserve(frames.size());
    for (const Message& each : frames) {
      shared.push_back(each.share());
    }
    return shared;
  }
  void forget(const std::string& topic) {
    if (const auto found = places_.find(topic); found != places_.end()) {
      bytes_ -= found->second->bytes;
      entries_.erase(found->second);
      places_.erase(found);
    }
  }

  std::size_t topics_max_;
  std::size_t bytes_max_;
  std::size_t bytes_ = 0;
  std::list<Entry> entries_;  // the topic that was silent longest first
  std::map<std::string, std::list<Entry>::iterator, std::less<>> places_;
};

}  // namespace weft::bridge
