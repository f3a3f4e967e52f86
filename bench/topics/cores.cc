// SPDX-License-Identifier: MIT
// Cells between cores of one process: a publisher on the first core, and subscribers on the others, in turn.
#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include "bench/stage.h"
#include "bench/topics/runs.h"
#include "bench/topics/stamp.h"
#include "bench/workload.h"
#include "weft/msg/async_socket.h"
#include "weft/rt/core/core_task.h"
#include "weft/rt/core/runtime.h"
#include "weft/rt/exec/future.h"
#include "weft/sys/clock.h"
#include "weft/topic/async_topics.h"

namespace bench {
namespace {

using Done = weft::rt::Task<weft::Result<void>>;

constexpr const char* kEndpoint = "inproc://bench";
constexpr std::chrono::seconds kReady(20);

// One participant: its objects on its core, and its measurements.
struct Participant {
  explicit Participant(std::size_t size) : stamp(size) {}

  std::optional<weft::AsyncTopics> topics;
  std::optional<weft::AsyncPublisher> publisher;
  std::optional<weft::AsyncSubscription> subscription;
  std::optional<weft::AsyncSocket> socket;
  Stamp stamp;
  std::uint64_t first_ns = 0;
  std::uint64_t last_ns = 0;
};

weft::TopicsOptions options() {
  weft::TopicsOptions options;
  options.fleet = "inproc:bench";
  options.queue_messages_max = std::size_t{1} << 27U;  // a whole repetition: nothing is dropped
  options.queue_bytes_max = std::size_t{1} << 36U;
  return options;
}

// --- topics ---

Done open_topics(weft::rt::Core* core, weft::Context* context, Participant* self, bool publishes) {
  weft::Result<weft::AsyncTopics> topics = co_await weft::AsyncTopics::open(*core, *context, options());
  self->topics.emplace(must(std::move(topics), "open"));
  if (publishes) {
    self->publisher.emplace(must(self->topics->publisher(kFlow), "publisher"));
  } else {
    self->subscription.emplace(must(self->topics->subscribe(kFlow), "subscribe"));
  }
  co_return weft::Result<void>();
}

Done await_topics(Participant* self, std::size_t count) {
  const weft::Result<std::size_t> ready = co_await self->publisher->wait_subscribers(count, weft::sys::now() + kReady);
  must(ready, "wait for the subscribers");
  co_return weft::Result<void>();
}

Done publish_topics(Participant* self, std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i) {
    weft::Result<weft::Message> body = weft::Message::copy_of(self->stamp.write());
    const weft::Result<void> published = co_await self->publisher->publish_wait(*std::move(body));
    if (!published) [[unlikely]] {
      co_return published;
    }
  }
  co_return weft::Result<void>();
}

Done receive_topics(Participant* self, std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i) {
    const weft::Result<weft::TopicMessage> message = co_await self->subscription->next();
    if (!message) [[unlikely]] {
      co_return message.error();
    }
    self->stamp.read(message->body());
    if (i == 0) {
      self->first_ns = now_ns();
    }
  }
  self->last_ns = now_ns();
  co_return weft::Result<void>();
}

// --- sockets ---

Done open_socket(weft::rt::Core* core, weft::Context* context, Participant* self, bool publishes, bool one_part) {
  weft::Socket socket = must(context->socket(publishes ? weft::SocketType::pub : weft::SocketType::sub), "socket");
  must(socket.set(weft::option::linger, weft::Duration::zero()), "linger");
  if (publishes) {
    must(socket.set(weft::option::xpub_no_drop, true), "xpub_no_drop");
    must(socket.bind(kEndpoint), "bind");
  } else {
    must(socket.subscribe(one_part ? "" : kFlow), "subscribe");
    must(socket.connect(kEndpoint), "connect");
  }
  self->socket.emplace(must(weft::AsyncSocket::make(core->loop(), std::move(socket)), "AsyncSocket"));
  co_return weft::Result<void>();
}

Done await_sockets(Participant* self, std::size_t count) {
  const weft::Result<void> ready = co_await self->socket->wait_subscribers(count);
  co_return ready;
}

// A part at once if there is room, which costs no coroutine.
Done publish_socket(Participant* self, std::uint64_t count, bool one_part) {
  const weft::Message topic = must(weft::Message::copy_of(kFlow), "topic");
  for (std::uint64_t i = 0; i < count; ++i) {
    if (!one_part) {
      weft::Message name = topic.share();
      if (const auto sent = self->socket->try_send(std::move(name), weft::More::yes); !sent) {
        name = topic.share();
        const weft::Result<void> later = co_await self->socket->send(std::move(name), weft::More::yes);
        must(later, "send");
      }
    }
    weft::Message body = must(weft::Message::copy_of(self->stamp.write()), "body");
    if (const auto sent = self->socket->try_send(std::move(body)); !sent) {
      const weft::Result<void> later = co_await self->socket->send(std::move(body));
      must(later, "send");
    }
  }
  co_return weft::Result<void>();
}

Done receive_socket(Participant* self, std::uint64_t count, bool one_part) {
  for (std::uint64_t i = 0; i < count; ++i) {
    if (!one_part) {
      const weft::Result<weft::Message> topic = co_await self->socket->recv();
      if (!topic) [[unlikely]] {
        co_return topic.error();
      }
    }
    const weft::Result<weft::Message> body = co_await self->socket->recv();
    if (!body) [[unlikely]] {
      co_return body.error();
    }
    self->stamp.read(body->bytes());
    if (i == 0) {
      self->first_ns = now_ns();
    }
  }
  self->last_ns = now_ns();
  co_return weft::Result<void>();
}

Done close_all(Participant* self) {
  self->subscription.reset();
  self->publisher.reset();
  self->topics.reset();
  self->socket.reset();
  co_return weft::Result<void>();
}

// CoresRun: the cores, and the participants on them. Owner: run_cores(). Affinity: one thread, none of the cores'.
class CoresRun {
 public:
  CoresRun(std::size_t size, std::size_t subscribers, const std::string& engine)
      : engine_(engine), runtime_(start_runtime(subscribers)) {
    for (std::size_t i = 0; i <= subscribers; ++i) {
      participants_.push_back(std::make_unique<Participant>(size));
      wait(spawn(i, open(i)));
    }
    wait(spawn(0, topics() ? await_topics(participants_[0].get(), subscribers)
                           : await_sockets(participants_[0].get(), subscribers)));
  }
  ~CoresRun() {
    for (std::size_t i = 0; i < participants_.size(); ++i) {
      wait(spawn(i, close_all(participants_[i].get())));
    }
  }
  CoresRun(const CoresRun&) = delete;
  CoresRun& operator=(const CoresRun&) = delete;

  RunResult repeat(std::uint64_t count) {
    ++run_;
    for (const auto& participant : participants_) {
      participant->stamp.begin(run_);
    }
    std::vector<weft::rt::Future<void>> ends;
    for (std::size_t i = 1; i < participants_.size(); ++i) {
      Participant* const self = participants_[i].get();
      ends.push_back(spawn(i, topics() ? receive_topics(self, count) : receive_socket(self, count, one_part())));
    }
    Participant* const publisher = participants_[0].get();
    ends.push_back(
        spawn(0, topics() ? publish_topics(publisher, count) : publish_socket(publisher, count, one_part())));
    for (weft::rt::Future<void>& end : ends) {
      wait(std::move(end));
    }
    std::uint64_t first = participants_[1]->first_ns;
    std::uint64_t last = participants_[1]->last_ns;
    for (std::size_t i = 1; i < participants_.size(); ++i) {
      participants_[i]->stamp.check(count);
      first = std::min(first, participants_[i]->first_ns);
      last = std::max(last, participants_[i]->last_ns);
    }
    const std::uint64_t receivers = participants_.size() - 1;
    return {count * receivers, receivers, static_cast<double>(last - first) / 1e9};
  }

  // Between the publisher's core and the first subscriber's.
  double probe(std::uint32_t ping_pongs) {
    constexpr int kChunks = 20;
    const auto follow = [this, ping_pongs] {
      players_.ping_pong(Side::follower, kChunks, ping_pongs);
      probed_.meet();
    };
    const auto lead = [this, ping_pongs] {
      probe_ns_ = players_.ping_pong(Side::leader, kChunks, ping_pongs);
      probed_.meet();
    };
    must(runtime_->post(1, follow), "post");
    must(runtime_->post(0, lead), "post");
    probed_.meet();
    return probe_ns_;
  }

 private:
  static std::unique_ptr<weft::rt::Runtime> start_runtime(std::size_t subscribers) {
    const auto processors = static_cast<std::size_t>(std::max(std::thread::hardware_concurrency(), 2U));
    weft::rt::RuntimeOptions options;
    options.cores = static_cast<unsigned>(std::min(subscribers + 1, processors));
    return must(weft::rt::Runtime::start(options), "the cores");
  }
  [[nodiscard]] bool topics() const { return engine_ == "topics"; }
  [[nodiscard]] bool one_part() const { return engine_ == "one_part"; }
  [[nodiscard]] weft::rt::Core& core_of(std::size_t participant) {
    return runtime_->core(participant == 0 ? 0 : static_cast<unsigned>(1 + (participant - 1) % (runtime_->size() - 1)));
  }
  Done open(std::size_t i) {
    return topics() ? open_topics(&core_of(i), &context_, participants_[i].get(), i == 0)
                    : open_socket(&core_of(i), &context_, participants_[i].get(), i == 0, one_part());
  }
  weft::rt::Future<void> spawn(std::size_t participant, Done task) {
    return must(weft::rt::spawn(core_of(participant), std::move(task)), "spawn");
  }
  static void wait(weft::rt::Future<void> end) { must(end.get(), "a core"); }

  const std::string engine_;
  weft::Context context_;
  std::unique_ptr<weft::rt::Runtime> runtime_;
  std::vector<std::unique_ptr<Participant>> participants_;
  std::uint64_t run_ = 0;
  Stage players_{2};  // of the probe
  Stage probed_{3};
  double probe_ns_ = 0;
};

}  // namespace

void run_cores(const std::string& cell, const std::string& engine, std::uint32_t ping_pongs) {
  if (engine != "topics" && engine != "sockets" && engine != "one_part") {
    fail("no engine '" + engine + "' between cores");
  }
  const std::size_t times = cell.rfind("/x") == std::string::npos ? 1 : std::stoul(cell.substr(cell.rfind("/x") + 2));
  CoresRun run(size_in(cell), times, engine);
  serve_runs(
      engine == "topics" ? "weft::AsyncTopics" : "weft::AsyncSocket",
      [&](std::uint64_t count, bool /*verify*/) { return run.repeat(count); }, [&] { return run.probe(ping_pongs); });
}

}  // namespace bench
