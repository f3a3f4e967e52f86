// SPDX-License-Identifier: MIT
// An error on its way through 1, 5 and 10 callers, as a result and as an exception. Every caller is a
// separate function, adds to the value it receives, and has an object to destroy, as real callers do.
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#if __has_include(<tl/expected.hpp>)
#include <tl/expected.hpp>
#define WEFT_RIVAL_TL 1
#endif

#include "bench/micro/micro.h"
#include "weft/base/result.h"

namespace weft {
namespace {

#define WEFT_NOINLINE __attribute__((noinline))

// An object of a caller's that is undone on every way out.
struct Undone {
  explicit Undone(int& counter) : at(counter) { ++at; }
  Undone(const Undone&) = delete;
  Undone& operator=(const Undone&) = delete;
  ~Undone() { benchmark::DoNotOptimize(--at); }
  int& at;
};

int g_open = 0;

struct Weft {
  static constexpr const char* kName = "weft";

  WEFT_NOINLINE static Result<int> deepest(int value) {
    if (value < 0) [[unlikely]] {
      return Error(Errc::invalid_argument, "test error", value);
    }
    return value;
  }
  template <int kDepth>
  WEFT_NOINLINE static Result<int> call(int value) {
    if constexpr (kDepth == 0) {
      return deepest(value);
    } else {
      const Undone undone(g_open);
      return WEFT_TRY(call<kDepth - 1>(value)) + 1;
    }
  }
  template <int kDepth>
  static int top(int value) {
    const auto result = call<kDepth>(value);
    return result ? *result : result.error().os_errno();
  }
};

#ifdef WEFT_RIVAL_TL
struct Tl {
  using R = tl::expected<int, Error>;
  static constexpr const char* kName = "tl_expected";

  WEFT_NOINLINE static R deepest(int value) {
    if (value < 0) [[unlikely]] {
      return tl::unexpected<Error>(Error(Errc::invalid_argument, "test error", value));
    }
    return value;
  }
  template <int kDepth>
  WEFT_NOINLINE static R call(int value) {
    if constexpr (kDepth == 0) {
      return deepest(value);
    } else {
      const Undone undone(g_open);
      const R result = call<kDepth - 1>(value);
      if (!result) [[unlikely]] {
        return tl::unexpected<Error>(result.error());
      }
      return *result + 1;
    }
  }
  template <int kDepth>
  static int top(int value) {
    const auto result = call<kDepth>(value);
    return result ? *result : result.error().os_errno();
  }
};
#endif

struct Exceptions {
  struct Refusal : std::runtime_error {
    explicit Refusal(int number) : std::runtime_error("test error"), os_errno(number) {}
    int os_errno;
  };
  static constexpr const char* kName = "exception";

  WEFT_NOINLINE static int deepest(int value) {
    if (value < 0) [[unlikely]] {
      throw Refusal(value);
    }
    return value;
  }
  template <int kDepth>
  WEFT_NOINLINE static int call(int value) {
    if constexpr (kDepth == 0) {
      return deepest(value);
    } else {
      const Undone undone(g_open);
      return call<kDepth - 1>(value) + 1;
    }
  }
  template <int kDepth>
  static int top(int value) {
    try {
      return call<kDepth>(value);
    } catch (const Refusal& refusal) {
      return refusal.os_errno;
    }
  }
};

template <typename Way, int kDepth>
bench::RowBuilder add(bench::RowBuilder row, int input) {
  return row.run(Way::kName, [input](benchmark::State& state) {
    int value = input;
    for (auto _ : state) {
      benchmark::DoNotOptimize(value);
      int result = Way::template top<kDepth>(value);
      benchmark::DoNotOptimize(result);
    }
  });
}

template <int kDepth>
bool rows_of_depth() {
  const std::string depth = "Result_vs_Exception/Depth" + std::to_string(kDepth);
  const auto error = bench::row(depth);
  const auto success = bench::row(depth + "/success");
  for (const auto& [row, input] : {std::pair(error, -5), std::pair(success, 5)}) {
    add<Weft, kDepth>(row, input);
    add<Exceptions, kDepth>(row, input);
#ifdef WEFT_RIVAL_TL
    add<Tl, kDepth>(row, input);
#endif
  }
  bench::RowBuilder(error).bar("exception", 100);
  return true;
}

[[maybe_unused]] const bool kRows = rows_of_depth<1>() && rows_of_depth<5>() && rows_of_depth<10>();

}  // namespace
}  // namespace weft
