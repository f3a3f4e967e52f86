// SPDX-License-Identifier: MIT
#include "tests/interop/payload.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace weft::interop {

namespace {

// A prime, so that bytes displaced by a power of two or a whole number of frames do not match.
constexpr std::size_t kPeriod = 65'521;

// splitmix64
std::uint64_t next_random(std::uint64_t& state) {
  state += 0x9e3779b97f4a7c15;
  std::uint64_t word = state;
  word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9;
  word = (word ^ (word >> 27)) * 0x94d049bb133111eb;
  return word ^ (word >> 31);
}

std::vector<std::uint8_t> make_noise() {
  std::vector<std::uint8_t> noise(kPeriod + kSizeMax);
  std::uint64_t state = 1;
  for (std::size_t i = 0; i < kPeriod; i += 8) {
    const std::uint64_t word = next_random(state);
    for (std::size_t j = 0; j < 8 && i + j < kPeriod; ++j) {
      noise[i + j] = static_cast<std::uint8_t>(word >> (8 * j));
    }
  }
  for (std::size_t i = kPeriod; i < noise.size(); i += kPeriod) {
    std::memcpy(noise.data() + i, noise.data(), std::min(kPeriod, noise.size() - i));
  }
  return noise;
}

const std::vector<std::uint8_t>& noise() {
  static const std::vector<std::uint8_t> bytes = make_noise();
  return bytes;
}

std::vector<std::size_t> part_sizes(const Shape& shape) {
  return shape.multipart ? std::vector<std::size_t>{8, shape.size, 0, shape.size / 4 + 1}
                         : std::vector<std::size_t>{shape.size};
}

// The bytes after the topic in a part of `size` bytes.
Bytes part_noise(const MessageId& id, std::size_t part, std::size_t size) {
  const std::size_t offset = (id.stream * 7919 + id.sequence * 8191 + part * 131) % kPeriod;
  return Bytes(noise()).subspan(offset, size);
}

}  // namespace

void prepare_payload() { (void)noise(); }

std::vector<Message> make_message(const Shape& shape, const MessageId& id, std::string_view topic) {
  std::vector<Message> parts;
  const std::vector<std::size_t> sizes = part_sizes(shape);
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const Bytes head = as_bytes(i == 0 ? topic.substr(0, sizes[i]) : std::string_view());
    const Bytes tail = part_noise(id, i, sizes[i] - head.size());
    auto made = Message::with_size(sizes[i]);
    if (!made) {
      std::fprintf(stderr, "no memory for a message of %zu bytes\n", sizes[i]);
      std::exit(2);
    }
    parts.push_back(std::move(*made));
    const MutableBytes target = parts.back().mutable_bytes();
    copy_bytes(target.data(), head);
    copy_bytes(target.data() + head.size(), tail);
  }
  return parts;
}

namespace {

// Names the message of the stream that these bytes belong to: after a loss, the bytes of a later message come.
std::string whose(const MessageId& id, std::size_t part, Bytes tail) {
  constexpr std::uint64_t kLookedAt = 1000;
  for (std::uint64_t sequence = 0; sequence < kLookedAt; ++sequence) {
    const Bytes noise = part_noise({id.stream, sequence}, part, tail.size());
    if (std::equal(noise.begin(), noise.end(), tail.begin())) {
      return ", those of message " + std::to_string(sequence);
    }
  }
  return ", of no message of the stream";
}

}  // namespace

std::string check_message(const Shape& shape, const MessageId& id, std::string_view topic,
                          const std::vector<Message>& parts) {
  const std::string where = "message " + std::to_string(id.sequence) + " of stream " + std::to_string(id.stream);
  const std::vector<std::size_t> sizes = part_sizes(shape);
  if (parts.size() != sizes.size()) {
    return where + ": " + std::to_string(parts.size()) + " parts instead of " + std::to_string(sizes.size());
  }
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const Bytes bytes = parts[i].bytes();
    if (bytes.size() != sizes[i]) {
      return where + ", part " + std::to_string(i) + ": " + std::to_string(bytes.size()) + " bytes instead of " +
             std::to_string(sizes[i]);
    }
    const Bytes head = as_bytes(i == 0 ? topic.substr(0, sizes[i]) : std::string_view());
    const Bytes tail = part_noise(id, i, sizes[i] - head.size());
    if (!std::equal(head.begin(), head.end(), bytes.begin()) ||
        !std::equal(tail.begin(), tail.end(), bytes.begin() + static_cast<std::ptrdiff_t>(head.size()))) {
      return where + ", part " + std::to_string(i) + ": wrong bytes" + whose(id, i, bytes.subspan(head.size()));
    }
  }
  return {};
}

}  // namespace weft::interop
