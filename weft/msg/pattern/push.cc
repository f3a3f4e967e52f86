// SPDX-License-Identifier: MIT
// PUSH and SCATTER (RFC 49): the socket sends to its peers in turn.
#include "weft/msg/pattern/load_balancer.h"
#include "weft/msg/pattern/pattern.h"
#include "weft/msg/pattern/single_part.h"

namespace weft::msg {

namespace {

class Push : public Pattern {
 public:
  using Pattern::Pattern;

  void attach(Pipe& pipe) override { balancer_.attach(pipe); }
  void detach(Pipe& pipe) override { balancer_.detach(pipe); }
  Result<void> send(Outbound& part) override { return balancer_.send(part); }
  bool can_send() override { return balancer_.writable(); }

 private:
  LoadBalancer balancer_{drops_};
};

}  // namespace

std::unique_ptr<Pattern> make_push(const PatternTraits& traits, const Options& options) {
  return make_whole_or_single<Push>(traits, options);
}

}  // namespace weft::msg
