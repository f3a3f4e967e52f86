// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"

namespace weft::topic {

// Fleet: the option `fleet`, parsed. Affinity: immutable.
struct Fleet {
  enum class Kind : std::uint8_t { inproc, local, tcp, nats };
  static constexpr std::size_t kNameMax = 32;
  // Every handle connects to every other one and sends it the list of all: to begin at once costs the third power.
  static constexpr std::size_t kLocalHandlesMax = 128;

  Kind kind = Kind::local;
  std::string name;                // inproc, local; of "local": "default"
  std::vector<std::string> peers;  // tcp
  std::string servers;             // nats: the list of their URLs
  bool tls = false;                // tcp: every endpoint is tls+tcp

  [[nodiscard]] std::string_view scheme() const noexcept { return tls ? "tls+tcp://" : "tcp://"; }  // of kind tcp

  // Errors: invalid_argument.
  [[nodiscard]] static Result<Fleet> parse(std::string_view text);
};

}  // namespace weft::topic
