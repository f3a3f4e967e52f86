// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "tools/weft/console.h"
#include "weft/rt/loop/loop.h"
#include "weft/sys/event_fd.h"
#include "weft/topic/kept/hub_link.h"
#include "weft/topic/topics.h"

// The fleet of a command: a handle for topics, or the way to its hub for kept topics.
namespace weft::cli {

struct FleetOptions {
  std::string fleet = "local";
  std::string space{};
  std::string directory{};  // local: the runtime directory; empty: the user's
  std::string listen{};     // tcp
  // A file of `weft keygen`: the pair of a tcp fleet; of kept topics our own
  std::string curve_key{};
  std::string curve_hub_key{};    // of kept topics: the public key of `hub`, or its file
  std::string credentials{};      // nats: a .creds file
  std::string tls_certificate{};  // tls+tcp
  std::string tls_key{};
  std::string tls_authorities{};
  std::string tls_name{};
  // Of kept topics, not on NATS: ipc://PATH, tls+tcp:// with tls_..., or tcp:// with curve_...; empty: that of the
  // fleet
  std::string hub{};
  double timeout = -1;  // seconds for each answer and each message; negative: 30 s, and no end
};

// The options of a handle that never hosts the hub. Throws Failure: a file of keys.
[[nodiscard]] TopicsOptions topics_options(const FleetOptions& options);
// Whether the servers of NATS keep the topics of the fleet. Throws Failure: the text is not a fleet.
[[nodiscard]] bool is_on_nats(const FleetOptions& options);

inline constexpr double kAnswerSeconds = 30;

// Guard: calls a function at a signal to stop, or when a deadline passes. The function ends the waits of a command.
// Owner: the command. Affinity: set() and expired(): any thread; the function runs on the guard's thread.
class Guard {
 public:
  explicit Guard(std::function<void()> end);
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;
  ~Guard();

  void set(Instant deadline);  // in place of the one before
  [[nodiscard]] bool expired() const noexcept { return expired_.load(std::memory_order_acquire); }

 private:
  void run() noexcept;

  std::function<void()> end_;
  sys::EventFd event_;
  std::mutex mutex_;
  Instant deadline_ = kNever;          // mutex
  bool ending_ = false;                // mutex
  std::atomic<bool> expired_ = false;  // partner: expired()
  std::thread thread_;
};

// Member: a handle of the fleet. It never hosts the hub.
// Affinity: one thread. A signal closes the handle, so that every wait ends.
class Member {
 public:
  explicit Member(const FleetOptions& options);  // throws Failure, Usage

  [[nodiscard]] Topics& topics() noexcept { return topics_; }
  [[nodiscard]] Instant answer_deadline() const;   // of an answer of the fleet
  [[nodiscard]] Instant message_deadline() const;  // of the next message, or the next subscription
  // The value. Failure: "CONTEXT: the error"; Stopped after a signal.
  template <typename T>
  static T take(Result<T> result, const std::string& context) {
    if (!result) {
      throw_if_stopped();
    }
    return need(std::move(result), context);
  }

 private:
  FleetOptions options_;
  Context context_;
  Topics topics_;
  Guard guard_;
};

// KeptLink: the way to a hub, of a local fleet or elsewhere, or to the servers of a fleet on NATS, without a handle: it
// has no place among the handles of the fleet, no connection to them, and it never hosts.
// Affinity: one thread. A signal, and the end of --timeout, close the link, so that every wait ends.
class KeptLink {
 public:
  explicit KeptLink(const FleetOptions& options);  // throws Failure, Usage
  KeptLink(const KeptLink&) = delete;
  KeptLink& operator=(const KeptLink&) = delete;
  ~KeptLink();

  [[nodiscard]] const std::shared_ptr<topic::HubLink>& link() const noexcept { return link_; }
  [[nodiscard]] Instant answer_deadline() const;
  // The value of the call, which returns a Result, within the time for an answer. Failure: the error, or the time-out.
  template <typename Call>
  auto ask(const std::string& context, const Call& call) {
    return run(context, answer_seconds(), false, call);
  }
  // The same, for a call that cannot be made again.
  template <typename Call>
  auto once(const std::string& context, const Call& call) {
    (void)begin(answer_seconds());
    auto result = call();
    guard_->set(kNever);
    if (!result) {
      fail(context, result.error(), answer_seconds(), false);
    }
    return need(std::move(result), context);
  }
  // The same for the next message: without --timeout the wait has no end.
  template <typename Call>
  auto await(const std::string& context, const Call& call) {
    return run(context, options_.timeout, true, call);
  }

 private:
  [[nodiscard]] double answer_seconds() const noexcept {
    return options_.timeout < 0 ? kAnswerSeconds : options_.timeout;
  }
  template <typename Call>
  auto run(const std::string& context, double limit, bool message, const Call& call) {
    const Instant deadline = begin(limit);
    auto result = call();
    // A call of the library gives up after 30 s by itself. One that no hub took may be made again.
    while (!result && result.error() == Errc::timed_out && before(deadline)) {
      result = call();
    }
    guard_->set(kNever);
    if (!result) {
      fail(context, result.error(), limit, message);
    }
    return need(std::move(result), context);
  }
  Instant begin(double limit);
  [[nodiscard]] bool before(Instant deadline) const;
  [[noreturn]] void fail(const std::string& context, const Error& error, double limit, bool message) const;

  FleetOptions options_;
  bool on_nats_ = false;
  Context context_;
  std::unique_ptr<rt::Loop> loop_;
  std::shared_ptr<topic::HubLink> link_;
  std::optional<Guard> guard_;
};

}  // namespace weft::cli
