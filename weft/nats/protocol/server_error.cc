// SPDX-License-Identifier: MIT
#include "weft/nats/protocol/server_error.h"

#include <cstddef>

namespace weft::nats {

namespace {

using Scope = ServerError::Scope;

struct Row {
  std::string_view begin;  // of the text, in small letters
  Scope scope;
  Error error;
};

// Row by row in this order: a text that is the beginning of another one comes after it.
constexpr Row kRows[] = {
    {"permissions violation for publish",
     Scope::publish,
     {Errc::not_permitted, "the server does not permit messages to this subject"}},
    {"permissions violation for subscription",
     Scope::subscription,
     {Errc::not_permitted, "the server does not permit a subscription to this subject"}},
    {"permissions violation", Scope::call, {Errc::not_permitted, "the server does not permit this"}},
    {"invalid subject", Scope::call, {Errc::invalid_argument, "the server takes no such subject"}},
    {"invalid publish subject", Scope::call, {Errc::invalid_argument, "the server takes no such subject"}},
    {"authorization violation", Scope::login, {Errc::handshake_refused, "the server refuses the credentials"}},
    {"authorization timeout", Scope::login, {Errc::handshake_refused, "the server waited too long for credentials"}},
    {"authentication timeout", Scope::login, {Errc::handshake_refused, "the server waited too long for credentials"}},
    {"user authentication expired", Scope::login, {Errc::handshake_refused, "the credentials of the user expired"}},
    {"user authentication revoked", Scope::login, {Errc::handshake_refused, "the credentials of the user are revoked"}},
    {"account authentication expired", Scope::login, {Errc::handshake_refused, "the account expired"}},
    {"account authentication revoked", Scope::login, {Errc::handshake_refused, "the account is revoked"}},
    {"maximum payload", Scope::connection, {Errc::message_too_large, "the server takes no message of this size"}},
    {"maximum connections", Scope::connection, {Errc::resource_exhausted, "the server has its maximum of connections"}},
    {"maximum account active connections",
     Scope::connection,
     {Errc::resource_exhausted, "the account has its maximum of connections"}},
    {"maximum subscriptions",
     Scope::connection,
     {Errc::resource_exhausted, "the connection has its maximum of subscriptions"}},
    {"slow consumer", Scope::connection, {Errc::connection_closed, "the server found this end a slow consumer"}},
    {"stale connection", Scope::connection, {Errc::connection_closed, "the server found the connection stale"}},
    {"server shutdown", Scope::connection, {Errc::connection_closed, "the server shuts down"}},
    {"maximum control line", Scope::connection, {Errc::protocol_error, "the server takes no line of this length"}},
    {"unknown protocol operation", Scope::connection, {Errc::protocol_error, "the server knows no such operation"}},
    {"parser error", Scope::connection, {Errc::protocol_error, "the server cannot read this end's bytes"}},
    {"invalid client protocol", Scope::connection, {Errc::protocol_error, "the server refuses the client protocol"}},
    {"secure connection - tls required", Scope::connection, {Errc::handshake_refused, "the server requires TLS"}},
    {"attempted to connect to",
     Scope::connection,
     {Errc::incompatible_peer, "the port is not for clients: it is one of routes, gateways or leaf nodes"}},
};

constexpr Error kOther(Errc::connection_closed, "the server reported an error and ended the connection");

[[nodiscard]] bool begins_with(std::string_view text, std::string_view small) noexcept {
  if (text.size() < small.size()) {
    return false;
  }
  for (std::size_t i = 0; i < small.size(); ++i) {
    const char c = text[i];
    if ((c >= 'A' && c <= 'Z' ? static_cast<char>(c + 0x20) : c) != small[i]) {
      return false;
    }
  }
  return true;
}

// The first text in double quotes.
[[nodiscard]] std::string_view quoted(std::string_view text) noexcept {
  const std::size_t begin = text.find('"');
  if (begin == std::string_view::npos) {
    return {};
  }
  const std::size_t end = text.find('"', begin + 1);
  return end == std::string_view::npos ? std::string_view() : text.substr(begin + 1, end - begin - 1);
}

}  // namespace

ServerError read_server_error(std::string_view text) noexcept {
  if (text.starts_with('\'')) {
    text.remove_prefix(1);
  }
  if (text.ends_with('\'')) {
    text.remove_suffix(1);
  }
  for (const Row& row : kRows) {
    if (begins_with(text, row.begin)) {
      const bool names = row.scope == Scope::publish || row.scope == Scope::subscription;
      return {row.scope, row.error, names ? quoted(text) : std::string_view()};
    }
  }
  return {Scope::connection, kOther, {}};
}

}  // namespace weft::nats
