// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/bytes.h"
#include "weft/topic/kept/operation.h"
#include "weft/topic/kept/stream_core.h"

namespace weft::topic {

// The calls of a stream, for Stream and AsyncStream. Each fails with `closed` without a core.
template <typename T>
using StreamOperation = Operation<StreamCore, T>;
using StreamPtr = std::shared_ptr<StreamCore>;

[[nodiscard]] StreamOperation<void> declare(const StreamPtr& stream, bool redeclare);
[[nodiscard]] StreamOperation<Published> publish(const StreamPtr& stream, std::string_view topic, Bytes body,
                                                 const PublishOptions& options);
[[nodiscard]] StreamOperation<Published> publish_all(const StreamPtr& stream, std::span<const BatchMessage> messages,
                                                     const BatchOptions& options);
[[nodiscard]] StreamOperation<KeptMessage> message(const StreamPtr& stream, std::uint64_t sequence);
[[nodiscard]] StreamOperation<KeptMessage> newest(const StreamPtr& stream, std::string_view topic);
[[nodiscard]] StreamOperation<StreamInfo> info(const StreamPtr& stream);
[[nodiscard]] StreamOperation<void> purge(const StreamPtr& stream, std::uint64_t before);
[[nodiscard]] StreamOperation<void> purge_topic(const StreamPtr& stream, std::string_view topic);
[[nodiscard]] StreamOperation<void> remove(const StreamPtr& stream);
[[nodiscard]] StreamOperation<void> remove_consumer(const StreamPtr& stream, std::string_view name);
// The call of a publish_later(), and the result of a pending one.
[[nodiscard]] Result<IntrusivePtr<HubCall>> prepare_later(const StreamPtr& stream, std::string_view topic, Bytes body,
                                                          const PublishOptions& options);
[[nodiscard]] Result<Published> pending_result(const HubCall& call);  // with the link's lock

// StreamList: the series of calls for the streams of a hub whose names begin with a prefix.
class StreamList {
 public:
  explicit StreamList(std::string prefix) : prefix_(std::move(prefix)) {}
  [[nodiscard]] Result<IntrusivePtr<HubCall>> next();
  [[nodiscard]] Result<void> take(const HubCall& call, const Result<void>& ran);
  [[nodiscard]] Result<std::vector<StreamInfo>> result() { return std::move(all_); }

 private:
  std::string prefix_;
  std::optional<std::string> behind_ = std::string();  // nullopt: all names are here
  std::vector<std::string> names_;
  std::vector<StreamInfo> all_;
  std::size_t asked_ = 0;  // names
};

// StrictPublish: the series of calls for a message under Order::strict: perhaps one for the last sequence of the topic,
// and the append, which expects it.
// Owner: its caller, with the texts of its arguments. It holds the turn of the topic until its destruction.
class StrictPublish {
 public:
  // `turn`: from take_turn(). The deadline of the options is the answer's.
  StrictPublish(StreamPtr stream, std::string_view topic, Bytes body, const PublishOptions& options,
                const StreamCore::Turn& turn) noexcept
      : stream_(std::move(stream)), topic_(topic), body_(body), options_(options), turn_(turn) {}
  StrictPublish(const StrictPublish&) = delete;
  StrictPublish& operator=(const StrictPublish&) = delete;
  ~StrictPublish();

  [[nodiscard]] Result<IntrusivePtr<HubCall>> next();
  [[nodiscard]] Result<void> take(HubCall& call, const Result<void>& ran);
  [[nodiscard]] Result<Published> result() const { return published_; }

 private:
  enum class Step : std::uint8_t { begun, asked, appended };

  const StreamPtr stream_;
  const std::string_view topic_;
  const Bytes body_;
  PublishOptions options_;
  StreamCore::Turn turn_;
  StreamCore::Turn next_;  // of the topic, after this message
  Published published_;
  Step step_ = Step::begun;
};

}  // namespace weft::topic
