// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "weft/base/result.h"

namespace weft::nats::jetstream {

inline constexpr std::size_t kNameMax = 255;  // bytes of the name of a stream or a consumer, as servers bound it

// Whether a server takes the name of a stream or of a consumer: 1 to kNameMax bytes, all of them printable ASCII, and
// none of `.`, `*`, `>`, `/` and `\`.
[[nodiscard]] bool is_name(std::string_view name) noexcept;

// Appends any text as a name: each byte outside of [-_A-Za-z0-9] becomes `=XX`, with two capital hexadecimal digits. So
// two texts never have one name. Errors: invalid_argument (the text is empty, or its name has more than kNameMax
// bytes). After an error `out` is unchanged; so for the next ones.
[[nodiscard]] Result<void> append_name(std::string_view text, std::string& out);
// The inverse. Errors: invalid_argument (it is not the result of append_name(): another program gave the name).
[[nodiscard]] Result<void> append_text_of_name(std::string_view name, std::string& out);

// Appends a topic as a key of a bucket, which clients of NATS take: each byte outside of [-/_A-Za-z0-9] becomes `=XX`,
// and the dots between tokens stay. Errors: invalid_argument (it is empty, or has an empty token).
[[nodiscard]] Result<void> append_key(std::string_view topic, std::string& out);
// The inverse. Errors: invalid_argument (it is not the result of append_key()).
[[nodiscard]] Result<void> append_topic_of_key(std::string_view key, std::string& out);

}  // namespace weft::nats::jetstream
