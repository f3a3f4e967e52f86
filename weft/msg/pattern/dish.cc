// SPDX-License-Identifier: MIT
// DISH (RFC 48): the socket receives the messages of the groups that it joined. Joins go to every radio, and all of
// them again over each new connection. The socket also filters received messages: one may be on its way while the
// socket leaves its group.
#include <new>
#include <set>
#include <string>

#include "weft/msg/pattern/fair_queue.h"
#include "weft/msg/pattern/pattern.h"
#include "weft/msg/pattern/pipe_list.h"
#include "weft/sync/lock.h"

namespace weft::msg {

namespace {

class Dish final : public Pattern {
 public:
  using Pattern::Pattern;

  void attach(Pipe& pipe) override {
    queue_.attach(pipe);
    radios_.add(pipe);
  }
  bool ready(Pipe& pipe, Bytes /*identity*/) override {
    if (!pipe.notes.datagrams) {
      for (const std::string& group : groups_) {
        pipe.send_subscription(true, {FilterKind::prefix, group});
      }
    }
    return true;
  }
  void detach(Pipe& pipe) override { radios_.remove(pipe); }
  void activate(Pipe& pipe) override { queue_.activate(pipe); }
  void deactivate(Pipe& pipe) override {
    if (queue_.detach(pipe)) {
      in_body_ = skipping_ = false;
    }
  }

  Result<void> subscribe(const FilterView& name) override {
    const Bytes group = as_bytes(name.text);
    WEFT_TRY(Message::check_group(as_text(group)));
    if (options_.subscriptions_max != 0 && groups_.size() >= static_cast<std::size_t>(options_.subscriptions_max)) {
      return Error(Errc::invalid_argument, "more groups than the option subscriptions_max permits");
    }
    {
      const sync::LockGuard lock(groups_mutex_);
      try {
        if (!groups_.emplace(as_text(group)).second) {
          return Error(Errc::invalid_argument, "joined this group already");
        }
      } catch (const std::bad_alloc&) {
        return Error(Errc::resource_exhausted, "no memory for a group");
      }
    }
    try {
      send_to_radios(true, group);
    } catch (const std::bad_alloc&) {
      const sync::LockGuard lock(groups_mutex_);
      groups_.erase(groups_.find(as_text(group)));  // a radio that has the group only sends messages that are dropped
      throw;
    }
    return {};
  }
  Result<void> unsubscribe(const FilterView& name) override {
    const Bytes group = as_bytes(name.text);
    const auto found = groups_.find(as_text(group));
    if (found == groups_.end()) {
      return Error(Errc::invalid_argument, "did not join this group");
    }
    send_to_radios(false, group);
    const sync::LockGuard lock(groups_mutex_);
    groups_.erase(found);
    return {};
  }

  bool takes_group(Bytes group) noexcept override {
    const sync::LockGuard lock(groups_mutex_);
    return groups_.contains(as_text(group));
  }

  Result<void> receive(Inbound& part) override {
    FrameView view;
    WEFT_TRY(find_body(view));
    if (!part.take(view)) {
      queue_.unpeek();
      return Error(Errc::resource_exhausted, "no memory for a received message");
    }
    if (part.message != nullptr) {
      part.message->share_sender(head_);
    }
    queue_.pop();
    in_body_ = false;
    return {};
  }

  bool can_receive() override {
    FrameView view;
    const Result<void> found = find_body(view);
    if (found) {
      queue_.unpeek();
    }
    return found || found.error() != Errc::would_block;  // without memory: true, so that receive() reports the error
  }

 private:
  // Peeks at the body of the next message of a joined group, after it took the group part. Drops all other messages.
  Result<void> find_body(FrameView& view) {
    while (queue_.peek(view) != nullptr) {
      if (in_body_) {
        return {};
      }
      if (skipping_ || !view.more || !takes_group(view.bytes)) {
        skipping_ = view.more;
        drops_.dropped_unexpected += view.more ? 0 : 1;
      } else {
        if (auto noted = note_head(view); !noted) {
          queue_.unpeek();
          return noted;
        }
        in_body_ = true;
      }
      if (!queue_.drop()) {
        break;
      }
    }
    return Errc::would_block;
  }

  // Messages of one group and one radio that follow each other share one head: the group and the origin.
  Result<void> note_head(const FrameView& view) {
    const Message::Origin known = head_.origin();
    if (head_.group() == as_text(view.bytes) && known.peer == view.origin.peer) {
      return {};
    }
    Message head;
    head.set_origin(view.origin);
    WEFT_TRY(head.set_group(as_text(view.bytes)));
    head_ = std::move(head);
    return {};
  }

  void send_to_radios(bool join, Bytes group) {
    for (Pipe* pipe : radios_.pipes()) {
      if (pipe->notes.ready && !pipe->notes.datagrams) {
        pipe->send_subscription(join, {FilterKind::prefix, as_text(group)});
      }
    }
  }

  FairQueue queue_;                            // receive lock, like the next three
  Message head_;                               // group and origin of the last message
  bool in_body_ = false;                       // the group was taken
  bool skipping_ = false;                      // in the middle of a message that is dropped
  PipeList radios_;                            // send lock
  sync::StdMutex groups_mutex_;                // for threads without the send lock
  std::set<std::string, std::less<>> groups_;  // send lock or groups_mutex_ to read, both to change
};

}  // namespace

std::unique_ptr<Pattern> make_dish(const PatternTraits& traits, const Options& options) {
  return std::make_unique<Dish>(traits, options);
}

}  // namespace weft::msg
