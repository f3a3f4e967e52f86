// SPDX-License-Identifier: MIT
#include "tests/support/fiber.h"

#include <ucontext.h>

#include <cstdint>

namespace weft::model {

namespace {
constexpr std::size_t kStackSize = 256 * 1024;
}  // namespace

struct Fiber::State {
  ucontext_t context{};
  void (*run)(void*) = nullptr;
  void* argument = nullptr;
  std::unique_ptr<unsigned char[]> stack;
};

Fiber::Fiber() : state_(std::make_unique<State>()) {}

Fiber::Fiber(void (*run)(void*), void* context) : state_(std::make_unique<State>()) {
  state_->run = run;
  state_->argument = context;
  state_->stack = std::make_unique<unsigned char[]>(kStackSize);
  restart();
}

Fiber::~Fiber() = default;

void Fiber::restart() {
  State& state = *state_;
  ::getcontext(&state.context);
  state.context.uc_stack.ss_sp = state.stack.get();
  state.context.uc_stack.ss_size = kStackSize;
  state.context.uc_link = nullptr;
  const auto address = reinterpret_cast<std::uintptr_t>(&state);  // makecontext passes ints only
  ::makecontext(&state.context, reinterpret_cast<void (*)()>(&Fiber::enter), 2, static_cast<unsigned>(address >> 32),
                static_cast<unsigned>(address));
}

void Fiber::enter(unsigned high, unsigned low) {
  auto* state = reinterpret_cast<State*>((static_cast<std::uintptr_t>(high) << 32) | low);
  state->run(state->argument);
}

void Fiber::switch_to(Fiber& other) { ::swapcontext(&state_->context, &other.state_->context); }

}  // namespace weft::model
