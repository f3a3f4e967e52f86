// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "weft/base/bytes.h"
#include "weft/base/intrusive_ptr.h"
#include "weft/base/result.h"
#include "weft/base/time.h"
#include "weft/msg/message/message.h"
#include "weft/topic/node/topic_message.h"

namespace weft {

namespace topic {
class Node;
class SubscriptionCore;
}  // namespace topic

// ServiceOptions: how services share the requests to a topic.
struct ServiceOptions {
  std::string group{};           // one member of each group gets a request; "" is a group, too; at most 255 bytes
  std::size_t at_a_time = 1;     // handlers that run at once; for Topics: threads, at most 64
  std::size_t queue_max = 1024;  // requests that wait for a handler; a request beyond fails with resource_exhausted
};

// Answers a request: returns the body of the reply, or the error that the requester gets. An exception becomes the
// error job_threw.
using RequestHandler = std::function<Result<Message>(const TopicMessage& request)>;

// Service: a topic whose requests this handle answers.
// Owner: a move-only value; destruction stops the service. A handler of the service must not destroy it.
// Affinity: any thread. Handlers run on threads of the service.
class Service {
 public:
  Service(Service&&) noexcept;
  Service& operator=(Service&&) noexcept;
  ~Service();
  // Begins no further handler, and waits for the running ones. Waiting requests fail with unreachable. Idempotent.
  void stop() noexcept;
  // Why no request arrives any longer, or no reply. Errors: closed (the service or its handle); not_permitted (the
  // fleet's server refuses the service, or refused a reply of this process since it connected; a sync() of the handle
  // waits for the server's answer).
  [[nodiscard]] Result<void> status() const noexcept;

 private:
  friend class Topics;
  struct Run;
  static Result<Service> start(std::shared_ptr<topic::Node> node, std::string_view topic, const ServiceOptions& options,
                               RequestHandler handler);
  explicit Service(std::shared_ptr<Run> run) noexcept;

  std::shared_ptr<Run> run_;
};

// TakenRequest: a request that the program took from a RequestQueue, and answers once.
// Owner: a move-only value; it may outlive its queue. Destruction without an answer fails the request with job_threw.
// Affinity: one thread at a time.
class TakenRequest {
 public:
  TakenRequest(TakenRequest&&) noexcept;
  TakenRequest& operator=(TakenRequest&&) noexcept;
  ~TakenRequest();

  [[nodiscard]] std::string_view topic() const noexcept { return topic_.text(); }  // of the service
  [[nodiscard]] Bytes body() const noexcept { return request_.body(); }
  [[nodiscard]] std::string_view text() const noexcept { return request_.text(); }
  [[nodiscard]] std::string_view header(std::string_view name) const noexcept { return request_.header(name); }
  [[nodiscard]] std::string_view headers() const noexcept { return request_.headers(); }  // the block

  // Sends the reply, or the error that the requester gets. Neither waits. Errors: invalid_state (it has an answer);
  // message_too_large (64 MiB: the request stays unanswered); closed (the handle). The requester's deadline passes if
  // the reply finds no memory.
  Result<void> reply(Bytes body, const Headers& headers = {});
  Result<void> reply(std::string_view body, const Headers& headers = {}) { return reply(as_bytes(body), headers); }
  Result<void> refuse(const Error& error);

 private:
  friend class RequestQueue;
  friend class AsyncRequestQueue;
  TakenRequest(std::shared_ptr<topic::Node> node, Message topic, TopicMessage&& request) noexcept;
  [[nodiscard]] Result<std::shared_ptr<topic::Node>> take_node() noexcept;

  std::shared_ptr<topic::Node> node_;  // null if it has an answer
  Message topic_;
  TopicMessage request_;
};

// RequestQueue: a service without threads: the program takes each request by next(), and answers it when it likes.
// Owner: a move-only value; destruction closes. It may outlive the handle.
// Affinity: any thread, also several at once. Each request goes to one of them.
class RequestQueue {
 public:
  RequestQueue(RequestQueue&&) noexcept;
  RequestQueue& operator=(RequestQueue&&) noexcept;
  ~RequestQueue();
  // Wakes every next(). The queued requests fail with unreachable. The taken ones may still be answered. Idempotent.
  void close() noexcept;

  // Errors: closed (the queue or its handle).
  Result<TakenRequest> next() { return next_until(kNever); }
  Result<TakenRequest> next_until(Instant deadline);  // fails with timed_out, too
  Result<TakenRequest> try_next();                    // never waits; fails with would_block
  Result<int> descriptor();                           // like Subscription's
  // Like Service::status().
  [[nodiscard]] Result<void> status() const noexcept;

 private:
  friend class Topics;
  RequestQueue(std::shared_ptr<topic::Node> node, IntrusivePtr<topic::SubscriptionCore> requests,
               Message topic) noexcept;
  [[nodiscard]] static Result<TakenRequest> taken(std::shared_ptr<topic::Node> node, Message topic,
                                                  Result<TopicMessage> request);

  std::shared_ptr<topic::Node> node_;
  IntrusivePtr<topic::SubscriptionCore> requests_;
  Message topic_;
};

}  // namespace weft
