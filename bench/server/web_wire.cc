// SPDX-License-Identifier: MIT
#include "bench/server/web_wire.h"

#include <strings.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <random>
#include <vector>

namespace bench {
namespace {

constexpr std::size_t kHeadMax = 4096;

std::string_view text_of(Bytes bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

bool same(std::string_view one, std::string_view other) {
  return one.size() == other.size() && strncasecmp(one.data(), other.data(), one.size()) == 0;
}

// The value of a field of a head; nullopt: there is none.
std::optional<std::string_view> field_of(std::string_view head, std::string_view name) {
  for (std::size_t at = head.find("\r\n"); at + 2 < head.size();) {
    const std::size_t end = head.find("\r\n", at + 2);
    const std::string_view line = head.substr(at + 2, end - at - 2);
    const std::size_t colon = line.find(':');
    if (colon != std::string_view::npos && same(line.substr(0, colon), name)) {
      const std::size_t value = line.find_first_not_of(' ', colon + 1);
      return value == std::string_view::npos ? std::string_view() : line.substr(value);
    }
    at = end;
  }
  return std::nullopt;
}

// The size of the head at the start; 0: it is not whole.
std::size_t head_size_of(Bytes bytes) {
  const std::size_t end = text_of(bytes).substr(0, kHeadMax).find("\r\n\r\n");
  return end == std::string_view::npos ? 0 : end + 4;
}

WebWire::Answer no_head(Bytes bytes) {
  return {0, false, bytes.size() < kHeadMax ? nullptr : "an answer has no end of its head"};
}

class HttpWire final : public WebWire {
 public:
  HttpWire(std::uint32_t size, WebStyle style)
      : body_(letters(size)),
        request_("GET /" + std::string(style == WebStyle::file ? "file/" : "") + std::to_string(size) +
                 " HTTP/1.1\r\nHost: 127.0.0.1\r\n" + (style == WebStyle::close ? "Connection: close\r\n" : "") +
                 "\r\n") {}

  [[nodiscard]] std::string_view greeting() const override { return {}; }
  [[nodiscard]] Answer take_greeting(Bytes) const override { return {0, false, "a greeting"}; }
  [[nodiscard]] std::size_t request_size() const override { return request_.size(); }
  void encode(std::uint64_t, std::uint8_t* to) const override { std::copy(request_.begin(), request_.end(), to); }

  [[nodiscard]] Bytes farewell() const override { return {}; }
  [[nodiscard]] Bytes answer_to_farewell() const override { return {}; }

  // `passed` is 1 and the bytes of the body, after the head.
  [[nodiscard]] Answer take(Bytes bytes, std::uint64_t, std::size_t& passed) const override {
    std::size_t used = 0;
    if (passed == 0) {
      used = head_size_of(bytes);
      if (used == 0) {
        return no_head(bytes);
      }
      if (const char* const fault = fault_of(text_of(bytes.first(used)))) {
        return {used, false, fault};
      }
      passed = 1;
    }
    const std::size_t from = passed - 1;
    const std::size_t more = std::min(body_.size() - from, bytes.size() - used);
    if (std::memcmp(bytes.data() + used, body_.data() + from, more) != 0) {
      return {used, false, "an answer is damaged"};
    }
    passed += more;
    return {used + more, from + more == body_.size(), nullptr};
  }

 private:
  [[nodiscard]] const char* fault_of(std::string_view head) const {
    if (!head.starts_with("HTTP/1.1 200 ")) {
      return "an answer has another status than 200";
    }
    const auto length = field_of(head, "Content-Length");
    std::size_t value = 0;
    if (!length || std::from_chars(length->data(), length->data() + length->size(), value).ec != std::errc() ||
        value != body_.size()) {
      return "an answer has a wrong length";
    }
    return field_of(head, "Transfer-Encoding") ? "an answer has two lengths" : nullptr;
  }

  const std::string body_;
  const std::string request_;
};

class WebSocketWire final : public WebWire {
 public:
  WebSocketWire(std::uint32_t size, WebStyle style)
      : head_(size < 126      ? 2
              : size < 65'536 ? 4
                              : 10),
        size_(size),
        request_(head_ + 4 + size),
        greeting_("GET /" + std::string(style == WebStyle::publish ? "publish" : "") +
                  " HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                  "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: " +
                  std::string(kWebSocketKey) + "\r\n\r\n") {
    std::mt19937_64 random(size);
    std::vector<std::uint8_t> body(size);
    std::generate(body.begin(), body.end(), [&] { return static_cast<std::uint8_t>(random()); });
    filling_ = hash_of(Bytes(body).subspan(kBodyMin));
    write_head(request_.data(), true);
    std::memcpy(request_.data() + head_, &kMask, 4);
    for (std::size_t i = 0; i < size; ++i) {
      request_[head_ + 4 + i] = body[i] ^ request_[head_ + i % 4];
    }
    write_head(answer_, false);
  }

  [[nodiscard]] std::string_view greeting() const override { return greeting_; }

  [[nodiscard]] Answer take_greeting(Bytes bytes) const override {
    const std::size_t size = head_size_of(bytes);
    if (size == 0) {
      return no_head(bytes);
    }
    const std::string_view head = text_of(bytes.first(size));
    if (!head.starts_with("HTTP/1.1 101 ") || field_of(head, "Sec-WebSocket-Accept") != kWebSocketAccept) {
      return {size, false, "the upgrade was refused"};
    }
    return {size, true, field_of(head, "Sec-WebSocket-Extensions") ? "an extension that nobody offered" : nullptr};
  }

  [[nodiscard]] std::size_t request_size() const override { return request_.size(); }

  // The mask is the same in every frame, so that the filling is masked once.
  void encode(std::uint64_t tag, std::uint8_t* to) const override {
    constexpr std::uint64_t kMaskTwice = std::uint64_t{kMask} << 32U | kMask;
    const std::uint64_t words[2] = {tag ^ kMaskTwice, checksum_of(tag, filling_) ^ kMaskTwice};
    std::copy(request_.begin(), request_.end(), to);
    std::memcpy(to + head_ + 4, words, sizeof words);
  }

  [[nodiscard]] Answer take(Bytes bytes, std::uint64_t tag, std::size_t&) const override {
    if (std::memcmp(bytes.data(), answer_, std::min(head_, bytes.size())) != 0) {
      return {0, false, "an answer has a wrong header"};
    }
    if (bytes.size() < head_ + size_) {
      return {};
    }
    const Bytes body = bytes.subspan(head_, size_);
    return {head_ + size_, true,
            !intact(body)         ? "an answer is damaged"
            : tag_of(body) != tag ? "an answer was lost or overtaken, or came twice"
                                  : nullptr};
  }

  [[nodiscard]] Bytes farewell() const override { return kClose; }
  [[nodiscard]] Bytes answer_to_farewell() const override { return kClosed; }

 private:
  static constexpr std::uint32_t kMask = 0x3d21'fa37;
  static constexpr std::uint8_t kClose[] = {0x88, 0x82, 0, 0, 0, 0, 0x03, 0xe8};  // the status 1000, with a mask of 0
  static constexpr std::uint8_t kClosed[] = {0x88, 0x02, 0x03, 0xe8};

  // One whole binary message.
  void write_head(std::uint8_t* to, bool masked) const {
    const auto mask = static_cast<std::uint8_t>(masked ? 0x80 : 0);
    to[0] = 0x82;
    to[1] = static_cast<std::uint8_t>(mask | (head_ == 2 ? size_ : head_ == 4 ? 126 : 127));
    if (head_ == 4) {
      store_big(to + 2, static_cast<std::uint16_t>(size_));
    } else if (head_ == 10) {
      store_big(to + 2, std::uint64_t{size_});
    }
  }

  const std::size_t head_;  // bytes before the mask
  const std::size_t size_;
  std::vector<std::uint8_t> request_;
  std::uint8_t answer_[10]{};  // how each answer begins
  std::uint64_t filling_ = 0;
  const std::string greeting_;
};

}  // namespace

std::unique_ptr<const WebWire> make_http_wire(std::uint32_t size, WebStyle style) {
  return std::make_unique<HttpWire>(size, style);
}

std::unique_ptr<const WebWire> make_websocket_wire(std::uint32_t size, WebStyle style) {
  return std::make_unique<WebSocketWire>(size, style);
}

}  // namespace bench
