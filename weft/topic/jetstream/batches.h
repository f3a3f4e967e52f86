// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "weft/topic/jetstream/engine.h"
#include "weft/topic/jetstream/kept_streams.h"

namespace weft::topic {

// Batches: messages that a stream stores in whole or not at all.
// Owner: the session. Affinity: its core. Cost: a look at the stream, and one acknowledgement for all messages.
// Invariant: the last message of a batch, with which a server stores it, is sent once.
class Batches {
 public:
  Batches(Engine& engine, KeptStreams& streams) : engine_(engine), streams_(streams) {}

  static rt::Task<void> append(Batches* self, std::unique_ptr<Asked> asked);

 private:
  struct Part {
    std::string subject{};
    std::string headers{};
    Bytes body{};
  };
  [[nodiscard]] Result<std::vector<Part>> parts_of(const Asked& asked, const KeptStream& stream,
                                                   std::string_view id) const;

  Engine& engine_;
  KeptStreams& streams_;
};

}  // namespace weft::topic
