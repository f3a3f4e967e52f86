// SPDX-License-Identifier: MIT
// PUB and XPUB: a message goes to every peer that subscribed to a prefix of its first part, or to a filter that matches
// it. XPUB also gives the application the subscriptions of its peers, as messages of 01 (unsubscriptions: 00) and the
// topic, which of a filter is its literal head.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "weft/base/list.h"
#include "weft/base/slot_map.h"
#include "weft/msg/interest/subscription_table.h"
#include "weft/msg/pattern/distributor.h"
#include "weft/msg/pattern/fair_queue.h"
#include "weft/msg/pattern/pattern.h"
#include "weft/sync/lock.h"

namespace weft::msg {

namespace {

class Publisher final : public Pattern {
 public:
  Publisher(const PatternTraits& traits, const Options& options)
      : Pattern(traits, options), notifies_(traits.receives) {
    choice_topic_.reserve(kChoiceTopicMax);
  }

  void attach(Pipe& pipe) override {
    if (notifies_) {
      queue_.attach(pipe);
    }
  }
  bool ready(Pipe& pipe, Bytes /*identity*/) override {
    Subscriber* const subscriber = subscriber_of(pipe);
    if (subscriber == nullptr) {
      throw std::bad_alloc();  // an inproc peer that is refused has no second attempt
    }
    choice_stands_ = false;
    subscriber->ready = true;
    if (!options_.xpub_welcome_message.empty()) {
      Outbound welcome{as_bytes(options_.xpub_welcome_message), nullptr, false};
      drops_.dropped_full += pipe.try_send(welcome, false) ? 0 : 1;
    }
    return true;
  }
  // Only takes the peer out of the choice: the peer's subscriptions stay for sweep(), as there may be many.
  void detach(Pipe& pipe) override {
    choice_stands_ = false;
    distributor_.detach(pipe);
    Subscriber* const subscriber = subscribers_.find(pipe.notes.subscriber);
    if (subscriber == nullptr) {
      return;
    }
    find_source(*subscriber);
    pipe.notes.subscriber = {};
    subscribed_ -= subscriber->asked != 0 ? 1 : 0;
    subscriber->own.pipe = subscriber->wanted.pipe = nullptr;
    leaving_.push_back(*subscriber);
  }
  void lost(Pipe& pipe) override { detach(pipe); }
  void activate(Pipe& pipe) override {
    if (notifies_) {
      queue_.activate(pipe);
    }
  }
  void deactivate(Pipe& pipe) override {
    if (notifies_) {
      queue_.detach(pipe);
      const sync::LockGuard lock(notices_mutex_);
      if (const auto found = sources_.find(&pipe); found != sources_.end()) {
        found->second->pipe = nullptr;
        sources_.erase(found);
      }
    }
  }
  bool sweep() override {
    Subscriber* const subscriber = leaving_.first();
    if (subscriber == nullptr) {
      return false;
    }
    const auto tell = [&](const FilterView& topic, bool last) {
      const bool due = last || options_.xpub_verboser || options_.xpub_manual;
      return !due || notify(*subscriber, false, topic).has_value();  // false, without memory: the next sweep reports it
    };
    const bool none_wanted = wanted_.remove_some(subscriber->wanted, tell);
    if (none_wanted && subscriptions_.remove_some(subscriber->own, [&](const FilterView& topic, bool last) {
          return options_.xpub_manual || tell(topic, last);
        })) {
      subscribers_.erase(subscriber->id);
    } else {  // the next in turn: a peer with few subscriptions does not wait for one with many
      subscriber->unhook();
      leaving_.push_back(*subscriber);
    }
    return !leaving_.empty();
  }

  Result<void> send(Outbound& part) override {
    if (!distributor_.in_message()) {
      bool to_one = false;
      if (!choice_covers(part.bytes)) [[unlikely]] {
        if (!choose(part.bytes)) {
          return Error(Errc::resource_exhausted, "no memory for a message");
        }
        to_one = chosen_for_ != SlotId();
      }
      const std::vector<Pipe*>& chosen = distributor_.chosen();
      if ((options_.xpub_no_drop || part.keep) &&
          !std::all_of(chosen.begin(), chosen.end(), [](Pipe* pipe) { return pipe->writable(); })) {
        return Errc::would_block;
      }
      if (to_one) [[unlikely]] {
        return send_to_last_asker(part);
      }
    }
    return distributor_.send(part);
  }

  // The application subscribes in the name of one peer: the one whose notice it received last.
  Result<void> subscribe(const FilterView& topic) override { return subscribe_last_asker(true, topic); }
  Result<void> unsubscribe(const FilterView& topic) override { return subscribe_last_asker(false, topic); }

  Result<void> receive(Inbound& part) override {
    if (!notifies_) {
      return Pattern::receive(part);
    }
    if (!queue_.in_message()) {
      if (const auto given = give_notice(part)) {
        return *given;
      }
      // Reads from the kernel: a subscription in front of the message makes a notice.
      if (FrameView view; queue_.peek(view) != nullptr) {
        queue_.unpeek();
      }
      if (const auto given = give_notice(part)) {
        return *given;
      }
    }
    return queue_.receive(part);
  }

  bool can_send() override { return true; }
  bool can_receive() override {
    if (!notifies_) {
      return false;
    }
    {
      const sync::LockGuard lock(notices_mutex_);
      if (notice_is_due()) {
        return true;
      }
    }
    return queue_.has_input();
  }

  Result<void> handle_subscription(Pipe& pipe, bool subscribe, const FilterView& topic) override {
    Subscriber* const subscriber = subscriber_of(pipe);
    if (subscriber == nullptr) {
      return Error(Errc::resource_exhausted, "no memory for a subscriber");
    }
    choice_stands_ = false;
    const bool asked_before = subscriber->asked != 0;
    const std::size_t before = subscriber->topics();
    const Result<void> changed = subscribe ? add(*subscriber, topic) : remove(*subscriber, topic);
    subscriber->asked += subscriber->topics() - before;
    subscribed_ += (subscriber->asked != 0 ? 1u : 0u) - (asked_before ? 1u : 0u);
    return changed;
  }
  void add_counts(Statistics& into) override {
    const sync::LockGuard lock(notices_mutex_);
    into.arrived += notified_;
    into.queued_in += notices_.size();
  }
  [[nodiscard]] std::size_t subscribers() const noexcept override { return subscribed_; }
  [[nodiscard]] Result<std::size_t> topics() override { return subscriptions_.size(); }

 private:
  static constexpr std::size_t kChoiceTopicMax = 256;  // for a longer topic the choice is made anew
  // Bounds of the notices that the application has not received yet. A peer in another process that exceeds its own is
  // refused. At the bound of all peers new notices are dropped, counted.
  static constexpr std::size_t kNoticeBytesOfPeerMax = std::size_t{32} << 20;
  static constexpr std::size_t kNoticeBytesMax = std::size_t{256} << 20;

  // NoticeSource: a pipe, to the notices of its subscriptions. Guarded by notices_mutex_.
  struct NoticeSource {
    Pipe* pipe;                // null: gone, and drained
    Message::Origin origin{};  // of its notices
    std::size_t bytes = 0;     // the same
  };
  // The application receives a peer's earlier messages before the notice that the peer subscribed or left.
  struct Notice {
    std::string text;
    std::shared_ptr<NoticeSource> source;  // null: there was no memory for one
    std::uint64_t behind;                  // due once the application has taken so many messages of the pipe
    SlotId asker;

    [[nodiscard]] std::size_t footprint() const noexcept { return sizeof(Notice) + text.size(); }
  };
  // Subscriber: a peer, from the handshake or its first subscription until sweep() has removed its last one.
  struct Subscriber : ListHook {     // in leaving_, once the pipe is detached
    SubscriptionTable::Peer own;     // in subscriptions_
    SubscriptionTable::Peer wanted;  // in wanted_
    SlotId id;
    std::size_t asked = 0;  // topics for which the peer itself asked
    bool ready = false;
    std::shared_ptr<NoticeSource> source;  // null: no notice yet

    [[nodiscard]] std::size_t topics() const noexcept { return own.topics() + wanted.topics(); }
  };

  // Returns null if there is no memory.
  [[nodiscard]] Subscriber* subscriber_of(Pipe& pipe) noexcept {
    Subscriber* subscriber = subscribers_.find(pipe.notes.subscriber);
    if (subscriber == nullptr) {
      const auto id = subscribers_.emplace();
      if (!id) {
        return nullptr;
      }
      subscriber = subscribers_.find(*id);
      subscriber->id = pipe.notes.subscriber = *id;
      subscriber->own.pipe = subscriber->wanted.pipe = &pipe;
      subscriber->own.local = subscriber->wanted.local = pipe.connection() == nullptr;
      share_ = &pipe.owner().share();
    }
    return subscriber;
  }

  [[nodiscard]] Result<void> add(Subscriber& subscriber, const FilterView& topic) {
    const bool manual = options_.xpub_manual;
    SubscriptionTable& table = manual ? wanted_ : subscriptions_;
    SubscriptionTable::Peer& peer = manual ? subscriber.wanted : subscriber.own;
    const std::size_t before = peer.topics();
    const bool is_new = WEFT_TRY(table.add(peer, topic, options_.subscriptions_max));
    if (is_new || options_.xpub_verbose || options_.xpub_verboser || manual) {
      if (const auto told = notify(subscriber, true, topic); !told) {
        if (peer.topics() != before) {
          table.remove(peer, topic);
        }
        return told;
      }
    }
    return {};
  }

  [[nodiscard]] Result<void> remove(Subscriber& subscriber, const FilterView& topic) {
    const bool manual = options_.xpub_manual;
    SubscriptionTable& table = manual ? wanted_ : subscriptions_;
    SubscriptionTable::Peer& peer = manual ? subscriber.wanted : subscriber.own;
    if (notifies_ && (options_.xpub_verboser || manual || table.is_last(peer, topic))) {
      WEFT_TRY(notify(subscriber, false, topic));
    }
    table.remove(peer, topic);
    return {};
  }

  // The last choice stands, and holds for this topic.
  [[nodiscard]] bool choice_covers(Bytes topic) const noexcept {
    const std::size_t size = choice_topic_.size();
    return choice_stands_ && choice_inverted_ == options_.invert_matching && topic.size() >= size &&
           topic.size() <= choice_size_max_ &&
           (size == 0 || std::memcmp(topic.data(), choice_topic_.data(), size) == 0);
  }

  // Chooses the pipes for a message. Returns false if there is no memory.
  [[nodiscard]] bool choose(Bytes topic) noexcept {
    choice_stands_ = false;
    ++publication_;
    std::vector<Pipe*>& chosen = distributor_.chosen();
    chosen.clear();
    const Subscriber* only = nullptr;
    chosen_for_ = SlotId();
    if (options_.xpub_manual_last_value) {
      const sync::LockGuard lock(notices_mutex_);
      only = last_asker();
      chosen_for_ = only != nullptr || value_promised_ ? last_asker_ : SlotId();
    }
    if (only == nullptr && chosen_for_ != SlotId()) {
      return true;  // the peer is gone: no other one gets its message
    }
    try {
      auto scope = subscriptions_.match(topic, [&](SubscriptionTable::Peer& peer) {
        if (peer.mark != publication_ && (only == nullptr || &peer == &only->own)) {
          peer.mark = publication_;
          chosen.push_back(peer.pipe);
        }
      });
      if (subscriptions_.has_filters()) {
        choose_by_filters(topic, only, chosen);
        scope = {topic.size(), true};
      }
      if (options_.invert_matching) {
        choose_others(chosen);
      }
      choice_stands_ = scope.size <= kChoiceTopicMax && !options_.xpub_manual_last_value;
      if (choice_stands_) {
        choice_inverted_ = options_.invert_matching;
        choice_topic_ = as_text(topic.first(scope.size));
        choice_size_max_ = scope.whole ? scope.size : SIZE_MAX;
      }
      return true;
    } catch (const std::bad_alloc&) {
      return false;
    }
  }

  // A peer that is undecided filters by itself, so that a message more does no harm.
  void choose_by_filters(Bytes topic, const Subscriber* only, std::vector<Pipe*>& chosen) {
    subscriptions_.match_filters(topic, publication_, [&](SubscriptionTable::Peer& peer, bool matched) {
      if ((matched || !options_.invert_matching) && (only == nullptr || &peer == &only->own)) {
        peer.mark = publication_;
        chosen.push_back(peer.pipe);
      }
    });
  }

  // Inverts the choice: `chosen` then holds every ready pipe that match() did not mark with publication_.
  void choose_others(std::vector<Pipe*>& chosen) {
    chosen.clear();
    subscribers_.for_each([&](SlotId, const Subscriber& subscriber) {
      if (subscriber.ready && subscriber.own.pipe != nullptr && subscriber.own.mark != publication_) {
        chosen.push_back(subscriber.own.pipe);
      }
    });
  }

  // Returns null if there is none, or the last one is gone.
  [[nodiscard]] Subscriber* last_asker() noexcept WEFT_REQUIRES(notices_mutex_) {
    Subscriber* const asker = options_.xpub_manual && value_due_ ? subscribers_.find(last_asker_) : nullptr;
    return asker != nullptr && asker->own.pipe != nullptr ? asker : nullptr;
  }

  // Option xpub_manual_last_value: the peer that asked last got this message alone. The next one goes to all peers,
  // unless the application subscribes in the peer's name again.
  [[gnu::noinline, gnu::cold]] Result<void> send_to_last_asker(Outbound& part) {
    const Result<void> sent = distributor_.send(part);
    const sync::LockGuard lock(notices_mutex_);
    if (sent && last_asker_ == chosen_for_) {
      value_due_ = value_promised_ = false;
    }
    return sent;
  }

  Result<void> subscribe_last_asker(bool subscribe, const FilterView& topic) {
    if (!notifies_ || !options_.xpub_manual) {
      return Error(Errc::not_supported, "only an XPUB with the option xpub_manual subscribes for its peers");
    }
    choice_stands_ = false;
    const sync::LockGuard lock(notices_mutex_);
    value_due_ = value_due_ || subscribe;
    value_promised_ = value_promised_ || subscribe;
    Subscriber* const asker = subscribers_.find(last_asker_);
    if (asker == nullptr || asker->own.pipe == nullptr) {
      return {};  // the peer is gone
    }
    if (subscribe) {
      WEFT_TRY(subscriptions_.add(asker->own, topic, options_.subscriptions_max));
    } else {
      subscriptions_.remove(asker->own, topic);
    }
    return {};
  }

  // Returns nullopt if no notice is due.
  [[nodiscard]] std::optional<Result<void>> give_notice(Inbound& part) {
    const sync::LockGuard lock(notices_mutex_);
    if (!notice_is_due()) {
      return std::nullopt;
    }
    const Notice& notice = notices_.front();
    FrameView view{as_bytes(notice.text), false, nullptr, nullptr};
    if (notice.source != nullptr) {
      view.origin = notice.source->origin;
    }
    if (!part.take(view)) {
      return Error(Errc::resource_exhausted, "no memory for a received message");
    }
    last_asker_ = notice.asker;
    value_due_ = true;
    value_promised_ = false;
    notice_bytes_ -= notice.footprint();
    if (notice.source != nullptr) {
      notice.source->bytes -= notice.footprint();
    }
    notices_.pop_front();
    return Result<void>();
  }

  [[nodiscard]] bool notice_is_due() const noexcept WEFT_REQUIRES(notices_mutex_) {
    if (notices_.empty()) {
      return false;
    }
    const Notice& first = notices_.front();
    return first.source == nullptr || first.source->pipe == nullptr ||
           first.source->pipe->taken_count() >= first.behind;
  }

  // Sets the subscriber's source, if there is memory for it.
  void find_source(Subscriber& subscriber) noexcept {
    if (!notifies_ || subscriber.source != nullptr || subscriber.own.pipe == nullptr) {
      return;
    }
    const sync::LockGuard lock(notices_mutex_);
    try {
      auto found = sources_.find(subscriber.own.pipe);
      if (found == sources_.end()) {
        auto source = std::make_shared<NoticeSource>(subscriber.own.pipe, subscriber.own.pipe->notes.origin);
        found = sources_.emplace(subscriber.own.pipe, std::move(source)).first;
      }
      subscriber.source = found->second;
    } catch (const std::bad_alloc&) {
      // notices of this peer may overtake its messages
    }
  }

  // Called by the thread that runs the pipe's other end, or while no thread runs it: arrived_count() stands still. An
  // error: the peer exceeds its bound, or there is no memory; the application gets nothing. The application gets a
  // filter as its literal head: a proxy that subscribes to it elsewhere gets all that the filter needs.
  [[nodiscard]] Result<void> notify(Subscriber& subscriber, bool subscribe, const FilterView& wanted) noexcept {
    if (!notifies_) {
      return {};
    }
    const std::string_view topic = wanted.literal_head();
    find_source(subscriber);
    const Pipe* const there = subscriber.own.pipe;
    const sync::LockGuard lock(notices_mutex_);
    NoticeSource* const source = subscriber.source.get();
    if (there != nullptr && there->connection() != nullptr && source != nullptr &&
        source->bytes > kNoticeBytesOfPeerMax) {
      return Error(Errc::protocol_error, "too many subscriptions that the application has not received");
    }
    if (notice_bytes_ > kNoticeBytesMax) {
      ++drops_.dropped_full;
      return {};
    }
    try {
      Notice notice{{},
                    subscriber.source,
                    source != nullptr && source->pipe != nullptr ? source->pipe->arrived_count() : 0,
                    subscriber.id};
      notice.text.reserve(1 + topic.size());
      notice.text += subscribe ? '\1' : '\0';
      notice.text += topic;
      const std::size_t footprint = notice.footprint();
      notices_.push_back(std::move(notice));
      ++notified_;
      notice_bytes_ += footprint;
      if (source != nullptr) {
        source->bytes += footprint;
      }
    } catch (const std::bad_alloc&) {
      return Error(Errc::resource_exhausted, "no memory for the notice of a subscription");
    }
    share_->input_parker.wake_with_fence();
    return {};
  }

  const bool notifies_;
  SocketShare* share_ = nullptr;     // set with the first subscriber
  SubscriptionTable subscriptions_;  // send lock, as all down to distributor_
  SubscriptionTable wanted_;         // with xpub_manual: the peers' own subscriptions
  SlotMap<Subscriber> subscribers_;
  List<Subscriber> leaving_;    // the pipe is detached, subscriptions may be left
  std::size_t subscribed_ = 0;  // subscribers that asked for a topic, without those that leave
  std::uint64_t publication_ = 0;
  bool choice_stands_ = false;    // chosen() also holds for topics that begin with choice_topic_ and are not longer
  bool choice_inverted_ = false;  // than choice_size_max_
  std::string choice_topic_;
  std::size_t choice_size_max_ = 0;
  SlotId chosen_for_;  // xpub_manual_last_value: the one peer of the choice; none: every peer
  Distributor distributor_;
  FairQueue queue_;  // receive lock: messages that XSUB peers send besides subscriptions
  sync::StdMutex notices_mutex_;
  std::deque<Notice> notices_ WEFT_GUARDED_BY(notices_mutex_);
  std::size_t notice_bytes_ WEFT_GUARDED_BY(notices_mutex_) = 0;
  std::uint64_t notified_ WEFT_GUARDED_BY(notices_mutex_) = 0;  // notices so far, without those that were dropped
  std::unordered_map<Pipe*, std::shared_ptr<NoticeSource>> sources_ WEFT_GUARDED_BY(notices_mutex_);
  SlotId last_asker_ WEFT_GUARDED_BY(notices_mutex_);            // the peer whose notice the application received last
  bool value_due_ WEFT_GUARDED_BY(notices_mutex_) = false;       // the next message may be for last_asker_ alone
  bool value_promised_ WEFT_GUARDED_BY(notices_mutex_) = false;  // it is, by a call of subscribe()
};

}  // namespace

std::unique_ptr<Pattern> make_publisher(const PatternTraits& traits, const Options& options) {
  return std::make_unique<Publisher>(traits, options);
}

}  // namespace weft::msg
