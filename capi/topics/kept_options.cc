// SPDX-License-Identifier: MIT
#include "capi/topics/kept_options.h"

#include "capi/topics/call.h"
#include "weft/topic/wire/batch.h"

namespace weft::capi::topics {

Result<Keep> keep_of(int keep) noexcept {
  switch (keep) {
    case WEFT_TOPICS_KEEP_LOG: return Keep::log;
    case WEFT_TOPICS_KEEP_WORK: return Keep::work;
    case WEFT_TOPICS_KEEP_LATEST: return Keep::latest;
    default: return Error(Errc::invalid_argument, "no such number of weft_topics_keep");
  }
}

Result<Survives> survives_of(int survives) noexcept {
  switch (survives) {
    case WEFT_TOPICS_SURVIVES_POWER: return Survives::power;
    case WEFT_TOPICS_SURVIVES_PROCESS: return Survives::process;
    case WEFT_TOPICS_SURVIVES_NOTHING: return Survives::nothing;
    case WEFT_TOPICS_SURVIVES_MACHINE: return Survives::machine;
    default: return Error(Errc::invalid_argument, "no such number of weft_topics_survives");
  }
}

Result<Discard> discard_of(int when_full) noexcept {
  switch (when_full) {
    case WEFT_TOPICS_FULL_OLDEST: return Discard::oldest;
    case WEFT_TOPICS_FULL_REFUSE: return Discard::refuse;
    default: return Error(Errc::invalid_argument, "no such number of weft_topics_when_full");
  }
}

Result<From> from_of(int from, std::uint64_t value) noexcept {
  switch (from) {
    case WEFT_TOPICS_FROM_FIRST: return From::first();
    case WEFT_TOPICS_FROM_LAST: return From::last();
    case WEFT_TOPICS_FROM_NEXT: return From::next();
    case WEFT_TOPICS_FROM_SEQUENCE: return From::sequence(value);
    case WEFT_TOPICS_FROM_TIME: return From{From::Kind::time, value};
    case WEFT_TOPICS_FROM_LAST_PER_TOPIC: return From::last_per_topic();
    default: return Error(Errc::invalid_argument, "no such number of weft_topics_from");
  }
}

Result<AppendOptions> append_options_of(const weft_topics_append_options* given) {
  const weft_topics_append_options c = WEFT_TRY(options_of(given));
  AppendOptions made{WEFT_TRY(headers_of(c.headers, c.header_count)), {}};
  made.options.id = text_or_empty(c.id);
  if (c.expects_last != 0) {
    made.options.expect_last = c.last;
  }
  made.options.time_to_live = WEFT_TRY(duration_of(c.time_to_live_ms));
  made.options.delay = WEFT_TRY(duration_of(c.delay_ms));
  made.options.order = c.strict != 0 ? Order::strict : Order::pipelined;
  const Patience patience = WEFT_TRY(patience_of(c.timeout_ms));
  made.options.deadline = patience.waits ? patience.deadline : kNever;
  return made;
}

Result<Batch> batch_of(const weft_topics_batch_message* messages, std::size_t count, std::size_t message_size,
                       std::int64_t timeout_ms) {
  if (messages == nullptr) {
    return kNullPointer;
  }
  if (message_size != sizeof *messages) {
    return message_size > sizeof *messages ? Error(Errc::not_supported, "a message of a later version")
                                           : Error(Errc::invalid_argument, "message_size is not the size of a message");
  }
  if (count == 0 || count > topic::kBatchMessagesMax) {
    return Error(Errc::invalid_argument, "a batch has 1 to 1,000 messages");
  }
  Batch batch;
  batch.headers.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    const weft_topics_batch_message& c = messages[i];
    batch.headers.push_back(WEFT_TRY(headers_of(c.headers, c.header_count)));
    BatchMessage& made = batch.messages.emplace_back();
    made.topic = WEFT_TRY(text_of(c.topic));
    made.body = WEFT_TRY(bytes_of(c.data, c.size));
    made.id = text_or_empty(c.id);
    made.headers = batch.headers.back().block();
    if (c.expects_last != 0) {
      made.expect_last = c.last;
    }
    made.time_to_live = WEFT_TRY(duration_of(c.time_to_live_ms));
  }
  const Patience patience = WEFT_TRY(patience_of(timeout_ms));
  batch.options.deadline = patience.waits ? patience.deadline : kNever;
  return batch;
}

Result<topic::KeyChange> change_of(const weft_topics_put_options* given) noexcept {
  const weft_topics_put_options c = WEFT_TRY(options_of(given));
  topic::KeyChange change;
  switch (c.put_if) {
    case WEFT_TOPICS_PUT_ALWAYS: break;
    case WEFT_TOPICS_PUT_IF_ABSENT: change.absent = true; break;
    case WEFT_TOPICS_PUT_IF_SEEN: change.revision = c.seen; break;
    default: return Error(Errc::invalid_argument, "no such condition of a put");
  }
  change.time_to_live = WEFT_TRY(duration_of(c.time_to_live_ms));
  return change;
}

void put_published(weft_topics_published* to, const Published& published) noexcept {
  if (to != nullptr) {
    *to = {published.sequence, published.instance, published.duplicate ? 1 : 0};
  }
}

}  // namespace weft::capi::topics
