// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "capi/weft_topics.h"
#include "weft/base/result.h"
#include "weft/store/settings.h"
#include "weft/topic/kept/key_value_core.h"
#include "weft/topic/kept/options.h"
#include "weft/topic/wire/headers.h"

namespace weft::capi::topics {

// The enumerations of weft_topics.h. Each fails with invalid_argument if there is no such number.
[[nodiscard]] Result<Keep> keep_of(int keep) noexcept;
[[nodiscard]] Result<Survives> survives_of(int survives) noexcept;
[[nodiscard]] Result<Discard> discard_of(int when_full) noexcept;  // not of WEFT_TOPICS_FULL_DEFAULT
[[nodiscard]] Result<From> from_of(int from, std::uint64_t value) noexcept;

// AppendOptions: the options of a publish, and the headers that they refer to.
struct AppendOptions {
  Headers headers;
  PublishOptions options;
};
[[nodiscard]] Result<AppendOptions> append_options_of(const weft_topics_append_options* given);
// Batch: the messages of a batch, and the headers that they refer to.
struct Batch {
  std::vector<Headers> headers;
  std::vector<BatchMessage> messages;
  BatchOptions options;
};
[[nodiscard]] Result<Batch> batch_of(const weft_topics_batch_message* messages, std::size_t count,
                                     std::size_t message_size, std::int64_t timeout_ms);
[[nodiscard]] Result<topic::KeyChange> change_of(const weft_topics_put_options* given) noexcept;
[[nodiscard]] inline std::string_view filter_or_all(const char* filter) noexcept {
  return filter == nullptr ? ">" : std::string_view(filter);
}
void put_published(weft_topics_published* to, const Published& published) noexcept;  // `to` may be null

}  // namespace weft::capi::topics
