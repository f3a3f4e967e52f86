// SPDX-License-Identifier: MIT
// PAIR and CHANNEL (RFC 52): exactly one peer at a time. The socket refuses a second peer.
#include "weft/msg/pattern/fair_queue.h"
#include "weft/msg/pattern/load_balancer.h"
#include "weft/msg/pattern/pattern.h"
#include "weft/msg/pattern/single_part.h"

namespace weft::msg {

namespace {

class Pair : public Pattern {
 public:
  using Pattern::Pattern;

  void attach(Pipe& pipe) override {
    if (peer_ == nullptr) {
      peer_ = &pipe;
      queue_.attach(pipe);
      balancer_.attach(pipe);
    }
  }
  bool ready(Pipe& pipe, Bytes /*identity*/) override { return peer_ == &pipe; }
  void detach(Pipe& pipe) override {
    balancer_.detach(pipe);
    peer_ = peer_ == &pipe ? nullptr : peer_;
  }
  void activate(Pipe& pipe) override { queue_.activate(pipe); }
  void deactivate(Pipe& pipe) override { queue_.detach(pipe); }

  Result<void> send(Outbound& part) override { return balancer_.send(part); }
  Result<void> receive(Inbound& part) override { return queue_.receive(part); }
  bool can_send() override { return balancer_.writable(); }
  bool can_receive() override { return queue_.has_input(); }

 private:
  Pipe* peer_ = nullptr;
  FairQueue queue_;
  LoadBalancer balancer_{drops_};
};

}  // namespace

std::unique_ptr<Pattern> make_pair(const PatternTraits& traits, const Options& options) {
  return make_whole_or_single<Pair>(traits, options);
}

}  // namespace weft::msg
