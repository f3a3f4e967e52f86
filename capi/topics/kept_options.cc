// SPDX-License-Identifier: MIT
#include "capi/topics/kept_options.h"

#include "capi/topics/call.h"

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
  made.options.order = c.strict != 0 ? Order::strict : Order::pipelined;
  const Patience patience = WEFT_TRY(patience_of(c.timeout_ms));
  made.options.deadline = patience.waits ? patience.deadline : kNever;
  return made;
}

void put_published(weft_topics_published* to, const Published& published) noexcept {
  if (to != nullptr) {
    *to = {published.sequence, published.instance, published.duplicate ? 1 : 0};
  }
}

}  // namespace weft::capi::topics
