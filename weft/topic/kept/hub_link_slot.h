// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <utility>

#include "weft/base/result.h"
#include "weft/sync/lock.h"
#include "weft/topic/kept/hub_link.h"

namespace weft::topic {

// HubLinkSlot: the link of a handle to its hub, which its first user makes.
// Owner: a node. Affinity: any thread. Cost: a lock.
// Locks: the slot's comes before those of the mesh and of the link: `make` runs under it.
class HubLinkSlot {
 public:
  // Errors: closed; those of `make`, after which the next call makes it.
  template <typename Make>
  [[nodiscard]] Result<std::shared_ptr<HubLink>> get_or_make(const Make& make) {
    const sync::LockGuard lock(mutex_);
    if (closed_) {
      return Error(Errc::closed, "the handle of topics was closed");
    }
    if (link_ == nullptr) {
      link_ = WEFT_TRY(make());
    }
    return link_;
  }
  [[nodiscard]] std::shared_ptr<HubLink> used() noexcept {  // null if not made yet
    const sync::LockGuard lock(mutex_);
    return link_;
  }
  // The link is not made afterwards.
  void close() noexcept {
    const sync::LockGuard lock(mutex_);
    closed_ = true;
    if (link_ != nullptr) {
      link_->close();
    }
  }

 private:
  sync::StdMutex mutex_;
  std::shared_ptr<HubLink> link_ WEFT_GUARDED_BY(mutex_);
  bool closed_ WEFT_GUARDED_BY(mutex_) = false;
};

}  // namespace weft::topic
