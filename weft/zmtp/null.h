// SPDX-License-Identifier: MIT
#pragma once

#include "weft/zmtp/mechanism.h"

namespace weft::zmtp {

// NULL (RFC 23): no authentication. Each side sends READY with its metadata at once and is done when the other's came;
// nobody waits for the other to begin.
class NullMechanism final : public Mechanism {
 public:
  [[nodiscard]] std::string_view name() const noexcept override { return "NULL"; }
  void start(Bytes our_metadata) override;
  [[nodiscard]] bool poll_command(std::vector<std::uint8_t>& body) override;
  [[nodiscard]] Step handle_command(const Command& command) override;

 private:
  Bytes our_metadata_;
  bool sent_ = true;
};

}  // namespace weft::zmtp
