// SPDX-License-Identifier: MIT
#include "weft/topic/node/pump.h"

#include <mutex>
#include <new>
#include <span>
#include <utility>

#include "weft/base/no_memory.h"
#include "weft/msg/socket/socket_core.h"
#include "weft/sync/lock.h"

namespace weft::topic {

unsigned Pump::read(bool wait_for_lock, unsigned most) {
  sync::UniqueLock lock(mutex_, std::defer_lock);
  if (wait_for_lock) {
    lock.lock();
  } else if (!lock.try_lock()) {
    return 0;
  }
  msg::SocketCore& in = *in_.core();
  unsigned count = 0;
  while (count < most) {
    Message parts[3];
    msg::Inbound first{&parts[0], {}};
    if (!in.recv(first, msg::Timeout::none())) {
      break;
    }
    bool more = first.more;
    // Only whole messages are delivered, so the next part is there, unless memory runs out.
    for (std::size_t i = 1; more; ++i) {
      Message further;
      msg::Inbound next{i < 3 ? &parts[i] : &further, {}};
      if (!in.recv(next, msg::Timeout::none())) {
        break;
      }
      more = next.more;
    }
    ++count;
    dispatch(std::move(parts[0]), std::move(parts[1]), std::move(parts[2]));
  }
  return count;
}

// disconnect() loses the messages of a connection that were not read.
void Pump::read_all() {
  constexpr unsigned kTurnsMost = 1024;  // other peers may send all the time
  for (unsigned turn = 0; turn < kTurnsMost && read(true) != 0; ++turn) {
  }
}

void Pump::deliver(FleetMessage& message) {
  const sync::LockGuard lock(mutex_);
  if (offer_copy(message)) {
    return;
  }
  if (!message.copy()) {
    ++counters_.dropped_for_memory;
    return;
  }
  dispatch(message.topic().share(), message.shared_body(), message.shared_headers());
}

// One subscription gets its copy in its queue, without a block between.
bool Pump::offer_copy(const FleetMessage& message) {
  if (!names_.identity()) {
    return false;
  }
  try {
    interest_.match(message.topic().text(), memo_);
  } catch (const std::bad_alloc&) {
    return false;
  }
  if (memo_.matches.size() != 1) {
    return false;
  }
  const Match& only = memo_.matches.front();
  if (!only.subscription->offer_copy(message.topic(), message.body(), message.headers(), only.filter)) {
    return false;
  }
  counters_.received.store(counters_.received.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  return true;
}

bool Pump::keep(FleetMessage& message, std::size_t bytes_max) noexcept {
  const sync::LockGuard lock(kept_mutex_);
  if (kept_bytes_ >= bytes_max) {  // the loop stands still
    ++counters_.dropped_full;
    return false;
  }
  try {
    if (!message.copy()) {
      throw std::bad_alloc();
    }
    kept_.push_back({message.topic().share(), message.shared_body(), message.shared_headers()});
  } catch (const std::bad_alloc&) {
    ++counters_.dropped_for_memory;
    return false;
  }
  kept_bytes_ += TopicMessage::footprint(message.topic().size(), message.body().size(), message.headers().size());
  return kept_.size() == 1;
}

void Pump::deliver_kept() {
  std::vector<Parts> all;
  {
    const sync::LockGuard lock(kept_mutex_);
    all.swap(kept_);
    kept_bytes_ = 0;
  }
  const sync::LockGuard lock(mutex_);
  for (Parts& each : all) {
    dispatch(std::move(each.topic), std::move(each.body), std::move(each.headers));
  }
}

void Pump::dispatch(Message&& topic, Message&& body, Message&& headers) {
  if (topic.empty() || topic.bytes().front() < 0x20) {
    return;  // a welcome
  }
  counters_.received.store(counters_.received.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  try {
    interest_.match(topic.text(), memo_);
  } catch (const std::bad_alloc&) {
    ++counters_.matched;
    ++counters_.dropped_no_memory;
    return;
  }
  const std::size_t count = memo_.matches.size();
  if (count == 0) {
    counters_.unwanted.store(counters_.unwanted.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    return;
  }
  if (!names_.identity()) {
    auto name = or_no_memory([&] { return Message::copy_of(names_.decode(topic.text())); });
    if (!name) {
      counters_.matched += count;
      counters_.dropped_no_memory += count;
      return;
    }
    topic = *std::move(name);
  }
  topic.set_more(false);
  body.set_more(false);
  const std::span<const Match> matches(memo_.matches);
  for (const Match& match : matches.first(count - 1)) {
    match.subscription->offer(TopicMessage(topic.share(), body.share(), headers.share(), match.filter));
  }
  const Match& last = matches.back();
  last.subscription->offer(std::move(topic), std::move(body), std::move(headers), last.filter);
}

}  // namespace weft::topic
