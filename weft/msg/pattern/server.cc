// SPDX-License-Identifier: MIT
// SERVER (RFC 41) and PEER (RFC 51): a message's routing id names the peer that it goes to, or came from.
#include <random>
#include <unordered_map>

#include "weft/msg/pattern/fair_queue.h"
#include "weft/msg/pattern/pattern.h"

namespace weft::msg {

namespace {

class Server final : public Pattern {
 public:
  Server(const PatternTraits& traits, const Options& options)
      : Pattern(traits, options), last_id_(std::random_device{}()) {}

  void attach(Pipe& pipe) override {
    queue_.attach(pipe);
    std::uint32_t& id = pipe.notes.origin.routing_id;  // messages from the pipe carry it
    if (id == 0) {
      id = make_id();
    }
    peers_[id] = &pipe;
    send_hello(pipe);
  }
  bool ready(Pipe& pipe, Bytes /*identity*/) override {
    send_hello(pipe);
    return true;
  }
  void lost(Pipe& pipe) override { pipe.notes.hello_sent = pipe.notes.probed = false; }
  void detach(Pipe& pipe) override { peers_.erase(pipe.notes.origin.routing_id); }
  void activate(Pipe& pipe) override { queue_.activate(pipe); }
  void deactivate(Pipe& pipe) override { queue_.detach(pipe); }

  Result<void> send(Outbound& part) override {
    if (part.more) {
      return refuse_more();
    }
    Pipe* const peer = WEFT_TRY(find_peer(part.message == nullptr ? 0 : part.message->routing_id()));
    const Offered offered = peer->try_send(part, false);
    return offered ? Result<void>() : offered.lacks_memory() ? Result<void>(kNoMemoryToSend) : Errc::would_block;
  }
  Result<void> receive(Inbound& part) override { return queue_.receive(part); }

  Result<Pipe*> find_peer(std::uint32_t routing_id) override {
    const auto found = peers_.find(routing_id);
    return found == peers_.end() ? Result<Pipe*>(Error(Errc::unreachable, "no connected peer has this routing id"))
                                 : Result<Pipe*>(found->second);
  }

  // Always true: only the message's routing id names the peer, so its room is not known before.
  bool can_send() override { return true; }
  bool can_receive() override { return queue_.has_input(); }

 private:
  std::uint32_t make_id() noexcept {
    do {
      ++last_id_;
    } while (last_id_ == 0 || peers_.contains(last_id_));
    return last_id_;
  }

  FairQueue queue_;
  std::unordered_map<std::uint32_t, Pipe*> peers_;  // send lock to read, both to change
  std::uint32_t last_id_;
};

}  // namespace

std::unique_ptr<Pattern> make_server(const PatternTraits& traits, const Options& options) {
  return std::make_unique<Server>(traits, options);
}

}  // namespace weft::msg
