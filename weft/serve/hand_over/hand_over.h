// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "weft/base/result.h"
#include "weft/base/time.h"
#include "weft/serve/server/server.h"
#include "weft/sys/event_fd.h"
#include "weft/sys/fd.h"
#include "weft/sys/path.h"
#include "weft/sys/thread.h"

namespace weft::serve {

struct HandOverOptions {
  Duration step = std::chrono::seconds(10);   // for each message to and from the new process
  Duration start = std::chrono::seconds(60);  // from the last descriptor to its confirmation
  // Called when the new process has taken the listeners, on a thread of the HandOver: the program ends its server when
  // its sessions have ended. The function does not destroy the HandOver.
  std::function<void()> on_taken{};
};

// HandOver: gives the listeners of a server to the next process of the program, which has TakenListeners.
// Owner: the program; destroy it before the server. Affinity: any thread, one at a time.
// Cost: a thread that sleeps, and two descriptors.
// Invariants: those of README.md. One new process at a time; another one waits.
class HandOver {
 public:
  // The path is of this process from now on, also if another process has it: open it after TakenListeners::confirm().
  // Its directory is one that only this user may write. Errors: malformed_endpoint (the path is too long);
  // resource_exhausted; those of the system.
  [[nodiscard]] static Result<std::unique_ptr<HandOver>> open(Server& server, const std::string& path,
                                                              HandOverOptions options = {});
  HandOver(const HandOver&) = delete;
  HandOver& operator=(const HandOver&) = delete;
  ~HandOver();  // a hand-over under way ends, and this process keeps its listeners

  [[nodiscard]] bool taken() const noexcept { return taken_.load(); }
  [[nodiscard]] std::uint64_t refused() const noexcept { return refused_.load(); }  // processes of other users

 private:
  HandOver(Server& server, std::string path, HandOverOptions options, sys::EventFd ends);
  void run();
  Result<void> give(int connection);
  [[nodiscard]] bool wait_readable(int fd, Instant deadline) const;

  Server& server_;
  const std::string path_;
  const HandOverOptions options_;
  sys::EventFd ends_;
  sys::Fd listener_;
  sys::FileIdentity identity_;  // of the socket's file
  std::atomic<bool> taken_{false};
  std::atomic<std::uint64_t> refused_{0};
  sys::Thread thread_;
};

}  // namespace weft::serve
