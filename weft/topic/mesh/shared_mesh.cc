// SPDX-License-Identifier: MIT
#include "weft/topic/mesh/shared_mesh.h"

namespace weft::topic {

Result<void> SharedMesh::wait(Instant deadline, const std::function<bool(const MeshState&)>& done) {
  sync::UniqueLock lock(mutex_);
  while (!done(mesh_)) {
    if (closed_) {
      return Error(Errc::closed, "the handle of topics was closed");
    }
    if (refused_ != Errc::ok) {
      return refused_;
    }
    if (!sync::sleep_until(changed_, lock, deadline)) {
      return Error(Errc::timed_out, "the fleet did not come so far in time");
    }
  }
  return {};
}

void SharedMesh::changed() noexcept { changed_.notify_all(); }

void SharedMesh::close() noexcept {
  {
    const sync::LockGuard lock(mutex_);
    closed_ = true;
  }
  changed_.notify_all();
}

void SharedMesh::refuse(const Error& why) noexcept {
  const sync::LockGuard lock(mutex_);
  refused_ = why;
}

Error SharedMesh::refused() const noexcept {
  const sync::LockGuard lock(mutex_);
  return refused_;
}

}  // namespace weft::topic
