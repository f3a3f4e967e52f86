// SPDX-License-Identifier: MIT
#include "weft/nats/protocol/codec.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <optional>
#include <system_error>

namespace weft::nats {

namespace {

using Decoded = serve::Decoded<Codec::Frame>;

constexpr Error kLongLine(Errc::protocol_error, "the server's line is too long");
constexpr Error kNoEnd(Errc::protocol_error, "the server's line or message does not end with CRLF");
constexpr Error kUnknown(Errc::protocol_error, "the server sent an unknown operation");
constexpr Error kBadMessage(Errc::protocol_error, "the server's line of a message is malformed");
constexpr Error kBadHeaders(Errc::protocol_error, "the server's message has a malformed header block");
constexpr Error kTooLarge(Errc::message_too_large, "the message is larger than its bound");
constexpr Error kBadText(Errc::invalid_argument, "a subject or a text with a space, a control byte, or too many bytes");

constexpr std::string_view kVersionLine = "NATS/1.0";
constexpr std::string_view kBlank = "\r\n\r\n";

[[nodiscard]] std::uint8_t upper(std::uint8_t c) noexcept { return c >= 'a' && c <= 'z' ? c - 0x20 : c; }

[[nodiscard]] bool is_word(std::string_view word, std::string_view name) noexcept {
  if (word.size() != name.size()) {
    return false;
  }
  for (std::size_t i = 0; i < word.size(); ++i) {
    if (upper(static_cast<std::uint8_t>(word[i])) != static_cast<std::uint8_t>(name[i])) {
      return false;
    }
  }
  return true;
}

[[nodiscard]] bool is_blank(char c) noexcept { return c == ' ' || c == '\t'; }

// Removes the first word of the text, and the blanks around it.
[[nodiscard]] std::string_view take_word(std::string_view& text) noexcept {
  std::size_t begin = 0;
  while (begin < text.size() && is_blank(text[begin])) {
    ++begin;
  }
  std::size_t end = begin;
  while (end < text.size() && !is_blank(text[end])) {
    ++end;
  }
  const std::string_view word = text.substr(begin, end - begin);
  while (end < text.size() && is_blank(text[end])) {
    ++end;
  }
  text.remove_prefix(end);
  return word;
}

[[nodiscard]] std::optional<std::uint64_t> number_of(std::string_view digits) noexcept {
  std::uint64_t value = 0;
  const char* const end = digits.data() + digits.size();
  const auto [stop, failed] = std::from_chars(digits.data(), end, value);
  return failed != std::errc() || stop != end ? std::nullopt : std::optional(value);
}

// The line of a message as servers write it, in one walk: "MSG subject sid [reply] size", one blank between two words.
// decode_line() reads every other form.
class PlainLine {
 public:
  [[nodiscard]] bool read(Bytes input) noexcept {
    constexpr std::string_view kStart = "MSG ";
    if (input.size() < kStart.size() || std::memcmp(input.data(), kStart.data(), kStart.size()) != 0) {
      return false;
    }
    begin_ = at_ = input.data() + kStart.size();
    end_ = input.data() + std::min(input.size(), kControlLineMax);
    if (!read_word(head.subject) || !read_number(head.sid) || at_ == end_ || *at_++ != ' ') {
      return false;
    }
    const std::uint8_t* const rest = at_;
    if (!read_number(body) || !at_line_end()) {
      at_ = rest;
      if (!read_word(head.reply) || !read_number(body) || !at_line_end()) {
        return false;
      }
    }
    head.op = Op::message;
    size = static_cast<std::size_t>(at_ - begin_) + kStart.size() + 2;
    return true;
  }

  Head head{};
  std::uint64_t body = 0;
  std::size_t size = 0;  // of the line

 private:
  [[nodiscard]] bool read_word(std::string_view& word) noexcept {
    const std::uint8_t* const start = at_;
    while (at_ != end_ && *at_ > ' ') {
      ++at_;
    }
    word = as_text(Bytes(start, static_cast<std::size_t>(at_ - start)));
    return !word.empty() && at_ != end_ && *at_++ == ' ';
  }
  [[nodiscard]] bool read_number(std::uint64_t& number) noexcept {
    constexpr std::ptrdiff_t kDigitsMax = 19;  // of a number below 2^64, whatever they are
    const std::uint8_t* const start = at_;
    std::uint64_t value = 0;
    while (at_ != end_ && *at_ >= '0' && *at_ <= '9' && at_ - start <= kDigitsMax) {
      value = 10 * value + (*at_++ - '0');
    }
    number = value;
    return at_ != start && at_ - start <= kDigitsMax;
  }
  [[nodiscard]] bool at_line_end() const noexcept { return end_ - at_ >= 2 && at_[0] == '\r' && at_[1] == '\n'; }

  const std::uint8_t* begin_ = nullptr;
  const std::uint8_t* at_ = nullptr;
  const std::uint8_t* end_ = nullptr;
};

[[nodiscard]] bool is_header_block(std::string_view block) noexcept {
  return block.size() >= kVersionLine.size() + kBlank.size() && block.starts_with(kVersionLine) &&
         block.ends_with(kBlank);
}

// Without an early end, so that the compiler compares many bytes at a time.
[[nodiscard]] bool has_word_bytes(std::string_view text) noexcept {
  bool wrong = false;
  for (const char c : text) {
    wrong |= static_cast<std::uint8_t>(c) <= 0x20;
  }
  return !wrong;
}

// Writes words of a line. The caller has checked that they fit.
class LineWriter {
 public:
  explicit LineWriter(std::uint8_t* out) noexcept : begin_(out), out_(out) {}
  void text(std::string_view text) noexcept {
    std::memcpy(out_, text.data(), text.size());
    out_ += text.size();
  }
  void word(std::string_view word) noexcept {
    *out_++ = ' ';
    text(word);
  }
  void number(std::uint64_t value) noexcept {
    *out_++ = ' ';
    char* const place = reinterpret_cast<char*>(out_);
    out_ += std::to_chars(place, place + 20, value).ptr - place;
  }
  [[nodiscard]] std::size_t size() const noexcept { return static_cast<std::size_t>(out_ - begin_); }

 private:
  std::uint8_t* begin_;
  std::uint8_t* out_;
};

}  // namespace

serve::Decoded<Codec::Frame> Codec::decode(Bytes input) noexcept {
  if (input.empty()) {
    return Decoded::more(1);
  }
  if (PlainLine line; searched_ == 0 && line.read(input)) [[likely]] {
    const Decoded decoded = decode_body(input, line.head, false, line.size, line.body);
    searched_ = decoded.complete() ? 0 : static_cast<std::uint32_t>(line.size - 1);
    return decoded;
  }
  const std::size_t bound = upper(input[0]) == 'I' ? kInfoMax : kControlLineMax;
  const Bytes window = input.first(std::min(input.size(), bound));
  const std::size_t from = std::min<std::size_t>(searched_, window.size());
  const auto* const end =
      from == window.size()
          ? nullptr
          : static_cast<const std::uint8_t*>(std::memchr(window.data() + from, '\n', window.size() - from));
  if (end == nullptr) {
    searched_ = static_cast<std::uint32_t>(window.size());
    return window.size() == bound ? Decoded::refused(kLongLine) : Decoded::more(input.size() + 1);
  }
  const auto size = static_cast<std::size_t>(end - window.data()) + 1;
  if (size < 2 || window[size - 2] != '\r') {
    return Decoded::refused(kNoEnd);
  }
  const Decoded decoded = decode_line(input, as_text(window.first(size - 2)), size);
  searched_ = decoded.complete() ? 0 : static_cast<std::uint32_t>(size - 1);
  return decoded;
}

serve::Decoded<Codec::Frame> Codec::decode_line(Bytes input, std::string_view line, std::size_t size) noexcept {
  std::string_view rest = line;
  const std::string_view word = take_word(rest);
  Frame frame;
  if (is_word(word, "MSG")) {
    return decode_message(input, rest, false, size);
  }
  if (is_word(word, "HMSG")) {
    return decode_message(input, rest, true, size);
  }
  if (is_word(word, "PING")) {
    frame.header.op = Op::ping;
  } else if (is_word(word, "PONG")) {
    frame.header.op = Op::pong;
  } else if (is_word(word, "+OK")) {
    frame.header.op = Op::ok;
  } else if (is_word(word, "-ERR")) {
    frame = {{.op = Op::error}, as_bytes(rest)};
  } else if (is_word(word, "INFO")) {
    frame = {{.op = Op::info}, as_bytes(rest)};
  } else {
    return Decoded::refused(kUnknown);
  }
  return Decoded::whole(frame, size);
}

// MSG subject sid [reply] size; HMSG subject sid [reply] headers-size size.
serve::Decoded<Codec::Frame> Codec::decode_message(Bytes input, std::string_view words, bool with_headers,
                                                   std::size_t size) const noexcept {
  std::array<std::string_view, 5> word;
  std::size_t count = 0;
  while (!words.empty() && count < word.size()) {
    word[count++] = take_word(words);
  }
  const std::size_t least = with_headers ? 4 : 3;
  if (!words.empty() || count < least || count > least + 1) {
    return Decoded::refused(kBadMessage);
  }
  Head head;
  head.op = Op::message;
  head.subject = word[0];
  const auto sid = number_of(word[1]);
  if (count > least) {
    head.reply = word[2];
  }
  const auto body = number_of(word[count - 1]);
  const auto headers = with_headers ? number_of(word[count - 2]) : std::uint64_t{0};
  if (!sid || !body || !headers || *headers > *body) {
    return Decoded::refused(kBadMessage);
  }
  head.sid = *sid;
  if (*headers > kHeadersMax) {
    return Decoded::refused(kBadHeaders);
  }
  head.headers_size = static_cast<std::size_t>(*headers);
  return decode_body(input, head, with_headers, size, *body);
}

serve::Decoded<Codec::Frame> Codec::decode_body(Bytes input, const Head& head, bool with_headers, std::size_t size,
                                                std::uint64_t body) const noexcept {
  if (body > message_max_) {
    return Decoded::refused(kTooLarge);
  }
  const std::size_t whole = size + static_cast<std::size_t>(body) + 2;
  if (input.size() < whole) {
    return Decoded::more(whole);
  }
  if (input[whole - 2] != '\r' || input[whole - 1] != '\n') {
    return Decoded::refused(kNoEnd);
  }
  const Frame frame{head, input.subspan(size, static_cast<std::size_t>(body))};
  if (with_headers && !is_header_block(as_text(frame.body.first(head.headers_size)))) {
    return Decoded::refused(kBadHeaders);
  }
  return Decoded::whole(frame, whole);
}

Result<std::size_t> Codec::encode_header(const Head& head, Bytes body,
                                         std::span<std::uint8_t, kHeaderMax> out) const noexcept {
  if (head.subject.size() > kSubjectMax || head.reply.size() > kReplyMax || !has_word_bytes(head.subject) ||
      !has_word_bytes(head.reply)) {
    return kBadText;
  }
  if (body.size() > message_max_) {
    return kTooLarge;
  }
  LineWriter line(out.data());
  switch (head.op) {
    case Op::publish: {
      const Bytes block = body.first(std::min(head.headers_size, body.size()));
      if (head.subject.empty() || block.size() != head.headers_size) {
        return kBadText;
      }
      if (!block.empty() && (block.size() > kHeadersMax || !is_header_block(as_text(block)))) {
        return Error(Errc::invalid_argument, "a malformed header block");
      }
      line.text(block.empty() ? "PUB" : "HPUB");
      line.word(head.subject);
      if (!head.reply.empty()) {
        line.word(head.reply);
      }
      if (!block.empty()) {
        line.number(block.size());
      }
      line.number(body.size());
      line.text("\r\n");
      return line.size();
    }
    case Op::subscribe:
      if (head.subject.empty()) {
        return kBadText;
      }
      line.text("SUB");
      line.word(head.subject);
      if (!head.reply.empty()) {
        line.word(head.reply);
      }
      line.number(head.sid);
      break;
    case Op::unsubscribe:
      line.text("UNSUB");
      line.number(head.sid);
      if (head.count != 0) {
        line.number(head.count);
      }
      break;
    case Op::connect:
      if (as_text(body).find('\n') != std::string_view::npos) {
        return kBadText;
      }
      line.text("CONNECT ");
      return line.size();
    case Op::ping: line.text("PING"); break;
    case Op::pong: line.text("PONG"); break;
    default: return Error(Errc::invalid_argument, "the server alone sends this operation");
  }
  if (!body.empty()) {
    return Error(Errc::invalid_argument, "this operation has no body");
  }
  return line.size();
}

}  // namespace weft::nats
