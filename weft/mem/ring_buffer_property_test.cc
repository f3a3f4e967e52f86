// SPDX-License-Identifier: MIT
#include <rapidcheck.h>

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "weft/mem/ring_buffer.h"
#include <gtest/gtest.h>

namespace weft::mem {
namespace {

// Every run has the same cases.
[[maybe_unused]] const int kSeeded = setenv("RC_PARAMS", "seed=20261121 max_success=40", 0);

// A ring buffer and a string take the same steps. After each step the views are as promised.
void behaves_as_a_string(bool mirrored) {
  const std::size_t most = *rc::gen::inRange<std::size_t>(1, 12'000);
  const std::size_t capacity = *rc::gen::inRange<std::size_t>(1, most + 1);
  RingBuffer buffer = (mirrored ? RingBuffer::make(capacity, most) : RingBuffer::make_copying(capacity, most)).value();
  std::string model;
  char next = 0;
  const auto steps = *rc::gen::container<std::vector<std::pair<int, std::size_t>>>(
      rc::gen::pair(rc::gen::inRange(0, 4), rc::gen::inRange<std::size_t>(0, 5'000)));
  for (const auto& [step, count] : steps) {
    std::string bytes(count, '\0');
    for (char& byte : bytes) {
      byte = next++;
    }
    const bool fits = model.size() + count <= most;
    if (step == 0) {
      RC_ASSERT(buffer.write(as_bytes(bytes)).has_value() == fits);
      model += fits ? bytes : "";
    } else if (step == 1) {
      const auto view = buffer.write_view(count);
      RC_ASSERT(view.has_value() == fits);
      if (fits) {
        RC_ASSERT(view->size() >= count);
        copy_bytes(view->data(), as_bytes(bytes));
        RC_ASSERT(buffer.commit(count / 2).has_value());
        model += bytes.substr(0, count / 2);
      }
    } else {
      RC_ASSERT(buffer.consume(count).has_value() == (count <= model.size()));
      model.erase(0, count <= model.size() ? count : 0);
    }
    RC_ASSERT(buffer.size() == model.size());
    RC_ASSERT(as_text(buffer.read_view()) == model);
    RC_ASSERT(buffer.capacity() <= most);
  }
}

TEST(RingBufferProperty, AMirroredBufferBehavesAsAString) {
  EXPECT_TRUE(rc::check("mirrored", [] { behaves_as_a_string(true); }));
}

TEST(RingBufferProperty, ACopyingBufferBehavesAsAString) {
  EXPECT_TRUE(rc::check("copying", [] { behaves_as_a_string(false); }));
}

}  // namespace
}  // namespace weft::mem
