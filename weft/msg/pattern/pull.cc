// SPDX-License-Identifier: MIT
// PULL and GATHER (RFC 49): the socket receives from its peers in turn.
#include "weft/msg/pattern/fair_queue.h"
#include "weft/msg/pattern/pattern.h"

namespace weft::msg {

namespace {

class Pull final : public Pattern {
 public:
  using Pattern::Pattern;

  void attach(Pipe& pipe) override { queue_.attach(pipe); }
  void detach(Pipe& /*pipe*/) override {}
  void activate(Pipe& pipe) override { queue_.activate(pipe); }
  void deactivate(Pipe& pipe) override { queue_.detach(pipe); }
  Result<void> receive(Inbound& part) override { return queue_.receive(part); }
  bool can_receive() override { return queue_.has_input(); }

 private:
  FairQueue queue_;
};

}  // namespace

std::unique_ptr<Pattern> make_pull(const PatternTraits& traits, const Options& options) {
  return std::make_unique<Pull>(traits, options);
}

}  // namespace weft::msg
