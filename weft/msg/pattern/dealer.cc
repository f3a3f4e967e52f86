// SPDX-License-Identifier: MIT
// DEALER and CLIENT (RFC 41): the socket sends to its peers in turn and receives from them in turn.
#include "weft/msg/pattern/fair_queue.h"
#include "weft/msg/pattern/load_balancer.h"
#include "weft/msg/pattern/pattern.h"
#include "weft/msg/pattern/single_part.h"

namespace weft::msg {

namespace {

class Dealer : public Pattern {
 public:
  using Pattern::Pattern;

  void attach(Pipe& pipe) override {
    queue_.attach(pipe);
    balancer_.attach(pipe);
    send_hello(pipe);  // before the application's messages
  }
  bool ready(Pipe& pipe, Bytes /*identity*/) override {
    send_hello(pipe);
    return true;
  }
  void lost(Pipe& pipe) override { pipe.notes.hello_sent = pipe.notes.probed = false; }
  void detach(Pipe& pipe) override { balancer_.detach(pipe); }
  void activate(Pipe& pipe) override { queue_.activate(pipe); }
  void deactivate(Pipe& pipe) override { queue_.detach(pipe); }

  Result<void> send(Outbound& part) override { return balancer_.send(part); }
  Result<void> receive(Inbound& part) override { return queue_.receive(part); }
  bool can_send() override { return balancer_.writable(); }
  bool can_receive() override { return queue_.has_input(); }

 private:
  FairQueue queue_;
  LoadBalancer balancer_{drops_};
};

}  // namespace

std::unique_ptr<Pattern> make_dealer(const PatternTraits& traits, const Options& options) {
  return make_whole_or_single<Dealer>(traits, options);
}

}  // namespace weft::msg
