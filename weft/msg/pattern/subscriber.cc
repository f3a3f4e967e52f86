// SPDX-License-Identifier: MIT
// SUB and XSUB: subscriptions go to every publisher, and again to each that connects anew. SUB also filters what comes,
// because a publisher may send more than was asked for. XSUB subscribes by sending 01 (00: unsubscribes) and the topic.
#include <algorithm>
#include <mutex>

#include "weft/msg/distributor.h"
#include "weft/msg/fair_queue.h"
#include "weft/msg/pattern/table.h"
#include "weft/msg/prefix_table.h"

namespace weft::msg {

namespace {

class Subscriber final : public Pattern {
 public:
  Subscriber(const PatternTraits& traits, const Options& options) : Pattern(traits, options), filters_(!traits.sends) {}

  void attach(Pipe& pipe) override {
    queue_.attach(pipe);
    if (std::find(pipes_.begin(), pipes_.end(), &pipe) == pipes_.end()) {
      pipes_.push_back(&pipe);
    }
  }
  bool ready(Pipe& pipe, Bytes /*identity*/) override {
    subscriptions_.for_each(
        [&](std::string_view topic, std::uint32_t&) { pipe.send_subscription(true, as_bytes(topic)); });
    return true;
  }
  void detach(Pipe& pipe) override {
    std::erase(pipes_, &pipe);
    distributor_.detach(pipe);
  }
  void activate(Pipe& pipe) override { queue_.activate(pipe); }
  void deactivate(Pipe& pipe) override {
    if (queue_.detach(pipe)) {
      in_received_ = skipping_ = false;
    }
  }

  Result<void> subscribe(Bytes topic) override {
    bool is_new = false;
    ++subscriptions_.insert(topic, is_new);
    tell_publishers(true, topic);  // also when it is not new: an XPUB may want to see each (xpub_verbose)
    return {};
  }
  Result<void> unsubscribe(Bytes topic) override {
    std::uint32_t* count = subscriptions_.find(topic);
    if (count == nullptr) {
      return Error(Errc::invalid_argument, "not subscribed to this topic");
    }
    if (--*count == 0) {
      subscriptions_.erase(topic);
      tell_publishers(false, topic);
    }
    return {};
  }

  Result<void> send(Outbound& part) override {
    if (filters_) {
      return Pattern::send(part);
    }
    if (!distributor_.in_message()) {
      if (!part.more && !part.bytes.empty() && part.bytes[0] <= 1) {
        const Bytes topic = part.bytes.subspan(1);
        if (part.bytes[0] == 1) {
          return subscribe(topic);
        }
        if (subscriptions_.find(topic) != nullptr) {
          return unsubscribe(topic);
        }
        return {};
      }
      distributor_.choose(pipes_);
    }
    return distributor_.send(part);
  }

  Result<void> receive(Inbound& part) override {
    FrameView view;
    if (!find_match(view)) {
      return Errc::would_block;
    }
    if (!part.take(view)) {
      queue_.unpeek();
      return Error(Errc::resource_exhausted, "no memory for a received message");
    }
    in_received_ = part.more;
    queue_.pop();
    return {};
  }

  bool can_send() override { return !filters_; }
  bool can_receive() override {
    FrameView view;
    if (!find_match(view)) {
      return false;
    }
    queue_.unpeek();
    return true;
  }

 private:
  // Peeks at the next part of a message that was subscribed to; others go.
  bool find_match(FrameView& view) {
    while (queue_.peek(view) != nullptr) {
      if (in_received_ || !filters_ || (!skipping_ && matches(view.bytes))) {
        return true;
      }
      skipping_ = view.more;
      queue_.pop();
    }
    return false;
  }

  bool matches(Bytes topic) {
    const std::lock_guard lock(filter_mutex_);
    return filter_.matches(topic) != options_.invert_matching;
  }

  void tell_publishers(bool subscribe, Bytes topic) {
    {
      const std::lock_guard lock(filter_mutex_);
      bool is_new = false;
      if (subscribe) {
        filter_.insert(topic, is_new) = true;
      } else {
        filter_.erase(topic);
      }
    }
    for (Pipe* pipe : pipes_) {
      if (pipe->notes.ready) {
        pipe->send_subscription(subscribe, topic);
      }
    }
  }

  const bool filters_;
  FairQueue queue_;                           // receive lock, as the next two
  bool in_received_ = false;                  // in the middle of a message that matches
  bool skipping_ = false;                     // in the middle of one that does not
  PrefixTable<std::uint32_t> subscriptions_;  // send lock, as what follows: topic -> how often
  std::vector<Pipe*> pipes_;
  Distributor distributor_;
  std::mutex filter_mutex_;  // the receiving side's copy
  PrefixTable<bool> filter_;
};

}  // namespace

std::unique_ptr<Pattern> make_subscriber(const PatternTraits& traits, const Options& options) {
  return std::make_unique<Subscriber>(traits, options);
}

}  // namespace weft::msg
