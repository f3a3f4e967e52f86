// SPDX-License-Identifier: MIT
#include "tools/weft/topics/move_stored.h"

#include <algorithm>
#include <deque>
#include <optional>

#include "weft/topic/kept/stream_core.h"

namespace weft::cli {

namespace {

constexpr std::size_t kAsked = 128;  // messages that are asked for at a time

using Take = std::function<void(const KeptMessage&)>;

void read_all(KeptLink& kept, Stream& stream, const StreamInfo& info, std::uint64_t after, const std::string& what,
              const Take& take) {
  ReadOptions how;
  how.from = after == 0 ? From::first() : From::sequence(after + 1);
  Reader reader = kept.ask("read " + what, [&] { return stream.read(how); });
  // The end is the last sequence, too: a server of NATS may count messages as stored that were dropped since.
  for (std::uint64_t last = after; last + 1 < info.next && !reader.live();) {
    const auto ready = reader.try_next();
    const auto next = ready ? std::optional<KeptMessage>() : kept.ask(what, [&] { return reader.next_stored(); });
    if (!ready && !next) {
      return;
    }
    const KeptMessage& message = ready ? *ready : *next;
    last = message.sequence();
    take(message);
  }
}

// A work stream has no readers: each message is asked for by its sequence.
void ask_for_each(KeptLink& kept, Stream& stream, const StreamInfo& info, std::uint64_t after, const std::string& what,
                  const Take& take) {
  const topic::StreamCore& core = *stream.core();
  topic::HubLink& link = *core.link();
  std::deque<IntrusivePtr<topic::HubCall>> asked;
  std::uint64_t next = std::max(after + 1, info.first);
  while (next < info.next || !asked.empty()) {
    throw_if_stopped();
    while (next < info.next && asked.size() < kAsked) {
      asked.push_back(kept.once(what, [&]() -> Result<IntrusivePtr<topic::HubCall>> {
        auto call = WEFT_TRY(core.get({}, next));
        WEFT_TRY(link.wait(link.place(), call->deadline, [&] { return link.in_lock(), link.start(call); }));
        return call;
      }));
      ++next;
    }
    const auto& call = asked.front();
    const auto message = kept.once(what, [&]() -> Result<std::optional<KeptMessage>> {
      const auto got = link.wait(call->changed, kNever, [&] { return topic::HubLink::outcome(*call); });
      if (!got && got.error() == Errc::not_found) {
        return std::optional<KeptMessage>();  // it was acknowledged
      }
      WEFT_TRY(got);
      return std::optional(WEFT_TRY(topic::StreamCore::message(*call, link.names())));
    });
    if (message) {
      take(*message);
    }
    asked.pop_front();
  }
}

}  // namespace

void each_stored(KeptLink& kept, Stream& stream, const StreamInfo& info, std::uint64_t after, const std::string& what,
                 const Take& take) {
  if (info.first == info.next || after + 1 >= info.next) {
    return;
  }
  if (info.settings.keep != Keep::work) {
    read_all(kept, stream, info, after, what, take);
    return;
  }
  ask_for_each(kept, stream, info, after, what, take);
  // Without the stream each message is `not_found`, too.
  if (kept.ask(what, [&] { return stream.info(); }).instance != info.instance) {
    throw Failure(what + " was removed and made again meanwhile");
  }
}

}  // namespace weft::cli
