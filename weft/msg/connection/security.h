// SPDX-License-Identifier: MIT
#pragma once

#include <memory>

#include "weft/base/result.h"
#include "weft/msg/message/options.h"
#include "weft/zmtp/mechanism.h"

namespace weft::msg {

// From a socket's options to a mechanism for one of its connections.
// not_supported: this build has no such mechanism.
[[nodiscard]] Result<void> check_security(const Options& options) noexcept;
[[nodiscard]] bool is_security_server(const Options& options) noexcept;
// Requires check_security(). A key that was not set is all zeros: no peer has its other half.
[[nodiscard]] std::unique_ptr<zmtp::Mechanism> make_mechanism(const Options& options);

}  // namespace weft::msg
