// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <memory>

namespace weft::model {

// Fiber: a stack of its own that code runs on until it switches to another fiber. The default-constructed one stands
// for the stack it was made on. Affinity: one thread. Cost: a switch is two system calls (signal masks).
class Fiber {
 public:
  Fiber();
  Fiber(void (*run)(void*), void* context);  // `run` never returns: it switches away
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Forgets what ran here, without unwinding it, and starts over at the next switch.
  void restart();
  void switch_to(Fiber& other);

 private:
  struct State;
  static void enter(unsigned high, unsigned low);

  std::unique_ptr<State> state_;
};

}  // namespace weft::model
