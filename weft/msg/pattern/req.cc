// SPDX-License-Identifier: MIT
// REQ: one request, then its reply, in turn. An empty part, the delimiter, stands before the request and before the
// reply (RFC 28). With the option req_correlate, the request's number stands before the delimiter.
#include <array>
#include <cstring>
#include <random>

#include "weft/msg/pattern/fair_queue.h"
#include "weft/msg/pattern/load_balancer.h"
#include "weft/msg/pattern/pattern.h"

namespace weft::msg {

namespace {

class Req final : public Pattern {
 public:
  using Pattern::Pattern;

  void attach(Pipe& pipe) override {
    queue_.attach(pipe);
    balancer_.attach(pipe);
    probe(pipe);
  }
  bool ready(Pipe& pipe, Bytes /*identity*/) override {
    probe(pipe);
    return true;
  }
  void lost(Pipe& pipe) override { pipe.notes.probed = false; }
  void detach(Pipe& pipe) override {
    balancer_.detach(pipe);
    asked_ = asked_ == &pipe ? nullptr : asked_;
  }
  void activate(Pipe& pipe) override { queue_.activate(pipe); }
  void deactivate(Pipe& pipe) override {
    if (queue_.detach(pipe)) {
      in_reply_ = in_envelope_ = skipping_ = false;
    }
  }

  Result<void> send(Outbound& part) override {
    if (awaiting_ && !options_.req_relaxed) {
      return Error(Errc::invalid_state, "the reply to the last request was not received yet");
    }
    if (!in_request_) {
      return begin(part);
    }
    WEFT_TRY(balancer_.send(part));
    sent(part.more);
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

  bool can_send() override { return (!awaiting_ || options_.req_relaxed) && balancer_.writable(); }
  bool can_receive() override {
    FrameView view;
    if (!awaiting_ || !find_reply(view)) {
      return false;
    }
    queue_.unpeek();
    return true;
  }
  bool expects_input() const noexcept override { return awaiting_; }

 private:
  Result<void> begin(Outbound& part) {
    std::array<Cell, 2> envelope{};  // the number, the delimiter
    const std::uint32_t number = number_ + 1;
    envelope[0].more = envelope[1].more = true;
    envelope[0].size = sizeof number;
    std::memcpy(envelope[0].body.small, &number, sizeof number);  // only this socket reads it: any byte order will do
    const bool numbered = options_.req_correlate;
    if (awaiting_) {
      if (!balancer_.writable()) {
        return Errc::would_block;
      }
      give_up_reply();
    }
    WEFT_TRY(balancer_.send(part, std::span<const Cell>(envelope).subspan(numbered ? 0 : 1)));
    number_ = number;
    numbered_ = numbered;
    sent(part.more);
    return {};
  }

  void sent(bool more) noexcept {
    in_request_ = more;
    awaiting_ = !more;
    if (!more) {
      in_reply_ = in_envelope_ = false;
      asked_ = balancer_.last();
    }
  }

  // A new request replaces the last one. Drop the last one's reply, which may be queued already or half taken.
  void give_up_reply() {
    skipping_ |= in_reply_ || in_envelope_;
    in_reply_ = in_envelope_ = false;
    FrameView view;
    while (queue_.peek(view) != nullptr) {
      if (!skip(view)) {
        return;  // a peer that floods; its further messages are taken as replies
      }
    }
  }

  // Whether the part before the delimiter carries the number of the request that is out.
  [[nodiscard]] bool is_number(const FrameView& view) const noexcept {
    return view.more && view.bytes.size() == sizeof number_ &&
           std::memcmp(view.bytes.data(), &number_, sizeof number_) == 0;
  }

  // Peeks at the next part of the reply proper. Drops messages of other peers than the one that was asked, and messages
  // without a delimiter or with another number.
  bool find_reply(FrameView& view) {
    for (;;) {
      const Pipe* pipe = queue_.peek(view);
      if (pipe == nullptr) {
        return false;
      }
      if (in_reply_) {
        return true;
      }
      if (!skipping_ && numbered_ && !in_envelope_ && (asked_ == nullptr || pipe == asked_) && is_number(view)) {
        in_envelope_ = true;
      } else if (skipping_ || (asked_ != nullptr && pipe != asked_) || numbered_ != in_envelope_ ||
                 !view.bytes.empty() || !view.more) {
        in_envelope_ = false;
        if (!skip(view)) {
          return false;
        }
        continue;
      } else {
        in_reply_ = true;  // that was the delimiter
        in_envelope_ = false;
      }
      if (!queue_.drop()) {
        return false;
      }
    }
  }

  // Drops the peeked part, and the rest of its message when it comes. Returns false if the turn is spent.
  [[nodiscard]] bool skip(const FrameView& view) noexcept {
    skipping_ = view.more;
    drops_.dropped_unexpected += view.more ? 0 : 1;
    return queue_.drop();
  }

  FairQueue queue_;
  LoadBalancer balancer_{drops_};
  Pipe* asked_ = nullptr;     // got the request; null: it is gone, so any peer may answer
  bool in_request_ = false;   // some parts were sent
  bool awaiting_ = false;     // a request is out, its reply not yet received whole
  bool in_reply_ = false;     // the delimiter was taken
  bool in_envelope_ = false;  // the number was taken, the delimiter not yet
  bool numbered_ = false;     // the last request carried a number
  std::uint32_t number_ = std::random_device{}();
  bool skipping_ = false;  // in the middle of a message that is not the reply
};

}  // namespace

std::unique_ptr<Pattern> make_req(const PatternTraits& traits, const Options& options) {
  return std::make_unique<Req>(traits, options);
}

}  // namespace weft::msg
