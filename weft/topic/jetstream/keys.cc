// SPDX-License-Identifier: MIT
#include "weft/topic/jetstream/keys.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "weft/base/filter.h"
#include "weft/nats/jetstream/consumer.h"
#include "weft/nats/jetstream/delivery.h"
#include "weft/rt/task/async_event.h"
#include "weft/rt/task/task_time.h"

namespace weft::topic {

namespace {

namespace js = nats::jetstream;

constexpr std::size_t kKeysPage = 256;
constexpr std::uint32_t kKeysBatch = 1024;
constexpr Duration kBatchMost = std::chrono::seconds(5);
constexpr int kCollectsMax = 3;
constexpr Error kTooManyKeys(Errc::resource_exhausted, "more than 1,000,000 keys: watch() gives any number");
constexpr Error kListCut(Errc::unreachable, "the connection to the servers ended, or a message was lost");

// One run of an ephemeral consumer over the newest messages of all topics.
struct KeyRun {
  std::map<std::string, bool> topics{};  // and whether the newest message is a value
  std::uint64_t last = 0;                // of the consumer
  std::uint64_t wanted = 0;              // messages of the batch that did not come
  bool ended = false;                    // the batch
  bool whole = false;                    // the last message came
  bool gap = false;
  rt::AsyncEvent changed;
};

void take_key(KeyRun& run, const StreamNames& names, const nats::Message& message) {
  const auto delivery = js::read_delivery(message.reply);
  if (!delivery) {
    run.ended = run.ended || js::read_pull_status(message.headers).ends();
    return run.changed.pulse();
  }
  run.gap = run.gap || delivery->consumer_sequence != run.last + 1;
  run.last = delivery->consumer_sequence;
  run.wanted -= std::min<std::uint64_t>(run.wanted, 1);
  run.whole = delivery->pending == 0;
  std::string topic;
  names.append_topic(message.subject, topic);
  if (topic.size() <= kOpNameMax && run.topics.size() <= Keys::kTopicsMax) {
    run.topics.insert_or_assign(std::move(topic), !stored_headers(message.headers).erased);
  }
  run.changed.pulse();
}

rt::Task<Result<void>> wait_batch(KeyRun* run) {
  while (!run->ended && !run->whole && !run->gap && run->wanted != 0) {
    const Result<void> waited = co_await run->changed.wait();
    if (!waited) {
      co_return waited;
    }
  }
  co_return Result<void>();
}

}  // namespace

rt::Task<void> Keys::list(Keys* self, std::unique_ptr<Asked> asked) {
  const auto stream = self->streams_.find(asked->op.name);
  if (!stream) {
    self->engine_.refuse(*asked, stream.error());
    co_return;
  }
  if (!asked->op.body.empty()) {
    self->engine_.refuse(*asked, Error(Errc::not_supported, "a list of topics with a filter on NATS"));
    co_return;
  }
  const std::pair key(asked->client, std::string(asked->op.name));
  const auto known = self->listings_.find(key);
  if (known != self->listings_.end() && !asked->op.key.empty()) {
    self->answer_page(*asked, known->second);
    co_return;
  }
  Collected collected;
  for (int i = 0; i < kCollectsMax; ++i) {
    collected = co_await collect(self, *stream);
    if (collected.error != Errc::unreachable) {
      break;
    }
  }
  if (collected.error != Errc::ok) {
    self->engine_.refuse(*asked, collected.error, collected.text);
    co_return;
  }
  if (self->listings_.size() >= kListingsMax) {
    self->listings_.erase(self->listings_.begin());
  }
  const auto at = self->listings_.insert_or_assign(key, std::move(collected.topics)).first;
  self->answer_page(*asked, at->second);
}

void Keys::answer_page(const Asked& asked, const std::vector<std::string>& topics) {
  const Op& op = asked.op;
  std::string body;
  std::uint64_t count = 0;
  auto at = op.key.empty() ? topics.begin() : std::upper_bound(topics.begin(), topics.end(), op.key);
  std::string last;
  for (; at != topics.end() && count < kKeysPage; ++at, ++count) {
    body.append(*at).append("\n");
    last = *at;
  }
  const bool more = at != topics.end();
  if (!more) {
    listings_.erase(std::pair(asked.client, std::string(op.name)));  // `topics` ends here
  }
  engine_.answer(
      asked, {.flags = more ? OpFlags::more : std::uint16_t{0}, .number = count, .key = last, .body = as_bytes(body)});
}

rt::Task<Keys::Collected> Keys::collect(Keys* self, std::shared_ptr<KeptStream> stream) {
  Collected collected;
  const StreamNames& names = stream->names;
  auto config = reader_config(names, From::last_per_topic(), {});
  if (!config) {
    collected.error = config.error();
    co_return collected;
  }
  config->headers_only = true;
  config->name = self->engine_.fresh_name();
  const auto made =
      co_await Engine::call(&self->engine_, js::create_consumer(names.stream(), *config), js::read_consumer_info);
  if (!made || !made->ok()) {
    collected.error = error_of(made);
    collected.text = text_of(made);
    co_return collected;
  }
  const auto run = std::make_shared<KeyRun>();  // also of the subscription's function
  run->whole = made->value.pending == 0;
  const std::string inbox = self->engine_.fresh_inbox();
  const auto subscription = self->engine_.client().subscribe(
      inbox + "*", [run, stream](const nats::Message& message) { take_key(*run, stream->names, message); });
  if (!subscription) {
    collected.error = subscription.error();
    co_return collected;
  }
  js::PullRequest batch;
  batch.batch = kKeysBatch;
  batch.expires = kBatchMost;
  for (std::uint64_t number = 1; !run->whole && !run->gap && run->topics.size() <= kTopicsMax; ++number) {
    const auto pull = js::pull(names.stream(), config->name, batch);
    const std::string reply = inbox + std::to_string(number);
    run->ended = false;
    run->wanted = kKeysBatch;
    if (!pull || !self->engine_.client().is_connected() ||
        !self->engine_.client().publish(pull->subject, as_bytes(pull->body), {.reply = reply})) {
      run->gap = true;
      break;
    }
    const auto came = co_await rt::with_timeout(wait_batch(run.get()), kBatchMost);
    if (!came || (run->ended && !run->whole)) {
      run->gap = true;
    }
  }
  self->engine_.client().unsubscribe(*subscription);
  self->engine_.post(js::delete_consumer(names.stream(), config->name));
  if (run->gap) {
    collected.error = kListCut;
  } else if (run->topics.size() > kTopicsMax) {
    collected.error = kTooManyKeys;
  }
  for (auto& [topic, alive] : run->topics) {
    if (alive && collected.error == Errc::ok) {
      collected.topics.push_back(topic);
    }
  }
  co_return collected;
}

}  // namespace weft::topic
