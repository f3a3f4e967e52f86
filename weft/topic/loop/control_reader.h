// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <utility>

#include "weft/base/result.h"
#include "weft/msg/message/message.h"
#include "weft/msg/socket.h"
#include "weft/rt/loop/loop.h"
#include "weft/topic/loop/node_loop.h"

namespace weft::topic {

// ControlReader: the messages of other handles to this one, which come back over the connections of its XPUB.
// Owner: a node. Affinity: the loop. Cost: a read for each message; those beyond kMost wait for the next turn.
// Invariants:
//   1. A message that finds no memory waits, and the messages after it. After kTriesMax tries it is lost.
//   2. While a message waits, the XPUB is not watched: an idle loop makes no wake-ups.
class ControlReader final : rt::Watcher {
 public:
  using Take = std::function<bool(Message&)>;  // returns false if there is no memory for the message

  // `done` is called after each read: the XPUB may have room.
  ControlReader(NodeLoop& loop, Socket& out, Take take, std::function<void()> done)
      : loop_(loop), out_(out), take_(std::move(take)), done_(std::move(done)) {}
  ControlReader(const ControlReader&) = delete;
  ControlReader& operator=(const ControlReader&) = delete;
  ~ControlReader() = default;

  [[nodiscard]] Result<void> begin();  // before the loop runs. Errors: those of Loop::watch()
  void end() noexcept;
  void read();
  // The waiting message has another try. Returns false if it is lost.
  [[nodiscard]] bool retry() noexcept;

 private:
  static constexpr unsigned kMost = 256;  // messages a turn
  static constexpr unsigned kTriesMax = 64;

  void handle_event(const sys::PollEvent& event) override;

  NodeLoop& loop_;
  Socket& out_;
  const Take take_;
  const std::function<void()> done_;
  rt::Loop::WatchId watch_ = 0;
  Message held_;  // the one that waits
  unsigned tries_ = 0;
};

}  // namespace weft::topic
