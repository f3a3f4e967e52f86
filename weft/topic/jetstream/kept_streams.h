// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/filter.h"
#include "weft/base/result.h"
#include "weft/nats/jetstream/stream.h"
#include "weft/store/settings.h"
#include "weft/topic/jetstream/engine.h"
#include "weft/topic/jetstream/stream_names.h"
#include "weft/topic/jetstream/stream_settings.h"

namespace weft::topic {

// KeptStream: a stream that a handle named, as the servers last described it.
struct KeptStream {
  explicit KeptStream(StreamNames of) : names(std::move(of)) {}

  const StreamNames names;
  std::uint64_t instance = 0;  // the time of its creation in ns; 0: not looked at yet
  Duration id_window = StreamSettings().same_id_window;
  std::vector<Filter> topics{};  // empty: not looked at yet
  bool lets_expire = false;      // messages may have a time to live
  bool takes_batches = false;
  std::uint64_t last = 0;   // the greatest sequence of an acknowledgement
  bool recovering = false;  // a task waits for the leader of the stream

  [[nodiscard]] bool takes(std::string_view topic) const noexcept;
  // Its instance as text; empty if it is the asked one, or if none was asked (0) or looked at.
  [[nodiscard]] std::string other_life(std::uint64_t asked) const;
};

// KeptStreams: the ops about whole streams, and the streams that handles named.
// Owner: the session. Affinity: its core. Cost: a stream that was named stays known, of at most kStreamsMax.
class KeptStreams {
 public:
  static constexpr std::size_t kStreamsMax = 65'536;

  explicit KeptStreams(Engine& engine) : engine_(engine) {}

  // Errors: invalid_argument (no stream has the name); resource_exhausted.
  [[nodiscard]] Result<std::shared_ptr<KeptStream>> find(std::string_view wire);

  static rt::Task<void> declare(KeptStreams* self, std::unique_ptr<Asked> asked);
  static rt::Task<void> info(KeptStreams* self, std::unique_ptr<Asked> asked);
  static rt::Task<void> names(KeptStreams* self, std::unique_ptr<Asked> asked);
  static rt::Task<void> remove(KeptStreams* self, std::unique_ptr<Asked> asked);
  static rt::Task<void> purge(KeptStreams* self, std::unique_ptr<Asked> asked);
  static rt::Task<void> get(KeptStreams* self, std::unique_ptr<Asked> asked);

  // The stream at the servers; the known one learns its life.
  using Look = Result<nats::jetstream::Reply<nats::jetstream::StreamReport>>;
  static rt::Task<Look> look(KeptStreams* self, std::shared_ptr<KeptStream> stream);
  static void learn(KeptStream& stream, const nats::jetstream::StreamReport& info);
  // Whether the stream, as it was last looked at, takes a message that was meant for `instance` (0: any). Errors:
  // invalid_argument (its topic); not_supported (its time to live); conflict (its expectation is of another instance).
  [[nodiscard]] Result<void> check(const KeptStream& stream, const Op& message, std::uint64_t instance) const;

 private:
  static rt::Task<Look> make(KeptStreams* self, std::shared_ptr<KeptStream> stream,
                             nats::jetstream::StreamConfig config, bool redeclare);

  Engine& engine_;
  std::map<std::string, std::shared_ptr<KeptStream>, std::less<>> known_;
};

inline constexpr Error kNotOfStream(Errc::invalid_argument, "the stream does not take the topic");
inline constexpr Error kOtherLife(Errc::conflict, "the sequence is of another life of the stream");

// Whether the message counts on the sequences of one life of the stream.
[[nodiscard]] inline bool expects_life(const Op& message, std::uint64_t instance) noexcept {
  return message.has(OpFlags::expect_last) && message.number != 0 && instance != 0;
}

// The life of a stream: the time of its creation in ns.
[[nodiscard]] std::uint64_t instance_of(const nats::jetstream::StreamReport& info) noexcept;

// The headers of a stored message as a program wrote them: without those of the servers and of this one.
struct StoredHeaders {
  std::string block{};
  std::string_view message_id{};
  bool erased = false;
};
[[nodiscard]] StoredHeaders stored_headers(const nats::HeadersView& headers);

}  // namespace weft::topic
