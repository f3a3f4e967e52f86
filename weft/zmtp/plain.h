// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "weft/mem/secret.h"
#include "weft/zmtp/mechanism.h"

namespace weft::zmtp {

inline constexpr std::size_t kPlainTextMax = 255;  // of a name, and of a password

// PLAIN (RFC 24): the client sends a name and a password in the clear. The server lets its owner judge them.
//   client: HELLO (name, password)        INITIATE (metadata)
//   server:                       WELCOME                     READY (metadata), or ERROR

// The owner validates that both have at most kPlainTextMax bytes.
class PlainClient final : public Mechanism {
 public:
  PlainClient(std::string username, std::string password);

  [[nodiscard]] std::string_view name() const noexcept override { return "PLAIN"; }
  void start(Bytes our_metadata) override;
  [[nodiscard]] bool poll_command(std::vector<std::uint8_t>& body) override;
  [[nodiscard]] Step handle_command(const Command& command) override;

 private:
  enum class State : std::uint8_t { owes_hello, awaits_welcome, owes_initiate, awaits_ready, done };
  const std::string username_;
  const Secret password_;
  Bytes our_metadata_;
  State state_ = State::done;
};

class PlainServer final : public Mechanism {
 public:
  ~PlainServer() override { forget_credentials(); }
  [[nodiscard]] std::string_view name() const noexcept override { return "PLAIN"; }
  void start(Bytes our_metadata) override;
  [[nodiscard]] bool poll_command(std::vector<std::uint8_t>& body) override;
  [[nodiscard]] Step handle_command(const Command& command) override;
  [[nodiscard]] const Question* question() const noexcept override;
  [[nodiscard]] Step admit() override;

 private:
  enum class State : std::uint8_t { awaits_hello, asks, owes_welcome, awaits_initiate, owes_ready, done };
  [[nodiscard]] bool take_hello(Bytes data);
  void forget_credentials() noexcept;

  Question question_;
  Bytes our_metadata_;
  State state_ = State::done;
};

}  // namespace weft::zmtp
