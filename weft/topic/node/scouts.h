// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "weft/base/result.h"
#include "weft/base/time.h"
#include "weft/msg/socket.h"
#include "weft/rt/loop/loop.h"
#include "weft/topic/loop/node_loop.h"
#include "weft/topic/node/node_sockets.h"

namespace weft::topic {

// Scouts: sockets that ask the handles at given endpoints for their instances, before the XSUB connects: see Links.
// Owner: a node. Affinity: the loop. Cost: a socket and its connection for each endpoint that is asked.
// Invariants:
//   1. An endpoint has one scout at most.
//   2. A scout ends with an answer, or kPatience after its handshake; without a handshake when it is not wanted.
class Scouts {
 public:
  // The scout of the endpoint has ended. `instance`: 0: a plain publisher.
  using Found = std::function<void(const std::string& endpoint, std::uint64_t instance)>;

  Scouts(NodeLoop& loop, NodeSockets& sockets, Found found)
      : loop_(loop), sockets_(sockets), found_(std::move(found)) {}
  Scouts(const Scouts&) = delete;
  Scouts& operator=(const Scouts&) = delete;
  ~Scouts() = default;

  // Each of the endpoints gets a scout, and no other one keeps one. A scout with a connection has a time-out. Fails
  // with resource_exhausted, and throws std::bad_alloc: call it again.
  [[nodiscard]] Result<void> reconcile(const std::vector<std::string>& wanted);
  void end_all() noexcept;

 private:
  static constexpr Duration kPatience = std::chrono::seconds(1);  // from the handshake to the welcome

  struct Scout final : rt::Watcher {
    Scout(Scouts& own, std::string at) : scouts(own), endpoint(std::move(at)) {}
    void handle_event(const sys::PollEvent& event) override;
    static void give_up(void* self);
    Scouts& scouts;
    std::string endpoint;
    Socket socket;
    rt::Loop::WatchId watch = 0;
    rt::TimerId timer;  // from the handshake on
    std::shared_ptr<std::atomic<bool>> connected = std::make_shared<std::atomic<bool>>(false);
  };
  using Table = std::map<std::string, std::unique_ptr<Scout>>;  // by endpoint

  [[nodiscard]] Result<void> begin(const std::string& endpoint);
  [[nodiscard]] Result<void> send(Scout& scout);
  Table::node_type end(Scout& scout) noexcept;  // returns the scout
  void handle_found(Scout& scout, std::uint64_t instance);

  NodeLoop& loop_;
  NodeSockets& sockets_;
  const Found found_;
  Table scouts_;
};

}  // namespace weft::topic
