// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "weft/base/result.h"
#include "weft/topic/jetstream/engine.h"
#include "weft/topic/jetstream/kept_streams.h"

namespace weft::topic {

// Keys: the op `list`: the topics of a stream that have a live value.
// Owner: the session. Affinity: its core. Cost: the first page reads the headers of the newest message of each topic;
// the others are read from memory, which the last page frees. Bounds: kTopicsMax topics of a listing, kListingsMax
// listings.
class Keys {
 public:
  static constexpr std::size_t kTopicsMax = 1'000'000;
  static constexpr std::size_t kListingsMax = 8;

  Keys(Engine& engine, KeptStreams& streams) : engine_(engine), streams_(streams) {}
  static rt::Task<void> list(Keys* self, std::unique_ptr<Asked> asked);
  void drop_client(const std::string& client) {
    std::erase_if(listings_, [&](const auto& each) { return each.first.first == client; });
  }

 private:
  struct Collected {
    Error error{};
    std::string text{};
    std::vector<std::string> topics{};  // sorted
  };
  static rt::Task<Collected> collect(Keys* self, std::shared_ptr<KeptStream> stream);
  void answer_page(const Asked& asked, const std::vector<std::string>& topics);

  Engine& engine_;
  KeptStreams& streams_;
  std::map<std::pair<std::string, std::string>, std::vector<std::string>> listings_;  // by client and stream
};

}  // namespace weft::topic
