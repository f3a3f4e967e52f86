// SPDX-License-Identifier: MIT
#include "weft/sync/kept_text.h"

#include <array>
#include <cstddef>
#include <cstring>

#include "weft/sync/lock.h"

namespace weft::sync {
namespace {

using Text = std::array<char, kKeptTextSize>;

class Table {
 public:
  StaticText keep(const Text& text, StaticText otherwise) noexcept {
    const LockGuard lock(mutex_);
    for (std::size_t i = 0; i < size_; ++i) {
      if (std::strcmp(texts_[i].data(), text.data()) == 0) {
        return StaticText::of_immortal(texts_[i].data());
      }
    }
    if (size_ == texts_.size()) {
      return otherwise;
    }
    texts_[size_] = text;
    return StaticText::of_immortal(texts_[size_++].data());
  }

 private:
  StdMutex mutex_;
  std::array<Text, kKeptTexts> texts_ WEFT_GUARDED_BY(mutex_){};  // a text that was given out never changes
  std::size_t size_ WEFT_GUARDED_BY(mutex_) = 0;
};

constinit Table own_texts;
constinit Table peer_texts;

// A byte that continues a character of UTF-8.
bool continues(char byte) noexcept { return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U; }

Text join(std::initializer_list<std::string_view> parts) noexcept {
  Text text{};
  std::size_t size = 0;
  for (const std::string_view part : parts) {
    for (const char c : part) {
      const auto byte = static_cast<unsigned char>(c);
      if (size == text.size() - 1) {
        while (continues(c) && size != 0) {  // no half character
          const bool more = continues(text[--size]);
          text[size] = '\0';
          if (!more) {
            break;
          }
        }
        return text;
      }
      // C1 control characters are 0xC2 and one of these.
      const bool c1 = size != 0 && text[size - 1] == '\xC2' && byte < 0xA0;
      if (c1) {
        text[size - 1] = '?';
      }
      text[size++] = byte < 0x20 || byte == 0x7F || c1 ? '?' : c;
    }
  }
  return text;
}

}  // namespace

StaticText keep_text(std::initializer_list<std::string_view> parts, StaticText otherwise) noexcept {
  return own_texts.keep(join(parts), otherwise);
}

StaticText keep_peer_text(std::initializer_list<std::string_view> parts, StaticText otherwise) noexcept {
  return peer_texts.keep(join(parts), otherwise);
}

}  // namespace weft::sync
