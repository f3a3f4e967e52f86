// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/base/bytes.h"
#include "weft/base/filter.h"
#include "weft/base/intrusive_ptr.h"
#include "weft/base/result.h"
#include "weft/topic/kept/kept_message.h"
#include "weft/topic/kept/options.h"

namespace weft {

namespace topic {
class HubCall;
class HubLink;
class KeptChannel;
class StreamCore;
}  // namespace topic

// KeyValueEntry: a value of a key, or its erasure. Owner: a move-only value. Affinity: one thread at a time.
class KeyValueEntry {
 public:
  KeyValueEntry() noexcept = default;
  KeyValueEntry(std::string key, KeptMessage message) noexcept : key_(std::move(key)), message_(std::move(message)) {}

  [[nodiscard]] std::string_view key() const noexcept { return key_; }
  [[nodiscard]] Bytes value() const noexcept { return message_.body(); }
  [[nodiscard]] std::string_view text() const noexcept { return message_.text(); }
  [[nodiscard]] std::uint64_t revision() const noexcept { return message_.sequence(); }
  // The life of the bucket that counts revision(). A bucket that is removed and made again has another one. 0: unknown.
  [[nodiscard]] std::uint64_t instance() const noexcept { return message_.stream_instance(); }
  [[nodiscard]] WallTime time() const noexcept { return message_.time(); }  // the time of its storage
  [[nodiscard]] bool erased() const noexcept { return message_.erased(); }

 private:
  std::string key_;
  KeptMessage message_;
};

namespace topic {

// KeyChange: the expectation of a change of a key, and its kind.
struct KeyChange {
  std::optional<std::uint64_t> revision{};
  std::uint64_t instance = 0;  // PublishOptions::expect_instance
  bool absent = false;
  bool erase = false;
  Duration time_to_live{0};  // PutOptions
};

// KeyValueCore: one handle's object of a bucket. The stream is "kv.NAME", its topics are "kv.NAME.KEY".
// Affinity: any thread; immutable.
class KeyValueCore {
 public:
  [[nodiscard]] static Result<std::shared_ptr<const KeyValueCore>> make(std::shared_ptr<HubLink> link,
                                                                        std::string_view name,
                                                                        const KeyValueOptions& options);
  KeyValueCore(std::string name, std::shared_ptr<StreamCore> stream) noexcept
      : name_(std::move(name)), stream_(std::move(stream)) {}

  [[nodiscard]] StreamCore& stream() const noexcept { return *stream_; }
  [[nodiscard]] const std::shared_ptr<HubLink>& link() const noexcept;
  [[nodiscard]] const std::string& name() const noexcept { return name_; }

  [[nodiscard]] Result<IntrusivePtr<HubCall>> change(std::string_view key, Bytes value, const KeyChange& change) const;
  [[nodiscard]] Result<IntrusivePtr<HubCall>> value(std::string_view key) const;
  [[nodiscard]] Result<KeyValueEntry> entry(KeptMessage&& message) const;
  [[nodiscard]] Result<KeyValueEntry> entry(HubCall& call) const;  // fails with not_found for an erasure
  // Takes a page of keys from the answer to `list`. Returns the topic after which to continue, or nullopt after the
  // last page.
  [[nodiscard]] Result<std::optional<std::string>> add_keys(const HubCall& call, const Filter& filter,
                                                            std::vector<std::string>& keys) const;
  [[nodiscard]] Result<IntrusivePtr<KeptChannel>> watch(std::string_view filter, bool all) const;

  static constexpr std::size_t kKeysMax = 1'000'000;  // of one answer of keys()

 private:
  [[nodiscard]] Result<std::string> topic(std::string_view key) const;

  std::string name_;
  std::shared_ptr<StreamCore> stream_;
};

// A key as tokens of a topic, and back: every byte except letters, digits, '-', '_', '/' and '.' is written =XX.
[[nodiscard]] std::string escape_key(std::string_view key);
[[nodiscard]] std::string unescape_key(std::string_view text);

}  // namespace topic
}  // namespace weft
