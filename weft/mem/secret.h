// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <utility>

namespace weft {

// Overwrites all memory of a string or a vector of bytes, and leaves it empty. Allocates nothing.
template <typename Text>
void wipe(Text& text) noexcept {
  text.resize(text.capacity());
  volatile auto* const bytes = text.data();  // the compiler keeps stores to volatile
  for (typename Text::size_type i = 0; i < text.size(); ++i) {
    bytes[i] = 0;
  }
  text.clear();
}

// Secret: a text whose memory is overwritten before its release. A move empties the source.
// Owner: any. Affinity: as std::string. Cost: one more pass over the text at its end.
class Secret {
 public:
  Secret() = default;
  explicit Secret(std::string&& text) noexcept { take(text); }
  Secret(const Secret&) = default;
  Secret(Secret&& other) noexcept { take(other.text_); }
  Secret& operator=(const Secret& other) {
    if (this != &other) {
      Secret copy(other);
      wipe(text_);
      take(copy.text_);
    }
    return *this;
  }
  Secret& operator=(Secret&& other) noexcept {
    if (this != &other) {
      wipe(text_);
      take(other.text_);
    }
    return *this;
  }
  ~Secret() { wipe(text_); }

  [[nodiscard]] const std::string& text() const noexcept { return text_; }
  void forget() noexcept { wipe(text_); }

 private:
  void take(std::string& from) noexcept {
    text_ = std::move(from);
    wipe(from);  // a short text was copied
  }

  std::string text_;
};

}  // namespace weft
