// SPDX-License-Identifier: MIT
#include "bench/workload.h"

#include <time.h>

#include <chrono>
#include <cstring>
#include <thread>

#include "bench/stage.h"

namespace bench {
namespace {

constexpr std::uint64_t kNumberBits = (std::uint64_t{1} << 40U) - 1;  // of the first word: below the repetition
constexpr std::uint64_t kFactor = 0x9E3779B97F4A7C15;                 // the last word of message n is n times this
// A thread that waits longer than this sleeps first, and spins for this last part.
constexpr std::uint64_t kSleepNs = 300'000;
constexpr std::uint64_t kBurst = 100;                 // messages, after which the sender rests
constexpr std::chrono::microseconds kRest(2'500);     // longer than libraries batch or spin
constexpr std::chrono::microseconds kLookEvery(500);  // how often the sender checks whether a burst has arrived

// Fills the bytes between the two words.
void fill_body(std::vector<unsigned char>& message) {
  for (std::size_t i = 0; i < message.size(); ++i) {
    message[i] = static_cast<unsigned char>(i * 131 + (i >> 8U));
  }
}

void write_words(unsigned char* message, std::size_t size, std::uint64_t run, std::uint64_t number) {
  const std::uint64_t first = run << 40U | number;
  const std::uint64_t last = number * kFactor;
  std::memcpy(message, &first, sizeof first);
  std::memcpy(message + size - sizeof last, &last, sizeof last);
}

std::uint64_t first_word(const unsigned char* message) {
  std::uint64_t word = 0;
  std::memcpy(&word, message, sizeof word);
  return word;
}

// Returns at about `due`, awake. Yields, so that other threads of the processor run.
void wait_until_due(std::uint64_t due) {
  const std::uint64_t now = now_ns();
  if (now + kSleepNs < due) {
    std::this_thread::sleep_for(std::chrono::nanoseconds(due - now - kSleepNs));
  }
  yield_until([&] { return now_ns() >= due; });
}

}  // namespace

std::uint64_t now_ns() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(time.tv_nsec);
}

void Workload::greet(Side side, std::atomic<int>& greeted) {
  task_ = {};
  fill_body(buffer_);
  fill_body(expected_);
  if (side == Side::leader) {
    for (int senders = cell_.serves() ? cell_.times : 1; senders > 0; --senders) {
      read_message(0);
      ++greeted;
      if (cell_.replies()) {
        end_.send(buffer_.data(), buffer_.size());
        end_.flush();
      }
    }
    return;
  }
  // A message published before a subscription is lost, so publish until all subscribers have one. verify()
  // skips the surplus.
  const int wanted = cell_.pattern == Pattern::pub_sub ? cell_.lanes(Side::leader) : 0;
  do {
    write_message(0);
    end_.flush();
    if (wanted > 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  } while (greeted.load() < wanted);
  if (cell_.replies()) {
    read_message(0);
  }
}

void Workload::perform(Side side, const Task& task, LaneResult& result) {
  task_ = task;
  sum_ = 0;
  mistakes_ = 0;
  if (task.verify_all) {
    fill_body(buffer_);
  }
  const bool leads = side == Side::leader;
  if (cell_.pattern == Pattern::burst) {
    leads ? pull_bursts(result) : push_bursts(result);
  } else if (cell_.serves()) {
    leads ? reply_to_all() : request(result);
  } else if (cell_.pattern == Pattern::round_trip) {
    leads ? reply() : request(result);
  } else if (cell_.pattern == Pattern::one_thread) {
    if (!leads) {
      request(result);
    }
  } else {
    leads ? pull(result) : push();
  }
}

// The first word holds the repetition and the number; the last word depends on the number. So the sender writes
// and the receiver reads both ends of a message, whatever the library did with the bytes between.
void Workload::write_message(std::uint64_t number) {
  if (!cell_.moved) {
    write_words(buffer_.data(), buffer_.size(), task_.run, number);
    end_.send(buffer_.data(), buffer_.size());
    return;
  }
  unsigned char* const place = end_.loan(cell_.size);
  if (task_.verify_all) {
    std::memcpy(place, buffer_.data(), cell_.size);
  }
  write_words(place, cell_.size, task_.run, number);
  end_.send_loan();
}

void Workload::read_message(std::uint64_t number) {
  for (bool wanted = false; !wanted;) {
    if (cell_.moved) {
      std::size_t size = 0;
      const unsigned char* const place = from_->receive_loan(size);
      wanted = verify(place, size, number);
      from_->give_back();
    } else {
      const std::size_t size = from_->receive(buffer_.data(), buffer_.size());
      wanted = verify(buffer_.data(), size, number);
    }
  }
}

// Returns false for a late greeting, which the caller skips.
bool Workload::verify(const unsigned char* data, std::size_t size, std::uint64_t number) {
  if (size != cell_.size) [[unlikely]] {
    fail(cell_.name + ": a message of " + std::to_string(size) + " bytes");
  }
  const std::uint64_t wrong = first_word(data) ^ (task_.run << 40U | number);
  if (wrong != 0 && first_word(data) == 0 && cell_.pattern == Pattern::pub_sub) [[unlikely]] {
    return false;
  }
  mistakes_ |= wrong;
  sum_ += first_word(data + size - sizeof(std::uint64_t));
  if (task_.verify_all) {
    write_words(expected_.data(), size, task_.run, number);
    mistakes_ |= std::memcmp(expected_.data(), data, size) != 0 ? 1 : 0;
  }
  return true;
}

void Workload::verify_sum(std::uint64_t count, std::uint64_t senders) const {
  const std::uint64_t pairs = count % 2 == 0 ? count / 2 * (count - 1) : (count - 1) / 2 * count;
  if (mistakes_ != 0 || sum_ != senders * pairs * kFactor) {
    fail(cell_.name + ": a message was lost, doubled, out of order or damaged");
  }
}

void Workload::push() {
  for (std::uint64_t i = 0; i < task_.count; ++i) {
    write_message(i);
  }
  end_.flush();
}

void Workload::pull(LaneResult& result) {
  read_message(0);
  result.first_ns = now_ns();
  for (std::uint64_t i = 1; i < task_.count; ++i) {
    read_message(i);
  }
  result.last_ns = now_ns();
  verify_sum(task_.count);
}

// Sends the next burst when the last one has arrived and the connection has rested.
void Workload::push_bursts(LaneResult& result) {
  result.bursts.store(0);
  for (std::uint64_t burst = 0; burst < task_.count; ++burst) {
    std::this_thread::sleep_for(kRest);
    result.burst_ns.store(now_ns());
    for (std::uint64_t i = 0; i < kBurst; ++i) {
      write_message(burst * kBurst + i);
    }
    end_.flush();
    while (result.bursts.load() == burst) {
      std::this_thread::sleep_for(kLookEvery);
    }
  }
}

void Workload::pull_bursts(LaneResult& result) {
  result.trips.clear();
  result.first_ns = now_ns();
  for (std::uint64_t burst = 0; burst < task_.count; ++burst) {
    for (std::uint64_t i = 0; i < kBurst; ++i) {
      read_message(burst * kBurst + i);
    }
    result.last_ns = now_ns();
    result.trips.add(result.last_ns - result.burst_ns.load());
    result.bursts.store(burst + 1);
  }
  verify_sum(task_.count * kBurst);
}

// With an interval, a request that becomes due while the one before is unanswered is sent late. The delay
// counts: the clock starts when the request was due.
void Workload::request(LaneResult& result) {
  result.trips.clear();
  result.first_ns = now_ns();
  std::uint64_t start = result.first_ns;
  for (std::uint64_t i = 0; i < task_.count; ++i) {
    if (task_.interval_ns != 0) {
      start = result.first_ns + i * task_.interval_ns;
      wait_until_due(start);
    } else if (cell_.rest_ms != 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(cell_.rest_ms));
      start = now_ns();
    }
    write_message(i);
    read_message(i);
    const std::uint64_t now = now_ns();
    result.trips.add(now - start);
    start = now;
  }
  result.last_ns = start;
  verify_sum(task_.count);
}

void Workload::reply() {
  for (std::uint64_t i = 0; i < task_.count; ++i) {
    read_message(i);
    if (cell_.moved) {
      write_message(i);
    } else {
      end_.send(buffer_.data(), buffer_.size());
    }
  }
  verify_sum(task_.count);
}

// The requests of several senders come in any order; each sender verifies the order of its answers.
void Workload::reply_to_all() {
  const auto senders = static_cast<std::uint64_t>(cell_.times);
  for (std::uint64_t i = 0; i < task_.count * senders; ++i) {
    const std::size_t size = end_.receive(buffer_.data(), buffer_.size());
    verify(buffer_.data(), size, first_word(buffer_.data()) & kNumberBits);
    end_.send(buffer_.data(), buffer_.size());
  }
  verify_sum(task_.count, senders);
}

}  // namespace bench
