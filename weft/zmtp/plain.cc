// SPDX-License-Identifier: MIT
#include "weft/zmtp/plain.h"

#include <utility>

#include "weft/base/assert.h"

namespace weft::zmtp {
namespace {

constexpr std::size_t kHelloMax = sizeof "HELLO" + 2 * (1 + kPlainTextMax);

Mechanism::Step plain_failed(StaticText text, Breach breach) {
  return {Mechanism::Step::Kind::failed, {}, {Errc::protocol_error, text, static_cast<std::uint32_t>(breach)}};
}

void append_to(std::vector<std::uint8_t>& to, Bytes bytes) { to.insert(to.end(), bytes.begin(), bytes.end()); }

void append_text(std::vector<std::uint8_t>& to, std::string_view text) {
  to.push_back(static_cast<std::uint8_t>(text.size()));
  append_to(to, as_bytes(text));
}

// Takes one byte of length and the text off the front.
bool take_text(Bytes& from, std::string& text) {
  if (from.empty() || from[0] > from.size() - 1) {
    return false;
  }
  text = as_text(from.subspan(1, from[0]));
  from = from.subspan(std::size_t{1} + from[0]);
  return true;
}

}  // namespace

PlainClient::PlainClient(std::string username, std::string password)
    : username_(std::move(username)), password_(std::move(password)) {
  WEFT_ASSERT(username_.size() <= kPlainTextMax && password_.text().size() <= kPlainTextMax);
}

void PlainClient::start(Bytes our_metadata) {
  our_metadata_ = our_metadata;
  state_ = State::owes_hello;
}

bool PlainClient::poll_command(std::vector<std::uint8_t>& body) {
  if (state_ == State::owes_hello) {
    body.reserve(body.size() + kHelloMax);  // a vector that grows leaves copies
    append_command_name(body, "HELLO");
    append_text(body, username_);
    append_text(body, password_.text());
    state_ = State::awaits_welcome;
    return true;
  }
  if (state_ == State::owes_initiate) {
    append_command_name(body, "INITIATE");
    append_to(body, our_metadata_);
    state_ = State::awaits_ready;
    return true;
  }
  return false;
}

Mechanism::Step PlainClient::handle_command(const Command& command) {
  if (state_ == State::awaits_welcome && command.name == "WELCOME") {
    if (!command.data.empty()) {
      return plain_failed("malformed WELCOME command", Breach::malformed_welcome);
    }
    state_ = State::owes_initiate;
    return {};
  }
  if (state_ == State::awaits_ready && command.name == "READY") {
    state_ = State::done;
    return {Step::Kind::ready, command.data, {}};
  }
  return plain_failed("unexpected command in a PLAIN handshake", Breach::unexpected_command);
}

void PlainServer::start(Bytes our_metadata) {
  our_metadata_ = our_metadata;
  forget_credentials();
  state_ = State::awaits_hello;
}

bool PlainServer::poll_command(std::vector<std::uint8_t>& body) {
  if (state_ == State::owes_welcome) {
    append_command_name(body, "WELCOME");
    state_ = State::awaits_initiate;
    return true;
  }
  if (state_ == State::owes_ready) {
    append_command_name(body, "READY");
    append_to(body, our_metadata_);
    state_ = State::done;
    return true;
  }
  return false;
}

bool PlainServer::take_hello(Bytes data) {
  question_.credentials.resize(2);
  return take_text(data, question_.credentials[0]) && take_text(data, question_.credentials[1]) && data.empty();
}

void PlainServer::forget_credentials() noexcept {
  for (std::string& credential : question_.credentials) {
    wipe(credential);
  }
  question_.credentials.clear();
}

Mechanism::Step PlainServer::handle_command(const Command& command) {
  if (state_ == State::awaits_hello && command.name == "HELLO") {
    if (!take_hello(command.data)) {
      return plain_failed("malformed HELLO command", Breach::malformed_hello);
    }
    state_ = State::asks;
    return {};
  }
  if (state_ == State::awaits_initiate && command.name == "INITIATE") {
    state_ = State::owes_ready;
    return {Step::Kind::ready, command.data, {}};
  }
  return plain_failed("unexpected command in a PLAIN handshake", Breach::unexpected_command);
}

const Question* PlainServer::question() const noexcept { return state_ == State::asks ? &question_ : nullptr; }

Mechanism::Step PlainServer::admit() {
  forget_credentials();
  state_ = State::owes_welcome;
  return {};
}

}  // namespace weft::zmtp
