// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "weft/base/result.h"
#include "weft/sync/lock.h"

namespace weft::msg {
class ContextCore;
}

namespace weft::topic {

// ProcessFleets: the handles of this process that connect over inproc: those of one Context and one fleet.
// Owner: the process. Affinity: any thread. Lock order: before every lock of a handle.
class ProcessFleets {
 public:
  // Member: a handle.
  class Member {
   public:
    [[nodiscard]] virtual std::uint64_t instance() const noexcept = 0;
    [[nodiscard]] virtual const std::string& inproc_endpoint() const noexcept = 0;
    [[nodiscard]] virtual bool has_inner() const noexcept = 0;  // a socket for inside topics
    // Connects, without a control message, with another handle; `inner`: that has a socket for inside topics.
    // Errors: resource_exhausted. Throws std::bad_alloc.
    [[nodiscard]] virtual Result<void> link_inproc(std::uint64_t instance, const std::string& inproc_endpoint,
                                                   bool inner) = 0;
    // Another handle joined, or left. Fails as link_inproc().
    [[nodiscard]] virtual Result<void> handle_peer_opened(std::uint64_t instance, const std::string& inproc_endpoint,
                                                          bool inner) = 0;
    virtual void handle_peer_closed(std::uint64_t instance, const std::string& inproc_endpoint) noexcept = 0;
    virtual void handle_joined() noexcept = 0;  // and is connected with others

   protected:
    Member() = default;
    Member(const Member&) = default;
    Member& operator=(const Member&) = default;
    ~Member() = default;
  };

  static ProcessFleets& instance();

  // Connects the member with every other one of the key, in both directions.
  // After an error, or an exception std::bad_alloc, the member leaves.
  [[nodiscard]] Result<void> join(Member& member, const msg::ContextCore* context, const std::string& fleet);
  // Connects the member with each other one that has joined. Errors: those of Member::link_inproc().
  [[nodiscard]] Result<void> link_all(Member& member);
  void leave(Member& member, const msg::ContextCore* context, const std::string& fleet) noexcept;

 private:
  using Key = std::pair<const msg::ContextCore*, std::string>;
  sync::StdMutex mutex_;
  std::map<Key, std::vector<Member*>> members_ WEFT_GUARDED_BY(mutex_);
};

}  // namespace weft::topic
