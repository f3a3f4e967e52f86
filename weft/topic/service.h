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

// ServiceOptions: how requests to a topic are shared.
struct ServiceOptions {
  std::string group{};           // of each group one member gets a request; empty is a group, too; at most 255 bytes
  std::size_t at_a_time = 1;     // handlers that run at once; of Topics: threads, at most 64
  std::size_t queue_max = 1024;  // requests that wait for a handler; beyond, the asker gets resource_exhausted
};

// Answers a request: the body of the reply, or the error that the asker gets. An exception is the error job_threw.
using RequestHandler = std::function<Result<Message>(const TopicMessage& request)>;

// Service: a topic that this handle answers requests for.
// Owner: a move-only value; destruction stops. It must not be destroyed by its own handler.
// Affinity: any thread. Handlers run on threads of the service.
class Service {
 public:
  Service(Service&&) noexcept;
  Service& operator=(Service&&) noexcept;
  ~Service();
  // No handler begins any more; waits for those that run. Waiting requests get unreachable. Idempotent.
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
