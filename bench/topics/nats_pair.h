// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "weft/base/bytes.h"

namespace bench {

// NatsPair: two clients of one server, with a subscription of the messages and a service at the second one.
// Owner: a run. Affinity: one thread; `Arrived` is called on the thread that the library receives on.
class NatsPair {
 public:
  using Arrived = std::function<void(weft::Bytes)>;

  NatsPair() = default;
  NatsPair(const NatsPair&) = delete;
  NatsPair& operator=(const NatsPair&) = delete;
  virtual ~NatsPair() = default;

  virtual void publish(weft::Bytes body) = 0;
  virtual std::size_t request(weft::Bytes body) = 0;  // returns the size of the reply
  [[nodiscard]] virtual std::string version() const { return "weft::topics"; }
};

}  // namespace bench
