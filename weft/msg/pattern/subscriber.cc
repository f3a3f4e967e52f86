// SPDX-License-Identifier: MIT
// SUB and XSUB: subscriptions go to every publisher, and all of them again over each new connection. SUB also filters
// received messages, because a publisher may send more than the socket subscribed to, and so does XSUB from its first
// filter on. XSUB subscribes by sending 01 (unsubscribes: 00) and the topic, or several of them as the first parts of a
// message. A publisher that takes no filters gets their literal heads, which several filters and a prefix may share.
#include <atomic>
#include <list>
#include <map>
#include <new>
#include <string>
#include <vector>

#include "weft/msg/interest/filter_index.h"
#include "weft/msg/interest/prefix_table.h"
#include "weft/msg/interest/subscription_table.h"
#include "weft/msg/pattern/distributor.h"
#include "weft/msg/pattern/fair_queue.h"
#include "weft/msg/pattern/pattern.h"
#include "weft/msg/pattern/pipe_list.h"
#include "weft/sync/lock.h"
#include "weft/zmtp/local_end.h"

namespace weft::msg {

namespace {

class Subscriber final : public Pattern {
 public:
  Subscriber(const PatternTraits& traits, const Options& options)
      : Pattern(traits, options), takes_sends_(traits.sends), filters_(!traits.sends) {
    matched_.reserve(kMemoTopicMax);
  }

  void attach(Pipe& pipe) override {
    queue_.attach(pipe);
    publishers_.add(pipe);
  }
  // Sends the subscriptions in the order in which they were made: a publisher that has the last one then has them all.
  bool ready(Pipe& pipe, Bytes /*identity*/) override {
    for (const Wish& wish : wishes_) {
      send_to(pipe, true, wish.view());
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

  Result<void> subscribe(const FilterView& topic) override {
    WEFT_TRY(check_bounds(topic));
    return subscribe_within_bounds(topic);
  }
  Result<void> unsubscribe(const FilterView& topic) override {
    const Wishes::iterator* const found = find(topic);
    if (found == nullptr) {
      return Error(Errc::invalid_argument, "not subscribed to this topic");
    }
    const Wishes::iterator wish = *found;
    if (--wish->count == 0) {
      forget(topic);
      send_to_publishers(false, topic);
      wish_bytes_ -= wish->topic.size();
      wishes_.erase(wish);
    }
    return {};
  }

  Result<void> send(Outbound& part) override {
    if (!takes_sends_) {
      return Pattern::send(part);
    }
    if (!distributor_.in_message()) {
      if (!part.bytes.empty() && part.bytes[0] <= 1) {
        const FilterView topic{FilterKind::prefix, as_text(part.bytes.subspan(1))};
        if (part.bytes[0] == 0) {
          return pass_unsubscription(topic);
        }
        return part.relayed ? subscribe_within_bounds(topic) : subscribe(topic);
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

  bool can_send() override { return takes_sends_; }
  [[nodiscard]] Result<std::size_t> topics() override { return wishes_.size(); }
  bool can_receive() override {
    FrameView view;
    if (!find_match(view)) {
      return false;
    }
    queue_.unpeek();
    return true;
  }

 private:
  // Of a proxy's subscribers each has bounds of its own at the XPUB, which reports them.
  Result<void> subscribe_within_bounds(const FilterView& topic) {
    WEFT_TRY(topic.kind == FilterKind::prefix ? wish_for_prefix(topic) : wish_for_filter(topic));
    try {
      send_to_publishers(true, topic);  // also when the topic is not new: an XPUB with xpub_verbose shows each one
    } catch (const std::bad_alloc&) {
      take_back(topic);
      return kNoMemory;
    }
    return {};
  }

  static constexpr Error kNoMemory{Errc::resource_exhausted, "no memory for a subscription"};
  static constexpr std::size_t kTopicSizeMax = zmtp::Limits().subscription_bytes_max;
  static constexpr std::size_t kMemoTopicMax = 256;  // a longer topic is matched anew each time

  struct Wish {
    FilterKind kind;
    std::string topic;
    std::uint32_t count = 0;  // subscribe() calls less unsubscribe() calls

    [[nodiscard]] FilterView view() const noexcept { return {kind, topic}; }
  };
  using Wishes = std::list<Wish>;

  // Refuses a topic that a publisher with the same bounds would drop.
  [[nodiscard]] Result<void> check_bounds(const FilterView& topic) {
    if (topic.text.size() > kTopicSizeMax) {
      return Error(Errc::invalid_argument, "a topic has at most 65,536 bytes");
    }
    const auto topics_max = static_cast<std::size_t>(options_.subscriptions_max);
    const bool too_many = topics_max != 0 && wishes_.size() >= topics_max;
    const bool too_long = topics_max != 0 && wish_bytes_ + topic.text.size() > SubscriptionTable::kTopicBytesMax;
    if ((!too_many && !too_long) || find(topic) != nullptr) {
      return {};
    }
    return too_many ? Error(Errc::invalid_argument, "more subscriptions than the option subscriptions_max permits")
                    : Error(Errc::invalid_argument, "the topics of a socket have at most 64 MiB together");
  }

  // Returns null if there is no such wish.
  [[nodiscard]] const Wishes::iterator* find(const FilterView& topic) {
    if (topic.kind == FilterKind::prefix) {
      return prefixes_.find(as_bytes(topic.text));
    }
    const auto found = by_filter_.find(topic);
    return found != by_filter_.end() ? &found->second : nullptr;
  }

  [[nodiscard]] Result<void> wish_for_prefix(const FilterView& topic) {
    if (const Wishes::iterator* const wish = find(topic); wish != nullptr) {
      ++(*wish)->count;
      return {};
    }
    try {
      wishes_.push_back({topic.kind, std::string(topic.text), 1});
    } catch (const std::bad_alloc&) {
      return kNoMemory;
    }
    const sync::LockGuard lock(filter_mutex_);
    bool is_new = false;
    Wishes::iterator* const wish = prefixes_.insert(as_bytes(topic.text), is_new);
    if (wish == nullptr) {
      wishes_.pop_back();
      return kNoMemory;
    }
    *wish = std::prev(wishes_.end());
    wish_bytes_ += topic.text.size();
    return {};
  }

  [[nodiscard]] Result<void> wish_for_filter(const FilterView& topic) {
    if (const Wishes::iterator* const wish = find(topic); wish != nullptr) {
      ++(*wish)->count;
      return {};
    }
    const std::size_t wishes = wishes_.size();
    bool is_new = false;
    std::uint32_t* const uses = heads_.insert(as_bytes(topic.literal_head()), is_new);
    bool done = uses != nullptr;
    try {
      if (done) {
        ++*uses;
        wishes_.push_back({topic.kind, std::string(topic.text), 1});
        by_filter_.emplace(wishes_.back().view(), std::prev(wishes_.end()));
        const sync::LockGuard lock(filter_mutex_);
        done = index_.add(self_, topic).has_value();
      }
    } catch (const std::bad_alloc&) {
      done = false;
    }
    if (!done) {
      if (wishes_.size() != wishes) {
        by_filter_.erase(topic);
        wishes_.pop_back();
      }
      if (uses != nullptr) {
        drop_head(topic);
      }
      return kNoMemory;
    }
    wish_bytes_ += topic.text.size();
    filters_.store(true, std::memory_order_relaxed);  // a flag alone: filter_mutex_ publishes the filter
    return {};
  }

  void drop_head(const FilterView& topic) {
    const Bytes head = as_bytes(topic.literal_head());
    if (std::uint32_t* const uses = heads_.find(head); --*uses == 0) {
      heads_.erase(head);
    }
  }

  void forget(const FilterView& topic) {
    if (topic.kind != FilterKind::prefix) {
      by_filter_.erase(topic);
      drop_head(topic);
    }
    const sync::LockGuard lock(filter_mutex_);
    if (topic.kind == FilterKind::prefix) {
      prefixes_.erase(as_bytes(topic.text));
    } else {
      index_.remove(self_, topic);
    }
    // Release: pairs with matches().
    forgotten_.store(forgotten_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }

  // Without memory a publisher keeps a subscription, and its messages find no match here or no reader.
  void take_back(const FilterView& topic) {
    const Wishes::iterator wish = *find(topic);
    if (--wish->count != 0) {
      return;
    }
    forget(topic);
    wish_bytes_ -= wish->topic.size();
    for (Pipe* pipe : publishers_.pipes()) {
      try {
        if (pipe->notes.ready) {
          send_to(*pipe, false, topic);
        }
      } catch (const std::bad_alloc&) {
        continue;
      }
    }
    wishes_.erase(wish);
  }

  // XSUB. Only the last unsubscription of a topic, unless the option xsub_verbose_unsubscribe passes on all.
  [[nodiscard]] Result<void> pass_unsubscription(const FilterView& topic) {
    const Wishes::iterator* const wish = find(topic);
    const bool last = wish != nullptr && (*wish)->count == 1;
    if (options_.xsub_verbose_unsubscribe && !last) {
      send_to_publishers(false, topic);
    }
    return wish != nullptr ? unsubscribe(topic) : Result<void>();
  }

  // Peeks at the next part of a message that the socket subscribed to. Drops all other messages.
  [[gnu::always_inline]] bool find_match(FrameView& view) {
    while (queue_.peek(view) != nullptr) {
      if (in_received_ || !filters_.load(std::memory_order_relaxed) || (!skipping_ && matches(view.bytes))) {
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
    // Acquire: pairs with forget(), the only change after which a topic that matched may match no more.
    const std::uint64_t generation = forgotten_.load(std::memory_order_acquire);
    if (matched_at_ == generation && as_text(topic) == matched_ && !options_.invert_matching) {
      return true;
    }
    const sync::LockGuard lock(filter_mutex_);
    if (prefixes_.matches(topic)) {
      return !options_.invert_matching;
    }
    const bool matched = index_.matches(as_text(topic));
    if (matched && topic.size() <= kMemoTopicMax) {
      matched_.assign(as_text(topic));
      matched_at_ = generation;
    }
    return matched != options_.invert_matching;
  }

  void send_to_publishers(bool subscribe, const FilterView& topic) {
    for (Pipe* pipe : publishers_.pipes()) {
      if (pipe->notes.ready) {
        send_to(*pipe, subscribe, topic);
      }
    }
  }

  // A publisher that takes no filters keeps a head until neither a filter nor the prefix itself needs it.
  void send_to(Pipe& pipe, bool subscribe, const FilterView& topic) {
    if (pipe.takes_filters()) {
      pipe.send_subscription(subscribe, topic);
      return;
    }
    const std::string_view head = topic.literal_head();
    const bool is_prefix = topic.kind == FilterKind::prefix;
    if (subscribe ||
        (heads_.find(as_bytes(head)) == nullptr && (is_prefix || prefixes_.find(as_bytes(head)) == nullptr))) {
      pipe.send_subscription(subscribe, {FilterKind::prefix, head});
    }
  }

  const bool takes_sends_;      // XSUB
  std::atomic<bool> filters_;   // SUB, and XSUB from its first filter on
  FairQueue queue_;             // receive lock, like the next two
  bool in_received_ = false;    // in the middle of a message that matches
  bool skipping_ = false;       // in the middle of a message that does not
  Wishes wishes_;               // send lock, like the next three: in the order in which they were made
  std::size_t wish_bytes_ = 0;  // of their topics
  PipeList publishers_;
  Distributor distributor_;
  std::map<FilterView, Wishes::iterator> by_filter_;  // send lock; the wishes that are not prefixes
  PrefixTable<std::uint32_t> heads_;                  // send lock; the filters of each literal head
  sync::StdMutex filter_mutex_;                       // for threads that hold the receive lock only
  PrefixTable<Wishes::iterator> prefixes_;  // send lock or filter_mutex_ to read, both to change, like the next
  FilterIndex::Peer self_;
  FilterIndex index_;
  std::atomic<std::uint64_t> forgotten_{1};  // wishes that were forgotten, and one
  std::uint64_t matched_at_ = 0;             // receive lock, like the next: forgotten_ when matched_ matched; 0: none
  std::string matched_;                      // the last topic that a filter, and no prefix, matched
};

}  // namespace

std::unique_ptr<Pattern> make_subscriber(const PatternTraits& traits, const Options& options) {
  return std::make_unique<Subscriber>(traits, options);
}

}  // namespace weft::msg
