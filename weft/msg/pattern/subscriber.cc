// SPDX-License-Identifier: MIT
// SUB and XSUB: subscriptions go to every publisher, and all of them again over each new connection. SUB also filters
// received messages, because a publisher may send more than the socket subscribed to. XSUB subscribes by sending 01
// (unsubscribes: 00) and the topic, or several of them as the first parts of a message.
#include <list>
#include <mutex>
#include <new>
#include <string>
#include <vector>

#include "weft/msg/interest/prefix_table.h"
#include "weft/msg/pattern/distributor.h"
#include "weft/msg/pattern/fair_queue.h"
#include "weft/msg/pattern/pattern.h"
#include "weft/msg/pattern/pipe_list.h"

namespace weft::msg {

namespace {

class Subscriber final : public Pattern {
 public:
  Subscriber(const PatternTraits& traits, const Options& options) : Pattern(traits, options), filters_(!traits.sends) {}

  void attach(Pipe& pipe) override {
    queue_.attach(pipe);
    publishers_.add(pipe);
  }
  // Sends the subscriptions in the order in which they were made: a publisher that has the last one then has them all.
  bool ready(Pipe& pipe, Bytes /*identity*/) override {
    for (const Wish& wish : wishes_) {
      pipe.send_subscription(true, as_bytes(wish.topic));
    }
    return true;
  }
  void detach(Pipe& pipe) override {
    publishers_.remove(pipe);
    distributor_.detach(pipe);
  }
  void activate(Pipe& pipe) override { queue_.activate(pipe); }
  void deactivate(Pipe& pipe) override {
    if (queue_.detach(pipe)) {
      in_received_ = skipping_ = false;
    }
  }

  Result<void> subscribe(Bytes topic) override {
    WEFT_TRY(wish_for(topic));
    send_to_publishers(true, topic);  // also when the topic is not new: an XPUB with xpub_verbose shows each one
    return {};
  }
  Result<void> unsubscribe(Bytes topic) override {
    const Wishes::iterator* const found = subscriptions_.find(topic);
    if (found == nullptr) {
      return Error(Errc::invalid_argument, "not subscribed to this topic");
    }
    const Wishes::iterator wish = *found;
    if (--wish->count == 0) {
      {
        const std::lock_guard lock(filter_mutex_);
        subscriptions_.erase(topic);
      }
      send_to_publishers(false, topic);
      wishes_.erase(wish);
    }
    return {};
  }

  Result<void> send(Outbound& part) override {
    if (filters_) {
      return Pattern::send(part);
    }
    if (!distributor_.in_message()) {
      if (!part.bytes.empty() && part.bytes[0] <= 1) {
        const Bytes topic = part.bytes.subspan(1);
        return part.bytes[0] == 1 ? subscribe(topic) : pass_unsubscription(topic);
      }
    }
    try {
      if (!distributor_.in_message()) {
        distributor_.choose(publishers_.pipes());
      }
      return distributor_.send(part);
    } catch (const std::bad_alloc&) {
      return Error(Errc::resource_exhausted, "no memory for a message");
    }
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
  [[nodiscard]] Result<std::size_t> topics() override { return subscriptions_.size(); }
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
    std::string topic;
    std::uint32_t count = 0;  // subscribe() calls less unsubscribe() calls
  };
  using Wishes = std::list<Wish>;

  [[nodiscard]] Result<void> wish_for(Bytes topic) {
    constexpr Error kNoMemory(Errc::resource_exhausted, "no memory for a subscription");
    if (const Wishes::iterator* const wish = subscriptions_.find(topic); wish != nullptr) {
      ++(*wish)->count;
      return {};
    }
    try {
      wishes_.push_back({std::string(as_text(topic)), 1});
    } catch (const std::bad_alloc&) {
      return kNoMemory;
    }
    const std::lock_guard lock(filter_mutex_);
    bool is_new = false;
    Wishes::iterator* const wish = subscriptions_.insert(topic, is_new);
    if (wish == nullptr) {
      wishes_.pop_back();
      return kNoMemory;
    }
    *wish = std::prev(wishes_.end());
    return {};
  }

  // XSUB. Only the last unsubscription of a topic, unless the option xsub_verbose_unsubscribe passes on all.
  [[nodiscard]] Result<void> pass_unsubscription(Bytes topic) {
    const Wishes::iterator* const wish = subscriptions_.find(topic);
    const bool last = wish != nullptr && (*wish)->count == 1;
    if (options_.xsub_verbose_unsubscribe && !last) {
      send_to_publishers(false, topic);
    }
    return wish != nullptr ? unsubscribe(topic) : Result<void>();
  }

  // Peeks at the next part of a message that the socket subscribed to. Drops all other messages.
  [[gnu::always_inline]] bool find_match(FrameView& view) {
    while (queue_.peek(view) != nullptr) {
      if (in_received_ || !filters_ || (!skipping_ && matches(view.bytes))) {
        return true;
      }
      skipping_ = view.more;
      drops_.dropped_unexpected += view.more ? 0 : 1;
      if (!queue_.drop()) {
        return false;
      }
    }
    return false;
  }

  bool matches(Bytes topic) {
    const std::lock_guard lock(filter_mutex_);
    return subscriptions_.matches(topic) != options_.invert_matching;
  }

  void send_to_publishers(bool subscribe, Bytes topic) {
    for (Pipe* pipe : publishers_.pipes()) {
      if (pipe->notes.ready) {
        pipe->send_subscription(subscribe, topic);
      }
    }
  }

  const bool filters_;
  FairQueue queue_;           // receive lock, as the next two
  bool in_received_ = false;  // in the middle of a message that matches
  bool skipping_ = false;     // in the middle of a message that does not
  Wishes wishes_;             // send lock, as the next two: in the order in which they were made
  PipeList publishers_;
  Distributor distributor_;
  std::mutex filter_mutex_;                      // for threads that hold the receive lock only
  PrefixTable<Wishes::iterator> subscriptions_;  // send lock or filter_mutex_ to read, both to change
};

}  // namespace

std::unique_ptr<Pattern> make_subscriber(const PatternTraits& traits, const Options& options) {
  return std::make_unique<Subscriber>(traits, options);
}

}  // namespace weft::msg
