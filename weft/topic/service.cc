// SPDX-License-Identifier: MIT
#include "weft/topic/service.h"

#include <utility>
#include <vector>

#include "weft/sync/lock.h"
#include "weft/sys/thread.h"
#include "weft/topic/node/node.h"

namespace weft {

// Run: the shared state of a service's threads.
struct Service::Run {
  std::shared_ptr<topic::Node> node;
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

}  // namespace weft
