// SPDX-License-Identifier: MIT
#pragma once

#include <memory>

#include "weft/msg/pattern/pattern.h"

namespace weft::msg {

// SinglePart: makes a pattern refuse messages of several parts from the application. The connection drops those of
// peers.
template <typename Base>
class SinglePart final : public Base {
 public:
  using Base::Base;
  Result<void> send(Outbound& part) override {
    return part.more ? Result<void>(Pattern::refuse_more()) : Base::send(part);
  }
};

// For two socket types that differ only in whether messages are of one part.
template <typename Base>
std::unique_ptr<Pattern> make_whole_or_single(const PatternTraits& traits, const Options& options) {
  if (traits.single_part) {
    return std::make_unique<SinglePart<Base>>(traits, options);
  }
  return std::make_unique<Base>(traits, options);
}

}  // namespace weft::msg
