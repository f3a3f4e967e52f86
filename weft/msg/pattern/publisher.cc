// SPDX-License-Identifier: MIT
// PUB and XPUB: a message goes to every peer that subscribed to a prefix of its first part. XPUB also gives the
// application the subscriptions of its peers, as messages of 01 (unsubscriptions: 00) and the topic.
#include <algorithm>
#include <deque>
#include <mutex>
#include <string>
#include <unordered_map>

#include "weft/msg/pattern/distributor.h"
#include "weft/msg/pattern/fair_queue.h"
#include "weft/msg/pattern/pattern.h"
#include "weft/msg/pattern/prefix_table.h"

namespace weft::msg {

namespace {

class Publisher final : public Pattern {
 public:
  Publisher(const PatternTraits& traits, const Options& options)
      : Pattern(traits, options), notifies_(traits.receives) {}

  void attach(Pipe& pipe) override {
    if (notifies_) {
      queue_.attach(pipe);
    }
  }
  bool ready(Pipe& pipe, Bytes /*identity*/) override {
    choice_stands_ = false;
    if (std::find(peers_.begin(), peers_.end(), &pipe) == peers_.end()) {
      peers_.push_back(&pipe);
    }
    if (!options_.xpub_welcome_message.empty()) {
      Outbound welcome{as_bytes(options_.xpub_welcome_message), nullptr, false};
      drops_.dropped_full += pipe.try_send(welcome, false) ? 0 : 1;
    }
    return true;
  }
  void detach(Pipe& pipe) override {
    choice_stands_ = false;
    std::erase(peers_, &pipe);
    distributor_.detach(pipe);
    if (counts_.erase(&pipe) != 0) {
      remove_all(wanted_, pipe, true);
      remove_all(subscriptions_, pipe, !options_.xpub_manual);
    }
    const std::lock_guard lock(notices_mutex_);
    last_asker_ = last_asker_ == &pipe ? nullptr : last_asker_;
    for (Notice& notice : notices_) {
      notice.from_gone |= notice.pipe == &pipe;
    }
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
      const std::lock_guard lock(notices_mutex_);
      for (Notice& notice : notices_) {
        notice.pipe = notice.pipe == &pipe ? nullptr : notice.pipe;
      }
    }
  }

  Result<void> send(Outbound& part) override {
    if (!distributor_.in_message()) {
      choose(part.bytes);
      const std::vector<Pipe*>& chosen = distributor_.chosen();
      if (options_.xpub_no_drop &&
          !std::all_of(chosen.begin(), chosen.end(), [](Pipe* pipe) { return pipe->writable(); })) {
        return Errc::would_block;
      }
    }
    return distributor_.send(part);
  }

  // The application subscribes in the name of one peer: the one whose notice it received last.
  Result<void> subscribe(Bytes topic) override { return subscribe_last_asker(true, topic); }
  Result<void> unsubscribe(Bytes topic) override { return subscribe_last_asker(false, topic); }

  Result<void> receive(Inbound& part) override {
    if (!notifies_) {
      return Pattern::receive(part);
    }
    {
      const std::lock_guard lock(notices_mutex_);
      if (notice_is_due() && !queue_.in_message()) {
        FrameView view{as_bytes(notices_.front().text), false, nullptr, nullptr};
        if (!part.take(view)) {
          return Error(Errc::resource_exhausted, "no memory for a received message");
        }
        last_asker_ = notices_.front().from_gone ? nullptr : notices_.front().pipe;
        notices_.pop_front();
        return {};
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
      const std::lock_guard lock(notices_mutex_);
      if (notice_is_due()) {
        return true;
      }
    }
    return queue_.has_input();
  }

  bool handle_subscription(Pipe& pipe, bool subscribe, Bytes topic) override {
    choice_stands_ = false;
    return subscribe ? add(pipe, topic) : remove(pipe, topic);
  }
  void add_counts(Statistics& into) override {
    const std::lock_guard lock(notices_mutex_);
    into.arrived += notified_;
    into.queued_in += notices_.size();
  }
  [[nodiscard]] std::size_t subscribers() const noexcept override {
    return static_cast<std::size_t>(
        std::count_if(counts_.begin(), counts_.end(), [](const auto& peer) { return peer.second != 0; }));
  }

 private:
  static constexpr std::size_t kSubscriptionsMax = 262'144;  // of one peer
  static constexpr std::size_t kChoiceTopicMax = 256;        // for a longer topic the choice is made anew
  static constexpr std::size_t kNoticesMax = 1'000'000;      // not received yet; beyond, new ones are dropped, counted

  using Subscriptions = PrefixTable<std::vector<Pipe*>>;

  // The table into which the peers' own subscriptions go.
  [[nodiscard]] Subscriptions& asked() noexcept { return options_.xpub_manual ? wanted_ : subscriptions_; }

  bool add(Pipe& pipe, Bytes topic) {
    std::size_t& count = counts_[&pipe];
    if (count >= kSubscriptionsMax) {
      return false;
    }
    bool is_new = false;
    count += insert(asked(), pipe, topic, is_new) ? 1 : 0;
    if (is_new || options_.xpub_verbose || options_.xpub_verboser || options_.xpub_manual) {
      notify(pipe, true, topic);
    }
    return true;
  }

  bool remove(Pipe& pipe, Bytes topic) {
    std::vector<Pipe*>* pipes = asked().find(topic);
    const bool had = pipes != nullptr && std::erase(*pipes, &pipe) != 0;
    const bool last = had && pipes->empty();
    counts_[&pipe] -= had ? 1 : 0;
    if (last || options_.xpub_verboser || options_.xpub_manual) {
      notify(pipe, false, topic);
    }
    if (last) {
      asked().erase(topic);
    }
    return true;
  }

  // True: the pipe did not have the topic. `is_new`: no pipe had it.
  static bool insert(Subscriptions& table, Pipe& pipe, Bytes topic, bool& is_new) {
    std::vector<Pipe*>& pipes = table.insert(topic, is_new);
    if (std::find(pipes.begin(), pipes.end(), &pipe) != pipes.end()) {
      return false;
    }
    pipes.push_back(&pipe);
    return true;
  }

  void remove_all(Subscriptions& table, Pipe& pipe, bool tell) {
    table.erase_if([&](std::string_view topic, std::vector<Pipe*>& pipes) {
      if (std::erase(pipes, &pipe) == 0) {
        return false;
      }
      if (tell && (pipes.empty() || options_.xpub_verboser || options_.xpub_manual)) {
        notify(pipe, false, as_bytes(topic));
      }
      return pipes.empty();
    });
  }

  // Chooses the pipes for a message. The last choice stands if the decisive bytes of the topic are the same.
  void choose(Bytes topic) {
    const Bytes decisive = subscriptions_.decisive(topic);
    if (choice_stands_ && choice_inverted_ == options_.invert_matching && as_text(decisive) == choice_topic_)
        [[likely]] {
      return;
    }
    ++publication_;
    std::vector<Pipe*>& chosen = distributor_.chosen();
    chosen.clear();
    subscriptions_.match(topic, [&](std::vector<Pipe*>& pipes) {
      for (Pipe* pipe : pipes) {
        if (pipe->notes.sent_mark != publication_) {
          pipe->notes.sent_mark = publication_;
          chosen.push_back(pipe);
        }
      }
      return true;
    });
    if (options_.invert_matching) {
      choose_others(chosen);
    }
    choice_stands_ = decisive.size() <= kChoiceTopicMax;
    if (choice_stands_) {
      choice_inverted_ = options_.invert_matching;
      choice_topic_ = as_text(decisive);
    }
  }

  // Inverts the choice: `chosen` then holds every ready pipe that match() did not mark with publication_.
  void choose_others(std::vector<Pipe*>& chosen) {
    chosen.clear();
    std::copy_if(peers_.begin(), peers_.end(), std::back_inserter(chosen),
                 [&](const Pipe* pipe) { return pipe->notes.sent_mark != publication_; });
  }

  Result<void> subscribe_last_asker(bool subscribe, Bytes topic) {
    if (!notifies_ || !options_.xpub_manual) {
      return Error(Errc::not_supported, "only an XPUB with the option xpub_manual subscribes for its peers");
    }
    choice_stands_ = false;
    const std::lock_guard lock(notices_mutex_);
    if (last_asker_ == nullptr) {
      return {};  // the peer is gone
    }
    if (subscribe) {
      bool is_new = false;
      insert(subscriptions_, *last_asker_, topic, is_new);
      (void)counts_[last_asker_];
    } else if (std::vector<Pipe*>* pipes = subscriptions_.find(topic); pipes != nullptr) {
      std::erase(*pipes, last_asker_);
      if (pipes->empty()) {
        subscriptions_.erase(topic);
      }
    }
    return {};
  }

  // The application receives a peer's earlier messages before the notice that the peer subscribed or left.
  struct Notice {
    std::string text;
    Pipe* pipe;            // null: gone, and drained
    std::uint64_t behind;  // due once the application has taken so many messages of `pipe`
    bool from_gone;        // the peer is gone: the application cannot subscribe for it any more
  };
  [[nodiscard]] bool notice_is_due() const noexcept {
    return !notices_.empty() &&
           (notices_.front().pipe == nullptr || notices_.front().pipe->taken_count() >= notices_.front().behind);
  }

  // Called by the thread that runs the pipe's other end, or while no thread runs it: arrived_count() stands still.
  void notify(Pipe& pipe, bool subscribe, Bytes topic) {
    if (!notifies_) {
      return;
    }
    {
      const std::lock_guard lock(notices_mutex_);
      if (notices_.size() >= kNoticesMax) {
        ++drops_.dropped_full;
        return;
      }
      ++notified_;
      notices_.push_back({(subscribe ? '\1' : '\0') + std::string(as_text(topic)), &pipe, pipe.arrived_count(), false});
    }
    pipe.owner().share().input_parker.wake_with_fence();
  }

  const bool notifies_;
  Subscriptions subscriptions_;                    // send lock, as all down to distributor_
  Subscriptions wanted_;                           // with xpub_manual: the peers' own subscriptions
  std::vector<Pipe*> peers_;                       // that are ready
  std::unordered_map<Pipe*, std::size_t> counts_;  // subscriptions of each peer
  std::uint64_t publication_ = 0;
  bool choice_stands_ = false;  // send lock, as the next two: chosen() also holds for topics with these decisive bytes
  bool choice_inverted_ = false;
  std::string choice_topic_;
  Distributor distributor_;
  FairQueue queue_;  // receive lock: messages that XSUB peers send besides subscriptions
  std::mutex notices_mutex_;
  std::deque<Notice> notices_;  // guarded by notices_mutex_, as the next two
  std::uint64_t notified_ = 0;  // notices so far, without those that were dropped
  Pipe* last_asker_ = nullptr;  // the peer whose notice the application received last
};

}  // namespace

std::unique_ptr<Pattern> make_publisher(const PatternTraits& traits, const Options& options) {
  return std::make_unique<Publisher>(traits, options);
}

}  // namespace weft::msg
