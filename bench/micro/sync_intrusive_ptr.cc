// SPDX-License-Identifier: MIT
#include <memory>
#include <thread>

#include "bench/micro/micro.h"
#include "weft/base/intrusive_ptr.h"
#include "weft/sync/atomic_counted.h"

#if __has_include(<boost/smart_ptr/intrusive_ref_counter.hpp>)
#include <boost/smart_ptr/intrusive_ptr.hpp>
#include <boost/smart_ptr/intrusive_ref_counter.hpp>
#define WEFT_RIVAL_BOOST_INTRUSIVE
#endif

namespace weft {
namespace {

struct SharedSession : sync::AtomicCounted<SharedSession> {
  int value = 0;
};
struct LocalSession : Counted<LocalSession> {
  int value = 0;
};
#ifdef WEFT_RIVAL_BOOST_INTRUSIVE
struct BoostShared : boost::intrusive_ref_counter<BoostShared, boost::thread_safe_counter> {
  int value = 0;
};
struct BoostLocal : boost::intrusive_ref_counter<BoostLocal, boost::thread_unsafe_counter> {
  int value = 0;
};
#endif

// Makes and drops a copy while the original stays.
template <typename Pointer>
void copy_and_drop(benchmark::State& state, Pointer original) {
  std::thread([] {}).join();  // std::shared_ptr counts without atomics until the process has started a thread
  for (auto _ : state) {
    Pointer copy = original;
    benchmark::DoNotOptimize(copy.get());
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()));
}

void copy_shared_ptr(benchmark::State& state) { copy_and_drop(state, std::make_shared<int>(1)); }
void copy_shared(benchmark::State& state) { copy_and_drop(state, make_intrusive<SharedSession>()); }

bench::RowBuilder copy_row(std::string_view name) {
  auto row = bench::row(name).run("weft", copy_shared);
#ifdef WEFT_RIVAL_BOOST_INTRUSIVE
  row.run("boost", [](benchmark::State& state) { copy_and_drop(state, boost::intrusive_ptr(new BoostShared)); });
#endif
  return row.run("std_shared_ptr", copy_shared_ptr);
}

// The count is atomic, as in the published session since its race was mended; its report says that it is not.
// The twin measures the cost for a session that stays on its core.
[[maybe_unused]] const bool kRegistered = [] {
  copy_row("SessionPtr_Copy");
  copy_row("SharedPtr_Copy");
  auto local = bench::row("SessionPtr_Copy (honest)").run("weft", [](benchmark::State& state) {
    copy_and_drop(state, make_intrusive<LocalSession>());
  });
#ifdef WEFT_RIVAL_BOOST_INTRUSIVE
  local.run("boost", [](benchmark::State& state) { copy_and_drop(state, boost::intrusive_ptr(new BoostLocal)); });
#endif
  local.run("std_shared_ptr", copy_shared_ptr);
  return true;
}();

}  // namespace
}  // namespace weft
