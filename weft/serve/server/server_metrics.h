// SPDX-License-Identifier: MIT
#pragma once

#include <span>
#include <string>

#include "weft/rt/core/runtime.h"
#include "weft/serve/metrics/prometheus.h"
#include "weft/serve/server/server.h"

namespace weft::serve {

struct NamedServer {
  std::string name;  // the label `server`; each once
  const Server* server = nullptr;
};

// What servers and cores count, as families `weft_server_…` and `weft_core_…`. Any thread; it stops no core.
void write_metrics(PrometheusWriter& writer, std::span<const NamedServer> servers);
void write_metrics(PrometheusWriter& writer, rt::Runtime& runtime);

}  // namespace weft::serve
