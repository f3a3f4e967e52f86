// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <memory>

namespace weft::model {

// Fiber: a stack of its own on which code runs until it switches to another fiber. A default-constructed fiber stands
// for the stack it was made on.
// Affinity: one thread.
// Cost: a switch is two system calls (signal masks).
class Fiber {
 public:
  Fiber();
  Fiber(void (*run)(void*), void* context);  // `run` never returns: it switches away
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Abandons the code that ran here, without unwinding it. The next switch starts `run` again.
  void restart();
  void switch_to(Fiber& other);

 private:
  struct State;
  static void enter(unsigned high, unsigned low);

  std::unique_ptr<State> state_;
};

}  // namespace weft::model
