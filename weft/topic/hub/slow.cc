// SPDX-License-Identifier: MIT
// Ops that take more than one turn: the other members do not wait for them.
#include <algorithm>
#include <utility>

#include "weft/topic/hub/session.h"

namespace weft::topic {

namespace {
constexpr Error kTooMany(Errc::resource_exhausted, "1,024 ops of a hub that take more than one turn");
}  // namespace

void HubSession::purge(const std::string& client, const Op& op, const store::Now& now) {
  wrote_alone_ = true;
  send_answers(commit(now));
  store::StoredStream* stream = store_->find(op.name);
  if (stream == nullptr) {
    answer(client, op, store_->absence_of(op.name));
    return;
  }
  const Result<void> done =
      op.key.empty() ? store_->purge_before(*stream, op.number, op.second) : store_->purge_topic(*stream, op.key);
  PendingAnswer& reply = answer(client, op, done.error());
  reply.number = stream->first();
  reply.second = stream->next();
  if (done && stream->has_purged_rows() && slow_.size() < kSlowOpsMax) {  // else the room comes after the answer
    SlowOp slow;
    slow.client = client;
    slow.answer = std::move(reply);
    answers_.pop_back();
    slow.stream = stream->name();
    slow.stream_id = stream->id();
    slow.in_memory = stream->in_memory();
    slow_.push_back(std::move(slow));
  }
}

bool HubSession::begin_scan(const std::string& client, const Op& op, const store::StoredStream& stream,
                            const ConsumerSettings& settings) {
  const auto filter = store::parse_optional_filter(settings.filter);
  if (!filter || !store::StoredStream::needs_scan(settings.from, *filter)) {
    return false;
  }
  if (slow_.size() >= kSlowOpsMax) {
    answer(client, op, kTooMany);
    return true;
  }
  SlowOp slow;
  slow.client = client;
  slow.bytes.resize(encoded_size(op));
  encode_op(op, slow.bytes);
  slow.stream = stream.name();
  slow.stream_id = stream.id();
  slow.in_memory = stream.in_memory();
  slow_.push_back(std::move(slow));
  return true;
}

store::StoredStream* HubSession::stream_of(const SlowOp& slow) const noexcept {
  store::StoredStream* stream = store_->find(slow.stream);
  const bool same = stream != nullptr && stream->id() == slow.stream_id && stream->in_memory() == slow.in_memory;
  return same ? stream : nullptr;
}

bool HubSession::may_go_on(const SlowOp& slow) const noexcept {
  const store::StoredStream* stream = stream_of(slow);
  return !slow.bytes.empty() || stream == nullptr || !stream->has_purged_rows();
}

bool HubSession::slow_ops_may_go_on() const noexcept {
  return std::any_of(slow_.begin(), slow_.end(), [this](const SlowOp& slow) { return may_go_on(slow); });
}

void HubSession::go_on_with_slow_ops(const store::Now& now) {
  bool scanned = false;
  for (auto at = slow_.begin(); at != slow_.end();) {
    store::StoredStream* const stream = stream_of(*at);
    if (!may_go_on(*at) || (!at->bytes.empty() && std::exchange(scanned, true))) {
      ++at;
      continue;
    }
    if (at->bytes.empty()) {
      answers_.push_back(std::move(at->answer));
      at = slow_.erase(at);
      continue;
    }
    const Op op = *parse_op(at->bytes);  // as it was encoded
    const auto settings = parse_consumer_settings(as_text(op.body));
    const auto filter =
        settings ? store::parse_optional_filter(settings->filter) : Result<std::optional<Filter>>(settings.error());
    Result<bool> done(Errc::not_found);
    if (stream != nullptr && filter && *filter) {
      done = stream->scan_last(at->scan, **filter, kScanMax, now.wall);
    }
    if (done && !*done) {
      ++at;
      continue;
    }
    const SlowOp ended = std::move(*at);
    at = slow_.erase(at);
    const Op begun = *parse_op(ended.bytes);
    if (!done) {
      answer(ended.client, begun, stream == nullptr ? store_->absence_of(begun.name) : done.error());
    } else if (begun.kind == OpKind::consume) {
      consume(ended.client, begun, stream->position_of(ended.scan));
    } else {
      read(ended.client, begun, now, stream->position_of(ended.scan));
    }
  }
}

// The connection is gone, or the member closes the channel before it is open.
void HubSession::drop_slow_ops(const std::string& client, std::optional<std::uint32_t> channel) {
  std::erase_if(slow_, [&](const SlowOp& slow) {
    return slow.client == client && (!channel || (!slow.bytes.empty() && op_id(slow.bytes) == *channel));
  });
}

}  // namespace weft::topic
