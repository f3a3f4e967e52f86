// SPDX-License-Identifier: MIT
// Batches of messages, which the hub stores in whole or not at all.
#include "weft/topic/wire/batch.h"

#include <algorithm>
#include <vector>

#include "weft/topic/hub/session.h"

namespace weft::topic {
namespace {

constexpr std::size_t kMessageCost = 4096;  // bytes of a turn that a message counts for: about that of an op

}  // namespace

void HubSession::append_all(const std::string& client, const Op& op, const store::Now& now) {
  store::StoredStream* stream = store_->find(op.name);
  const auto batch = parse_batch(op.body);
  if (stream == nullptr || !batch) {
    answer(client, op, stream == nullptr ? store_->absence_of(op.name) : batch.error());
    return;
  }
  std::vector<store::BatchEntry> entries;
  entries.reserve(batch->size());
  for (const Op& each : *batch) {
    store::BatchEntry& entry = entries.emplace_back();
    entry.message.topic = each.key;
    entry.message.id = each.message_id;
    entry.message.headers = each.headers;
    entry.message.body = each.body;
    entry.message.time_to_live = each.time_to_live();
    if (each.has(OpFlags::expect_last)) {
      entry.expect = {.last = each.number, .instance = op.second};
    }
  }
  // A batch that comes again is known by its ids: by this one, unless each message has one of the program.
  const auto nameless =
      std::find_if(entries.begin(), entries.end(), [](const auto& entry) { return entry.message.id.empty(); });
  if (nameless != entries.end()) {
    nameless->message.id = op.message_id;
  }
  turn_bytes_ += entries.size() * kMessageCost;
  const auto appended = store_->append_all(*stream, entries, now);
  PendingAnswer& reply = answer(client, op, appended.error());
  if (appended) {
    reply.number = appended->sequence;
    reply.second = entries.size();
    reply.flags = appended->duplicate ? OpFlags::duplicate : 0;
    reply.needs = stream->in_memory() ? PendingAnswer::Needs::memory : PendingAnswer::Needs::disk;
    reply.message_id = news_of_instance(op, *stream);
  }
}

}  // namespace weft::topic
