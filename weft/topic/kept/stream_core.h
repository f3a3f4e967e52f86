// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/bytes.h"
#include "weft/base/intrusive_ptr.h"
#include "weft/base/result.h"
#include "weft/base/time.h"
#include "weft/rt/task/task.h"
#include "weft/topic/kept/hub_link.h"
#include "weft/topic/kept/options.h"

namespace weft::topic {

// StreamCore: one handle's object of a stream: the requests of Stream and AsyncStream, encoded.
// Owner: the program's objects of the stream. Affinity: any thread.
// Invariant: a request with a sequence of the program has the life of the stream that the program last read.
class StreamCore {
 public:
  static constexpr std::size_t kStrictTopicsMax = 65'536;

  // `names`: the program's form of topics. Errors: invalid_argument; not_supported (the engine cannot keep the
  // promise).
  [[nodiscard]] static Result<std::shared_ptr<StreamCore>> make(std::shared_ptr<HubLink> link,
                                                                const StreamOptions& options);
  StreamCore(std::shared_ptr<HubLink> link, std::string wire, StreamSettings settings)
      : link_(std::move(link)), wire_(std::move(wire)), settings_(std::move(settings)) {}
  StreamCore(const StreamCore&) = delete;
  StreamCore& operator=(const StreamCore&) = delete;
  ~StreamCore();

  [[nodiscard]] const std::shared_ptr<HubLink>& link() const noexcept { return link_; }
  [[nodiscard]] const std::string& wire() const noexcept { return wire_; }
  [[nodiscard]] const StreamSettings& settings() const noexcept { return settings_; }
  [[nodiscard]] Instant answer_by(Instant deadline) const noexcept;  // of an append

  [[nodiscard]] Result<IntrusivePtr<HubCall>> declare(bool redeclare) const;
  [[nodiscard]] Result<void> declared(
      const HubCall& call);  // takes the answer to declare(); fails with resource_exhausted
  [[nodiscard]] Survives survives() const noexcept { return survives_.load(std::memory_order_relaxed); }

  struct Flags {
    bool expect_absent = false;
    bool erased = false;
  };
  [[nodiscard]] static Result<void> check_delay(const PublishOptions& options);  // fails with invalid_argument
  [[nodiscard]] Result<IntrusivePtr<HubCall>> append(std::string_view topic, Bytes body, const PublishOptions& options,
                                                     Flags flags) const;
  [[nodiscard]] Result<IntrusivePtr<HubCall>> append_wire(std::string_view wire, Bytes body,
                                                          const PublishOptions& options, Flags flags) const;
  [[nodiscard]] Result<IntrusivePtr<HubCall>> append_all(std::span<const BatchMessage> messages,
                                                         const BatchOptions& options) const;
  [[nodiscard]] Result<IntrusivePtr<HubCall>> get(std::string_view topic,
                                                  std::uint64_t sequence) const;  // 0: the newest
  [[nodiscard]] Result<IntrusivePtr<HubCall>> get_wire(std::string_view wire) const;
  [[nodiscard]] Result<IntrusivePtr<HubCall>> list(std::string_view behind) const;  // wire
  [[nodiscard]] Result<IntrusivePtr<HubCall>> info() const { return info_of(wire_); }
  [[nodiscard]] static Result<IntrusivePtr<HubCall>> info_of(std::string_view wire);
  [[nodiscard]] static Result<IntrusivePtr<HubCall>> names(std::string_view behind);  // of streams, a page
  // Takes the names that begin with `prefix` from the answer to names(). Returns the name after which to continue, or
  // nullopt after the last page. Errors: resource_exhausted (kStreamsMax); protocol_error.
  [[nodiscard]] static Result<std::optional<std::string>> add_names(const HubCall& call, std::string_view prefix,
                                                                    std::vector<std::string>& names);
  static constexpr std::size_t kStreamsMax = 65'536;  // of one list
  [[nodiscard]] Result<IntrusivePtr<HubCall>> purge(std::uint64_t before) const;
  [[nodiscard]] Result<IntrusivePtr<HubCall>> purge_topic(std::string_view topic) const;
  [[nodiscard]] Result<IntrusivePtr<HubCall>> remove() const;
  [[nodiscard]] Result<IntrusivePtr<HubCall>> remove_consumer(std::string_view consumer) const;

  // Answers of append and get, in the program's form: from then on its sequences are of their instance.
  [[nodiscard]] static Published published(const HubCall& call) noexcept;
  [[nodiscard]] static Result<KeptMessage> message(HubCall& call, const Names& names);
  [[nodiscard]] Result<StreamInfo> read_info(const HubCall& call) const;  // of info()
  [[nodiscard]] static Result<StreamInfo> read_info(const HubCall& call, std::string_view wire);
  // For answers to a `remove` that was sent twice.
  [[nodiscard]] static Result<void> removed(const HubCall& call, const Result<void>& result) noexcept;

  [[nodiscard]] Result<IntrusivePtr<KeptChannel>> consumer(std::string_view name, const ConsumerOptions& options) const;
  [[nodiscard]] Result<IntrusivePtr<KeptChannel>> reader(const ReadOptions& options) const;
  [[nodiscard]] Result<IntrusivePtr<KeptChannel>> reader_wire(ConsumerSettings settings, std::uint32_t messages,
                                                              std::size_t bytes) const;

  // --- Order::strict, with the link's lock held: one message of a topic at a time ---
  // Errors: would_block (another one is under way; strict_change() announces its end); resource_exhausted (65,536
  // topics).
  struct Turn {
    std::uint64_t last = 0;
    std::uint64_t instance = 0;  // that counts `last`
    bool known = false;          // both are valid
  };
  [[nodiscard]] Result<Turn> take_turn(const std::string& topic);
  void end_turn(std::string_view topic, const Turn& next) noexcept;
  [[nodiscard]] ChangeEvent& strict_change() noexcept { return strict_change_; }

 private:
  struct Strict {
    Turn turn;
    bool busy = false;
  };
  [[nodiscard]] Result<IntrusivePtr<KeptChannel>> open(KeptChannel* channel) const;
  // Of a prepared call whose answer has another instance than the request.
  [[nodiscard]] Result<IntrusivePtr<HubCall>> seeing(Result<IntrusivePtr<HubCall>> call,
                                                     std::uint64_t instance) const noexcept;

  const std::shared_ptr<HubLink> link_;
  const std::string wire_;  // the stream's name
  StreamSettings settings_;
  std::atomic<Survives> survives_{settings_.survives};  // from the hub; with no partner: it orders nothing
  const IntrusivePtr<SeenInstance> seen_ = make_intrusive<SeenInstance>();
  bool kept_declared_ = false;
  std::map<std::string, Strict, std::less<>> strict_;  // the link's lock
  ChangeEvent strict_change_;
};

// The time for which a request without a deadline of its own waits for its answer.
inline constexpr Duration kAnswerWait = std::chrono::seconds(30);

}  // namespace weft::topic
