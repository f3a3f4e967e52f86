// SPDX-License-Identifier: MIT
#include "weft/serve/client/in_flight.h"

#include <algorithm>
#include <bit>
#include <new>
#include <utility>

namespace weft::serve {

namespace {
constexpr Error kNoMemoryForRequest(Errc::resource_exhausted, "no memory for a request");
constexpr Error kGivenUp = rt::kCancelled.with_fate(Fate::outcome_unknown);
}  // namespace

// --- Waiter ---

bool InFlight::Waiter::suspend(rt::CancelScope& scope, std::coroutine_handle<> coroutine) {
  if (scope.cancelled()) {
    in_->counts_.cancelled.add();
    in_->abandon(*this, scope.runner().now());  // before begin(), which may throw and has set no runner yet
    end(kGivenUp);
    return !Wait::begin(scope, coroutine) && Wait::deferred();
  }
  (void)Wait::begin(scope, coroutine);
  if (deadline_ == kNever) {
    return true;
  }
  wheel_ = &scope.runner().timers();
  timer_ = wheel_->schedule(deadline_, {[](void* self) { static_cast<Waiter*>(self)->handle_deadline(); }, this});
  if (!timer_) {
    in_->counts_.cancelled.add();
    in_->abandon(*this, Wait::runner().now());
    end(kNoMemoryForRequest.with_fate(Fate::outcome_unknown));
  }
  return true;
}

void InFlight::Waiter::handle_deadline() noexcept {
  timer_ = {};
  in_->counts_.timed_out.add();
  in_->abandon(*this, Wait::runner().now());
  end(Error(Errc::timed_out, "no response came in time").with_fate(Fate::outcome_unknown));
}

void InFlight::Waiter::give_up(rt::Wait& self) noexcept {
  auto& waiter = static_cast<Waiter&>(self);
  waiter.in_->counts_.cancelled.add();
  waiter.in_->abandon(waiter, waiter.runner().now());
  waiter.end(kGivenUp);
}

void InFlight::Waiter::answer(Bytes body) noexcept {
  end(body_.assign(body) ? Result<void>() : kNoMemoryForRequest.with_fate(Fate::answered));
}

void InFlight::Waiter::end(const Result<void>& result) noexcept {
  result_ = result;
  ended_ = true;
  if (timer_) {
    (void)wheel_->cancel(std::exchange(timer_, {}));
  }
  Wait::finish();
}

// --- InFlight ---

InFlight::InFlight(Matching matching, std::uint32_t max, RequestCounts& counts) noexcept
    : matching_(matching),
      max_(std::clamp<std::uint32_t>(max, 1, kMax)),
      slot_bits_(static_cast<unsigned>(std::bit_width(max_ - 1))),
      counts_(counts) {}

Result<std::uint32_t> InFlight::add(Waiter& waiter, std::uint32_t key) {
  if (full()) {
    return Error(Errc::resource_exhausted, "too many requests are in flight");
  }
  const std::uint32_t slot = WEFT_TRY(take_place());
  if (const auto entered = enter_lane(slot, key); !entered) {
    free_place(slot);
    return entered.error();
  }
  Place& place = places_[slot];
  place.waiter = &waiter;
  place.key = key;
  place.used = true;
  waiter.in_ = this;
  waiter.slot_ = slot;
  ++size_;
  ++waiting_;
  return number_of(slot);
}

void InFlight::take_back(Waiter& waiter) noexcept {
  const std::uint32_t slot = waiter.slot_;
  (void)detach(slot);
  if (matching_ != Matching::by_number) {
    // The request is the last of its lane.
    Lane& lane = matching_ == Matching::in_order ? all_ : lanes_.find(places_[slot].key)->second;
    if (lane.head == slot) {
      lane = {};
    } else {
      std::uint32_t before = lane.head;
      while (places_[before].next != slot) {
        before = places_[before].next;
      }
      places_[before].next = kNone;
      lane.tail = before;
    }
    if (matching_ == Matching::in_order_of_key && lane.head == kNone) {
      spare_ = lanes_.extract(places_[slot].key);
    }
  }
  free_place(slot);
  --size_;
}

InFlight::Match InFlight::match(std::uint32_t key_or_number) noexcept {
  const Match match = matching_ == Matching::by_number ? match_number(key_or_number) : match_lane(key_or_number);
  if (match.waiter != nullptr) {
    counts_.answered.add();
  } else if (match.known) {
    counts_.late.add();
  }
  return match;
}

InFlight::Match InFlight::match_lane(std::uint32_t key) noexcept {
  Lane* lane = &all_;
  if (matching_ == Matching::in_order_of_key) {
    const auto found = lanes_.find(key);
    if (found == lanes_.end()) {
      return {};
    }
    lane = &found->second;
  }
  const std::uint32_t slot = lane->head;
  if (slot == kNone) {
    return {};
  }
  lane->head = places_[slot].next;
  if (lane->head == kNone) {
    lane->tail = kNone;
    if (matching_ == Matching::in_order_of_key) {
      spare_ = lanes_.extract(key);
    }
  }
  Waiter* const waiter = detach(slot);
  free_place(slot);
  --size_;
  return {waiter, true};
}

InFlight::Match InFlight::match_number(std::uint32_t number) noexcept {
  const std::uint32_t slot = number & ((std::uint32_t{1} << slot_bits_) - 1);
  if (slot >= places_.size()) {
    return {};
  }
  if (!places_[slot].used || number_of(slot) != number) {
    // The number is of an earlier use of the place, if its generation is older.
    const std::uint32_t age = (places_[slot].generation << slot_bits_ | slot) - number;
    return {nullptr, age != 0 && age < std::uint32_t{1} << 31};
  }
  Waiter* const waiter = detach(slot);
  free_place(slot);
  --size_;
  return {waiter, true};
}

// Takes the waiter of a place out of flight; null: the request was given up before.
InFlight::Waiter* InFlight::detach(std::uint32_t slot) noexcept {
  Waiter* const waiter = std::exchange(places_[slot].waiter, nullptr);
  if (waiter != nullptr) {
    waiter->in_ = nullptr;
    --waiting_;
  }
  return waiter;
}

// A token distinguishes late responses, so the place is freed. In a lane the place is kept for the late response.
void InFlight::abandon(Waiter& waiter, Instant now) noexcept {
  (void)detach(waiter.slot_);
  waiter.given_up_ = true;
  places_[waiter.slot_].given_up = now;
  if (matching_ == Matching::by_number) {
    free_place(waiter.slot_);
    --size_;
  }
}

void InFlight::fail_all(const Error& why) noexcept {
  for (std::uint32_t slot = 0; slot < places_.size(); ++slot) {
    if (!places_[slot].used) {
      continue;
    }
    if (Waiter* const waiter = detach(slot)) {
      counts_.lost.add();
      waiter->end(why);
    }
    free_place(slot);
    --size_;
  }
  forget_lanes();
}

bool InFlight::owed_since(Instant instant) const noexcept {
  return std::any_of(places_.begin(), places_.end(), [instant](const Place& place) {
    return place.used && place.waiter == nullptr && place.given_up <= instant;
  });
}

void InFlight::forget_lanes() noexcept {
  all_ = {};
  lanes_.clear();
}

Result<std::uint32_t> InFlight::take_place() {
  const std::uint32_t slot = free_.head;
  if (slot != kNone) {
    free_.head = places_[slot].next;
    if (free_.head == kNone) {
      free_.tail = kNone;
    }
    return slot;
  }
  try {
    places_.emplace_back();
  } catch (const std::bad_alloc&) {
    return kNoMemoryForRequest;
  }
  return static_cast<std::uint32_t>(places_.size() - 1);
}

void InFlight::free_place(std::uint32_t slot) noexcept {
  Place& place = places_[slot];
  place.used = false;
  ++place.generation;
  if (place.generation << slot_bits_ == 0) {  // number 0 marks frames that are not responses
    ++place.generation;
  }
  push(free_, slot);
}

void InFlight::push(Lane& lane, std::uint32_t slot) noexcept {
  places_[slot].next = kNone;
  if (lane.tail == kNone) {
    lane.head = slot;
  } else {
    places_[lane.tail].next = slot;
  }
  lane.tail = slot;
}

Result<void> InFlight::enter_lane(std::uint32_t slot, std::uint32_t key) {
  if (matching_ == Matching::in_order) {
    push(all_, slot);
  } else if (matching_ == Matching::in_order_of_key) {
    auto found = lanes_.find(key);
    if (found == lanes_.end()) {
      try {
        if (!spare_.empty()) {
          spare_.key() = key;
          spare_.mapped() = {};
          found = lanes_.insert(std::move(spare_)).position;
        } else {
          found = lanes_.emplace(key, Lane()).first;
        }
      } catch (const std::bad_alloc&) {
        return kNoMemoryForRequest;
      }
    }
    push(found->second, slot);
  }
  return {};
}

}  // namespace weft::serve
