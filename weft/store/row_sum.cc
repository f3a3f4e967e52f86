// SPDX-License-Identifier: MIT
#include "weft/store/row_sum.h"

#include <algorithm>
#include <array>

#include "weft/base/bytes.h"
#include "weft/base/endian.h"
#include "weft/base/text/hex.h"
#include "weft/store/checksum.h"
#include "weft/store/rows.h"

namespace weft::store {
namespace {

constexpr std::int64_t kHasSum = std::int64_t{1} << 33U;

std::uint32_t sum_of(const std::array<std::uint64_t, 4>& numbers, std::string_view text) noexcept {
  std::array<std::uint8_t, 32> bytes{};
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    store_big_endian(bytes.data() + 8 * i, numbers[i]);
  }
  return crc32c(as_bytes(text), crc32c(Bytes(bytes)));
}

std::uint32_t sum_of(const BlockRow& row, std::string_view topics) noexcept {
  return sum_of({row.stream, row.first, row.last, static_cast<std::uint64_t>(ns_of(row.time))}, topics);
}

std::uint32_t sum_of(bool erased, const ValueRow& row) noexcept {
  const std::uint64_t stream = std::uint64_t{row.stream} << 1U | (erased ? 1U : 0U);
  const std::uint32_t sum =
      sum_of({stream, row.revision, static_cast<std::uint64_t>(ns_of(row.time)), row.topic.size()}, row.topic);
  if (row.expires == WallTime::max()) {
    return sum;
  }
  std::array<std::uint8_t, 8> expires{};
  store_big_endian(expires.data(), std::int64_t{ns_of(row.expires)});
  return crc32c(Bytes(expires), sum);
}

std::array<char, kSumSize> text_of(std::uint32_t sum) noexcept {
  std::array<char, kSumSize> text{kSumMark};
  write_hex(sum, kSumSize - 1, text.data() + 1);
  return text;
}

}  // namespace

void add_sum(std::string& topics, const BlockRow& row) {
  const auto sum = text_of(sum_of(row, topics));
  topics.append(sum.data(), sum.size());
}

BlockTopics read_topics(std::string_view column, const BlockRow& row) noexcept {
  if (column.empty() || column.back() == '\n') {  // an older format's
    return {column, true};
  }
  if (column.size() < kSumSize) {
    return {{}, false};
  }
  const std::string_view listed = column.substr(0, column.size() - kSumSize);
  const auto sum = text_of(sum_of(row, listed));
  const bool whole = column.substr(listed.size()) == std::string_view(sum.data(), sum.size());
  return {whole ? listed : std::string_view(), whole};
}

std::int64_t erased_with_sum(bool erased, const ValueRow& row) noexcept {
  return kHasSum | std::int64_t{sum_of(erased, row)} << 1U | std::int64_t{erased};
}

bool is_whole(std::int64_t column, const ValueRow& row) noexcept {
  const bool is_old = row.expires == WallTime::max() && (column == 0 || column == 1);
  return is_old || column == erased_with_sum(is_erased(column), row);
}

std::uint64_t next_behind(std::uint64_t whole, std::uint64_t damaged) noexcept {
  constexpr std::uint64_t kNear = std::uint64_t{1} << 20U;
  return (damaged == 0 ? whole : std::max(whole, std::min(damaged, whole + kNear))) + 1;
}

}  // namespace weft::store
