// SPDX-License-Identifier: MIT
// Requests, responses, deadlines and lost connections in any order, beside a list of the requests in flight.
#include <rapidcheck.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <memory>
#include <vector>

#include "weft/rt/task/test_tasks.h"
#include "weft/serve/client/in_flight.h"
#include <gtest/gtest.h>

namespace weft::serve {
namespace {

enum class Got : std::uint8_t { nothing, answer, timeout, loss };

struct Asked {
  std::uint32_t key = 0;
  std::uint32_t number = 0;
  bool expires = false;
  Got got = Got::nothing;
  std::uint8_t body = 0;
};

rt::Task<void> ask(InFlight* in_flight, Instant deadline, std::shared_ptr<Asked> asked, bool* refused) {
  InFlight::Waiter waiter(deadline);
  const auto number = in_flight->add(waiter, asked->key);
  *refused = !number;
  if (!number) {
    co_return;
  }
  asked->number = *number;
  co_await waiter;
  asked->got = waiter.result() ? Got::answer : waiter.result().error() == Errc::timed_out ? Got::timeout : Got::loss;
  asked->body = waiter.result() ? waiter.body().bytes()[0] : std::uint8_t{0};
}

// Requests in flight, oldest first. Without numbers, `given_up` requests keep their place.
struct InFlightModel {
  struct Place {
    std::shared_ptr<Asked> asked;
    bool given_up = false;
  };
  Matching matching;
  std::deque<Place> places;

  std::deque<Place>::iterator find(const Asked& of) {
    return std::find_if(places.begin(), places.end(), [&](const Place& place) {
      switch (matching) {
        case Matching::in_order: return true;
        case Matching::in_order_of_key: return place.asked->key == of.key;
        case Matching::by_number: return place.asked->number == of.number;
      }
      return false;
    });
  }
};

void check(Matching matching) {
  constexpr std::uint32_t kMax = 6;
  constexpr Duration kWait = std::chrono::milliseconds(10);
  RequestCounts counts;
  InFlight in_flight(matching, kMax, counts);
  rt::test::HandTurned time;
  InFlightModel model{matching, {}};
  std::vector<std::shared_ptr<Asked>> all;
  const auto steps = *rc::gen::container<std::vector<std::uint8_t>>(rc::gen::inRange<std::uint8_t>(0, 100));
  std::uint8_t serial = 0;
  for (const std::uint8_t step : steps) {
    if (step < 50) {
      const auto asked = std::make_shared<Asked>();
      asked->key = step % 3;
      asked->expires = step % 2 == 0;
      bool refused = false;
      time.start(ask(&in_flight, asked->expires ? time.now() + kWait : kNever, asked, &refused));
      RC_ASSERT(refused == (model.places.size() >= kMax));
      if (!refused) {
        all.push_back(asked);
        model.places.push_back({asked, false});
      }
    } else if (step < 85 && !all.empty()) {
      // The response to any request ever made, perhaps to one that has its response already.
      const Asked& of = *all[step % all.size()];
      const auto place = model.find(of);
      const auto match = in_flight.match(matching == Matching::by_number ? of.number : of.key);
      const bool expected = place != model.places.end() && !place->given_up;
      RC_ASSERT((match.waiter != nullptr) == expected);
      if (expected) {
        ++serial;
        match.waiter->answer(Bytes(&serial, 1));
        time.turn();
        RC_ASSERT(place->asked->got == Got::answer);
        RC_ASSERT(place->asked->body == serial);
      }
      if (place != model.places.end()) {
        model.places.erase(place);
      }
    } else if (step < 95) {
      time.pass(2 * kWait);
      for (auto& place : model.places) {
        if (place.asked->expires && !place.given_up) {
          place.given_up = true;
          RC_ASSERT(place.asked->got == Got::timeout);
        }
      }
      if (matching == Matching::by_number) {
        std::erase_if(model.places, [](const InFlightModel::Place& place) { return place.given_up; });
      }
    } else {
      in_flight.fail_all(Error(Errc::connection_closed));
      time.turn();
      for (const auto& place : model.places) {
        RC_ASSERT(place.asked->got == (place.given_up ? Got::timeout : Got::loss));
      }
      model.places.clear();
    }
    RC_ASSERT(in_flight.size() == model.places.size());
    const auto waiting = std::count_if(model.places.begin(), model.places.end(),
                                       [](const InFlightModel::Place& place) { return !place.given_up; });
    RC_ASSERT(in_flight.waiting() == static_cast<std::size_t>(waiting));
  }
  in_flight.fail_all(Error(Errc::closed));
  time.turn();
  RC_ASSERT(std::none_of(all.begin(), all.end(), [](const auto& asked) { return asked->got == Got::nothing; }));
}

TEST(InFlightProperty, InOrderItAgreesWithAList) {
  EXPECT_TRUE(rc::check([] { check(Matching::in_order); }));
}
TEST(InFlightProperty, ByKeyItAgreesWithAList) {
  EXPECT_TRUE(rc::check([] { check(Matching::in_order_of_key); }));
}
TEST(InFlightProperty, ByNumberItAgreesWithAList) {
  EXPECT_TRUE(rc::check([] { check(Matching::by_number); }));
}

}  // namespace
}  // namespace weft::serve
