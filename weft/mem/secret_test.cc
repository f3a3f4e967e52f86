// SPDX-License-Identifier: MIT
#include "weft/mem/secret.h"

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace weft {
namespace {

constexpr const char* kShort = "short secret";  // lies inside the string
constexpr const char* kLong = "a secret that is longer than a string holds without memory of its own";

template <typename T>
std::string_view memory_of(const T& object) {
  return {reinterpret_cast<const char*>(&object), sizeof object};
}

TEST(Secret, WipingOverwritesAllMemoryAndEmptiesTheText) {
  for (const std::string text : {kShort, kLong}) {
    std::string wiped = text;
    wiped.resize(3);  // the rest stays in the memory behind the end
    const char* const memory = wiped.data();
    const std::size_t capacity = wiped.capacity();
    wipe(wiped);
    EXPECT_TRUE(wiped.empty());
    wiped.resize(capacity, '\0');
    EXPECT_EQ(wiped.data(), memory);
    EXPECT_EQ(wiped, std::string(capacity, '\0'));
  }
  std::vector<std::uint8_t> bytes = {1, 2, 3};
  wipe(bytes);
  EXPECT_TRUE(bytes.empty());
}

TEST(Secret, ItsEndLeavesNothingInItsMemory) {
  alignas(Secret) std::array<unsigned char, sizeof(Secret)> memory{};
  auto* const secret = std::construct_at(reinterpret_cast<Secret*>(memory.data()), std::string(kShort));
  EXPECT_EQ(secret->text(), kShort);
  EXPECT_NE(memory_of(memory).find(kShort), std::string_view::npos);
  std::destroy_at(secret);
  EXPECT_EQ(memory_of(memory).find("secret"), std::string_view::npos);
}

TEST(Secret, AMoveLeavesNothingBehind) {
  std::string text = kShort;
  Secret first(std::move(text));
  EXPECT_EQ(memory_of(text).find("secret"), std::string_view::npos);
  Secret second(std::move(first));
  EXPECT_EQ(memory_of(first).find("secret"), std::string_view::npos);
  first = std::move(second);
  EXPECT_EQ(memory_of(second).find("secret"), std::string_view::npos);
  EXPECT_EQ(first.text(), kShort);
}

TEST(Secret, ACopyIsItsOwn) {
  Secret first{std::string(kLong)};
  Secret second{std::string(kShort)};
  second = first;
  const Secret third(first);
  const Secret* const same = &second;
  second = *same;
  first.forget();
  EXPECT_EQ(first.text(), "");
  EXPECT_EQ(second.text(), kLong);
  EXPECT_EQ(third.text(), kLong);
}

}  // namespace
}  // namespace weft
