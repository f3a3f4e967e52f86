// SPDX-License-Identifier: MIT
#include "weft/store/id_rows.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/endian.h"
#include "weft/store/block.h"
#include "weft/store/checksum.h"
#include "weft/store/rows.h"

namespace weft::store {
namespace {

constexpr std::size_t kIdStreamAt = 4;
constexpr std::size_t kTimeAt = 8;
constexpr std::size_t kLastAt = 16;
constexpr std::size_t kIdHeader = 24;

// IdRow: the bytes of one row, while they are written.
class IdRow {
 public:
  void add(std::string_view id, std::uint64_t sequence, WallTime time) {
    if (bytes_.empty()) {
      bytes_.resize(kIdHeader);
      last_ = 0;
      before_ = {};
    }
    const auto differ = std::mismatch(id.begin(), id.end(), before_.begin(), before_.end()).first;
    const auto shared = static_cast<std::size_t>(differ - id.begin());
    write_varint(bytes_, sequence - last_);
    bytes_.push_back(static_cast<std::uint8_t>(shared));
    bytes_.push_back(static_cast<std::uint8_t>(id.size() - shared));
    bytes_.insert(bytes_.end(), differ, id.end());
    before_ = id;
    last_ = sequence;
    time_ = time;
    ++count_;
  }
  [[nodiscard]] bool full() const noexcept { return count_ == kIdsInRow; }

  [[nodiscard]] Result<void> write(IdSql& sql, std::uint32_t stream) {
    if (count_ == 0) {
      return {};
    }
    std::uint8_t* at = bytes_.data();
    store_big_endian(at + kIdStreamAt, stream);
    store_big_endian(at + kTimeAt, ns_of(time_));
    store_big_endian(at + kLastAt, last_);
    store_big_endian(at, crc32c(Bytes(bytes_).subspan(kIdStreamAt)));
    const Result<void> written = sql.insert.set(0, stream).set(1, last_).set(2, Bytes(bytes_)).run();
    bytes_.clear();
    count_ = 0;
    return written;
  }

 private:
  std::vector<std::uint8_t> bytes_;
  std::string_view before_;
  std::uint64_t last_ = 0;
  WallTime time_{};
  std::size_t count_ = 0;
};

struct RowHead {
  WallTime time;
  std::uint64_t last;
};

Result<RowHead> parse_head(Bytes bytes, std::uint32_t stream) noexcept {
  if (bytes.size() <= kIdHeader || load_big_endian<std::uint32_t>(bytes.data()) != crc32c(bytes.subspan(kIdStreamAt)) ||
      load_big_endian<std::uint32_t>(bytes.data() + kIdStreamAt) != stream) {
    return Error(Errc::corrupt, "a row of ids whose checksum is wrong");
  }
  return RowHead{wall_time(load_big_endian<std::int64_t>(bytes.data() + kTimeAt)),
                 load_big_endian<std::uint64_t>(bytes.data() + kLastAt)};
}

// The ids of a row whose checksum is right. corrupt: its form is not.
Result<void> parse_ids(Bytes bytes, const RowHead& head, IdWindow& ids) {
  std::uint64_t sequence = 0;
  std::string id;
  for (Bytes rest = bytes.subspan(kIdHeader); !rest.empty();) {
    std::uint64_t distance = 0;
    if (!read_varint(rest, distance) || distance == 0 || distance > head.last - sequence || rest.size() < 2 ||
        rest[0] > id.size() || rest.size() - 2 < rest[1] || std::size_t{rest[0]} + rest[1] > kIdMax) {
      return Error(Errc::corrupt, "a row of ids without a valid form");
    }
    id.resize(rest[0]);
    id.append(as_text(rest.subspan(2, rest[1])));
    rest = rest.subspan(2 + std::size_t{rest[1]});
    sequence += distance;
    ids.renew(id, sequence, head.time);
  }
  return {};
}

}  // namespace

Result<IdSql> IdSql::prepare(Database& database, std::string_view table) {
  IdSql sql;
  const std::string name(table);
  const std::string insert = "INSERT INTO " + name + "(stream, last, bytes) VALUES(?,?,?)";
  const std::string list = "SELECT last, bytes FROM " + name + " WHERE stream=? ORDER BY last";
  const std::string drop_before = "DELETE FROM " + name + " WHERE stream=? AND last<?";
  const Database::Prepared all[] = {{&sql.insert, insert}, {&sql.list, list}, {&sql.drop_before, drop_before}};
  WEFT_TRY(database.prepare_all(all));
  return sql;
}

Result<void> write_ids(IdSql& sql, std::uint32_t stream, const IdWindow& ids, std::uint64_t sequence) {
  const std::uint64_t oldest = ids.first_sequence().value_or(sequence);
  WEFT_TRY(sql.drop_before.set(0, stream).set(1, oldest).run());
  IdRow row;
  Result<void> written;
  ids.visit_from(sequence, [&](const std::string& id, std::uint64_t of, WallTime time) {
    row.add(id, of, time);
    if (row.full() && written) {
      written = row.write(sql, stream);
    }
  });
  WEFT_TRY(written);
  return row.write(sql, stream);
}

Result<ReadIds> read_ids(IdSql& sql, std::uint32_t stream, WallTime since, IdWindow& ids) {
  ReadIds read;
  Statement& list = sql.list.set(0, stream);
  const Rows rows(list);
  while (WEFT_TRY(list.step())) {
    const Bytes bytes = list.bytes(1);
    const auto head = parse_head(bytes, stream);
    if (!head || head->last != list.sequence(0)) {
      ++read.damaged;
      continue;
    }
    read.newest = std::max(read.newest, head->time);
    if (head->time >= since) {
      read.damaged += parse_ids(bytes, *head, ids) ? 0 : 1;
    }
  }
  return read;
}

}  // namespace weft::store
