// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/bytes.h"
#include "weft/base/result.h"
#include "weft/base/time.h"
#include "weft/topic/kept/key_value_core.h"
#include "weft/topic/reader.h"

namespace weft {

// KeyValueWatch: the newest values of the keys that a filter matches, then each change, in the order of revisions.
// Owner, affinity, promise: those of Reader; a value that another one replaced meanwhile may be left out.
class KeyValueWatch {
 public:
  KeyValueWatch(std::shared_ptr<const topic::KeyValueCore> core, Reader reader) noexcept;

  Result<KeyValueEntry> next();
  Result<KeyValueEntry> next_until(Instant deadline);
  Result<KeyValueEntry> try_next();                    // never waits: would_block
  Result<std::optional<KeyValueEntry>> next_stored();  // as Reader's
  [[nodiscard]] bool live() const noexcept { return reader_.live(); }
  void close() noexcept { reader_.close(); }

 private:
  std::shared_ptr<const topic::KeyValueCore> core_;
  Reader reader_;
};

// KeyValue: a bucket of keys with values, kept as a stream of the newest values. A revision is a change's sequence.
// Keys: 1 to about 200 bytes, tokens with a '.' between two; any byte may stand in a token, and counts three bytes
// unless it is a letter, a digit, '-', '_' or '/'.
// Owner: a move-only value; it may outlive the handle, and every call is `closed` then. The bucket stays.
// Affinity: any thread, also several at once. AsyncKeyValue is the same for coroutines.
// Errors of every call: those of Stream::publish(); invalid_argument: no key.
class KeyValue {
 public:
  explicit KeyValue(std::shared_ptr<const topic::KeyValueCore> core) noexcept;

  Result<std::uint64_t> put(std::string_view key, Bytes value);  // the revision
  Result<std::uint64_t> put(std::string_view key, std::string_view value) { return put(key, as_bytes(value)); }
  Result<std::uint64_t> create(std::string_view key, Bytes value);  // conflict: the key has a value
  Result<std::uint64_t> create(std::string_view key, std::string_view value) { return create(key, as_bytes(value)); }
  // conflict: `revision` is not that of the newest change, or of another life of the bucket: the one of `seen`, and
  // without `seen` the one of the last entry, revision or declaration that came through this object. 0: the key never
  // had a value.
  Result<std::uint64_t> update(std::string_view key, Bytes value, std::uint64_t revision);
  Result<std::uint64_t> update(std::string_view key, std::string_view value, std::uint64_t revision) {
    return update(key, as_bytes(value), revision);
  }
  Result<std::uint64_t> update(std::string_view key, Bytes value, const KeyValueEntry& seen);
  Result<std::uint64_t> update(std::string_view key, std::string_view value, const KeyValueEntry& seen) {
    return update(key, as_bytes(value), seen);
  }
  Result<KeyValueEntry> value(std::string_view key);  // not_found: none, or erased
  Result<std::uint64_t> erase(std::string_view key,
                              std::optional<std::uint64_t> revision = {});  // conflict, as update()
  Result<std::uint64_t> erase(std::string_view key, const KeyValueEntry& seen);
  Result<std::vector<std::string>> keys(std::string_view filter = ">");  // that have a value, in byte order
  // Keys as tokens: "*" and ">" as in Filter::parse(). `all`: also the older values that the bucket keeps.
  Result<KeyValueWatch> watch(std::string_view filter = ">", bool all = false);

  [[nodiscard]] std::string_view name() const noexcept;  // of the bucket
  // For Topics::key_value(). The errors of Stream::declare().
  [[nodiscard]] static Result<KeyValue> declare(std::shared_ptr<topic::HubLink> link, std::string_view name,
                                                const KeyValueOptions& options);

 private:
  Result<std::uint64_t> change(std::string_view key, Bytes value, const topic::KeyChange& change);

  std::shared_ptr<const topic::KeyValueCore> core_;
};

}  // namespace weft
