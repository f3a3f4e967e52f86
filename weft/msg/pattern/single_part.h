// SPDX-License-Identifier: MIT
#pragma once

#include <memory>

#include "weft/msg/pattern/pattern.h"

namespace weft::msg {

// SinglePart: a pattern whose messages are of one part. What comes from peers is seen to by the connection.
template <typename Base>
class SinglePart final : public Base {
 public:
  using Base::Base;
  Result<void> send(Outbound& part) override {
    return part.more ? Result<void>(Pattern::refuse_more()) : Base::send(part);
  }
};

// For two socket types that differ in nothing else.
template <typename Base>
std::unique_ptr<Pattern> make_whole_or_single(const PatternTraits& traits, const Options& options) {
  if (traits.single_part) {
    return std::make_unique<SinglePart<Base>>(traits, options);
  }
  return std::make_unique<Base>(traits, options);
}

}  // namespace weft::msg
