// SPDX-License-Identifier: MIT
// Result beside tl::expected and Boost.Outcome, both with the same Error, and beside exceptions. The functions measured
// are not inlined and their arguments come from memory that the compiler must assume changed, as between two source
// files: what is left is what a caller pays for the kind of result.
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#if __has_include(<tl/expected.hpp>)
#include <tl/expected.hpp>
#define WEFT_RIVAL_TL 1
#endif
#if __has_include(<boost/outcome/basic_result.hpp>)
#include <boost/outcome/basic_result.hpp>
#include <boost/outcome/policy/all_narrow.hpp>
#define WEFT_RIVAL_OUTCOME 1
#endif

#include "bench/micro/micro.h"
#include "weft/base/result.h"

namespace weft {
namespace {

#define WEFT_NOINLINE __attribute__((noinline))

// Each kind of result under the same few names.
struct Weft {
  template <typename T>
  using Of = Result<T>;
  static constexpr const char* kName = "weft";
  static constexpr bool kChains = true;
  static Error fail(Error error) { return error; }
};

#ifdef WEFT_RIVAL_TL
struct Tl {
  template <typename T>
  using Of = tl::expected<T, Error>;
  static constexpr const char* kName = "tl_expected";
  static constexpr bool kChains = true;
  static tl::unexpected<Error> fail(Error error) { return tl::unexpected<Error>(error); }
};
#endif

#ifdef WEFT_RIVAL_OUTCOME
struct Outcome {
  template <typename T>
  using Of = boost::outcome_v2::basic_result<T, Error, boost::outcome_v2::policy::all_narrow>;
  static constexpr const char* kName = "boost_outcome";
  static constexpr bool kChains = false;
  static auto fail(Error error) { return boost::outcome_v2::failure(error); }
};
#endif

// Boost's result says value() where the others have an operator.
template <typename R>
decltype(auto) value_of(R&& result) {
  if constexpr (requires { *std::forward<R>(result); }) {
    return *std::forward<R>(result);
  } else {
    return std::forward<R>(result).assume_value();
  }
}

template <typename Lib, template <typename> typename Body>
void add(bench::RowBuilder row) {
  row.run(Lib::kName, [](benchmark::State& state) { Body<Lib>::run(state); });
}
template <template <typename> typename Body>
bool rows_of(const char* name) {
  add<Weft, Body>(bench::row(name));
#ifdef WEFT_RIVAL_TL
  add<Tl, Body>(bench::row(name));
#endif
#ifdef WEFT_RIVAL_OUTCOME
  add<Outcome, Body>(bench::row(name));
#endif
  return true;
}
template <template <typename> typename Body>
bool rows_of_chains(const char* name) {
  add<Weft, Body>(bench::row(name));
#ifdef WEFT_RIVAL_TL
  add<Tl, Body>(bench::row(name));
#endif
  return true;
}

// ---- one operation ----

template <typename Lib>
WEFT_NOINLINE typename Lib::template Of<int> create_success(int value) {
  return value;
}
template <typename Lib>
WEFT_NOINLINE typename Lib::template Of<int> create_error(int os_errno) {
  return Lib::fail(Error(Errc::closed, "test error", os_errno));
}
template <typename Lib>
WEFT_NOINLINE bool check(const typename Lib::template Of<int>& result) {
  return static_cast<bool>(result);
}
template <typename Lib>
WEFT_NOINLINE int look(const typename Lib::template Of<int>& result) {
  return result ? value_of(result) : 0;
}
template <typename Lib>
WEFT_NOINLINE int access(const typename Lib::template Of<int>& result) {
  return value_of(result);
}

template <typename Lib>
struct CreateSuccess {
  static void run(benchmark::State& state) {
    int value = 42;
    for (auto _ : state) {
      benchmark::DoNotOptimize(value);
      auto result = create_success<Lib>(value);
      benchmark::DoNotOptimize(result);
    }
  }
};
template <typename Lib>
struct CreateError {
  static void run(benchmark::State& state) {
    int value = 42;
    for (auto _ : state) {
      benchmark::DoNotOptimize(value);
      auto result = create_error<Lib>(value);
      benchmark::DoNotOptimize(result);
    }
  }
};
template <typename Lib>
struct Check {
  static void run(benchmark::State& state) {
    auto result = create_success<Lib>(42);
    for (auto _ : state) {
      benchmark::DoNotOptimize(result);
      bool ok = check<Lib>(result);
      benchmark::DoNotOptimize(ok);
    }
  }
};
// The value after a test of the result, as a program reads it; without the test in the twin.
template <typename Lib>
struct Value {
  static void run(benchmark::State& state) {
    auto result = create_success<Lib>(42);
    for (auto _ : state) {
      benchmark::DoNotOptimize(result);
      int value = look<Lib>(result);
      benchmark::DoNotOptimize(value);
    }
  }
};
template <typename Lib>
struct ValueUntested {
  static void run(benchmark::State& state) {
    auto result = create_success<Lib>(42);
    for (auto _ : state) {
      benchmark::DoNotOptimize(result);
      int value = access<Lib>(result);
      benchmark::DoNotOptimize(value);
    }
  }
};

[[maybe_unused]] const bool kOperations =
    rows_of<CreateSuccess>("Result_Create_Success") && rows_of<CreateError>("Result_Create_Error") &&
    rows_of<Check>("Result_Check") && rows_of<Value>("Result_Value") && rows_of<ValueUntested>("Result_Value/untested");

// ---- functions of values and errors ----

template <typename Lib>
using Chain = typename Lib::template Of<int> (*)(const typename Lib::template Of<int>&);

template <typename Lib>
struct Steps {
  using R = typename Lib::template Of<int>;
  static R next(int value) { return value < 0 ? R(Lib::fail(Errc::invalid_argument)) : R(value + 1); }
  static R recover(const Error& error) { return R(error.os_errno()); }

  WEFT_NOINLINE static R map(const R& r) {
    return r.map([](int value) { return value * 2; });
  }
  WEFT_NOINLINE static R map_map(const R& r) {
    return r.map([](int value) { return value * 2; }).map([](int value) { return value + 1; });
  }
  WEFT_NOINLINE static R and_then(const R& r) { return r.and_then(next); }
  WEFT_NOINLINE static R and_then_twice(const R& r) { return r.and_then(next).and_then(next); }
  WEFT_NOINLINE static R or_else(const R& r) { return r.or_else(recover); }
  WEFT_NOINLINE static R chain(const R& r) {
    return r.map([](int value) { return value * 2; }).and_then(next).or_else(recover).map([](int value) {
      return value + 10;
    });
  }
};

template <typename Lib, Chain<Lib> kFunction, bool kError = false>
void run_chain(benchmark::State& state) {
  auto result = kError ? create_error<Lib>(7) : create_success<Lib>(42);
  for (auto _ : state) {
    benchmark::DoNotOptimize(result);
    auto next = kFunction(result);
    benchmark::DoNotOptimize(next);
  }
}
template <typename Lib>
struct Map {
  static void run(benchmark::State& state) { run_chain<Lib, Steps<Lib>::map>(state); }
};
template <typename Lib>
struct MapMap {
  static void run(benchmark::State& state) { run_chain<Lib, Steps<Lib>::map_map>(state); }
};
template <typename Lib>
struct AndThen {
  static void run(benchmark::State& state) { run_chain<Lib, Steps<Lib>::and_then>(state); }
};
template <typename Lib>
struct AndThenAndThen {
  static void run(benchmark::State& state) { run_chain<Lib, Steps<Lib>::and_then_twice>(state); }
};
template <typename Lib>
struct OrElseNoError {
  static void run(benchmark::State& state) { run_chain<Lib, Steps<Lib>::or_else>(state); }
};
template <typename Lib>
struct OrElseError {
  static void run(benchmark::State& state) { run_chain<Lib, Steps<Lib>::or_else, true>(state); }
};
template <typename Lib>
struct Chain4 {
  static void run(benchmark::State& state) { run_chain<Lib, Steps<Lib>::chain>(state); }
};

[[maybe_unused]] const bool kChains =
    rows_of_chains<Map>("Result_Map") && rows_of_chains<MapMap>("Result_MapMap") &&
    rows_of_chains<AndThen>("Result_AndThen") && rows_of_chains<AndThenAndThen>("Result_AndThenAndThen") &&
    rows_of_chains<OrElseNoError>("Result_OrElse_NoError") && rows_of_chains<OrElseError>("Result_OrElse_Error") &&
    rows_of_chains<Chain4>("Result_Chain4");

// ---- values of several types ----

template <typename T>
T sample(int size) {
  if constexpr (std::is_same_v<T, std::string>) {
    return std::string(static_cast<std::size_t>(size), 'x');
  } else if constexpr (std::is_same_v<T, std::vector<int>>) {
    return std::vector<int>(static_cast<std::size_t>(size), 42);
  } else {
    return static_cast<T>(size);
  }
}

template <typename Lib, typename T>
struct Typed {
  using R = typename Lib::template Of<T>;
  WEFT_NOINLINE static R create(int size) { return sample<T>(size); }
  WEFT_NOINLINE static R copy(const R& from) { return from; }
  WEFT_NOINLINE static R move(R& from) { return std::move(from); }
  // By value(), which all but Boost's check, something that must be read from the value each time.
  WEFT_NOINLINE static auto access(const R& from) {
    if constexpr (requires { from.value().size(); }) {
      return from.value().size();
    } else {
      return from.value();
    }
  }
};
template <typename Lib>
struct Typed<Lib, void> {
  using R = typename Lib::template Of<void>;
  WEFT_NOINLINE static R create(int) {
    if constexpr (std::is_default_constructible_v<R>) {
      return R();
    } else {
      return R(std::in_place_type<void>);
    }
  }
  WEFT_NOINLINE static R copy(const R& from) { return from; }
  WEFT_NOINLINE static R move(R& from) { return std::move(from); }
};

template <typename Lib, typename T>
void typed_rows(const std::string& name, int size) {
  using Work = Typed<Lib, T>;
  bench::row("Result_" + name + "_Create").run(Lib::kName, [size](benchmark::State& state) {
    int input = size;
    for (auto _ : state) {
      benchmark::DoNotOptimize(input);
      auto result = Work::create(input);
      benchmark::DoNotOptimize(result);
    }
  });
  bench::row("Result_" + name + "_Copy").run(Lib::kName, [size](benchmark::State& state) {
    auto from = Work::create(size);
    for (auto _ : state) {
      benchmark::DoNotOptimize(from);
      auto result = Work::copy(from);
      benchmark::DoNotOptimize(result);
    }
  });
  // There and back, so that there is something to move the next time.
  bench::row("Result_" + name + "_Move").run(Lib::kName, [size](benchmark::State& state) {
    auto from = Work::create(size);
    for (auto _ : state) {
      benchmark::DoNotOptimize(from);
      auto result = Work::move(from);
      benchmark::DoNotOptimize(result);
      from = std::move(result);
    }
  });
  if constexpr (!std::is_void_v<T>) {
    bench::row("Result_" + name + "_Access").run(Lib::kName, [size](benchmark::State& state) {
      auto from = Work::create(size);
      for (auto _ : state) {
        benchmark::DoNotOptimize(from);
        auto value = Work::access(from);
        benchmark::DoNotOptimize(value);
      }
    });
  }
}

template <typename T>
bool typed(const std::string& name, int size) {
  typed_rows<Weft, T>(name, size);
#ifdef WEFT_RIVAL_TL
  typed_rows<Tl, T>(name, size);
#endif
#ifdef WEFT_RIVAL_OUTCOME
  typed_rows<Outcome, T>(name, size);
#endif
  return true;
}

[[maybe_unused]] const bool kTypes =
    typed<int>("int", 42) && typed<double>("double", 42) && typed<bool>("bool", 1) && typed<void>("void", 0) &&
    typed<std::string>("string/10", 10) && typed<std::string>("string/100", 100) &&
    typed<std::vector<int>>("vector/10", 10) && typed<std::vector<int>>("vector/100", 100);

}  // namespace
}  // namespace weft
