// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "weft/base/intrusive_ptr.h"
#include "weft/base/list.h"
#include "weft/base/result.h"
#include "weft/base/time.h"
#include "weft/msg/socket.h"
#include "weft/rt/loop/loop.h"
#include "weft/rt/task/task.h"
#include "weft/rt/task/task_time.h"
#include "weft/sync/condition.h"
#include "weft/sync/lock.h"
#include "weft/sys/clock.h"
#include "weft/topic/kept/call.h"
#include "weft/topic/kept/channel.h"
#include "weft/topic/kept/counters.h"
#include "weft/topic/wire/name.h"
#include "weft/topic/wire/ops.h"

namespace weft::topic {

// Hosting: a hub of this process. It lives as long as `hub`.
struct Hosting {
  std::shared_ptr<void> hub{};
  std::function<Error()> ended{};  // the reason if the hub ended by itself; ok: it opens its store, or serves
  CounterSource counters{};        // of the hub
  bool served = false;             // a connection succeeded since
};

// LinkSettings: the handle's part of a HubLink.
struct LinkSettings {
  std::string endpoint;  // of the hub: ipc://…/hub.sock, or tls+tcp:// of another host
  std::string id;        // of the handle's life: the prefix of its message ids
  Names names{};
  std::function<Result<Socket>()> make_socket{};  // a DEALER
  // Tries to make this process the hub, without waiting for the disk. Fails with would_block if another process is it.
  // Empty: this handle never hosts. `store`: the file of the former hub, from that hub; empty: the handle's own.
  std::function<Result<Hosting>(const std::string& store)> host{};
  // The endpoint is inproc://, where a connection has no handshake: a server of the handle's own process, which carries
  // the ops out on the servers of NATS.
  bool direct = false;
  // Of a `direct` one: the reason of a missing connection to the servers of NATS; ok: there is a connection.
  std::function<Error()> servers_missing{};
  bool async = false;   // the callers are coroutines of the loop
  bool remote = false;  // the hub is of another host or user: errors have the reason of a missing connection
};

// HubLink: a handle's way to the hub of its fleet: requests with answers, and channels with deliveries.
// Owner: the handle and its objects, by shared_ptr. Affinity: any thread; async: the loop's. Connecting, receiving,
// deadlines and hosting are work of the handle's loop.
// Cost: a request is a lock, an encoded op and a send. It has no thread of its own, and no wake-up while no call waits.
// Invariants:
//   1. Each call ends: with its answer, at its deadline, or when the link closes.
//   2. Ops leave in the order of start(). After a change of the hub, the channels are opened first; then the unanswered
//      calls leave again in that order, then the new ones. So the order of a publisher stays.
//   3. At most kInFlightMax appends, and kInFlightBytesMax bytes of them, or one, wait for answers; at most kCallsMax
//      other calls; at most kChannelsMax channels.
//   4. Every connection has a socket of its own: ops that were queued for an ended hub reach no other one.
class HubLink final : public std::enable_shared_from_this<HubLink> {
 public:
  static constexpr std::size_t kInFlightMax = 4096;
  static constexpr std::size_t kInFlightBytesMax = std::size_t{8} << 20;
  static constexpr std::size_t kCallsMax = 4096;
  static constexpr std::size_t kChannelsMax = 4096;
  static constexpr unsigned kReceiveMost = 256;  // ops a turn
  // Bytes of deliveries after which the link sends an op, because the hub stops the channels of a member that is silent
  // for 64 MiB.
  static constexpr std::size_t kUnansweredBytesMax = std::size_t{16} << 20;

  // `hosting`: the server at the endpoint, if it lives with this link.
  HubLink(rt::Loop& loop, LinkSettings settings, Hosting hosting = {});
  HubLink(const HubLink&) = delete;
  HubLink& operator=(const HubLink&) = delete;
  ~HubLink();
  // Every call and channel ends with `closed`. On the loop's thread, or when the loop has stopped. Idempotent.
  void close() noexcept;

  [[nodiscard]] const Names& names() const noexcept { return settings_.names; }
  [[nodiscard]] bool async() const noexcept { return settings_.async; }
  [[nodiscard]] KeptStatistics statistics() const;
  void read_counters(std::string_view name, CounterReadings& into) const;  // also those of the hub of this process
  // timed_out: no hub took a request; with the reason of a missing connection (LinkSettings::remote, servers_missing).
  [[nodiscard]] Error untaken() const;
  [[nodiscard]] std::string next_message_id();  // unique among the messages of all handles

  // --- requests ---
  // Encodes `op`; its id is ignored. Errors: message_too_large; invalid_argument; resource_exhausted.
  [[nodiscard]] static Result<IntrusivePtr<HubCall>> prepare(const Op& op, OnLoss on_loss, Instant deadline);
  // Sends a prepared call, once. Errors: would_block (no place; place() announces one); closed;
  // timed_out; resource_exhausted.
  [[nodiscard]] Result<void> start(const IntrusivePtr<HubCall>& call) WEFT_REQUIRES(mutex_);
  // With the lock held. Fails with would_block until it is done; call.changed announces it.
  [[nodiscard]] static Result<void> outcome(const HubCall& call) noexcept {
    return !call.done ? Result<void>(Errc::would_block) : call.error == Error() ? Result<void>() : call.error;
  }
  [[nodiscard]] ChangeEvent& place() noexcept { return place_; }
  // A stream that lives in the memory of its hub is declared again to each new one. `op`: declare, whose views the
  // link copies.
  [[nodiscard]] Result<void> keep_declaring(const std::string& stream, const Op& op);
  void stop_declaring(const std::string& stream) noexcept;

  // --- channels ---
  [[nodiscard]] Result<void> open(KeptChannel& channel);  // errors: closed; resource_exhausted
  void end(KeptChannel& channel) noexcept;                // its consumer or reader ended
  // The count of a delivery of a consumer with tries_max, before the program gets its message.
  enum class Count : std::uint8_t {
    answered,  // the hub has counted it: the count stays if the program and the hub end at this moment
    sent,
  };
  // Fails with would_block, or with the error of the channel's end.
  [[nodiscard]] Result<KeptMessage> try_next(KeptChannel& channel, Count count = Count::answered) WEFT_REQUIRES(mutex_);
  [[nodiscard]] Result<KeptMessage> take_begun(KeptChannel& channel)
      WEFT_REQUIRES(mutex_);                                                  // only one whose `begin` was sent
  void give_back_begun(KeptChannel& channel) noexcept WEFT_REQUIRES(mutex_);  // no caller waits for it any longer
  // nullopt: the reader is live
  [[nodiscard]] Result<std::optional<KeptMessage>> try_next_stored(KeptChannel& channel) WEFT_REQUIRES(mutex_);
  [[nodiscard]] static Result<void> opened(const KeptChannel& channel) noexcept {  // with the lock
    return channel.opened                               ? Result<void>()
           : channel.state == KeptChannel::State::ended ? Result<void>(channel.end)
                                                        : Result<void>(Errc::would_block);
  }
  void acknowledge(KeptChannel& channel, std::uint64_t instance, std::uint64_t sequence) noexcept;
  // The same of other outcomes: `op`, which has no answer unless it fails. Dropped without a connection: the delivery
  // that it is about ended with the connection.
  void settle(KeptChannel& channel, const Op& op) noexcept;

  // --- waiting ---
  // Calls `attempt` under the lock, at once and after all news, until it returns a result other than would_block. Fails
  // with timed_out.
  template <typename Attempt>
  [[nodiscard]] auto wait(ChangeEvent& news, Instant deadline, Attempt attempt) -> decltype(attempt()) {
    sync::UniqueLock lock(mutex_);
    for (;;) {
      auto result = attempt();
      if (result || result.error() != Errc::would_block) {
        return result;
      }
      flush_sent();
      if (!sync::sleep_until(news.threads, lock, deadline)) {
        return Error(Errc::timed_out, "the deadline passed first");
      }
    }
  }
  template <typename Attempt>
  [[nodiscard]] auto locked(Attempt& attempt) -> decltype(attempt()) {
    const sync::LockGuard lock(mutex_);
    return attempt();
  }
  [[nodiscard]] Result<void> wait_open(KeptChannel& channel) {
    return wait(channel.changed, kNever, [&] { return opened(channel); });
  }
  // Sends the call and waits for its answer.
  [[nodiscard]] Result<void> run(const IntrusivePtr<HubCall>& call) {
    WEFT_TRY(wait(place_, call->deadline, [&] { return in_lock(), start(call); }));
    return wait(call->changed, kNever, [&] { return outcome(*call); });
  }
  [[nodiscard]] static rt::Task<Result<void>> start_task(std::shared_ptr<HubLink> link, IntrusivePtr<HubCall> call);
  [[nodiscard]] static rt::Task<Result<void>> run_task(std::shared_ptr<HubLink> link, IntrusivePtr<HubCall> call);
  // wait() for coroutines. `kept` keeps the objects that `attempt` and `news` refer to.
  template <typename T, typename Attempt, typename Kept>
  [[nodiscard]] static rt::Task<Result<T>> wait_task(std::shared_ptr<HubLink> link, ChangeEvent* news, Attempt attempt,
                                                     Kept kept) {
    (void)kept;
    for (;;) {
      Result<T> result = link->locked(attempt);
      if (result || result.error() != Errc::would_block) {
        co_return result;
      }
      link->flush();
      const Result<void> waited = co_await news->tasks.wait();
      if (!waited) {
        co_return waited.error();
      }
    }
  }
  template <typename T, typename Attempt, typename Kept>
  [[nodiscard]] static rt::Task<Result<T>> wait_task_until(std::shared_ptr<HubLink> link, ChangeEvent* news,
                                                           Instant deadline, Attempt attempt, Kept kept) {
    Result<T> result = link->locked(attempt);
    if (!result && result.error() == Errc::would_block) {
      const Duration left = std::max(deadline - sys::now(), Duration::zero());
      result = co_await rt::with_timeout(wait_task<T>(link, news, attempt, kept), left);
    }
    co_return result;
  }
  // For a function that is called under the lock, as by wait() and wait_task().
  void in_lock() const noexcept WEFT_ASSERTS(mutex_) {}
  [[nodiscard]] sync::StdMutex& mutex() const noexcept WEFT_RETURNS_LOCK(mutex_) { return mutex_; }
  void flush_sent() noexcept WEFT_REQUIRES(mutex_);
  void flush() noexcept {  // sent messages, before a wait
    const sync::LockGuard lock(mutex_);
    flush_sent();
  }

 private:
  // Connection: one socket, for one connection.
  struct Connection final : rt::Watcher {
    explicit Connection(HubLink& own) noexcept : link(own) {}
    void handle_event(const sys::PollEvent& event) override;
    HubLink& link;
    Socket socket;
    rt::Loop::WatchId watch = 0;
    std::uint64_t number = 0;
  };
  enum class Link : std::uint8_t { idle, connecting, up };

  static constexpr Error kClosed{Errc::closed, "the handle of topics was closed"};
  [[nodiscard]] Error error_of(const Op& op) const noexcept;  // of an answer or an end

  // hub_link.cc and hub_link_channels.cc
  [[nodiscard]] std::uint32_t fresh_id() noexcept WEFT_REQUIRES(mutex_);
  [[nodiscard]] bool has_place(const HubCall& call) const noexcept WEFT_REQUIRES(mutex_);
  [[nodiscard]] bool send(const Message& message) noexcept WEFT_REQUIRES(mutex_);
  void want_connection() WEFT_REQUIRES(mutex_);
  void want_timer(Instant deadline) WEFT_REQUIRES(mutex_);
  void finish(HubCall& call, const Error& error) noexcept WEFT_REQUIRES(mutex_);
  void handle_op(Message&& message) WEFT_REQUIRES(mutex_);
  void handle_answer(Message&& message, const Op& op) WEFT_REQUIRES(mutex_);
  void handle_run(const Op& op) WEFT_REQUIRES(mutex_);
  void handle_channel(KeptChannel& channel, Message&& message, const Op& op) WEFT_REQUIRES(mutex_);
  void end_channel(KeptChannel& channel, const Error& error) noexcept WEFT_REQUIRES(mutex_);
  [[nodiscard]] bool head_counted(KeptChannel& channel) noexcept
      WEFT_REQUIRES(mutex_);  // returns false while the answer is under way
  void handle_begun(KeptChannel& channel, const Op& op) noexcept WEFT_REQUIRES(mutex_);
  void handle_recall(KeptChannel& channel, std::uint64_t count) noexcept WEFT_REQUIRES(mutex_);
  void begin(KeptChannel& channel, std::uint64_t sequence) noexcept WEFT_REQUIRES(mutex_);
  void post_settled(KeptChannel& channel) WEFT_REQUIRES(mutex_);
  void send_settled(KeptChannel& channel, std::uint32_t id) noexcept
      WEFT_REQUIRES(mutex_);  // first begins, then acknowledgements
  void send_sequences(KeptChannel& channel, OpKind kind, std::uint32_t id,
                      std::vector<std::uint64_t>& sequences) noexcept WEFT_REQUIRES(mutex_);
  void give_credit(KeptChannel& channel) noexcept WEFT_REQUIRES(mutex_);
  bool send_op(const Op& op) noexcept WEFT_REQUIRES(mutex_);  // returns false without a connection or without memory
  [[nodiscard]] static Result<Message> encoded(const Op& op) noexcept;

  // hub_link_connection.cc, on the loop
  void post(void (HubLink::*work)());
  void connect();
  void watch_connection(std::uint64_t number);
  void connected(std::uint64_t number);
  void disconnected(std::uint64_t number, const Error& reason);
  void drop_connection() noexcept;
  void wait_for_hub() noexcept;
  void retry_later();
  void try_to_host();
  [[nodiscard]] Result<void> resend() WEFT_REQUIRES(mutex_);
  void handle_input();
  unsigned receive();  // returns the number of ops
  void arm_timer();
  void handle_deadlines();
  static void timer_fired(void* self);
  static void retry_fired(void* self);
  [[nodiscard]] bool wanted() const noexcept WEFT_REQUIRES(mutex_);  // whether it needs a connection
  [[nodiscard]] Error unsent() const noexcept WEFT_REQUIRES(mutex_);
  // Of a call that was sent: whether a server may have carried it out is unknown, or does not matter.
  [[nodiscard]] Error unanswered(bool unknown) const noexcept WEFT_REQUIRES(mutex_);

  rt::Loop& loop_;
  const LinkSettings settings_;

  mutable sync::StdMutex mutex_;
  bool closed_ WEFT_GUARDED_BY(mutex_) = false;
  Link state_ WEFT_GUARDED_BY(mutex_) = Link::idle;
  bool connect_posted_ WEFT_GUARDED_BY(mutex_) = false;
  Instant timer_wanted_ WEFT_GUARDED_BY(mutex_) = kNever;  // the earliest deadline of a call, or an earlier moment
  Connection connection_{*this};
  // The calls that wait for answers.
  struct Calls {
    std::unordered_map<std::uint32_t, IntrusivePtr<HubCall>> by_id;
    List<HubCall> order;
    std::size_t appends = 0;
    std::size_t append_bytes = 0;
  };
  Calls calls_ WEFT_GUARDED_BY(mutex_);
  std::uint32_t last_id_ WEFT_GUARDED_BY(mutex_) = 0;
  std::uint64_t messages_ WEFT_GUARDED_BY(mutex_) = 0;
  std::size_t unanswered_bytes_ WEFT_GUARDED_BY(mutex_) = 0;  // bytes of deliveries since the last op
  std::unordered_map<std::uint32_t, IntrusivePtr<KeptChannel>> channels_ WEFT_GUARDED_BY(mutex_);
  std::unordered_map<std::string, Message> declared_ WEFT_GUARDED_BY(mutex_);
  Error trouble_ WEFT_GUARDED_BY(mutex_);  // of the last connection that did not come about, if remote
  ChangeEvent place_;
  KeptStatistics counts_ WEFT_GUARDED_BY(mutex_);
  CounterSource hub_counters_ WEFT_GUARDED_BY(mutex_);  // of the last hub that this process hosted
  std::string fleet_store_ WEFT_GUARDED_BY(mutex_);     // the file of the hub, from the hub

  // the loop's
  std::uint64_t connections_ = 0;
  Duration pause_{0};
  rt::TimerId timer_;
  rt::TimerId retry_;
  Hosting hosted_;
};

}  // namespace weft::topic
