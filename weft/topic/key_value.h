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
// Owner, affinity, promise: those of Reader. The watch may leave out a value that a newer one has already replaced.
class KeyValueWatch {
 public:
  KeyValueWatch(std::shared_ptr<const topic::KeyValueCore> core, Reader reader) noexcept;

  Result<KeyValueEntry> next();
  Result<KeyValueEntry> next_until(Instant deadline);
  Result<KeyValueEntry> try_next();                    // never waits; fails with would_block
  Result<std::optional<KeyValueEntry>> next_stored();  // like Reader's
  [[nodiscard]] bool live() const noexcept { return reader_.live(); }
  void close() noexcept { reader_.close(); }
  Result<int> descriptor() { return reader_.descriptor(); }  // like Reader's

 private:
  std::shared_ptr<const topic::KeyValueCore> core_;
  Reader reader_;
};

// KeyValue: a bucket of keys with values, kept as a stream of the newest values. A revision is a change's sequence. A
// key has 1 to about 200 bytes: tokens with a '.' between two. A token may have any byte; a byte counts as three unless
// it is a letter, a digit, '-', '_' or '/'.
// Owner: a move-only value; it may outlive the handle, and every call is `closed` then. The bucket stays.
// Affinity: any thread, also several at once. AsyncKeyValue is the same for coroutines.
// Errors of every call: those of Stream::publish(); invalid_argument (the text is not a key).
class KeyValue {
 public:
  explicit KeyValue(std::shared_ptr<const topic::KeyValueCore> core) noexcept;

  // Returns the revision.
  Result<std::uint64_t> put(std::string_view key, Bytes value, const PutOptions& options = {});
  Result<std::uint64_t> put(std::string_view key, std::string_view value, const PutOptions& options = {}) {
    return put(key, as_bytes(value), options);
  }
  // Fails with conflict if the key has a value.
  Result<std::uint64_t> create(std::string_view key, Bytes value, const PutOptions& options = {});
  Result<std::uint64_t> create(std::string_view key, std::string_view value, const PutOptions& options = {}) {
    return create(key, as_bytes(value), options);
  }
  // Changes the value if `revision` is that of the key's newest change; 0: the key never had a value. Errors: conflict
  // (`revision` is another one, or of another life of the bucket). The life is that of `seen`; without `seen` it is the
  // life of the last entry, revision or declaration that this object returned.
  Result<std::uint64_t> update(std::string_view key, Bytes value, std::uint64_t revision,
                               const PutOptions& options = {});
  Result<std::uint64_t> update(std::string_view key, std::string_view value, std::uint64_t revision,
                               const PutOptions& options = {}) {
    return update(key, as_bytes(value), revision, options);
  }
  Result<std::uint64_t> update(std::string_view key, Bytes value, const KeyValueEntry& seen,
                               const PutOptions& options = {});
  Result<std::uint64_t> update(std::string_view key, std::string_view value, const KeyValueEntry& seen,
                               const PutOptions& options = {}) {
    return update(key, as_bytes(value), seen, options);
  }
  Result<KeyValueEntry> value(std::string_view key);  // fails with not_found if there is no value
  Result<std::uint64_t> erase(std::string_view key,
                              std::optional<std::uint64_t> revision = {});  // fails with conflict, like update()
  Result<std::uint64_t> erase(std::string_view key, const KeyValueEntry& seen);
  Result<std::vector<std::string>> keys(std::string_view filter = ">");  // keys that have a value, in byte order
  // `filter` has keys as tokens, with "*" and ">" as in Filter::parse(). With `all` the watch also returns the older
  // values that the bucket keeps.
  Result<KeyValueWatch> watch(std::string_view filter = ">", bool all = false);

  [[nodiscard]] std::string_view name() const noexcept;  // the name of the bucket
  // For Topics::key_value(). Errors: those of Stream::declare().
  [[nodiscard]] static Result<KeyValue> declare(std::shared_ptr<topic::HubLink> link, std::string_view name,
                                                const KeyValueOptions& options);
  // For the C interface, as Topics::node() is.
  [[nodiscard]] const std::shared_ptr<const topic::KeyValueCore>& core() const noexcept { return core_; }

 private:
  std::shared_ptr<const topic::KeyValueCore> core_;
};

}  // namespace weft
