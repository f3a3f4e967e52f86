// SPDX-License-Identifier: MIT
// SUB and XSUB: subscriptions go to every publisher, and all of them again over each new connection. SUB also filters
// received messages, because a publisher may send more than the socket subscribed to. XSUB subscribes by sending 01
// (unsubscribes: 00) and the topic.
#include <algorithm>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/msg/pattern/distributor.h"
#include "weft/msg/pattern/fair_queue.h"
#include "weft/msg/pattern/pattern.h"
#include "weft/msg/pattern/prefix_table.h"

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
  // Sends the subscriptions in the order in which they were made: a publisher that has the last one then has them all.
  bool ready(Pipe& pipe, Bytes /*identity*/) override {
    std::vector<std::pair<std::uint64_t, std::string_view>> wishes;
    wishes.reserve(subscriptions_.size());
    subscriptions_.for_each([&](std::string_view topic, Wish& wish) { wishes.emplace_back(wish.made, topic); });
    std::sort(wishes.begin(), wishes.end());
    for (const auto& [made, topic] : wishes) {
      pipe.send_subscription(true, as_bytes(topic));
    }
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
    Wish& wish = subscriptions_.insert(topic, is_new);
    ++wish.count;
    wish.made = is_new ? ++made_ : wish.made;
    send_to_publishers(true, topic);  // also when the topic is not new: an XPUB with xpub_verbose shows each one
    return {};
  }
  Result<void> unsubscribe(Bytes topic) override {
    Wish* wish = subscriptions_.find(topic);
    if (wish == nullptr) {
      return Error(Errc::invalid_argument, "not subscribed to this topic");
    }
    if (--wish->count == 0) {
      subscriptions_.erase(topic);
      send_to_publishers(false, topic);
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
  struct Wish {
    std::uint32_t count = 0;  // subscribe() calls less unsubscribe() calls
    std::uint64_t made = 0;   // place in the order of all subscriptions
  };

  // Peeks at the next part of a message that the socket subscribed to. Drops all other messages.
  bool find_match(FrameView& view) {
    while (queue_.peek(view) != nullptr) {
      if (in_received_ || !filters_ || (!skipping_ && matches(view.bytes))) {
        return true;
      }
      skipping_ = view.more;
      drops_.dropped_unexpected += view.more ? 0 : 1;
      queue_.pop();
    }
    return false;
  }

  bool matches(Bytes topic) {
    const std::lock_guard lock(filter_mutex_);
    return filter_.matches(topic) != options_.invert_matching;
  }

  void send_to_publishers(bool subscribe, Bytes topic) {
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
  FairQueue queue_;                  // receive lock, as the next two
  bool in_received_ = false;         // in the middle of a message that matches
  bool skipping_ = false;            // in the middle of a message that does not
  PrefixTable<Wish> subscriptions_;  // send lock, as the next three
  std::uint64_t made_ = 0;           // subscriptions so far
  std::vector<Pipe*> pipes_;
  Distributor distributor_;
  std::mutex filter_mutex_;
  PrefixTable<bool> filter_;  // guarded by filter_mutex_: the receiving side's copy of the topics
};

}  // namespace

std::unique_ptr<Pattern> make_subscriber(const PatternTraits& traits, const Options& options) {
  return std::make_unique<Subscriber>(traits, options);
}

}  // namespace weft::msg
