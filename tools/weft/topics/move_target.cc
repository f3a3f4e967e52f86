// SPDX-License-Identifier: MIT
#include "tools/weft/topics/move_target.h"

#include <algorithm>
#include <array>
#include <utility>

#include "tools/weft/console.h"
#include "weft/base/bytes.h"

namespace weft::cli {

namespace {

// The messages under way may stand before and after each place.
constexpr std::size_t kAhead = 2 * kMoveWindowMax;
constexpr std::size_t kHeldBytesMax = 4 * kMoveBytesMax;

std::size_t size_of(const MovedMessage& message) {
  return sizeof message + message.body.size() + message.headers.size();
}

std::array<std::size_t, 4> places_of(std::string_view id, std::size_t bits) noexcept {
  const std::uint64_t hash = std::hash<std::string_view>()(id);
  const std::uint64_t step = (hash >> 32U | hash << 32U) | 1U;
  std::array<std::size_t, 4> places{};
  for (std::size_t i = 0; i < places.size(); ++i) {
    places[i] = (hash + i * step) % bits;
  }
  return places;
}

}  // namespace

std::string moved_id(const MovedHeader& header, const MovedMessage& message) {
  return "moved." + std::to_string(header.instance) + '.' + std::to_string(message.sequence);
}

bool is_same(const MovedHeader& header, const MovedMessage& message, const KeptMessage& there, std::string_view topic) {
  return (there.id() == message.id || there.id() == moved_id(header, message)) && topic == message.topic &&
         there.erased() == message.erased && there.text() == message.body &&
         (there.headers() == message.headers || plain_headers(there.headers()) == plain_headers(message.headers));
}

// --- TargetCheck ---

TargetCheck::TargetCheck(MovedFile& file, std::string what, bool others, Same same)
    : file_(file), what_(std::move(what)), others_(others), same_(std::move(same)) {}

bool TargetCheck::load() {
  MovedMessage message;
  if (ended_ || file_.next(message) != MovedFile::Got::message) {
    ended_ = true;
    return false;
  }
  if (on_id && !message.id.empty()) {
    on_id(message.id);
  }
  held_bytes_ += size_of(message);
  held_.push_back({++read_, std::move(message)});
  while (!others_ && held_.size() > 1 && (held_.size() > kAhead || held_bytes_ > kHeldBytesMax)) {
    held_bytes_ -= size_of(held_.front().message);
    held_.pop_front();  // the target does not have it any longer
  }
  return true;
}

bool TargetCheck::find(const KeptMessage& there) {
  const auto at =
      std::find_if(held_.rbegin(), held_.rend(), [&](const Numbered& each) { return same_(each.message, there); });
  if (at == held_.rend()) {
    return false;
  }
  ++found_;
  last_found_ = std::max(last_found_, at->number);
  held_bytes_ -= size_of(at->message);
  held_.erase(std::next(at).base());
  return true;
}

void TargetCheck::take(const KeptMessage& there) {
  ++present_;
  while (!others_ && read_ < there.sequence() && load()) {
  }
  if (find(there)) {
    return;
  }
  // Further ones: the target may have them in another order.
  const std::uint64_t from = others_ ? last_found_ : there.sequence();
  while (read_ < from + kAhead && held_bytes_ < kHeldBytesMax && load()) {
    if (find(there)) {
      return;
    }
  }
  if (!others_) {
    throw Failure(what_ + " has other contents: its message " + std::to_string(there.sequence()) + ", of the topic " +
                  printable(there.topic()) +
                  ", is not the one of the file. Nothing was imported. --as NAME imports into "
                  "another stream" +
                  "; into a log, --beside-others imports beside other messages");
  }
}

std::deque<MovedMessage> TargetCheck::finish(std::uint64_t stored, bool resume) {
  std::deque<MovedMessage> rest;
  if (!others_) {
    while (read_ < stored && load()) {
    }
    if (read_ < stored) {
      throw Failure(what_ + " has other contents: it had " + std::to_string(stored) + " messages, and the file has " +
                    std::to_string(read_) + ". Nothing was imported");
    }
    if (found_ == 0 && stored != 0 && !resume) {
      throw Failure(what_ + " had " + std::to_string(stored) +
                    " messages, and has none of them any longer: if an earlier import of this file brought them, "
                    "--resume continues after them");
    }
    // Nothing else was stored: of the messages that were read, so many never were.
    const std::uint64_t absent = read_ - stored;
    if (absent == 0) {
      held_.clear();
    } else if (absent != held_.size()) {
      throw Failure(what_ +
                    " has messages of the file in another order, and some are gone: nothing shows which of them it "
                    "never had. Nothing was imported");
    }
  }
  for (Numbered& each : held_) {
    rest.push_back(std::move(each.message));
  }
  held_.clear();
  return rest;
}

// --- RecentIds ---

RecentIds::RecentIds(Duration window) : window_(window), now_(kBits / 64), before_(kBits / 64) {}

bool RecentIds::has(std::string_view id) const noexcept {
  const auto all_in = [&](const std::vector<std::uint64_t>& bits) {
    for (const std::size_t place : places_of(id, kBits)) {
      if ((bits[place / 64] >> (place % 64) & 1U) == 0) {
        return false;
      }
    }
    return true;
  };
  return all_in(now_) || all_in(before_);
}

void RecentIds::add(std::string_view id, Instant now) {
  if (began_ == Instant() || deadline_after(began_, window_) <= now) {
    std::swap(now_, before_);
    std::fill(now_.begin(), now_.end(), 0);
    if (began_ != Instant() && deadline_after(began_, 2 * window_) <= now) {
      std::fill(before_.begin(), before_.end(), 0);
    }
    began_ = now;
  }
  for (const std::size_t place : places_of(id, kBits)) {
    now_[place / 64] |= std::uint64_t{1} << (place % 64);
  }
}

}  // namespace weft::cli
