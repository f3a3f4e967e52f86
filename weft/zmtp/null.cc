// SPDX-License-Identifier: MIT
#include "weft/zmtp/null.h"

namespace weft::zmtp {

void NullMechanism::start(Bytes our_metadata) {
  our_metadata_ = our_metadata;
  sent_ = false;
  asking_ = asks_;
}

Mechanism::Step NullMechanism::admit() {
  asking_ = false;
  return {};
}

bool NullMechanism::poll_command(std::vector<std::uint8_t>& body) {
  if (sent_ || asking_) {
    return false;
  }
  append_command_name(body, "READY");
  body.insert(body.end(), our_metadata_.begin(), our_metadata_.end());
  sent_ = true;
  return true;
}

Mechanism::Step NullMechanism::handle_command(const Command& command) {
  Step step;
  if (command.name == "READY") {
    step.kind = Step::Kind::ready;
    step.metadata = command.data;
  } else {
    step.kind = Step::Kind::failed;
    step.fault = {Errc::protocol_error, "peer sent another command than READY in a NULL handshake",
                  static_cast<std::uint32_t>(Breach::unexpected_command)};
  }
  return step;
}

}  // namespace weft::zmtp
