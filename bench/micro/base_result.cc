// SPDX-License-Identifier: MIT
// Result beside tl::expected and Boost.Outcome, both with the same Error, and beside exceptions. The measured
// functions are not inlined, and the compiler must assume that their arguments changed in memory, as between
// two source files. The time that remains is a caller's price for the kind of result.
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
  [[maybe_unused]] static constexpr bool kChains = true;
  static Error fail(Error error) { return error; }
};

#ifdef WEFT_RIVAL_TL
struct Tl {
  template <typename T>
  using Of = tl::expected<T, Error>;
  static constexpr const char* kName = "tl_expected";
  [[maybe_unused]] static constexpr bool kChains = true;
  static tl::unexpected<Error> fail(Error error) { return tl::unexpected<Error>(error); }
};
#endif

#ifdef WEFT_RIVAL_OUTCOME
struct Outcome {
  template <typename T>
  using Of = boost::outcome_v2::basic_result<T, Error, boost::outcome_v2::policy::all_narrow>;
  static constexpr const char* kName = "boost_outcome";
  [[maybe_unused]] static constexpr bool kChains = false;
  static auto fail(Error error) { return boost::outcome_v2::failure(error); }
};
#endif

// Boost's result has value() where the others have an operator.
template <typename R>
decltype(auto) value_of(R&& result) {
  if constexpr (requires { *std::forward<R>(result); }) {
    return *std::forward<R>(result);
  } else {
    return std::forward<R>(result).assume_value();
  }
}

// Adds a row of `body`, a generic lambda that is called with each library.
template <typename Lib, typename Body>
void add(bench::RowBuilder row, Body body) {
  row.run(Lib::kName, [body](benchmark::State& state) { body.template operator()<Lib>(state); });
}
template <typename Body>
bool rows_of_chains(const std::string& name, Body body) {
  add<Weft>(bench::row(name), body);
#ifdef WEFT_RIVAL_TL
  add<Tl>(bench::row(name), body);
#endif
  return true;
}
template <typename Body>
bool rows_of(const std::string& name, Body body) {
  rows_of_chains(name, body);
#ifdef WEFT_RIVAL_OUTCOME
  add<Outcome>(bench::row(name), body);
#endif
  return true;
}

// As published: the result of kFunction must be in memory, and no code reads it.
template <auto kFunction, typename Input>
void repeat(benchmark::State& state, Input input) {
  for (auto _ : state) {
    benchmark::DoNotOptimize(input);
    auto result = kFunction(input);
    benchmark::DoNotOptimize(result);
  }
}
// The twin works like a caller: it tests the result and reads the value, or the error's number.
template <auto kFunction, typename Input>
void repeat_and_use(benchmark::State& state, Input input) {
  for (auto _ : state) {
    benchmark::DoNotOptimize(input);
    const auto result = kFunction(input);
    if (result) {
      int value = value_of(result);
      benchmark::DoNotOptimize(value);
    } else {
      int number = result.error().os_errno();
      benchmark::DoNotOptimize(number);
    }
  }
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

[[maybe_unused]] const bool kOperations =
    rows_of("Result_Create_Success",
            []<typename Lib>(benchmark::State& state) { repeat<create_success<Lib>>(state, 42); }) &&
    rows_of("Result_Create_Success (honest)",
            []<typename Lib>(benchmark::State& state) { repeat_and_use<create_success<Lib>>(state, 42); }) &&
    rows_of("Result_Create_Error",
            []<typename Lib>(benchmark::State& state) { repeat<create_error<Lib>>(state, 42); }) &&
    rows_of("Result_Create_Error (honest)",
            []<typename Lib>(benchmark::State& state) { repeat_and_use<create_error<Lib>>(state, 42); }) &&
    rows_of("Result_Check",
            []<typename Lib>(benchmark::State& state) { repeat<check<Lib>>(state, create_success<Lib>(42)); }) &&
    // The value after a test of the result, as a program reads it, and without the test.
    rows_of("Result_Value",
            []<typename Lib>(benchmark::State& state) { repeat<look<Lib>>(state, create_success<Lib>(42)); }) &&
    rows_of("Result_Value/untested",
            []<typename Lib>(benchmark::State& state) { repeat<access<Lib>>(state, create_success<Lib>(42)); });

// ---- functions of values and errors ----

template <typename Lib>
struct Steps {
  using R = typename Lib::template Of<int>;
  static R next(int value) {
    if (value < 0) [[unlikely]] {
      return R(Lib::fail(Errc::invalid_argument));
    }
    return R(value + 1);
  }
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

#define WEFT_CHAIN_ROWS(name, make, function)                                                                      \
  (rows_of_chains(                                                                                                 \
       name, []<typename Lib>(benchmark::State& state) { repeat<Steps<Lib>::function>(state, make<Lib>(42)); }) && \
   rows_of_chains(name " (honest)", []<typename Lib>(benchmark::State& state) {                                    \
     repeat_and_use<Steps<Lib>::function>(state, make<Lib>(42));                                                   \
   }))

[[maybe_unused]] const bool kChains = WEFT_CHAIN_ROWS("Result_Map", create_success, map) &&
                                      WEFT_CHAIN_ROWS("Result_MapMap", create_success, map_map) &&
                                      WEFT_CHAIN_ROWS("Result_AndThen", create_success, and_then) &&
                                      WEFT_CHAIN_ROWS("Result_AndThenAndThen", create_success, and_then_twice) &&
                                      WEFT_CHAIN_ROWS("Result_OrElse_NoError", create_success, or_else) &&
                                      WEFT_CHAIN_ROWS("Result_OrElse_Error", create_error, or_else) &&
                                      WEFT_CHAIN_ROWS("Result_Chain4", create_success, chain);
#undef WEFT_CHAIN_ROWS

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
  // By value(), which every library except Boost's checks. The result must be read from the value each time.
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
  // Moves there and back, so that the next iteration has a value to move.
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
