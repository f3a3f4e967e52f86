// SPDX-License-Identifier: MIT
#include "bench/workload.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <sstream>

namespace bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kFactor = 0x9E3779B97F4A7C15;  // the last word of message n is n times this

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, '/');) {
    parts.push_back(part);
  }
  return parts;
}

}  // namespace

Cell parse_cell(const std::string& name) {
  const std::vector<std::string> parts = split(name);
  const auto is = [&](std::size_t i, const char* text) { return parts[i] == text; };
  Cell cell;
  cell.name = name;
  bool known = parts.size() == 3 || (parts.size() == 4 && is(3, "eco"));
  known = known && (is(0, "push_pull") || is(0, "round_trip")) && (is(1, "tcp") || is(1, "ipc") || is(1, "inproc"));
  if (known) {
    cell.pattern = is(0, "push_pull") ? Pattern::push_pull : Pattern::round_trip;
    cell.transport = parts[1];
    cell.size = std::strtoul(parts[2].c_str(), nullptr, 10);
    cell.mode = parts.size() == 4 ? WaitMode::eco : WaitMode::normal;
  }
  if (!known || cell.size < 16 || cell.size > (std::size_t{64} << 20U)) {
    fail("no cell '" + name + "': push_pull or round_trip, tcp, ipc or inproc, 16 bytes or more, and perhaps eco");
  }
  return cell;
}

Workload::Workload(const Cell& cell, Socket& socket, std::uint64_t run, std::uint64_t count)
    : cell_(cell), socket_(socket), run_(run), count_(count), buffer_(cell.size, 'w') {}

void Workload::perform(Side side, Measurement& result) {
  const bool leads = side == Side::leader;
  if (cell_.pattern == Pattern::push_pull) {
    leads ? pull(result) : push();
  } else {
    leads ? reply() : request(result);
  }
}

// The first word is the repetition and the number, the last word depends on the number: both ends are written by the
// sender and read by the receiver, whatever the library did with what lies between.
void Workload::write_message(std::uint64_t number) {
  const std::uint64_t first = run_ << 40U | number;
  const std::uint64_t last = number * kFactor;
  std::memcpy(buffer_.data(), &first, sizeof first);
  std::memcpy(buffer_.data() + buffer_.size() - sizeof last, &last, sizeof last);
}

void Workload::read_message(std::uint64_t number) {
  const std::size_t size = socket_.receive(buffer_.data(), buffer_.size());
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  std::memcpy(&first, buffer_.data(), sizeof first);
  std::memcpy(&last, buffer_.data() + buffer_.size() - sizeof last, sizeof last);
  mistakes_ |= (size ^ buffer_.size()) | (first ^ (run_ << 40U | number));
  sum_ += last;
}

void Workload::verify_sum() const {
  const std::uint64_t pairs = count_ % 2 == 0 ? count_ / 2 * (count_ - 1) : (count_ - 1) / 2 * count_;
  if (mistakes_ != 0 || sum_ != pairs * kFactor) {
    fail(cell_.name + ": a message was lost, doubled, out of order or damaged");
  }
}

void Workload::push() {
  for (std::uint64_t i = 0; i < count_; ++i) {
    write_message(i);
    socket_.send(buffer_.data(), buffer_.size());
  }
}

void Workload::pull(Measurement& result) {
  read_message(0);
  const auto start = Clock::now();
  for (std::uint64_t i = 1; i < count_; ++i) {
    read_message(i);
  }
  result.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  verify_sum();
}

void Workload::request(Measurement& result) {
  std::vector<double> trips(count_);
  const auto start = Clock::now();
  auto before = start;
  for (std::uint64_t i = 0; i < count_; ++i) {
    write_message(i);
    socket_.send(buffer_.data(), buffer_.size());
    read_message(i);
    const auto now = Clock::now();
    trips[i] = std::chrono::duration<double, std::nano>(now - before).count();
    before = now;
  }
  result.seconds = std::chrono::duration<double>(before - start).count();
  verify_sum();
  const auto at = [&](std::uint64_t rank) {
    std::nth_element(trips.begin(), trips.begin() + static_cast<std::ptrdiff_t>(rank), trips.end());
    return trips[rank];
  };
  result.median_ns = at(count_ / 2);
  result.p99_ns = at(count_ * 99 / 100);
}

void Workload::reply() {
  for (std::uint64_t i = 0; i < count_; ++i) {
    read_message(i);
    socket_.send(buffer_.data(), buffer_.size());
  }
  verify_sum();
}

}  // namespace bench
