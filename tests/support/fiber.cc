// SPDX-License-Identifier: MIT
#include "tests/support/fiber.h"

#include <ucontext.h>

#include <cstdint>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace weft::model {

namespace {
constexpr std::size_t kStackSize = 256 * 1024;
}  // namespace

struct Fiber::State {
  ucontext_t context{};
  void (*run)(void*) = nullptr;
  void* argument = nullptr;
  std::unique_ptr<unsigned char[]> stack;
  const void* stack_bottom = nullptr;
  std::size_t stack_size = 0;
  [[maybe_unused]] void* fake_stack = nullptr;  // AddressSanitizer's
  State* came_from = nullptr;
};

Fiber::Fiber() : state_(std::make_unique<State>()) {}

Fiber::Fiber(void (*run)(void*), void* context) : state_(std::make_unique<State>()) {
  state_->run = run;
  state_->argument = context;
  state_->stack = std::make_unique<unsigned char[]>(kStackSize);
  state_->stack_bottom = state_->stack.get();
  state_->stack_size = kStackSize;
  restart();
}

Fiber::~Fiber() = default;

void Fiber::restart() {
  State& state = *state_;
#if defined(__SANITIZE_ADDRESS__)
  __asan_unpoison_memory_region(state.stack.get(), kStackSize);  // frames that were left without unwinding
  state.fake_stack = nullptr;
#endif
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
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(nullptr, &state->came_from->stack_bottom, &state->came_from->stack_size);
#endif
  state->run(state->argument);
}

void Fiber::switch_to(Fiber& other) {
  State* from = state_.get();
  State* to = other.state_.get();
  to->came_from = from;
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(&from->fake_stack, to->stack_bottom, to->stack_size);
#endif
  ::swapcontext(&from->context, &to->context);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(from->fake_stack, &from->came_from->stack_bottom, &from->came_from->stack_size);
#endif
}

}  // namespace weft::model
