// SPDX-License-Identifier: MIT
#include "weft/topic/owned.h"

#include <utility>

#include "weft/topic/node/node.h"

namespace weft {

Owned::Owned(std::shared_ptr<topic::Node> node, std::string wire, std::uint64_t epoch) noexcept
    : node_(std::move(node)), wire_(std::move(wire)), epoch_(epoch) {}
Owned::Owned(Owned&&) noexcept = default;
Owned& Owned::operator=(Owned&& other) noexcept {
  std::swap(node_, other.node_);
  std::swap(wire_, other.wire_);
  std::swap(epoch_, other.epoch_);
  return *this;
}
Owned::~Owned() {
  if (node_ != nullptr && here()) {
    node_->give_up_ownership(wire_);
  }
}

bool Owned::here() const noexcept { return node_ != nullptr && !node_->closed() && node_->owns(wire_, epoch_); }

}  // namespace weft
