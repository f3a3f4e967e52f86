// SPDX-License-Identifier: MIT
// Store: opening a file, damaged or whole.
#include <algorithm>
#include <utility>

#include "weft/store/rows.h"
#include "weft/store/schema.h"
#include "weft/store/side.h"

namespace weft::store {

namespace {

constexpr const char* kMakeBirth = "CREATE TABLE IF NOT EXISTS birth(incarnation INTEGER NOT NULL)";

}  // namespace

Result<std::unique_ptr<Store>> Store::open(const StoreOptions& options, const Now& now) {
  std::unique_ptr<Store> store(new Store());
  store->memory_ = WEFT_TRY(Side::open({}));
  store->incarnation_ = static_cast<std::uint64_t>(std::max<std::int64_t>(1, ns_of(now.wall)));
  if (!options.path.empty()) {
    store->disk_ = WEFT_TRY(Side::open({options.path, options.vfs, options.bytes_max, options.reserve_bytes}));
    // On a disk without room the time alone orders this incarnation: the stored messages can be read.
    if (const auto begun = store->begin_incarnation(*store->disk_);
        !begun && begun.error() != Errc::resource_exhausted) {
      return begun.error();
    }
    WEFT_TRY(store->load(*store->disk_, now));
  }
  return store;
}

Result<void> Store::begin_incarnation(Side& side) {
  constexpr std::uint64_t kLeap = std::uint64_t{1} << 40U;
  bool is_new = true;
  bool unborn = false;
  const auto write = [&]() -> Result<void> {
    {
      auto find = WEFT_TRY(side.database.prepare("SELECT incarnation FROM hub"));
      if (WEFT_TRY(find.step())) {
        incarnation_ = std::max(incarnation_, find.sequence(0) + kLeap);
        is_new = false;
      }
    }
    unborn = is_new;
    WEFT_TRY(side.database.execute(kMakeBirth));
    {
      auto find = WEFT_TRY(side.database.prepare("SELECT incarnation FROM birth"));
      const bool born = WEFT_TRY(find.step());
      birth_ = born ? find.sequence(0) : 0;
      unborn = is_new && !born;
    }
    if (unborn) {
      WEFT_TRY(write_birth(side));
    }
    auto replace = WEFT_TRY(side.database.prepare("INSERT OR REPLACE INTO hub(id, incarnation) VALUES(1, ?)"));
    return replace.set(0, incarnation_).run();
  };
  const Result<void> written = in_transaction(side, write);
  unborn_ = unborn && !written;
  birth_ = unborn && written ? incarnation_ : birth_;
  return written;
}

// Inside a transaction.
Result<void> Store::write_birth(Side& side) {
  WEFT_TRY(side.database.execute(kMakeBirth));
  auto insert = WEFT_TRY(side.database.prepare("INSERT INTO birth(incarnation) VALUES(?)"));
  return insert.set(0, incarnation_).run();
}

Result<void> Store::load(Side& side, const Now& now) {
  std::vector<StreamRow> all;
  {
    const Rows rows(side.list_streams);
    while (WEFT_TRY(side.list_streams.step())) {
      all.push_back({static_cast<std::uint32_t>(side.list_streams.number(0)), std::string(side.list_streams.text(1)),
                     std::string(side.list_streams.text(2)), side.list_streams.sequence(3),
                     side.list_streams.sequence(5), side.list_streams.number(4) != 0,
                     side.list_streams.number(6) != 0});
    }
  }
  for (const StreamRow& row : all) {
    if (row.whole && row.name.starts_with(kGoneMark)) {
      side.gone.push_back(row.id);
      continue;
    }
    auto stream = load_stream(side, row, now);
    if (stream) {
      update_work(*streams_.emplace(row.name, *std::move(stream)).first->second);
    } else if (stream.error() == Errc::corrupt) {  // the other streams are whole
      const bool named = check_stream_name(row.name).has_value();
      damaged_.try_emplace(named ? row.name : "damaged-" + std::to_string(row.id), Damaged{row.id, row.next});
    } else {
      return stream.error();
    }
  }
  return {};
}

Result<std::unique_ptr<StoredStream>> Store::load_stream(Side& side, const StreamRow& row, const Now& now) {
  const auto settings = parse_stream_settings(row.settings);
  auto topics = settings ? parse_filters(settings->topics) : Result<std::vector<Filter>>(settings.error());
  if (!row.whole || !settings || !topics || !check_settings(*settings) || settings->survives == Survives::machine ||
      !check_stream_name(row.name)) {
    return Error(Errc::corrupt, "a stream whose settings have no valid form");
  }
  auto stream = make_stream(side, row.id, row.name, *settings, *std::move(topics));
  WEFT_TRY(stream->open(row.next, row.purged, now.wall));
  if (!row.has_ids) {
    const auto write = [&]() -> Result<void> {
      WEFT_TRY(stream->make_id_rows());
      return side.change(row.id, side.set_has_ids.set(0, row.id));
    };
    const Result<void> written = in_transaction(side, write);
    if (!written && written.error() != Errc::resource_exhausted) {  // without room: at the next open
      return written.error();
    }
  }
  WEFT_TRY(load_consumers(side, *stream, now));
  return stream;
}

Result<void> Store::load_consumers(Side& side, StoredStream& stream, const Now& now) {
  Statement& list = side.list_consumers.set(0, stream.id());
  const Rows rows(list);
  while (WEFT_TRY(list.step())) {
    const auto settings = parse_consumer_settings(list.text(1));
    auto filter = settings ? parse_optional_filter(settings->filter) : Result<std::optional<Filter>>(settings.error());
    if (!settings || !filter || !check_settings(*settings) || list.text(0).empty()) {
      stream.count_damaged_row();  // the stream is declared again, and gets the messages of its rows
      continue;
    }
    const auto make = [&](std::uint64_t next) {
      return std::unique_ptr<StoredConsumer>(
          new StoredConsumer{std::string(list.text(0)), *settings, *filter, ConsumerState(*settings, next)});
    };
    auto consumer = make(std::max<std::uint64_t>(list.sequence(2), 1));
    const bool whole = list.number(4) != 0 && list.sequence(2) >= 1 && list.sequence(2) <= kSequenceMax;
    if (!whole || !consumer->state.read_waiting(list.bytes(3), now.steady)) {
      stream.count_damaged_row();
      consumer = make(stream.first());  // its acknowledgements are unknown: it gets all messages again
      consumer->change();
    }
    stream.add_consumer(std::move(consumer));
  }
  return {};
}

// The settings are the program's, the messages in the blocks are whole or reported, and the mark of a purge is lost.
Result<StoredStream*> Store::mend(std::string_view name, const StreamSettings& settings, const Now& now) {
  Side* side = settings.survives == Survives::nothing ? nullptr : disk_.get();
  if (side == nullptr) {
    return Error(Errc::not_supported, "what a stream keeps and survives cannot be changed");
  }
  const auto found = damaged_.find(name);
  const std::string text = write_settings(settings);
  StreamRow row{found->second.id, std::string(name), text, found->second.next, 1, true, true};
  row.next = row.next > kSequenceMax ? 1 : row.next;
  auto stream = WEFT_TRY(load_stream(*side, row, now));
  const auto write = [&]() -> Result<void> {
    Statement& mend = side->mend_stream.set(0, name).set(1, std::string_view(text)).set(2, row.next).set(3, row.id);
    return side->change(row.id, mend);
  };
  WEFT_TRY(in_transaction(*side, write));
  stream->count_damaged_row();
  damaged_.erase(found);
  StoredStream& mended = *streams_.emplace(std::string(name), std::move(stream)).first->second;
  update_work(mended);
  return &mended;
}

}  // namespace weft::store
