// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/filter.h"
#include "weft/base/result.h"
#include "weft/nats/client/client.h"
#include "weft/nats/protocol/subject.h"
#include "weft/rt/core/runtime.h"
#include "weft/rt/task/task_scope.h"
#include "weft/sync/lock.h"
#include "weft/sys/event_fd.h"
#include "weft/topic/gate/gate_interest.h"
#include "weft/topic/gate/gate_member.h"
#include "weft/topic/gate/gate_queue.h"
#include "weft/topic/gate/subject_topic.h"

namespace weft::topic {

// The header of a request of a Weft program: the topic, in the wire's form. A message with it is not a publication.
inline constexpr std::string_view kServiceHeader = "Weft-Service";
inline constexpr std::string_view kReplyHeader = "Weft-Reply";

// The subjects of a gate.
inline constexpr std::string_view kControlSubject = "_WEFT.";  // and "all", or an instance
inline constexpr std::string_view kInboxSubject = "_INBOX.";   // and an instance, and the number of a request

// GateOptions: the servers of a fleet, and how this process enters them. Handles with equal options share a gate.
struct GateOptions {
  const void* group = nullptr;  // the Context: handles of two Contexts do not share
  std::string servers{};
  std::string name{};  // not compared
  std::string user{};
  std::string password{};
  std::string token{};
  std::string nkey_seed_file{};
  std::string credentials_file{};
  std::string tls_certificate{};
  std::string tls_key{};
  std::string tls_authorities{};
  std::string tls_server_name{};
  std::size_t outage_bytes_max = std::size_t{8} << 20;
  Duration ping_every = std::chrono::seconds(20);

  [[nodiscard]] bool same_gate(const GateOptions& other) const noexcept;
};

// The options of a client of these servers. Errors: those of net::TlsClient::make().
[[nodiscard]] Result<nats::ClientOptions> client_options(const GateOptions& options);

// GateCounts: of all handles that share the gate. published = sent + queued + the dropped ones, at rest.
struct GateCounts {
  std::uint64_t published = 0;        // messages, requests and control messages that the gate took
  std::uint64_t sent = 0;             // given to a connection
  std::uint64_t queued = 0;           // waiting for a connection, or in front of it
  std::uint64_t dropped_oldest = 0;   // waiting for a connection, and dropped for newer ones
  std::uint64_t dropped_refused = 0;  // not permitted, too large for the server, or no memory
  std::uint64_t dropped_closed = 0;   // waiting when the last handle left
  std::uint64_t dropped_full = 0;     // the server did not read
  std::uint64_t received = 0;
  std::uint64_t connected = 0;  // times
};

// Gate: the way of a process' handles to a fleet on NATS. See the README for its two connections.
// Owner: the handles that joined. Affinity: any thread; a thread of its own, the gate's core, has the connections.
// Cost: a publication is a lock, a copy of its bytes, and for the first of a batch a wake-up of the core. A received
// message is copied once, whatever the number of handles. An idle gate wakes for the PINGs of its connections.
// Invariants: those of the README.
class Gate : public std::enable_shared_from_this<Gate> {
 public:
  // The gate of these options. It connects in the background; without a server it keeps messages. Errors: those of
  // nats::Client::open() and of net::TlsClient::make(); resource_exhausted.
  [[nodiscard]] static Result<std::shared_ptr<Gate>> open(const GateOptions& options);
  // Errors: closed (the last member left meanwhile: open another one); resource_exhausted.
  [[nodiscard]] Result<void> join(GateMember& member, std::uint64_t instance);
  // No call of the member is under way afterwards. Not on the gate's core. The last one waits up to a second for the
  // queued messages.
  void leave(GateMember& member) noexcept;
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;
  ~Gate();

  [[nodiscard]] static const nats::SubjectNames& names();  // between topics of the wire and subjects

  // Before publish() of a message of that size. Errors: message_too_large (the last server's max_payload); would_block
  // (`keep`, and the queue is full).
  [[nodiscard]] Result<void> check(std::size_t size, bool keep) noexcept;
  // A full queue drops the message and counts it. Errors: closed. Throws std::bad_alloc.
  [[nodiscard]] Result<void> publish(std::string_view subject, std::string_view headers, Bytes body);
  // Wakes the event when there may be room, until remove_waiter(). Throws std::bad_alloc.
  void add_waiter(sys::EventFd& event) { queue_.add_waiter(event); }
  void remove_waiter(sys::EventFd& event) noexcept { queue_.remove_waiter(event); }
  // To one handle, or with 0 to every one. Throws std::bad_alloc.
  void send_control(std::uint64_t to, std::string_view control);

  // Errors: resource_exhausted.
  [[nodiscard]] Result<void> want(const Filter& widened);
  void unwant(const Filter& widened) noexcept;

  // Errors: unreachable (the fleet's servers are away); message_too_large; resource_exhausted.
  [[nodiscard]] Result<void> ask(std::string_view subject, std::uint64_t instance, std::uint64_t request,
                                 std::string_view headers, Bytes body);
  [[nodiscard]] Result<void> answer(std::string_view reply, std::string_view headers, Bytes body);
  // `group`: a group of the engine's. Errors: those of nats::Client::subscribe().
  [[nodiscard]] Result<void> serve(GateMember& member, std::uint64_t service, std::string_view subject,
                                   std::string_view group);
  void stop_serving(GateMember& member, std::uint64_t service) noexcept;

  // Waits until the servers handled all that was queued before. Errors: timed_out; unreachable; closed.
  [[nodiscard]] Result<void> flush(Instant deadline);
  [[nodiscard]] rt::Task<Result<void>> flush_task(Instant deadline);  // on any loop
  [[nodiscard]] GateCounts counts() noexcept;

 private:
  struct Member {
    GateMember* member = nullptr;
    std::uint64_t instance = 0;
    nats::SubscriptionId control;  // 0: the server refused it; so for the next one
    nats::SubscriptionId replies;
    std::map<std::uint64_t, nats::SubscriptionId> services{};
  };
  enum class State : std::uint8_t { connecting, up, away };

  explicit Gate(const GateOptions& options) : options_(options), queue_(options.outage_bytes_max) {}
  [[nodiscard]] Result<void> start();
  [[nodiscard]] Result<void> open_clients(nats::ClientOptions options);
  void remove(GateMember& member) noexcept;
  void close_clients() noexcept;
  [[nodiscard]] static rt::Task<void> drain_clients(Gate* self);
  [[nodiscard]] static rt::Task<Result<void>> flush_clients(std::shared_ptr<Gate> self, Instant deadline);
  template <typename Function>
  [[nodiscard]] Result<void> on_core(Function function) noexcept;

  [[nodiscard]] Result<void> append(const Outbox::Operation& operation, std::size_t bytes_max);
  void send_batch() noexcept;
  [[nodiscard]] Result<void> perform(const Outbox::Operation& operation);
  [[nodiscard]] static rt::Task<void> wait_for_room(Gate* self);
  void handle_message(std::uint64_t number, const nats::Message& message) noexcept;
  [[nodiscard]] Result<void> subscribe_filter(const Filter& filter, std::uint64_t number);
  [[nodiscard]] Result<void> open_control();
  [[nodiscard]] Result<void> open_control_of(Member& entered);
  [[nodiscard]] Result<void> open_replies_of(Member& entered);
  void renew_control() noexcept;
  void renew_replies() noexcept;
  void refuse_control(const Error& why) noexcept;
  void handle_bus(const nats::ClientEvent& event) noexcept;
  void handle_work(const nats::ClientEvent& event) noexcept;
  void wake_waiters() noexcept;
  void count_dropped() noexcept { dropped_refused_.fetch_add(1, std::memory_order_relaxed); }

  const GateOptions options_;
  std::unique_ptr<rt::Runtime> runtime_;
  GateQueue queue_;

  mutable sync::StdMutex mutex_;
  GateCounts last_ WEFT_GUARDED_BY(mutex_);  // of the clients, after their end
  bool ended_ WEFT_GUARDED_BY(mutex_) = false;

  std::atomic<std::size_t> max_payload_{nats::kMessageMaxDefault};
  std::atomic<State> work_state_{State::connecting};
  std::atomic<std::uint64_t> dropped_refused_{0};
  std::atomic<std::uint64_t> sent_refused_{0};  // by the server, which reports each one

  // The core's.
  std::shared_ptr<serve::ClientHost> host_;
  std::unique_ptr<nats::Client> bus_;
  std::unique_ptr<nats::Client> work_;
  std::unique_ptr<rt::TaskScope> scope_;
  bool blocked_ = false;
  bool left_ = false;             // the last member left
  nats::SubscriptionId control_;  // of all handles
  Error control_refused_;         // ok: it stands
  std::vector<Member> members_;
  GateInterest interest_;
  std::map<std::uint64_t, nats::SubscriptionId> subscriptions_;  // by the numbers of interest_
  SubjectTopic topic_of_{names()};
};

}  // namespace weft::topic
