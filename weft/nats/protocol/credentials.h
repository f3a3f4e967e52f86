// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <string_view>

#include "weft/base/result.h"
#include "weft/mem/secret.h"

namespace weft::nats {

// UserCredentials: the token of a user and the seed that proves it, from a .creds file. A value, overwritten at its
// end.
struct UserCredentials {
  Secret jwt{};
  Secret seed{};
};

// Reads the text of a .creds file: one block of lines with a JWT and one with the seed of a user, each between a line
// "-----BEGIN ...-----" and a line of dashes. Other text and other blocks are skipped. Errors: invalid_argument (a
// block is missing, is there twice, has no end or another form; more than kCredentialsMax bytes).
[[nodiscard]] Result<UserCredentials> read_credentials(std::string_view text);

}  // namespace weft::nats
