// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "bench/cell.h"
#include <benchmark/benchmark.h>

// An x_bench.cc registers rows at namespace scope:
//
//   const auto kPush = bench::row("SpscQueue_Throughput/1024")
//                          .run("weft", [](benchmark::State& state) { for (auto _ : state) {...} })
//                          .run("boost", ...)
//                          .bar("boost", 1.8);
//
// A row does the same work with each of its contenders; Weft is the first. Time is per item where the body
// calls state.SetItemsProcessed(), otherwise per iteration.
namespace bench {

using Body = std::function<void(benchmark::State&)>;

struct Contender {
  std::string name;
  Body body;
};

// Weft must be at least `ratio` times as fast as `rival`, in the placement "near" or "far"; "" is any.
struct Bar {
  std::string rival;
  double ratio = 0;
  std::string placement;
};

struct Row {
  std::string name;
  int threads = 1;
  std::vector<Contender> contenders;
  std::vector<Bar> bars;
};

// Builder of one row. Affinity: the main thread, before main().
class RowBuilder {
 public:
  explicit RowBuilder(std::size_t index) : index_(index) {}
  // Runs in one thread.
  RowBuilder run(std::string_view contender, Body body);
  // Runs in two threads with the same number of iterations, on cores of their own where the machine has them.
  RowBuilder run_two(std::string_view contender, Body leader, Body follower);
  // Runs in `threads` threads, which the body distinguishes by state.thread_index().
  RowBuilder run_threads(std::string_view contender, int threads, Body body);
  RowBuilder bar(std::string_view rival, double ratio, std::string_view placement = "");

 private:
  [[nodiscard]] Row& row() const;

  std::size_t index_;
};

// Finds a row by its name, or begins one. A name that ends in " (honest)" is the twin of a published row that measures
// another work than that of its name.
RowBuilder row(std::string_view name);

// CountedPart stands around the loop of a body whose set-up takes as long as its iterations: under --count only
// that loop is counted.
class CountedPart {
 public:
  CountedPart();
  CountedPart(const CountedPart&) = delete;
  CountedPart& operator=(const CountedPart&) = delete;
  ~CountedPart();
  static void count_on();  // called after the body

 private:
  static inline bool over = false;
};

[[nodiscard]] std::vector<Row>& rows();

}  // namespace bench
