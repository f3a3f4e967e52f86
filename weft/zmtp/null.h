// SPDX-License-Identifier: MIT
#pragma once

#include "weft/zmtp/mechanism.h"

namespace weft::zmtp {

// NULL (RFC 23): no authentication. Each side sends READY with its metadata at once, and is done when the
// other's READY has come; neither side waits for the other to begin. With `asks` it sends nothing until its
// owner has admitted the peer (RFC 27).
class NullMechanism final : public Mechanism {
 public:
  explicit NullMechanism(bool asks = false) noexcept : asks_(asks) {}
  [[nodiscard]] std::string_view name() const noexcept override { return "NULL"; }
  void start(Bytes our_metadata) override;
  [[nodiscard]] bool poll_command(std::vector<std::uint8_t>& body) override;
  [[nodiscard]] Step handle_command(const Command& command) override;
  [[nodiscard]] const Question* question() const noexcept override { return asking_ ? &question_ : nullptr; }
  [[nodiscard]] Step admit() override;

 private:
  const bool asks_;
  Question question_;  // without credentials
  Bytes our_metadata_;
  bool sent_ = true;
  bool asking_ = false;
};

}  // namespace weft::zmtp
