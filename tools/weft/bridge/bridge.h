// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tools/weft/bridge/counters.h"
#include "tools/weft/bridge/settings.h"
#include "weft/base/time.h"
#include "weft/msg/context.h"
#include "weft/rt/core/runtime.h"
#include "weft/rt/exec/future.h"
#include "weft/topic/topics.h"

namespace weft::bridge {

// Line: a section of a running bridge, for its reader.
struct Line {
  std::string name;
  Role role;
  std::vector<std::string> endpoints;  // where it is bound and connected
  CounterSource socket;                // of its socket
  std::shared_ptr<const Counters> counters;

  // The counters of the section, for an admin port.
  [[nodiscard]] CounterSource counter_source() const;
};

// Bridge: the sections of a file, on one core of its own.
// Owner: the caller of start(); destruction is stop(). Affinity: one thread, except that counters may be read anywhere.
class Bridge {
 public:
  // Opens the handle of the fleet, binds and connects. Returns null, and the reason in `why`. `tell` gets the troubles
  // that do not end the bridge, on the bridge's core.
  [[nodiscard]] static std::unique_ptr<Bridge> start(Settings settings, TopicsOptions fleet,
                                                     std::function<void(const std::string&)> tell, std::string& why);
  Bridge(const Bridge&) = delete;
  Bridge& operator=(const Bridge&) = delete;
  ~Bridge();

  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] const std::vector<Line>& lines() const noexcept { return lines_; }

  [[nodiscard]] CounterSource counter_source() const { return topics_; }  // of the handle of the fleet

  // Takes nothing new, waits until everything taken is given, at most Settings::drain, then closes. Idempotent.
  void stop();

 private:
  struct Core;
  Bridge() = default;

  Context context_;
  std::unique_ptr<rt::Runtime> runtime_;
  std::shared_ptr<Core> core_;
  rt::Future<void> ended_;
  std::string name_;
  std::vector<Line> lines_;
  CounterSource topics_;
};

}  // namespace weft::bridge
