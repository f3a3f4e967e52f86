// SPDX-License-Identifier: MIT
#include "weft/topic/kept/channel.h"

#include <algorithm>
#include <utility>

namespace weft::topic {

std::uint32_t KeptChannel::credit_due() const noexcept {
  const std::size_t held = queue_bytes + credit * size_hint;
  if (held >= bytes_max && (credit != 0 || !queue.empty())) {
    return 0;
  }
  const auto used = static_cast<std::uint32_t>(queue.size()) + credit;
  const std::size_t by_bytes = held >= bytes_max ? 1 : std::max<std::size_t>((bytes_max - held) / size_hint, 1);
  const auto room = static_cast<std::uint32_t>(std::min<std::size_t>(window - std::min(window, used), by_bytes));
  // Half at once: an op for each message would cost as much as the message.
  return credit == 0 || room >= (window + 1) / 2 || room >= 4 * credit ? room : 0;
}

bool KeptChannel::take(KeptMessage&& message) {
  if (credit == 0) {
    return false;
  }
  const std::uint64_t sequence = message.sequence();
  if (reads()) {
    if (sequence < next) {
      --credit;  // the hub spent it
      return false;
    }
  } else if (message.tries() != 0 && std::any_of(queue.begin(), queue.end(), [&](const KeptMessage& each) {
               return each.sequence() == sequence;
             })) {
    --credit;  // the hub spent it
    return false;
  }
  const std::size_t size = message.footprint();
  queue.push_back(std::move(message));  // may throw: nothing changed
  next = sequence + 1;
  --credit;
  queue_bytes += size;
  size_hint = std::max(size, size_hint - size_hint / 8);
  if (!caught_up) {
    ++stored;
  }
  return true;
}

Result<KeptMessage> KeptChannel::pop() {
  if (queue.empty()) {
    return state == State::ended ? end : Error(Errc::would_block);
  }
  KeptMessage message = std::move(queue.front());
  queue.pop_front();
  queue_bytes -= message.footprint();
  stored -= stored != 0 ? 1 : 0;
  head = {};
  return message;
}

std::optional<std::uint64_t> KeptChannel::take_last() noexcept {
  if (queue.size() <= (head.asked ? 1U : 0U)) {
    return std::nullopt;
  }
  const std::uint64_t sequence = queue.back().sequence();
  queue_bytes -= queue.back().footprint();
  queue.pop_back();
  stored -= stored != 0 ? 1 : 0;
  return sequence;
}

Op KeptChannel::open_op(OpenTexts& texts) {
  ConsumerSettings with = settings;
  if (reads() && next != 0 && (caught_up || with.from.kind != From::Kind::last_per_topic)) {
    with.from = From::sequence(next);
  }
  texts.settings = write_settings(with);
  texts.instance = instance == 0 ? std::string() : std::to_string(instance);
  credit = 0;
  credit = credit_due();
  return {.kind = reads() ? OpKind::read : OpKind::consume,
          .flags = static_cast<std::uint16_t>((reads() ? 0U : OpFlags::begins) |
                                              (redeclares && !opened ? OpFlags::redeclare : 0U) |
                                              (priority ? OpFlags::prioritized : 0U)),
          .id = id,
          .number = credit,
          .second = priority.value_or(0),
          .name = stream,
          .key = consumer,
          .message_id = reads() ? std::string_view(texts.instance) : std::string_view(),
          .body = as_bytes(texts.settings)};
}

void KeptChannel::handle_open(const Op& answer) noexcept {
  const std::uint64_t now = number_of(answer.message_id);
  const bool other = instance != 0 && now != instance;
  if (other) {
    next = 0;  // the queue's messages were of the other life
    unsent.begins.clear();
    unsent.acks.clear();
  }
  instance = now;
  const bool by_topic = settings.from.kind == From::Kind::last_per_topic && !caught_up;
  if (reads() && (!opened || other) && !by_topic) {
    next = std::max(next, answer.number);
  }
  state = State::open;
  opened = true;
  open_until = kNever;
}

}  // namespace weft::topic
