// SPDX-License-Identifier: MIT
// kept: acknowledged publishes that survive a loss of power, with kInFlight of them unanswered. The server is another
// process: the leader, which hosts the hub, or Redis.
#include <poll.h>
#include <unistd.h>

#include <deque>
#include <new>
#include <optional>

#include "bench/stage.h"
#include "bench/topics/redis_link.h"
#include "bench/topics/runs.h"
#include "bench/topics/stamp.h"
#include "bench/usage.h"
#include "bench/workload.h"
#include "weft/msg/context.h"
#include "weft/topic/topics.h"

namespace bench {
namespace {

constexpr std::size_t kInFlight = 500;
constexpr const char* kStream = "log";
constexpr const char* kTopic = "bench.log";

// KeptPublisher: the publishing side. Owner: the follower. Affinity: one thread.
class KeptPublisher {
 public:
  virtual ~KeptPublisher() = default;
  virtual void publish(std::uint64_t count) = 0;  // returns when each was acknowledged
};

weft::TopicsOptions options_of(const std::string& runtime, const std::string& directory, bool hosts) {
  weft::TopicsOptions options;
  options.fleet = "local:bench";
  options.runtime_directory = runtime;
  options.store_directory = directory;
  options.hosts = hosts;
  return options;
}

weft::StreamOptions stream_options() {
  return {.name = kStream, .topics = {kTopic}, .keep = weft::Keep::log, .survives = weft::Survives::power};
}

class TopicsPublisher final : public KeptPublisher {
 public:
  TopicsPublisher(std::size_t size, const weft::TopicsOptions& options)
      : stamp_(size),
        topics_(must(weft::Topics::open(context_, options), "open")),
        stream_(must(topics_.stream(stream_options()), "stream")) {
    if (stream_.survives() != weft::Survives::power) {
      fail("the stream does not survive a loss of power");
    }
  }
  void publish(std::uint64_t count) override {
    stamp_.begin(++run_);
    std::deque<weft::PendingPublish> waiting;
    for (std::uint64_t i = 0; i < count; ++i) {
      if (waiting.size() == kInFlight) {
        take(waiting);
      }
      waiting.push_back(must(stream_.publish_later(kTopic, stamp_.write()), "publish"));
    }
    while (!waiting.empty()) {
      take(waiting);
    }
  }

 private:
  void take(std::deque<weft::PendingPublish>& waiting) {
    const weft::Published published = must(waiting.front().wait(), "an acknowledgement");
    waiting.pop_front();
    if (published.duplicate || published.sequence <= last_) {
      fail("an acknowledged message is a duplicate, or out of order");
    }
    last_ = published.sequence;
  }

  Stamp stamp_;
  weft::Context context_;
  weft::Topics topics_;
  weft::Stream stream_;
  std::uint64_t run_ = 0;
  std::uint64_t last_ = 0;
};

// XADD over `connections` connections: Redis reads 16 KB of each between two syncs of its file.
class RedisAdder final : public KeptPublisher {
 public:
  RedisAdder(std::size_t size, const std::string& path, std::size_t connections)
      : stamp_(size), head_(RedisLink::head_of({"XADD", kStream, "*", "m"}, size)) {
    for (std::size_t i = 0; i < connections; ++i) {
      links_.push_back(std::make_unique<RedisLink>(path));
      answers_.push_back({links_.back()->fd(), POLLIN, 0});
    }
    unanswered_.resize(connections);
  }
  void publish(std::uint64_t count) override {
    stamp_.begin(++run_);
    std::uint64_t sent = 0;
    for (std::uint64_t answered = 0; answered < count;) {
      for (std::size_t i = 0; i < links_.size(); ++i) {
        for (; sent < count && unanswered_[i] < kInFlight / links_.size(); ++sent, ++unanswered_[i]) {
          const weft::Bytes body = stamp_.write();
          links_[i]->add(head_, body.data(), body.size());
        }
        links_[i]->write();
      }
      poll(answers_.data(), answers_.size(), -1);
      for (std::size_t i = 0; i < links_.size(); ++i) {
        links_[i]->read_some(false);
        for (; unanswered_[i] > 0 && links_[i]->readable(); --unanswered_[i], ++answered) {
          (void)links_[i]->element();
        }
      }
    }
  }

 private:
  Stamp stamp_;
  const std::string head_;
  std::vector<std::unique_ptr<RedisLink>> links_;
  std::vector<pollfd> answers_;
  std::vector<std::size_t> unanswered_;
  std::uint64_t run_ = 0;
};

// KeptServer: the leader's side: counts the kept messages, and reads them again.
class KeptServer {
 public:
  virtual ~KeptServer() = default;
  virtual std::uint64_t kept() = 0;  // messages since the start
};

class Hub final : public KeptServer {
 public:
  explicit Hub(const weft::TopicsOptions& options)
      : topics_(must(weft::Topics::open(context_, options), "open")),
        stream_(must(topics_.stream(stream_options()), "stream")) {}
  std::uint64_t kept() override { return must(stream_.info(), "info").next - 1; }
  // Reads the last `count` messages, and checks each.
  void verify(std::size_t size, std::uint64_t run, std::uint64_t count) {
    weft::Reader reader = must(stream_.read({.from = weft::From::sequence(kept() - count + 1)}), "read");
    Stamp stamp(size);
    stamp.begin(run);
    for (std::uint64_t i = 0; i < count; ++i) {
      stamp.read(must(reader.next(), "a kept message").body());
    }
    stamp.check(count);
  }

 private:
  weft::Context context_;
  weft::Topics topics_;
  weft::Stream stream_;
};

class RedisServer final : public KeptServer {
 public:
  explicit RedisServer(const std::string& path) : link_(path) {
    link_.add_raw(RedisLink::encode({"CONFIG", "GET", "appendfsync"}));
    link_.write();
    (void)link_.element();
    (void)link_.element();
    if (link_.element() != "always") {
      fail("this Redis does not sync its file");
    }
  }
  std::uint64_t kept() override {
    link_.add_raw(RedisLink::encode({"XLEN", kStream}));
    link_.write();
    return std::stoull(std::string(link_.element().substr(1)));
  }

 private:
  RedisLink link_;
};

// The leader's orders to the follower; in shared memory.
struct KeptPlan {
  Stage stage{2};
  std::uint64_t count = 0;  // 0: end
  double seconds = 0;
  Usage usage;
};

void follow(KeptPlan& plan, KeptPublisher& publisher) {
  for (plan.stage.meet(); plan.count != 0; plan.stage.meet()) {
    const Usage before = usage_now();
    const std::uint64_t start = now_ns();
    publisher.publish(plan.count);
    plan.seconds = static_cast<double>(now_ns() - start) / 1e9;
    plan.usage = usage_now() - before;
    plan.stage.meet();
  }
}

}  // namespace

void run_kept(const std::string& cell, const std::string& engine, const std::string& runtime,
              const std::string& directory, const std::string& redis) {
  const std::size_t size = size_in(cell);
  const bool topics = engine == "topics";
  if (!topics && engine != "redis" && engine != "redis_x5") {
    fail("no engine '" + engine + "' that keeps");
  }
  auto* const plan = new (shared_memory(sizeof(KeptPlan))) KeptPlan;
  run_both(
      true,
      [&] {
        std::unique_ptr<KeptServer> server;
        Hub* hub = nullptr;
        if (topics) {
          auto made = std::make_unique<Hub>(options_of(runtime, directory, true));
          hub = made.get();
          server = std::move(made);
        } else {
          server = std::make_unique<RedisServer>(redis);
        }
        plan->stage.meet();  // the server serves
        std::uint64_t run = 0;
        serve_runs(
            topics ? "weft::Stream" : "Redis",
            [&](std::uint64_t count, bool verify) {
              const std::uint64_t before = server->kept();
              plan->count = count;
              plan->stage.meet();
              plan->stage.meet();
              ++run;
              if (server->kept() != before + count) {
                fail("another number of messages was kept than acknowledged");
              }
              if (verify && hub != nullptr) {
                hub->verify(size, run, count);
              }
              return RunResult{count, 1, plan->seconds};
            },
            nullptr,
            [&](Json& record) {
              record["cpu_seconds"] = record["cpu_seconds"].get<double>() + plan->usage.cpu_seconds;
              record["switches"] = record["switches"].get<std::uint64_t>() + plan->usage.switches;
            });
        plan->count = 0;
        plan->stage.meet();
      },
      [&] {
        plan->stage.meet();
        std::unique_ptr<KeptPublisher> publisher;
        if (topics) {
          publisher = std::make_unique<TopicsPublisher>(size, options_of(runtime, directory, false));
        } else {
          publisher = std::make_unique<RedisAdder>(size, redis, engine == "redis" ? 1 : 5);
        }
        follow(*plan, *publisher);
      });
}

}  // namespace bench
