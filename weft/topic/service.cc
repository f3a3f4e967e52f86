// SPDX-License-Identifier: MIT
#include "weft/topic/service.h"

#include <cstddef>
#include <utility>
#include <vector>

#include "weft/sync/lock.h"
#include "weft/sys/thread.h"
#include "weft/topic/kept/moved_from.h"
#include "weft/topic/node/node.h"

namespace weft {

namespace {
constexpr std::size_t kReplyBytesMax = std::size_t{64} << 20;  // the bound of every volatile message
}  // namespace

// --- Service ---

// Run: the shared state of a service's threads.
struct Service::Run {
  std::shared_ptr<topic::Node> node;
  std::weak_ptr<topic::Node> of{};  // the same, for calls beside stop()
  IntrusivePtr<topic::SubscriptionCore> requests;
  RequestHandler handler;
  std::vector<sys::Thread> threads;
  sync::StdMutex stopping;  // a stop() that comes meanwhile waits, too
  bool stopped = false;

  static void work(void* self) {
    sys::set_up_thread("topics/service", {});
    Run& run = *static_cast<Run*>(self);
    while (auto request = run.node->next_until(*run.requests, kNever)) {
      run.answer(*request);
    }
  }
  void answer(const TopicMessage& request) noexcept {
    try {
      const Result<Message> body = handler(request);
      if (body) {
        node->reply(request, body->bytes(), {});
      } else {
        node->reply_error(request, body.error());
      }
    } catch (...) {
      node->reply_error(request, Error(Errc::job_threw, "the handler threw"));
    }
  }
};

Service::Service(std::shared_ptr<Run> run) noexcept : run_(std::move(run)) {}
Service::Service(Service&&) noexcept = default;
Service& Service::operator=(Service&& other) noexcept {
  if (this != &other) {
    stop();
    run_ = std::move(other.run_);
  }
  return *this;
}
Service::~Service() { stop(); }

Result<Service> Service::start(std::shared_ptr<topic::Node> node, std::string_view topic, const ServiceOptions& options,
                               RequestHandler handler) {
  if (options.at_a_time == 0 || options.at_a_time > 64 || options.queue_max == 0) {
    return Error(Errc::invalid_argument, "a service has 1 to 64 threads, and a queue");
  }
  auto run = std::make_shared<Run>();
  run->of = node;
  run->node = std::move(node);
  run->handler = std::move(handler);
  run->requests = WEFT_TRY(run->node->serve(topic, options.group, options.queue_max));
  Service service(std::move(run));
  service.run_->threads.reserve(options.at_a_time);  // a thread without a place would be joined before the service ends
  for (std::size_t i = 0; i < options.at_a_time; ++i) {
    service.run_->threads.push_back(WEFT_TRY(sys::Thread::start(&Run::work, service.run_.get())));
  }
  return service;
}

void Service::stop() noexcept {
  const std::shared_ptr<Run> run = run_;
  if (run == nullptr) {
    return;
  }
  const sync::LockGuard lock(run->stopping);
  if (!std::exchange(run->stopped, true)) {
    run->node->stop_serving(*run->requests);
    run->threads.clear();  // joins
    run->node.reset();
  }
}

Result<void> Service::status() const noexcept {
  const auto* const run = WEFT_TRY(topic::borrow(run_));
  const std::shared_ptr<topic::Node> node = run->of.lock();
  return node == nullptr ? run->requests->status() : node->service_status(*run->requests);
}

// --- TakenRequest ---

TakenRequest::TakenRequest(std::shared_ptr<topic::Node> node, Message topic, TopicMessage&& request) noexcept
    : node_(std::move(node)), topic_(std::move(topic)), request_(std::move(request)) {}
TakenRequest::TakenRequest(TakenRequest&&) noexcept = default;
TakenRequest& TakenRequest::operator=(TakenRequest&& other) noexcept {
  if (this != &other) {
    (void)refuse(Error(Errc::job_threw, "the service dropped the request"));
    node_ = std::move(other.node_);
    topic_ = std::move(other.topic_);
    request_ = std::move(other.request_);
  }
  return *this;
}
TakenRequest::~TakenRequest() { (void)refuse(Error(Errc::job_threw, "the service dropped the request")); }

Result<std::shared_ptr<topic::Node>> TakenRequest::take_node() noexcept {
  if (node_ == nullptr) {
    return Error(Errc::invalid_state, "the request has an answer");
  }
  if (node_->closed()) {
    return Error(Errc::closed, "the handle of topics was closed");
  }
  return std::exchange(node_, nullptr);
}

Result<void> TakenRequest::reply(Bytes body, const Headers& headers) {
  if (body.size() > kReplyBytesMax) {
    return Error(Errc::message_too_large, "a message of topics exceeds 64 MiB");
  }
  WEFT_TRY(take_node())->reply(request_, body, headers.block());
  return {};
}
Result<void> TakenRequest::refuse(const Error& error) {
  WEFT_TRY(take_node())->reply_error(request_, error);
  return {};
}

// --- RequestQueue ---

RequestQueue::RequestQueue(std::shared_ptr<topic::Node> node, IntrusivePtr<topic::SubscriptionCore> requests,
                           Message topic) noexcept
    : node_(std::move(node)), requests_(std::move(requests)), topic_(std::move(topic)) {}
RequestQueue::RequestQueue(RequestQueue&&) noexcept = default;
RequestQueue& RequestQueue::operator=(RequestQueue&& other) noexcept {
  if (this != &other) {
    close();
    node_ = std::move(other.node_);
    requests_ = std::move(other.requests_);
    topic_ = std::move(other.topic_);
  }
  return *this;
}
RequestQueue::~RequestQueue() { close(); }

void RequestQueue::close() noexcept {
  if (node_ != nullptr) {
    node_->stop_serving(*requests_);
  }
}

Result<TakenRequest> RequestQueue::taken(std::shared_ptr<topic::Node> node, Message topic,
                                         Result<TopicMessage> request) {
  return request ? Result<TakenRequest>(TakenRequest(std::move(node), std::move(topic), *std::move(request)))
                 : Result<TakenRequest>(request.error());
}
Result<TakenRequest> RequestQueue::next_until(Instant deadline) {
  const auto node = WEFT_TRY(topic::share(node_));
  const auto requests = requests_;
  Message topic = topic_.share();
  return taken(node, std::move(topic), node->next_until(*requests, deadline));
}
Result<TakenRequest> RequestQueue::try_next() {
  Result<TopicMessage> request = WEFT_TRY(topic::borrow(node_))->try_next(*requests_);
  return taken(node_, topic_.share(), std::move(request));
}
Result<int> RequestQueue::descriptor() { return WEFT_TRY(topic::borrow(requests_))->descriptor(); }
Result<void> RequestQueue::status() const noexcept {
  return WEFT_TRY(topic::borrow(node_))->service_status(*requests_);
}

}  // namespace weft
