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
#include "weft/rt/task/task.h"
#include "weft/topic/async_stream.h"
#include "weft/topic/kept/key_value_core.h"

namespace weft {

// AsyncKeyValueWatch: KeyValueWatch for the coroutines of one loop, with the same names.
class AsyncKeyValueWatch {
 public:
  AsyncKeyValueWatch(std::shared_ptr<const topic::KeyValueCore> core, AsyncReader reader) noexcept;

  [[nodiscard]] rt::Task<Result<KeyValueEntry>> next();  // fails with kCancelled, too
  [[nodiscard]] rt::Task<Result<std::optional<KeyValueEntry>>> next_stored();
  Result<KeyValueEntry> try_next();
  [[nodiscard]] bool live() const noexcept { return reader_.live(); }
  void close() noexcept { reader_.close(); }

 private:
  std::shared_ptr<const topic::KeyValueCore> core_;
  AsyncReader reader_;
};

// AsyncKeyValue: KeyValue for the coroutines of one loop, with the same names, meanings and errors. A call encodes its
// arguments before it returns its task, so the task does not refer to the arguments.
// Affinity: the loop's thread. The hub makes a change that is cancelled after it was sent.
class AsyncKeyValue {
 public:
  using Revision = rt::Task<Result<std::uint64_t>>;
  explicit AsyncKeyValue(std::shared_ptr<const topic::KeyValueCore> core) noexcept;

  [[nodiscard]] Revision put(std::string_view key, Bytes value, const PutOptions& options = {});
  [[nodiscard]] Revision put(std::string_view key, std::string_view value, const PutOptions& options = {}) {
    return put(key, as_bytes(value), options);
  }
  [[nodiscard]] Revision create(std::string_view key, Bytes value, const PutOptions& options = {});
  [[nodiscard]] Revision create(std::string_view key, std::string_view value, const PutOptions& options = {}) {
    return create(key, as_bytes(value), options);
  }
  [[nodiscard]] Revision update(std::string_view key, Bytes value, std::uint64_t revision,
                                const PutOptions& options = {});
  [[nodiscard]] Revision update(std::string_view key, std::string_view value, std::uint64_t revision,
                                const PutOptions& options = {}) {
    return update(key, as_bytes(value), revision, options);
  }
  [[nodiscard]] Revision update(std::string_view key, Bytes value, const KeyValueEntry& seen,
                                const PutOptions& options = {});
  [[nodiscard]] Revision update(std::string_view key, std::string_view value, const KeyValueEntry& seen,
                                const PutOptions& options = {}) {
    return update(key, as_bytes(value), seen, options);
  }
  [[nodiscard]] rt::Task<Result<KeyValueEntry>> value(std::string_view key);
  [[nodiscard]] Revision erase(std::string_view key, std::optional<std::uint64_t> revision = {});
  [[nodiscard]] Revision erase(std::string_view key, const KeyValueEntry& seen);
  [[nodiscard]] rt::Task<Result<std::vector<std::string>>> keys(std::string_view filter = ">");
  [[nodiscard]] rt::Task<Result<AsyncKeyValueWatch>> watch(std::string_view filter = ">", bool all = false);
  [[nodiscard]] std::string_view name() const noexcept;

  // For AsyncTopics::key_value().
  [[nodiscard]] static rt::Task<Result<AsyncKeyValue>> declare(std::shared_ptr<topic::HubLink> link,
                                                               std::string_view name, const KeyValueOptions& options);

 private:
  std::shared_ptr<const topic::KeyValueCore> core_;
};

}  // namespace weft
