// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <variant>

#include "capi/topics/message_handle.h"
#include "weft/base/bytes.h"
#include "weft/base/filter.h"
#include "weft/base/intrusive_ptr.h"
#include "weft/base/result.h"
#include "weft/base/time.h"
#include "weft/sync/condition.h"
#include "weft/sync/lock.h"
#include "weft/sys/event_fd.h"
#include "weft/topic/kept/hub_link.h"
#include "weft/topic/kept/key_value_core.h"
#include "weft/topic/kept/stream_core.h"
#include "weft/topic/node/node.h"
#include "weft/topic/wire/headers.h"

namespace weft::capi::topics {

// CallQueue: calls under way for which no thread waits, and their outcomes.
// Owner: its handle. Affinity: any thread, also several at once.
// Cost: one descriptor and one thread, which sleeps until the next deadline of a request. The first outcome after a
// wake-up costs a look at each call under way.
// Invariants:
//   1. Each call that begin() or start() takes has one outcome, unless the queue closes first.
//   2. At most kCallsMax calls are under way or have an outcome that no caller took.
//   3. The event is readable while an outcome can be taken, and until a call of try_next() found none.
class CallQueue {
 public:
  static constexpr std::size_t kCallsMax = 65'536;
  static constexpr std::size_t kWaitingBytesMax = std::size_t{8} << 20;  // of requests that wait for the services

  using Content = std::variant<std::monostate, TopicMessage, KeptMessage, KeyValueEntry, StreamNumbers, KeysPage>;
  struct Outcome {
    std::uint64_t tag = 0;
    Error error{};  // ok: `content` or `published` holds
    Content content{};
    Published published{};
  };
  // The part of an outcome that the answer of the hub becomes. `removed` and `confirmed` decide the error only.
  enum class Answer : std::uint8_t { none, published, message, entry, removed, confirmed, info, keys };
  struct Reading {
    Answer answer = Answer::none;
    std::shared_ptr<const topic::StreamCore> stream{};    // of `info`
    std::shared_ptr<const topic::KeyValueCore> bucket{};  // of `entry` and `keys`
    std::unique_ptr<const Filter> filter{};               // of `keys`
  };

  // Throws std::system_error if there is no thread.
  CallQueue(std::shared_ptr<topic::Node> node, sys::EventFd event);
  CallQueue(const CallQueue&) = delete;
  CallQueue& operator=(const CallQueue&) = delete;
  ~CallQueue();
  // Drops the calls under way and the outcomes, and ends the calls that wait for them. Idempotent.
  void close() noexcept;

  // Begins a request, like Topics::request(). Errors: resource_exhausted (kCallsMax, kWaitingBytesMax); closed;
  // unreachable, and the other errors of a request that is not sent.
  [[nodiscard]] Result<void> request(std::uint64_t tag, std::string_view topic, Bytes body, Instant deadline,
                                     const Headers& headers);
  // Sends a prepared call to the hub. Errors: would_block (HubLink::kInFlightMax calls are under way);
  // resource_exhausted; closed.
  [[nodiscard]] Result<void> start(std::uint64_t tag, std::shared_ptr<topic::HubLink> link,
                                   IntrusivePtr<topic::HubCall> call, Reading reading);

  [[nodiscard]] Result<Outcome> try_next();                    // errors: would_block; closed
  [[nodiscard]] Result<Outcome> next_until(Instant deadline);  // errors: timed_out; closed
  [[nodiscard]] int descriptor() const noexcept { return event_.fd(); }

 private:
  // Asked: a request that was sent. The sleeper rings the event.
  struct Asked {
    Asked(std::uint64_t own, topic::Node::Request sent, Instant until, sys::EventFd& event)
        : tag(own), request(std::move(sent)), deadline(until), sleeper(event) {}
    std::uint64_t tag;
    topic::Node::Request request;
    Instant deadline;
    topic::SubscriptionCore::Sleeper sleeper;
  };
  // Waiting: a request whose topic no known handle serves, while a peer has not sent its roster.
  struct Waiting {
    std::uint64_t tag;
    std::string topic;
    std::string body;
    std::string headers;
    Instant deadline;
    [[nodiscard]] std::size_t bytes() const noexcept { return topic.size() + body.size() + headers.size(); }
  };
  struct Started {
    std::uint64_t tag;
    std::shared_ptr<topic::HubLink> link;
    IntrusivePtr<topic::HubCall> call;
    Reading reading;
  };

  [[nodiscard]] Result<void> check_room() const WEFT_REQUIRES(mutex_);
  void add_asked(std::uint64_t tag, topic::Node::Request&& sent, Instant deadline) WEFT_REQUIRES(mutex_);
  void forget(Asked& asked) noexcept WEFT_REQUIRES(mutex_);
  [[nodiscard]] Result<void> begin(std::uint64_t tag, std::string_view topic, Bytes body, Instant deadline,
                                   std::string_view headers);
  [[nodiscard]] Result<void> send(Started& started) WEFT_REQUIRES(mutex_);
  // The outcomes of the calls that have ended. They throw std::bad_alloc, and then no outcome is lost.
  void harvest_replies() WEFT_REQUIRES(mutex_);
  void harvest_answers() WEFT_REQUIRES(mutex_);
  [[nodiscard]] static Result<void> read_answer(Started& started, Outcome& outcome);

  // The thread: deadlines of requests, and requests that wait for the services.
  void run();
  [[nodiscard]] Instant end_overdue() WEFT_REQUIRES(mutex_);  // returns the next deadline
  void begin_waiting() WEFT_REQUIRES(mutex_);

  const std::shared_ptr<topic::Node> node_;
  sys::EventFd event_;
  sync::StdMutex mutex_;
  sync::Condition changed_;  // for the thread: an earlier deadline, a waiting request, the end
  bool closed_ WEFT_GUARDED_BY(mutex_) = false;
  Instant next_deadline_ WEFT_GUARDED_BY(mutex_) = kNever;
  std::list<Asked> asked_ WEFT_GUARDED_BY(mutex_);
  std::list<Waiting> waiting_ WEFT_GUARDED_BY(mutex_);
  std::size_t waiting_bytes_ WEFT_GUARDED_BY(mutex_) = 0;
  std::list<Started> started_ WEFT_GUARDED_BY(mutex_);
  std::deque<Outcome> outcomes_ WEFT_GUARDED_BY(mutex_);
  std::thread thread_;  // the last member: it uses the others
};

}  // namespace weft::capi::topics
