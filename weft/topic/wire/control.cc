// SPDX-License-Identifier: MIT
#include "weft/topic/wire/control.h"

#include <array>
#include <charconv>
#include <string_view>
#include <utility>

namespace weft::topic {

namespace {

constexpr std::string_view kMagic("\x02WT\x01", 4);
constexpr std::size_t kHeaderSize = kMagic.size() + 1 + 4 * 8 + 2;

void put(std::string& into, std::uint64_t number, unsigned bytes) {
  for (unsigned i = bytes; i-- > 0;) {
    into += static_cast<char>(number >> (8 * i));
  }
}

// Reader: takes numbers and texts off the front. Affinity: its caller's.
class Reader {
 public:
  explicit Reader(std::string_view rest) noexcept : rest_(rest) {}
  [[nodiscard]] std::uint64_t number(unsigned bytes) noexcept {
    std::uint64_t number = 0;
    for (const char c : text(bytes)) {
      number = number << 8 | static_cast<unsigned char>(c);
    }
    return number;
  }
  [[nodiscard]] std::string_view text(std::size_t size) noexcept {
    if (size > rest_.size()) {
      failed_ = true;
      return {};
    }
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }
  [[nodiscard]] bool failed() const noexcept { return failed_; }
  [[nodiscard]] bool empty() const noexcept { return rest_.empty(); }

 private:
  std::string_view rest_;
  bool failed_ = false;
};

constexpr Error kMalformed(Errc::protocol_error, "a control message of topics is malformed");

// "a\0b" in two. Returns false if there is no zero byte, or more than one.
bool split(std::string_view text, std::string_view& left, std::string_view& right) noexcept {
  const std::size_t zero = text.find('\0');
  if (zero == std::string_view::npos) {
    return false;
  }
  left = text.substr(0, zero);
  right = text.substr(zero + 1);
  return right.find('\0') == std::string_view::npos;
}

bool is_name(std::string_view text) noexcept { return !text.empty() && text.size() <= Roster::kNameMax; }

bool parse_number(std::string_view text, std::uint64_t& number) noexcept {
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, number);
  return parsed.ec == std::errc() && parsed.ptr == end;
}

std::string join(char kind, std::string_view left, std::string_view right) {
  std::string text(1, kind);
  text.append(left).append(1, '\0').append(right);
  return text;
}

}  // namespace

Result<std::string> encode_control(const Control& control) {
  constexpr Error kTooLarge(Errc::message_too_large, "a control message of topics exceeds its bounds");
  if (control.texts.size() > kControlTextsMax) {
    return kTooLarge;
  }
  std::string bytes(kMagic);
  put(bytes, static_cast<std::uint64_t>(control.kind), 1);
  for (const std::uint64_t number : {control.from, control.to, control.id, control.number}) {
    put(bytes, number, 8);
  }
  put(bytes, control.texts.size(), 2);
  for (const std::string& text : control.texts) {
    if (text.size() > kControlTextMax || bytes.size() + text.size() + 2 > kControlBytesMax) {
      return kTooLarge;
    }
    put(bytes, text.size(), 2);
    bytes += text;
  }
  return bytes;
}

std::uint64_t control_addressee(Bytes bytes) noexcept {
  if (bytes.size() < kHeaderSize || !as_text(bytes).starts_with(kMagic)) {
    return 0;
  }
  Reader reader(as_text(bytes).substr(kMagic.size() + 1 + 8));
  return reader.number(8);
}

Result<Control> decode_control(Bytes bytes) {
  if (bytes.size() < kHeaderSize || bytes.size() > kControlBytesMax || !as_text(bytes).starts_with(kMagic)) {
    return kMalformed;
  }
  Reader reader(as_text(bytes).substr(kMagic.size()));
  Control control;
  const std::uint64_t kind = reader.number(1);
  if (kind < static_cast<std::uint64_t>(Control::Kind::roster) ||
      kind > static_cast<std::uint64_t>(Control::Kind::claim_answer)) {
    return kMalformed;
  }
  control.kind = static_cast<Control::Kind>(kind);
  control.from = reader.number(8);
  control.to = reader.number(8);
  control.id = reader.number(8);
  control.number = reader.number(8);
  const std::uint64_t count = reader.number(2);
  if (count > kControlTextsMax || control.from == 0) {
    return kMalformed;
  }
  for (std::uint64_t i = 0; i < count && !reader.failed(); ++i) {
    const std::uint64_t size = reader.number(2);
    if (size > kControlTextMax) {
      return kMalformed;
    }
    control.texts.emplace_back(reader.text(size));
  }
  if (reader.failed() || !reader.empty()) {
    return kMalformed;
  }
  return control;
}

std::vector<std::string> roster_texts(const Roster& roster) {
  std::vector<std::string> texts = {'n' + roster.node, 'e' + roster.endpoint, 'q' + std::to_string(roster.ask)};
  for (const Roster::Service& service : roster.services) {
    texts.push_back(join('s', service.topic, service.group));
  }
  for (const Roster::Owned& owned : roster.owned) {
    texts.push_back(join('o', owned.topic, std::to_string(owned.epoch)));
  }
  for (const Roster::Peer& peer : roster.peers) {
    texts.push_back(join('p', instance_text(peer.instance), peer.endpoint));
  }
  for (const Roster::Heard& heard : roster.heard) {
    texts.push_back(join('h', instance_text(heard.instance), std::to_string(heard.ask)));
  }
  for (const std::uint64_t instance : roster.parted) {
    texts.push_back('l' + instance_text(instance));
  }
  return texts;
}

Result<Roster> parse_roster(const std::vector<std::string>& texts) {
  Roster roster;
  for (const std::string& text : texts) {
    if (text.empty()) {
      return kMalformed;
    }
    const std::string_view rest = std::string_view(text).substr(1);
    std::string_view left;
    std::string_view right;
    switch (text.front()) {
      case 'n':
        if (rest.size() > Roster::kNameMax) {
          return kMalformed;
        }
        roster.node = rest;
        continue;
      case 'e':
        if (rest.size() > Roster::kEndpointMax) {
          return kMalformed;
        }
        roster.endpoint = rest;
        continue;
      case 'q':
        if (!parse_number(rest, roster.ask)) {
          return kMalformed;
        }
        continue;
      case 'h': {
        Roster::Heard heard;
        heard.instance = split(rest, left, right) ? parse_instance(left) : 0;
        if (heard.instance == 0 || roster.heard.size() >= Roster::kPeersMax || !parse_number(right, heard.ask)) {
          return kMalformed;
        }
        roster.heard.push_back(heard);
        continue;
      }
      case 'l': {
        const std::uint64_t instance = parse_instance(rest);
        if (instance == 0 || roster.parted.size() >= Roster::kPeersMax) {
          return kMalformed;
        }
        roster.parted.push_back(instance);
        continue;
      }
      case 's':
        if (!split(rest, left, right) || !is_name(left) || right.size() > Roster::kNameMax ||
            roster.services.size() >= Roster::kServicesMax) {
          return kMalformed;
        }
        roster.services.push_back({std::string(left), std::string(right)});
        continue;
      case 'o': {
        std::uint64_t epoch = 0;
        if (!split(rest, left, right) || !is_name(left) || roster.owned.size() >= Roster::kOwnedMax ||
            !parse_number(right, epoch) || epoch == 0 || epoch > kEpochMax) {
          return kMalformed;
        }
        roster.owned.push_back({std::string(left), epoch});
        continue;
      }
      case 'p': {
        const std::uint64_t instance = split(rest, left, right) ? parse_instance(left) : 0;
        if (instance == 0 || right.empty() || right.size() > Roster::kEndpointMax ||
            roster.peers.size() >= Roster::kPeersMax) {
          return kMalformed;
        }
        roster.peers.push_back({instance, std::string(right)});
        continue;
      }
      default: continue;  // of a newer build
    }
  }
  return roster;
}

std::string instance_text(std::uint64_t instance) {
  std::array<char, 16> digits;
  digits.fill('0');
  std::array<char, 16> short_form;
  const auto end = std::to_chars(short_form.data(), short_form.data() + short_form.size(), instance, 16).ptr;
  const auto size = static_cast<std::size_t>(end - short_form.data());
  return std::string(digits.data(), 16 - size).append(short_form.data(), size);
}

std::uint64_t parse_instance(std::string_view text) noexcept {
  std::uint64_t instance = 0;
  const char* const end = text.data() + text.size();
  return text.size() == 16 && std::from_chars(text.data(), end, instance, 16).ptr == end ? instance : 0;
}

}  // namespace weft::topic
