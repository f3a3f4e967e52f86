// SPDX-License-Identifier: MIT
// From the fleet to programs with SUB.
#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tools/weft/bridge/names.h"
#include "tools/weft/bridge/newest.h"
#include "tools/weft/bridge/unit.h"
#include "weft/rt/task/task_time.h"

namespace weft::bridge {

namespace {

constexpr std::size_t kSubscriptionsMax = 65'536;  // different ones of a section

class Subscribers final : public Unit {
 public:
  Subscribers(Surroundings& around, Section section)
      : Unit(around, std::move(section)),
        names_(section_.prefix, section_.separator[0]),
        newest_(static_cast<std::size_t>(section_.newest_topics), static_cast<std::size_t>(section_.newest_bytes)) {
    for (const std::string& text : section_.newest) {
      kept_.push_back(*Filter::parse(text));  // checked with the file
    }
  }

  void start(rt::TaskScope& scope) override {
    scope_ = &scope;
    (void)scope.spawn(take_subscriptions());
    (void)scope.spawn(give_messages());
  }
  void drain() override {
    Unit::drain();
    if (!scope_->spawn(give_rest())) {
      given_ = true;
    }
  }
  [[nodiscard]] bool idle() override { return given_ && statistics().queued_out == 0; }

 protected:
  [[nodiscard]] SocketType type() const noexcept override { return SocketType::xpub; }
  [[nodiscard]] Result<void> prepare(Socket& socket) override {
    subscription_.emplace(WEFT_TRY(around_.topics.subscribe({}, SubscriptionOptions())));
    for (const Filter& filter : kept_) {
      WEFT_TRY(subscription_->add(filter));
    }
    if (!kept_.empty()) {
      WEFT_TRY(socket.set(option::xpub_manual, true));
    }
    return {};
  }

 private:
  // The subscriptions of all peers, as XPUB gives them: 01 and the prefix, or 00.
  rt::Task<void> take_subscriptions() {
    while (true) {
      const Result<std::vector<Message>> frames = co_await socket().recv_all();
      if (!frames) {
        if (frames.error() == Errc::interrupted) {
          continue;
        }
        co_return;
      }
      const std::string_view notice = (*frames)[0].text();
      if (frames->size() == 1 && !notice.empty() && (notice[0] == '\0' || notice[0] == '\1')) {
        const bool more = notice[0] == '\1';
        const std::string prefix(notice.substr(1));
        change(more, prefix, (*frames)[0].origin().peer);
        counters_->subscriptions.set(wanted_.size());
        if (!kept_.empty()) {
          change_peer(more, prefix);
        }
      }
    }
  }

  // With xpub_manual there is a notice for each call of a program, even for a subscription that it has already or does
  // not have. So the peers of each prefix are known by their numbers. Otherwise there is one for the first peer and one
  // for the last, and a second one of a prefix is a filter of a Weft peer with this head.
  void change(bool more, const std::string& prefix, std::uint32_t of) {
    const std::uint32_t peer = kept_.empty() ? 0 : of;
    const auto found = wanted_.find(prefix);
    if (!more) {
      if (found != wanted_.end() && found->second.leave(peer)) {
        if (!keeps(found->second.filter)) {
          (void)subscription_->remove(found->second.filter);
        }
        wanted_.erase(found);
      }
      return;
    }
    if (found != wanted_.end()) {
      return found->second.enter(peer);
    }
    const Result<Filter> filter = names_.filter(prefix);
    if (!filter || wanted_.size() == kSubscriptionsMax || (!keeps(*filter) && !subscription_->add(*filter))) {
      return counters_->subscriptions_refused.add();
    }
    wanted_.emplace(prefix, Wanted{*filter, {}}).first->second.enter(peer);
  }

  [[nodiscard]] bool keeps(const Filter& filter) const {
    return std::find(kept_.begin(), kept_.end(), filter) != kept_.end();
  }

  // The peer whose notice was read last. With xpub_manual its subscription waits for the section, so that no live
  // message comes before the newest values. Each subscribe() lets one message go to this peer alone, while the option
  // is on. A value for which the peer's queue has no room is not given.
  void change_peer(bool more, const std::string& prefix) {
    Socket& xpub = socket().socket();
    if (!more) {
      (void)xpub.unsubscribe(prefix);
      return;
    }
    if (!xpub.subscribe(prefix)) {
      return counters_->subscriptions_refused.add();
    }
    if (!xpub.set(option::xpub_manual_last_value, true) || !xpub.set(option::xpub_no_drop, true)) {
      return;
    }
    const std::size_t left = newest_.give_each(prefix, [&](std::vector<Message> frames) {
      const bool given = xpub.subscribe(prefix) && send(std::move(frames));
      counters_->newest_given.add(given ? 1 : 0);
      return given;
    });
    counters_->newest_not_given.add(left);
    (void)xpub.set(option::xpub_no_drop, false);
    (void)xpub.set(option::xpub_manual_last_value, false);
  }

  rt::Task<void> give_messages() {
    while (!draining()) {
      Result<TopicMessage> message = co_await subscription_->next();
      if (!message) {
        co_return;
      }
      pass(*message);
    }
  }

  // Gives the messages in the queue of the subscription. A fleet that goes on publishing does not keep the bridge.
  rt::Task<void> give_rest() {
    for (std::size_t i = 0; i < TopicsOptions().queue_messages_max; ++i) {
      Result<TopicMessage> message = subscription_->try_next();
      if (!message) {
        break;
      }
      pass(*message);
      if (i % AsyncSocket::kBurst == 0) {
        (void)co_await rt::yield();
      }
    }
    given_ = true;
  }

  void pass(TopicMessage& message) {
    counters_->taken.add(1 + message.missed());
    counters_->dropped_queue.add(message.missed());
    give(message).add();
  }

  // Gives the message to the peers, and returns the counter of the outcome.
  Counters::Number& give(TopicMessage& message) {
    Via via(message.header(kViaHeader));
    if (via.has(id()) || via.has(section_.network) || via.full()) {
      return counters_->dropped_loop;
    }
    const auto topic = names_.to_zmtp(message.topic());
    if (!topic) {
      return counters_->dropped_name;
    }
    std::vector<Message> frames;
    frames.emplace_back(*topic);
    std::optional<std::vector<std::string>> parts(std::in_place);
    if (const std::string_view value = message.header(kPartsHeader); !value.empty()) {
      parts = decode_parts(value);
    }
    std::optional<Headers> headers(std::in_place);
    if (section_.headers) {
      headers = passing_headers(message.headers());
    }
    if (!parts || !headers) {
      return counters_->dropped_malformed;
    }
    frames.push_back(message.take_body());
    for (const std::string& part : *parts) {
      frames.emplace_back(part);
    }
    if (section_.headers) {
      via.add(id());
      if (!headers->add(kViaHeader, via.text())) {
        return counters_->dropped_too_large;
      }
      frames.emplace_back(headers->block());
    }
    const auto matches = [&](const Filter& filter) { return filter.matches(message.topic()); };
    if (std::any_of(kept_.begin(), kept_.end(), matches)) {
      counters_->newest_forgotten.add(newest_.keep(*topic, frames));
      counters_->newest.set(newest_.topics());
    }
    return send(std::move(frames)) ? counters_->given : counters_->dropped_refused;
  }

  struct Wanted {
    Filter filter;
    std::map<std::uint32_t, std::size_t> peers;  // 0: peers without a number, which are counted

    void enter(std::uint32_t peer) {
      std::size_t& count = peers[peer];
      count = peer == 0 ? count + 1 : 1;
    }
    // Returns whether none is left.
    [[nodiscard]] bool leave(std::uint32_t peer) {
      if (const auto found = peers.find(peer); found != peers.end() && --found->second == 0) {
        peers.erase(found);
      }
      return peers.empty();
    }
  };

  Names names_;
  std::vector<Filter> kept_;  // whose newest values are kept
  Newest newest_;             // by the topic of ZeroMQ
  rt::TaskScope* scope_ = nullptr;
  bool given_ = false;  // everything that the subscription held at drain()
  std::optional<AsyncSubscription> subscription_;
  std::map<std::string, Wanted> wanted_;  // by prefix
};

}  // namespace

std::unique_ptr<Unit> make_subscribers(Surroundings& around, Section section) {
  return std::make_unique<Subscribers>(around, std::move(section));
}

}  // namespace weft::bridge
