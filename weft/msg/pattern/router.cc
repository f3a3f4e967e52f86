// SPDX-License-Identifier: MIT
// ROUTER: the first part of a message names the peer that the message goes to, or came from.
#include <algorithm>
#include <array>
#include <random>
#include <string>
#include <unordered_map>

#include "weft/base/endian.h"
#include "weft/msg/pattern/fair_queue.h"
#include "weft/msg/pattern/pattern.h"

namespace weft::msg {

namespace {

class Router final : public Pattern {
 public:
  Router(const PatternTraits& traits, const Options& options)
      : Pattern(traits, options), next_id_(std::random_device{}()) {}
  ~Router() override { forget_staged(); }

  void attach(Pipe& pipe) override {
    queue_.attach(pipe);
    if (pipe.notes.names_peer && !peers_.contains(pipe.notes.routing_id)) {
      name(pipe, pipe.notes.routing_id);  // the application may queue messages for the peer before it is connected
      send_hello(pipe);
    }
  }

  bool ready(Pipe& pipe, Bytes identity) override {
    const bool known = find_name(pipe, identity);
    if (known) {
      send_hello(pipe);
    }
    return known;
  }
  void lost(Pipe& pipe) override { pipe.notes.hello_sent = pipe.notes.probed = false; }

  void detach(Pipe& pipe) override {
    forget_name(pipe);
    target_ = target_ == &pipe ? nullptr : target_;
  }
  void activate(Pipe& pipe) override { queue_.activate(pipe); }
  void deactivate(Pipe& pipe) override {
    FrameView view;
    if (held_ == &pipe && queue_.peek(view) == &pipe) {
      (void)keep_body(view);  // the caller that got the id gets this part too
    }
    held_ = held_ == &pipe ? nullptr : held_;
    in_received_ = !queue_.detach(pipe) && in_received_;
  }

  Result<void> receive(Inbound& part) override {
    if (has_body_) {
      return receive_body(part);
    }
    FrameView view;
    Pipe* pipe = queue_.peek(view);
    if (pipe == nullptr) {
      return Errc::would_block;
    }
    if (!in_received_) {
      return receive_id(part, *pipe, view);
    }
    if (!part.take(view)) {
      queue_.unpeek();
      return out_of_memory();
    }
    held_ = nullptr;
    in_received_ = part.more;
    queue_.pop();
    return {};
  }

  Result<void> send(Outbound& part) override {
    if (!in_sent_) {
      return begin(part);
    }
    in_sent_ = part.more;
    if (target_ == nullptr) {
      forget_staged();
      count_drop(part.more);
      return {};
    }
    if (!part.more && staged_.empty() && target_->try_send(part, false)) {
      return {};
    }
    if (!append_cell(staged_, part)) {
      in_sent_ = true;
      return kNoMemoryToSend;
    }
    if (!part.more) {
      if (!target_->send_parts(staged_, false, &part)) {
        take_cell_back(staged_, part);
        in_sent_ = true;
        return kNoMemoryToSend;
      }
      staged_.clear();
    }
    return {};
  }

  Result<bool> peer_writable(Bytes routing_id) override {
    const auto found = peers_.find(as_text(routing_id));
    if (found == peers_.end()) {
      return Error(Errc::unreachable, "no connected peer has this routing id");
    }
    return found->second->writable();
  }

  // Only the first part of a message names the peer. With router_mandatory nothing may be dropped, so at least one peer
  // needs room.
  bool can_send() override {
    return in_sent_ || !options_.router_mandatory ||
           std::any_of(peers_.begin(), peers_.end(), [](const auto& peer) { return peer.second->writable(); });
  }
  bool can_receive() override { return has_body_ || queue_.has_input(); }

 private:
  bool find_name(Pipe& pipe, Bytes identity) {
    std::string& id = pipe.notes.routing_id;
    if (pipe.notes.names_peer) {
      identity = as_bytes(id);
    }
    if (!identity.empty()) {
      const auto found = peers_.find(as_text(identity));
      if (found != peers_.end() && found->second != &pipe) {
        if (!options_.router_handover) {
          return false;
        }
        // The old connection stays readable under a name of its own.
        Pipe& old = *found->second;
        peers_.erase(found);
        name(old, make_id());
      }
      forget_name(pipe);
      name(pipe, std::string(as_text(identity)));
    } else if (const auto found = peers_.find(id); id.empty() || (found != peers_.end() && found->second != &pipe)) {
      name(pipe, make_id());
    } else {
      name(pipe, id);  // again, after lost() and detach()
    }
    return true;
  }

  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const noexcept { return std::hash<std::string_view>()(text); }
  };

  static Error out_of_memory() noexcept { return {Errc::resource_exhausted, "no memory for a received message"}; }

  // Gives the id to the caller. The part after it stays in its place or is taken now, so that the caller gets it
  // without waiting.
  Result<void> receive_id(Inbound& part, Pipe& from, FrameView& body) {
    FrameView id{as_bytes(from.notes.routing_id), true, nullptr, nullptr, from.notes.origin};
    if (!part.take(id)) {
      queue_.unpeek();
      return out_of_memory();
    }
    if (queue_.hold()) [[likely]] {
      held_ = &from;
      in_received_ = true;
      return {};
    }
    return keep_body(body) ? Result<void>() : out_of_memory();
  }

  // Takes the peeked part. False when memory ran out: the part stays in the queue.
  bool keep_body(FrameView& view) {
    Inbound body{&body_, {}};
    if (!body.take(view)) {
      queue_.unpeek();
      return false;
    }
    has_body_ = true;
    in_received_ = body.more;
    queue_.pop();
    return true;
  }

  Result<void> receive_body(Inbound& part) {
    FrameView view{body_.bytes(), body_.more(), nullptr, nullptr};
    if (part.message != nullptr) {
      part.size = view.bytes.size();
      part.more = view.more;
      *part.message = std::move(body_);
    } else {
      (void)part.take(view);  // a copy into the caller's bytes cannot fail
      body_ = Message();
    }
    has_body_ = false;
    return {};
  }

  Result<void> begin(const Outbound& part) {
    target_ = find(as_text(part.bytes));
    target_was_full_ = false;
    if (target_ == nullptr && options_.router_mandatory) {
      return Error(Errc::unreachable, "no connected peer has this routing id");
    }
    if (target_ != nullptr && !target_->writable()) {
      if (options_.router_mandatory) {
        return Errc::would_block;
      }
      target_ = nullptr;
      target_was_full_ = true;
    }
    in_sent_ = part.more;
    count_drop(part.more);  // an id alone is not a message for a peer
    return {};
  }

  // `more`: the message is not at its end, where it is counted once.
  void count_drop(bool more) noexcept {
    if (!more) {
      ++(target_was_full_ ? drops_.dropped_full : drops_.dropped_no_peer);
    }
  }

  // Tries the peer of the last message first: it is often that of the next one.
  Pipe* find(std::string_view id) {
    if (recent_ != nullptr && id == recent_->notes.routing_id) {
      return recent_;
    }
    const auto found = peers_.find(id);
    recent_ = found == peers_.end() ? nullptr : found->second;
    return recent_;
  }

  void name(Pipe& pipe, std::string id) {
    recent_ = nullptr;
    peers_[id] = &pipe;
    pipe.notes.routing_id = std::move(id);
  }
  void forget_name(const Pipe& pipe) {
    recent_ = nullptr;
    if (const auto found = peers_.find(pipe.notes.routing_id); found != peers_.end() && found->second == &pipe) {
      peers_.erase(found);
    }
  }
  // RFC 23: only the ROUTER itself makes identities that begin with a zero byte. The application may have chosen one of
  // them for a peer.
  std::string make_id() {
    std::array<std::uint8_t, 5> id{};
    do {
      store_big_endian<std::uint32_t>(id.data() + 1, next_id_++);
    } while (peers_.contains(as_text(id)));
    return std::string(as_text(id));
  }
  void forget_staged() noexcept {
    for (Cell& cell : staged_) {
      cell.release();
    }
    staged_.clear();
  }

  FairQueue queue_;
  std::unordered_map<std::string, Pipe*, Hash, std::equal_to<>> peers_;  // send lock to read, both to change
  std::uint32_t next_id_;
  Message body_;  // receive lock, like the next three: the part after the id that the caller got
  bool has_body_ = false;
  Pipe* held_ = nullptr;      // the caller got its id, but not yet the part after it; null: none
  bool in_received_ = false;  // the next part in the queue belongs to the message whose id the caller got
  bool in_sent_ = false;      // send lock, as all that follow: the id of the message was taken
  Pipe* target_ = nullptr;    // null: the message is dropped
  bool target_was_full_ = false;
  Pipe* recent_ = nullptr;  // null, or in peers_ under its routing id
  std::vector<Cell> staged_;
};

}  // namespace

std::unique_ptr<Pattern> make_router(const PatternTraits& traits, const Options& options) {
  return std::make_unique<Router>(traits, options);
}

}  // namespace weft::msg
