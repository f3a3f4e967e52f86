// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "weft/base/result.h"
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

 private:
  friend class Topics;
  struct Run;
  static Result<Service> start(std::shared_ptr<topic::Node> node, std::string_view topic, const ServiceOptions& options,
                               RequestHandler handler);
  explicit Service(std::shared_ptr<Run> run) noexcept;

  std::shared_ptr<Run> run_;
};

}  // namespace weft
