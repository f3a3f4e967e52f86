// SPDX-License-Identifier: MIT
// STREAM and raw ROUTER: peers are plain byte streams. A message has two parts: the id of the connection, and bytes.
#include <array>
#include <atomic>
#include <map>
#include <new>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "weft/base/endian.h"
#include "weft/msg/pattern/fair_queue.h"
#include "weft/msg/pattern/pattern.h"
#include "weft/sync/lock.h"

namespace weft::msg {

namespace {

// Connections that ended and still hold messages, at least the notice of their end: about 6 KB each. Beyond this number
// the socket refuses new connections.
constexpr std::size_t kGoneMax = 8192;

class Stream final : public Pattern {
 public:
  Stream(const PatternTraits& traits, const Options& options)
      : Pattern(traits, options), next_id_(std::random_device{}()) {}

  void attach(Pipe& pipe) override {
    forget_reported();
    if (is_ours(pipe)) {
      queue_.attach(pipe);
      name(pipe);  // the application can send to a connecting pipe before it is connected
    }
  }
  bool ready(Pipe& pipe, Bytes /*identity*/) override { return is_ours(pipe) && gone_ < kGoneMax; }
  // Until the application has received the notice of a connection's end, the id stays known and messages to it are
  // dropped. So a server that answers and hangs up gets no error from a client that hung up first.
  void lost(Pipe& pipe) override {
    const auto found = peers_.find(pipe.notes.routing_id);
    if (!pipe.connects() && found != peers_.end() && found->second == &pipe) {
      found->second = nullptr;
      pipe.notes.gone = true;
      ++gone_;
      target_ = target_ == &pipe ? nullptr : target_;
    }
  }
  void detach(Pipe& pipe) override {
    forget_name(pipe);
    target_ = target_ == &pipe ? nullptr : target_;
  }
  void activate(Pipe& pipe) override { queue_.activate(pipe); }
  void deactivate(Pipe& pipe) override {
    (void)queue_.detach(pipe);
    note_reported(pipe);
    gone_ -= std::exchange(pipe.notes.gone, false) ? 1 : 0;
  }

  Result<void> receive(Inbound& part) override {
    if (has_body_) {
      return receive_body(part);
    }
    FrameView view;
    Pipe* pipe = next(view);
    if (pipe == nullptr) {
      return Errc::would_block;
    }
    // Take the bytes together with the id: the caller that got the id then gets the bytes without waiting.
    Inbound body{&body_, {}};
    FrameView id{as_bytes(pipe->notes.routing_id), true, nullptr, nullptr, view.origin};
    if (!part.take(id) || !body.take(view)) {
      queue_.unpeek();
      return Error(Errc::resource_exhausted, "no memory for a received message");
    }
    has_body_ = true;
    queue_.pop();
    if (!pipe->has_queued()) {
      note_reported(*pipe);  // deactivate() comes a moment later; the caller that has the notice shall not see that gap
    }
    return {};
  }

  // Parts come in pairs, whatever the `more` flag of the second part is. An empty second part ends the connection.
  Result<void> send(Outbound& part) override {
    if (!in_sent_) {
      return begin(part);
    }
    if (target_ == nullptr) {
      (target_was_full_ ? drops_.dropped_full : drops_.dropped_no_peer) += part.bytes.empty() ? 0 : 1;
    } else if (part.bytes.empty()) {
      forget_name(*target_);
      target_->end();
    } else {
      Outbound bytes{part.bytes, part.message, false};
      if (!target_->try_send(bytes, false)) {
        return Error(Errc::resource_exhausted, "no memory for a message part");
      }
    }
    target_ = nullptr;
    in_sent_ = false;
    return {};
  }

  // Always true: only the first part names the connection, so its room is not known before.
  bool can_send() override { return true; }
  bool can_receive() override {
    FrameView view;
    if (has_body_) {
      return true;
    }
    if (next(view) == nullptr) {
      return false;
    }
    queue_.unpeek();
    return true;
  }

 private:
  // False for a connection that the application ended, and for an inproc pipe: a ROUTER may bind an inproc name before
  // the option router_raw is set.
  static bool is_ours(const Pipe& pipe) noexcept { return pipe.connection() != nullptr && !pipe.ending(); }

  // Skips connections that the application has ended, and drops the messages that they still hold.
  Pipe* next(FrameView& view) {
    Pipe* pipe = queue_.peek(view);
    while (pipe != nullptr && pipe->ending()) {
      queue_.unpeek();
      (void)queue_.detach(*pipe);
      pipe = queue_.peek(view);
    }
    return pipe;
  }

  Result<void> receive_body(Inbound& part) {
    if (part.message != nullptr) {
      part.size = body_.bytes().size();
      part.more = false;
      *part.message = std::move(body_);
    } else {
      FrameView view{body_.bytes(), false, nullptr, nullptr};
      (void)part.take(view);  // a copy into the caller's bytes cannot fail
      body_ = Message();
    }
    has_body_ = false;
    return {};
  }

  Result<void> begin(const Outbound& part) {
    if (!part.more) {
      ++drops_.dropped_no_peer;  // an id without bytes; libzmq drops also the part that is sent next
      return {};
    }
    forget_reported();
    const bool strict = traits_.type == SocketType::stream || options_.router_mandatory;
    const auto found = peers_.find(as_text(part.bytes));
    if (found == peers_.end() && strict) {
      return Error(Errc::unreachable, "no connection has this routing id");
    }
    Pipe* const target = found == peers_.end() ? nullptr : found->second;
    const bool full = target != nullptr && !target->writable();
    if (full && strict) {
      return Errc::would_block;
    }
    target_ = full ? nullptr : target;
    target_was_full_ = full;
    in_sent_ = true;
    return {};
  }

  // Keeps the name that was chosen for the pipe, or that it had before, if no other pipe has it.
  void name(Pipe& pipe) {
    std::string& id = pipe.notes.routing_id;
    const auto found = peers_.find(id);
    if (found != peers_.end() && found->second == &pipe) {
      return;
    }
    if (id.empty() || found != peers_.end()) {
      pipe.notes.names_peer = false;
      do {
        id = make_id();
      } while (peers_.contains(id));
    }
    peers_.emplace(id, &pipe);
  }
  void forget_name(const Pipe& pipe) {
    if (const auto found = peers_.find(pipe.notes.routing_id); found != peers_.end() && found->second == &pipe) {
      peers_.erase(found);
    }
  }
  // The receiving side queues the ids of gone connections here; the sending side forgets them at its next call.
  void note_reported(const Pipe& pipe) {
    if (pipe.notes.gone) {
      const sync::LockGuard lock(reported_mutex_);
      try {
        reported_.push_back(pipe.notes.routing_id);
      } catch (const std::bad_alloc&) {
        return;  // the id stays known, and messages to it are dropped
      }
      has_reported_.store(true, std::memory_order_relaxed);  // only the thread that got the notice must see it at once
    }
  }
  void forget_reported() {
    if (!has_reported_.load(std::memory_order_relaxed)) {
      return;
    }
    const sync::LockGuard lock(reported_mutex_);
    for (const std::string& id : reported_) {
      if (const auto found = peers_.find(id); found != peers_.end() && found->second == nullptr) {
        peers_.erase(found);
      }
    }
    reported_.clear();
    has_reported_.store(false, std::memory_order_relaxed);
  }
  std::string make_id() {
    std::array<std::uint8_t, 5> id{};
    store_big_endian<std::uint32_t>(id.data() + 1, next_id_++);
    return std::string(as_text(id));
  }

  FairQueue queue_;
  std::size_t gone_ = 0;                             // receive lock
  std::map<std::string, Pipe*, std::less<>> peers_;  // send lock; null: gone, and the application has no notice yet
  std::uint32_t next_id_;
  Message body_;  // receive lock, like the next: the bytes after the id that the caller got
  bool has_body_ = false;
  bool in_sent_ = false;    // send lock, like the next: the id of the message was taken
  Pipe* target_ = nullptr;  // null: the message is dropped
  bool target_was_full_ = false;
  sync::StdMutex reported_mutex_;  // taken after every other lock
  std::vector<std::string> reported_ WEFT_GUARDED_BY(reported_mutex_);
  std::atomic<bool> has_reported_{false};
};

}  // namespace

std::unique_ptr<Pattern> make_stream(const PatternTraits& traits, const Options& options) {
  return std::make_unique<Stream>(traits, options);
}

}  // namespace weft::msg
