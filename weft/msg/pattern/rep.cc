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
    detach(pipe);  // a request may be received after its pipe was detached
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
    WEFT_TRY(find_body(view));
    if (!part.take(view)) {
      queue_.unpeek();
      return kNoMemoryToReceive;
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
    if (!append_cell(envelope_, part)) {
      return kNoMemoryToSend;
    }
    if (part.more) {
      return {};
    }
    if (asker_ != nullptr && asker_->writable()) {
      if (!asker_->send_parts(envelope_, false, &part)) {
        take_cell_back(envelope_, part);
        return kNoMemoryToSend;
      }
      envelope_.clear();
    } else {
      // The asker is gone, or its pipe is full because it does not read.
      ++(asker_ == nullptr ? drops_.dropped_no_peer : drops_.dropped_full);
      forget_envelope();
    }
    replying_ = false;
    return {};
  }

  bool can_send() override { return replying_; }
  bool can_receive() override {
    if (replying_) {
      return false;
    }
    FrameView view;
    const Result<void> found = find_body(view);
    if (found) {
      queue_.unpeek();
    }
    return found || found.error() != Errc::would_block;  // without memory: true, so that receive() reports the error
  }
  bool expects_input() const noexcept override { return !replying_; }

 private:
  // Peeks at the next part of the request proper, after it took the envelope. Drops a message without a delimiter.
  Result<void> find_body(FrameView& view) {
    for (;;) {
      Pipe* pipe = queue_.peek(view);
      if (pipe == nullptr) {
        return Errc::would_block;
      }
      if (in_body_) {
        return {};
      }
      if (envelope_.empty()) {
        asker_ = pipe;
      }
      Outbound part{view.bytes, nullptr, view.more};
      if (!view.more) {
        ++drops_.dropped_unexpected;
        forget_envelope();
      } else if (append_cell(envelope_, part)) {
        in_body_ = view.bytes.empty();
      } else {
        queue_.unpeek();
        return kNoMemoryToReceive;
      }
      if (!queue_.drop()) {
        return Errc::would_block;
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
