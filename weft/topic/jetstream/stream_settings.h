// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "weft/base/result.h"
#include "weft/nats/jetstream/consumer.h"
#include "weft/nats/jetstream/stream.h"
#include "weft/store/settings.h"
#include "weft/topic/jetstream/stream_names.h"

namespace weft::topic {

// The settings of kept topics as configurations of JetStream, and back. A setting that a server does not keep is
// refused.

// Whether a server of the version ends a message at its time to live, and a key with a marker. Servers before 2.11 have
// no such time, and 2.11.2 lengthens it to that of the marker.
[[nodiscard]] bool ends_messages(std::string_view version) noexcept;
// Whether it stores a batch of messages in whole or not at all.
[[nodiscard]] bool takes_batches(std::string_view version) noexcept;
[[nodiscard]] bool takes_priorities(std::string_view version) noexcept;

// The configuration for servers with ends_messages(). Errors: invalid_argument; not_supported (with a text that names
// the setting and its alternative).
[[nodiscard]] Result<nats::jetstream::StreamConfig> stream_config(const StreamNames& names,
                                                                  const StreamSettings& settings);
// The settings of a stream that any program made.
[[nodiscard]] StreamSettings settings_of(const StreamNames& names, const nats::jetstream::StreamConfig& config);
// Whether the streams of both are the same for the handles of topics.
[[nodiscard]] bool same_stream(const StreamNames& names, const nats::jetstream::StreamConfig& a,
                               const nats::jetstream::StreamConfig& b);

// Of a consumer, whose members share the messages.
[[nodiscard]] Result<nats::jetstream::ConsumerConfig> consumer_config(const StreamNames& names,
                                                                      std::string_view consumer,
                                                                      const ConsumerSettings& settings);
// The settings of a consumer that any program made; of several filters the first one.
[[nodiscard]] ConsumerSettings settings_of(const StreamNames& names, const nats::jetstream::ConsumerConfig& config);
[[nodiscard]] bool same_consumer(const nats::jetstream::ConsumerConfig& a, const nats::jetstream::ConsumerConfig& b);
// Of a reader, which is an ephemeral consumer without acknowledgements.
[[nodiscard]] Result<nats::jetstream::ConsumerConfig> reader_config(const StreamNames& names, const From& from,
                                                                    std::string_view filter);

}  // namespace weft::topic
