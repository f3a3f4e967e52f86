// SPDX-License-Identifier: MIT
#pragma once

#include <memory>

#include "weft/base/result.h"
#include "weft/topic/kept/counters.h"

namespace weft::topic {

class HubLink;
class Node;

// Returns the link to the hub of a handle's fleet. The first call makes it. Errors: not_supported (the fleet is not of
// this host); closed; errors of the runtime directory.
[[nodiscard]] Result<std::shared_ptr<HubLink>> hub_link_of(Node& node);
[[nodiscard]] KeptStatistics kept_statistics_of(Node* node);  // all 0 before the first use, and without a node

}  // namespace weft::topic
