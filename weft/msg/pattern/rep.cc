// SPDX-License-Identifier: MIT
// REP: the application receives a request, then sends its reply; the reply goes to the peer that asked. The socket
// keeps the envelope of the request, up to and with the first empty part, and puts it in front of the reply (RFC 28).
#include <vector>

#include "weft/msg/pattern/fair_queue.h"
#include "weft/msg/pattern/pattern.h"

namespace weft::msg {

namespace {

class Rep final : public Pattern {
 public:
  using Pattern::Pattern;
  ~Rep() override { forget_envelope(); }

  void attach(Pipe& pipe) override { queue_.attach(pipe); }
  void detach(Pipe& pipe) override { asker_ = asker_ == &pipe ? nullptr : asker_; }
  void activate(Pipe& pipe) override { queue_.activate(pipe); }
  void deactivate(Pipe& pipe) override {
    if (queue_.detach(pipe) && !replying_) {
      forget_envelope();
      in_body_ = false;
    }
  }

  Result<void> receive(Inbound& part) override {
    if (replying_) {
      return Error(Errc::invalid_state, "the last request was not replied to yet");
    }
    FrameView view;
    if (!find_body(view)) {
      return Errc::would_block;
    }
    if (!part.take(view)) {
      queue_.unpeek();
      return Error(Errc::resource_exhausted, "no memory for a received message");
    }
    queue_.pop();
    in_body_ = part.more;
    replying_ = !part.more;
    return {};
  }

  Result<void> send(Outbound& part) override {
    if (!replying_) {
      return Error(Errc::invalid_state, "there is no request to reply to");
    }
    Cell cell;
    if (!make_cell(cell, part)) {
      return Error(Errc::resource_exhausted, "no memory for a message part");
    }
    envelope_.push_back(cell);
    if (part.more) {
      return {};
    }
    if (asker_ != nullptr && asker_->writable()) {
      asker_->send_parts(envelope_, false, part.waits);
      envelope_.clear();
    } else {
      ++dropped_;  // the asker is gone, or its pipe is full because it does not read
      forget_envelope();
    }
    replying_ = false;
    return {};
  }

  bool can_send() override { return replying_; }
  bool can_receive() override {
    FrameView view;
    if (replying_ || !find_body(view)) {
      return false;
    }
    queue_.unpeek();
    return true;
  }
  bool expects_input() const noexcept override { return !replying_; }

 private:
  // Peeks at the next part of the request proper, after it took the envelope. Drops a message without a delimiter.
  bool find_body(FrameView& view) {
    for (;;) {
      Pipe* pipe = queue_.peek(view);
      if (pipe == nullptr) {
        return false;
      }
      if (in_body_) {
        return true;
      }
      if (envelope_.empty()) {
        asker_ = pipe;
      }
      Outbound part{view.bytes, nullptr, view.more};
      Cell cell;
      if (!view.more || !make_cell(cell, part)) {
        forget_envelope();
      } else {
        envelope_.push_back(cell);
        in_body_ = view.bytes.empty();
      }
      if (!queue_.drop()) {
        return false;
      }
    }
  }

  void forget_envelope() noexcept {
    for (Cell& cell : envelope_) {
      cell.release();
    }
    envelope_.clear();
  }

  FairQueue queue_;
  std::vector<Cell> envelope_;  // send() appends the parts of the reply
  Pipe* asker_ = nullptr;       // sent the request; null: gone
  bool in_body_ = false;        // the envelope was taken
  bool replying_ = false;       // the request was received whole
};

}  // namespace

std::unique_ptr<Pattern> make_rep(const PatternTraits& traits, const Options& options) {
  return std::make_unique<Rep>(traits, options);
}

}  // namespace weft::msg
