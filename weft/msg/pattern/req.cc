// SPDX-License-Identifier: MIT
// REQ: one request, then its reply, in turn. An empty part goes before the request and comes before the reply (RFC 28).
#include "weft/msg/fair_queue.h"
#include "weft/msg/load_balancer.h"
#include "weft/msg/pattern/table.h"

namespace weft::msg {

namespace {

class Req final : public Pattern {
 public:
  using Pattern::Pattern;

  void attach(Pipe& pipe) override {
    queue_.attach(pipe);
    balancer_.attach(pipe);
  }
  void detach(Pipe& pipe) override {
    balancer_.detach(pipe);
    asked_ = asked_ == &pipe ? nullptr : asked_;
  }
  void activate(Pipe& pipe) override { queue_.activate(pipe); }
  void deactivate(Pipe& pipe) override {
    if (queue_.detach(pipe)) {
      in_reply_ = skipping_ = false;
    }
  }

  Result<void> send(Outbound& part) override {
    if (awaiting_) {
      return Error(Errc::invalid_state, "the reply to the last request was not received yet");
    }
    WEFT_TRY(balancer_.send(part, !in_request_));
    in_request_ = part.more;
    if (!part.more) {
      awaiting_ = true;
      in_reply_ = false;
      asked_ = balancer_.last();
    }
    return {};
  }

  Result<void> receive(Inbound& part) override {
    if (!awaiting_) {
      return Error(Errc::invalid_state, "no request was sent");
    }
    FrameView view;
    if (!find_reply(view)) {
      return Errc::would_block;
    }
    if (!part.take(view)) {
      queue_.unpeek();
      return Error(Errc::resource_exhausted, "no memory for a received message");
    }
    queue_.pop();
    in_reply_ = part.more;
    awaiting_ = part.more;
    return {};
  }

  bool can_send() override { return !awaiting_ && balancer_.writable(); }
  bool can_receive() override {
    FrameView view;
    if (!awaiting_ || !find_reply(view)) {
      return false;
    }
    queue_.unpeek();
    return true;
  }
  bool expects_input() const noexcept override { return awaiting_; }
  std::uint64_t dropped() const noexcept override { return balancer_.dropped(); }

 private:
  // Peeks at the next part of the reply proper; what is not from the peer that was asked, or has no delimiter, goes.
  bool find_reply(FrameView& view) {
    for (;;) {
      const Pipe* pipe = queue_.peek(view);
      if (pipe == nullptr) {
        return false;
      }
      if (in_reply_) {
        return true;
      }
      if (skipping_ || (asked_ != nullptr && pipe != asked_) || !view.bytes.empty() || !view.more) {
        skipping_ = view.more;
      } else {
        in_reply_ = true;  // that was the delimiter
      }
      queue_.pop();
    }
  }

  FairQueue queue_;
  LoadBalancer balancer_;
  Pipe* asked_ = nullptr;    // null: whoever answers
  bool in_request_ = false;  // some parts were sent
  bool awaiting_ = false;    // a request is out, its reply not yet received whole
  bool in_reply_ = false;    // the delimiter was taken
  bool skipping_ = false;    // in the middle of a message that is not the reply
};

}  // namespace

std::unique_ptr<Pattern> make_req(const PatternTraits& traits, const Options& options) {
  return std::make_unique<Req>(traits, options);
}

}  // namespace weft::msg
