// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "weft/base/bytes.h"
#include "weft/base/result.h"
#include "weft/msg/message/monitor.h"
#include "weft/msg/message/socket_type.h"
#include "weft/sync/lock.h"

namespace weft::msg {

class ContextCore;
class SocketCore;

// MonitorFeed: a socket's events as messages, sent by an inproc socket of the feed.
// Owner: the monitored socket. Affinity: any thread. Cost: per event a call of `encode` and a send over inproc.
// Invariants:
//   1. No thread waits for the reader: a message that finds no room is dropped, and take() returns false.
//   2. With pair and push, up to kBacklogMax events wait for the first reader.
//   3. Locks: the feed's, then those of its own socket; never one of the monitored socket.
class MonitorFeed : public std::enable_shared_from_this<MonitorFeed> {
 public:
  static constexpr std::size_t kBacklogMax = 1000;

  // Converts an event to messages, none or several, each with one call of send(). Any thread.
  using Encode = std::function<void(const MonitorEvent& event, MonitorFeed& feed)>;

  // `type`: pair or push, which wait for the first reader, or pub, which does not. Errors: invalid_argument (another
  // type), address_in_use, too_many_sockets, resource_exhausted, terminated.
  [[nodiscard]] static Result<std::shared_ptr<MonitorFeed>> open(ContextCore& context, std::string_view endpoint,
                                                                 SocketType type, Encode encode);
  ~MonitorFeed() = default;

  [[nodiscard]] bool take(const MonitorEvent& event);
  void send(std::span<const Bytes> parts);  // only from within Encode
  void close();                             // idempotent; the reader can still receive the messages

 private:
  MonitorFeed(std::shared_ptr<SocketCore> core, Encode encode, bool waits_for_reader);
  [[nodiscard]] static Result<std::shared_ptr<MonitorFeed>> open_over(const std::shared_ptr<SocketCore>& core,
                                                                      std::string_view endpoint, SocketType type,
                                                                      Encode encode);
  void handle_reader();

  const std::shared_ptr<SocketCore> core_;
  const Encode encode_;
  sync::StdMutex mutex_;
  std::deque<MonitorEvent> backlog_ WEFT_GUARDED_BY(mutex_);
  bool has_reader_ WEFT_GUARDED_BY(mutex_);       // stays true when the reader goes
  bool dropped_ WEFT_GUARDED_BY(mutex_) = false;  // a message of the current event was
  bool torn_ WEFT_GUARDED_BY(mutex_) = false;     // the last message lacks its end
};

}  // namespace weft::msg
