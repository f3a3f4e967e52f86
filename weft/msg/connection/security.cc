// SPDX-License-Identifier: MIT
#include "weft/msg/connection/security.h"

#include <algorithm>
#include <string>

#include "weft/base/assert.h"
#include "weft/zmtp/curve.h"
#include "weft/zmtp/null.h"
#include "weft/zmtp/plain.h"

namespace weft::msg {
namespace {

zmtp::CurveKey key_of(const std::string& bytes) noexcept {
  zmtp::CurveKey key{};
  copy_bytes(key.data(), as_bytes(bytes).first(std::min(bytes.size(), key.size())));
  return key;
}

}  // namespace

Result<void> check_security(const Options& options) noexcept {
  if (options.security == Security::curve && !zmtp::curve_available()) {
    return Error(Errc::not_supported, "this build has no libsodium, so no CURVE");
  }
  return {};
}

bool is_security_server(const Options& options) noexcept {
  switch (options.security) {
    case Security::null: return false;
    case Security::plain: return options.plain_server;
    case Security::curve: return options.curve_server;
  }
  return false;
}

std::unique_ptr<zmtp::Mechanism> make_mechanism(const Options& options) {
  std::unique_ptr<zmtp::Mechanism> mechanism;
  const bool server = is_security_server(options);
  switch (options.security) {
    case Security::null: mechanism = std::make_unique<zmtp::NullMechanism>(!options.zap_domain.empty()); break;
    case Security::plain:
      if (server) {
        mechanism = std::make_unique<zmtp::PlainServer>();
      } else {
        mechanism = std::make_unique<zmtp::PlainClient>(options.plain_username, options.plain_password);
      }
      break;
    case Security::curve:
      mechanism = server ? zmtp::make_curve_server(key_of(options.curve_secret_key))
                         : zmtp::make_curve_client({key_of(options.curve_public_key), key_of(options.curve_secret_key)},
                                                   key_of(options.curve_server_key));
      break;
  }
  WEFT_ASSERT(mechanism != nullptr);
  return mechanism;
}

}  // namespace weft::msg
