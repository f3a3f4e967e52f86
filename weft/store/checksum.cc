// SPDX-License-Identifier: MIT
#include "weft/store/checksum.h"

#include <array>
#include <bit>
#include <cstddef>
#include <cstring>

namespace weft::store {
namespace {

constexpr std::uint32_t kPolynomial = 0x82F63B78U;  // 0x1EDC6F41, lowest bit first
constexpr std::size_t kStep = 8;
using Tables = std::array<std::array<std::uint32_t, 256>, kStep>;

// Table n maps a byte to its checksum when n zero bytes follow it, so that eight bytes are eight independent loads.
constexpr Tables make_tables() {
  Tables tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) {
      crc = (crc & 1U) != 0 ? crc >> 1U ^ kPolynomial : crc >> 1U;
    }
    tables[0][byte] = crc;
  }
  for (std::size_t n = 1; n < kStep; ++n) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::uint32_t crc = tables[n - 1][byte];
      tables[n][byte] = crc >> 8U ^ tables[0][crc & 0xFFU];
    }
  }
  return tables;
}
constexpr Tables kTables = make_tables();

std::uint64_t load_little_endian(const std::uint8_t* from) noexcept {
  std::uint64_t word;
  std::memcpy(&word, from, sizeof word);
  return std::endian::native == std::endian::little ? word : __builtin_bswap64(word);
}

#if defined(__x86_64__)
// By the processor's instruction for it. The bytes after the last word are left.
__attribute__((target("sse4.2"))) std::uint32_t crc32c_of_words(Bytes& bytes, std::uint32_t crc) noexcept {
  std::uint64_t wide = crc;
  for (; bytes.size() >= kStep; bytes = bytes.subspan(kStep)) {
    wide = __builtin_ia32_crc32di(wide, load_little_endian(bytes.data()));
  }
  return static_cast<std::uint32_t>(wide);
}
bool has_instruction() noexcept {
  static const bool has = __builtin_cpu_supports("sse4.2") != 0;
  return has;
}
#else
std::uint32_t crc32c_of_words(Bytes& /*bytes*/, std::uint32_t crc) noexcept { return crc; }
bool has_instruction() noexcept { return false; }
#endif

}  // namespace

std::uint32_t crc32c_by_tables(Bytes bytes, std::uint32_t before) noexcept {
  std::uint32_t crc = ~before;
  while (bytes.size() >= kStep) {
    const std::uint64_t word = load_little_endian(bytes.data()) ^ crc;
    crc = 0;
    for (std::size_t i = 0; i < kStep; ++i) {
      crc ^= kTables[kStep - 1 - i][word >> (8 * i) & 0xFFU];
    }
    bytes = bytes.subspan(kStep);
  }
  for (const std::uint8_t byte : bytes) {
    crc = crc >> 8U ^ kTables[0][(crc ^ byte) & 0xFFU];
  }
  return ~crc;
}

std::uint32_t crc32c(Bytes bytes, std::uint32_t before) noexcept {
  if (has_instruction()) {
    before = ~crc32c_of_words(bytes, ~before);
  }
  return crc32c_by_tables(bytes, before);
}

}  // namespace weft::store
