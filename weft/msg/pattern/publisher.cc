// SPDX-License-Identifier: MIT
// PUB and XPUB: a message goes to every peer that subscribed to a prefix of its first part. XPUB also shows the
// application which topics are subscribed to, as messages of 01 (or 00) and the topic.
#include <algorithm>
#include <deque>
#include <mutex>
#include <string>
#include <unordered_map>

#include "weft/msg/distributor.h"
#include "weft/msg/fair_queue.h"
#include "weft/msg/pattern/table.h"
#include "weft/msg/prefix_table.h"
#include "weft/msg/socket_core.h"

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
  void detach(Pipe& pipe) override {
    distributor_.detach(pipe);
    if (counts_.erase(&pipe) == 0) {
      return;
    }
    subscriptions_.erase_if([&](std::string_view topic, std::vector<Pipe*>& pipes) {
      if (std::erase(pipes, &pipe) == 0 || !pipes.empty()) {
        return false;
      }
      notify(pipe, false, as_bytes(topic));
      return true;
    });
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
      ++publication_;
      std::vector<Pipe*>& chosen = distributor_.chosen();
      chosen.clear();
      subscriptions_.match(part.bytes, [&](std::vector<Pipe*>& pipes) {
        for (Pipe* pipe : pipes) {
          if (pipe->notes.sent_mark != publication_) {
            pipe->notes.sent_mark = publication_;
            chosen.push_back(pipe);
          }
        }
        return true;
      });
    }
    return distributor_.send(part);
  }

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
    return subscribe ? add(pipe, topic) : remove(pipe, topic);
  }

 private:
  static constexpr std::size_t kSubscriptionsMax = 262'144;  // of one peer
  static constexpr std::size_t kNoticesMax = 1'000'000;      // not yet received; the newest are dropped and counted

  bool add(Pipe& pipe, Bytes topic) {
    std::size_t& count = counts_[&pipe];
    if (count >= kSubscriptionsMax) {
      return false;
    }
    bool is_new = false;
    std::vector<Pipe*>& pipes = subscriptions_.insert(topic, is_new);
    if (std::find(pipes.begin(), pipes.end(), &pipe) == pipes.end()) {
      pipes.push_back(&pipe);
      ++count;
    }
    if (is_new || options_.xpub_verbose) {
      notify(pipe, true, topic);
    }
    return true;
  }

  bool remove(Pipe& pipe, Bytes topic) {
    std::vector<Pipe*>* pipes = subscriptions_.find(topic);
    if (pipes == nullptr || std::erase(*pipes, &pipe) == 0) {
      return true;
    }
    --counts_[&pipe];
    if (pipes->empty()) {
      notify(pipe, false, topic);
      subscriptions_.erase(topic);
    }
    return true;
  }

  // What a peer sent before it subscribed or went is to be received before the notice of that.
  struct Notice {
    std::string text;
    Pipe* pipe;            // null: gone, and drained
    std::uint64_t behind;  // messages of `pipe`
  };
  [[nodiscard]] bool notice_is_due() const noexcept {
    return !notices_.empty() &&
           (notices_.front().pipe == nullptr || notices_.front().pipe->taken_count() >= notices_.front().behind);
  }

  // By the thread that runs the pipe's other end, or with it at rest.
  void notify(Pipe& pipe, bool subscribe, Bytes topic) {
    if (!notifies_) {
      return;
    }
    {
      const std::lock_guard lock(notices_mutex_);
      if (notices_.size() >= kNoticesMax) {
        ++dropped_;
        return;
      }
      notices_.push_back({(subscribe ? '\1' : '\0') + std::string(as_text(topic)), &pipe, pipe.arrived_count()});
    }
    pipe.owner().input_parker().wake_with_fence();
  }

  const bool notifies_;
  PrefixTable<std::vector<Pipe*>> subscriptions_;  // send lock, as what follows
  std::unordered_map<Pipe*, std::size_t> counts_;  // subscriptions of each peer
  std::uint64_t publication_ = 0;
  Distributor distributor_;
  FairQueue queue_;  // receive lock: what XSUB peers send besides subscriptions
  std::mutex notices_mutex_;
  std::deque<Notice> notices_;  // guarded by notices_mutex_
};

}  // namespace

std::unique_ptr<Pattern> make_publisher(const PatternTraits& traits, const Options& options) {
  return std::make_unique<Publisher>(traits, options);
}

}  // namespace weft::msg
