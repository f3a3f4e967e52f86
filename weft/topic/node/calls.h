// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "weft/base/intrusive_ptr.h"
#include "weft/base/result.h"
#include "weft/sync/lock.h"
#include "weft/topic/node/subscription_core.h"

namespace weft::topic {

// Calls: the requests of a handle that are under way, and its services: where a reply goes, and where a request. Both
// enter by two subscriptions of the handle's own.
// Owner: a node. Affinity: any thread. Cost: a lock and a step in a map.
// Locks: the lock of the calls comes after that of the mesh, and before that of a subscription.
// Invariants:
//   1. A request has an entry from begin() to end() or fail().
//   2. After close() none begins, and each that had begun has the reason.
class Calls {
 public:
  // Service: the requests for one service of this handle. Null: it has stopped.
  struct Service {
    IntrusivePtr<SubscriptionCore> requests;
    std::size_t queue_max = 0;
  };

  // --- the handle's own subscriptions ---
  // Once, before the roster of this handle goes out. The functions get the messages, on the thread that brings them.
  void open_inboxes(std::function<void(TopicMessage&&)> on_reply, std::function<void(TopicMessage&&)> on_request);
  [[nodiscard]] SubscriptionCore& replies_inbox() noexcept { return *replies_inbox_; }
  [[nodiscard]] SubscriptionCore& requests_inbox() noexcept { return *requests_inbox_; }

  // --- requests under way ---
  // `subject`: at a gate. Errors: closed; resource_exhausted (Requests::kRequestsMax); at a gate the reason of
  // refuse_replies(). Throws std::bad_alloc: nothing has changed.
  [[nodiscard]] Result<void> begin(std::uint64_t id, IntrusivePtr<SubscriptionCore> replies, std::string subject = {});
  void end(std::uint64_t id) noexcept;
  void fail(std::uint64_t id, const Error& why) noexcept;                              // ends the replies, too
  [[nodiscard]] IntrusivePtr<SubscriptionCore> replies_of(std::uint64_t id) noexcept;  // null: it has ended
  // The next two end the replies of requests, which stay until end().
  void fail_all(const Error& why) noexcept;
  void fail_subject(std::string_view subject, const Error& why) noexcept;
  void refuse_replies(const Error& why) noexcept;  // of requests that begin until permit()
  void refuse_answers(const Error& why) noexcept;  // the answers of this handle, until permit()
  void permit() noexcept;
  [[nodiscard]] Result<void> answers() noexcept;  // the reason of refuse_answers()

  // --- services ---
  // Errors: closed; resource_exhausted (Roster::kServicesMax). Throws std::bad_alloc.
  [[nodiscard]] Result<void> add_service(std::uint64_t id, Service service);
  void remove_service(std::uint64_t id) noexcept;
  [[nodiscard]] std::uint64_t take_out(const SubscriptionCore& requests) noexcept;  // 0: no such service
  [[nodiscard]] Service service(std::uint64_t id) noexcept;
  void fail_service(std::uint64_t id, const Error& why) noexcept;

  void close(const Error& reason) noexcept;

 private:
  struct Asked {
    IntrusivePtr<SubscriptionCore> replies;
    std::string subject{};
  };
  using AskedBySubject = std::set<std::pair<std::string_view, std::uint64_t>>;

  IntrusivePtr<SubscriptionCore> replies_inbox_;   // const after open_inboxes()
  IntrusivePtr<SubscriptionCore> requests_inbox_;  // the same
  sync::StdMutex mutex_;
  std::map<std::uint64_t, Service> services_ WEFT_GUARDED_BY(mutex_);
  std::map<std::uint64_t, Asked> asked_ WEFT_GUARDED_BY(mutex_);
  // The requests at a gate, by their subjects, which are texts in asked_. One that was refused is not in it.
  AskedBySubject by_subject_ WEFT_GUARDED_BY(mutex_);
  Error replies_refused_ WEFT_GUARDED_BY(mutex_);  // by the fleet's server
  Error answers_refused_ WEFT_GUARDED_BY(mutex_);  // by it
  Error closed_ WEFT_GUARDED_BY(mutex_);
};

}  // namespace weft::topic
