// SPDX-License-Identifier: MIT
#include <rapidcheck.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "weft/base/result.h"
#include <gtest/gtest.h>

namespace weft {
namespace {

// Every run has the same cases.
[[maybe_unused]] const int kSeeded = setenv("RC_PARAMS", "seed=5", 0);

// Ten levels of calls, each returning another kind of Result. The deepest returns its argument.
Result<int> level(int depth, const Result<int>& deepest);

int g_place = 0;
Result<int&> reference_level(int depth, const Result<int>& deepest) {
  g_place = WEFT_TRY(level(depth - 1, deepest));
  return g_place;
}
Result<std::string> string_level(int depth, const Result<int>& deepest) {
  return std::to_string(WEFT_TRY(level(depth - 1, deepest)));
}
Result<std::unique_ptr<int>> pointer_level(int depth, const Result<int>& deepest) {
  auto value = WEFT_TRY(level(depth - 1, deepest));
  return std::make_unique<int>(value);
}
Result<void> void_level(int depth, const Result<int>& deepest, int& value) {
  value = WEFT_TRY(level(depth - 1, deepest));
  return {};
}
Result<int> level(int depth, const Result<int>& deepest) {
  switch (depth) {
    case 0: return deepest;
    case 2: return std::stoi(WEFT_TRY(string_level(depth - 1, deepest)));
    case 4: return *WEFT_TRY(pointer_level(depth - 1, deepest));
    case 6: {
      const int& place = WEFT_TRY(reference_level(depth - 1, deepest));
      return place;
    }
    case 8: {
      int value = 0;
      WEFT_TRY(void_level(depth - 1, deepest, value));
      return value;
    }
    default: return WEFT_TRY(level(depth - 1, deepest));
  }
}

constexpr int kDepth = 10;

TEST(ResultProperty, AnErrorSurvivesTenLevelsOfTryWithAllThatItCarries) {
  static const std::vector<const char*> kTexts = {nullptr, "", "bind", "a longer text of static storage"};
  EXPECT_TRUE(rc::check([](std::uint16_t value, std::uint16_t domain, int any) {
    const char* const text = *rc::gen::elementOf(kTexts);
    const int os_errno = any / 4;  // it has 30 bits
    const auto fate = static_cast<Fate>(*rc::gen::inRange(0, 4));
    const Error error = Error(ErrorDomain(domain), value, StaticText::of_immortal(text), os_errno).with_fate(fate);
    RC_PRE(!(error == Errc::ok));
    const Error arrived = level(kDepth, error).error();
    RC_ASSERT(arrived.domain() == error.domain());
    RC_ASSERT(arrived.value() == value);
    RC_ASSERT(arrived.os_errno() == os_errno);
    RC_ASSERT(arrived.fate() == fate);
    RC_ASSERT(arrived.parts().text == text);
  }));
}

TEST(ResultProperty, AValueSurvivesTenLevelsOfTry) {
  EXPECT_TRUE(rc::check([](int value) { RC_ASSERT(*level(kDepth, value) == value); }));
}

// A Result beside a model of two words, through any sequence of operations.
TEST(ResultProperty, AnySequenceOfAssignmentsAndSwapsIsThatOfAModel) {
  struct Model {
    bool has = false;
    int number = 0;
  };
  EXPECT_TRUE(rc::check([] {
    Result<std::string> results[2] = {"0", "0"};
    Model models[2] = {{true, 0}, {true, 0}};
    for (const int step : *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 1000))) {
      auto& result = results[step % 2];
      auto& other = results[1 - step % 2];
      auto& model = models[step % 2];
      auto& other_model = models[1 - step % 2];
      switch (step / 2 % 6) {
        case 0: result = std::to_string(step), model = {true, step}; break;
        case 1: result = Error(Errc::system, "", step + 1), model = {false, step + 1}; break;
        case 2: result = other, model = other_model; break;
        case 3: swap(result, other), std::swap(model, other_model); break;
        case 4: result = Result<std::string>(result), model = Model(model); break;
        default: result = std::move(other), model = other_model, other = result; break;
      }
      for (int i = 0; i < 2; ++i) {
        RC_ASSERT(results[i].has_value() == models[i].has);
        RC_ASSERT((models[i].has ? results[i] == std::to_string(models[i].number)
                                 : results[i] == Error(Errc::system, "", models[i].number)));
      }
    }
  }));
}

}  // namespace
}  // namespace weft
