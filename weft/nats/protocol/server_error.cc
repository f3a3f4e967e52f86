// SPDX-License-Identifier: MIT
#include "weft/nats/protocol/server_error.h"

#include <charconv>
#include <cstddef>
#include <cstdint>

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

void append_utf8(std::string& text, std::uint32_t point) {
  if (point < 0x80) {
    text += static_cast<char>(point);
  } else if (point < 0x800) {
    text += static_cast<char>(0xc0U | point >> 6U);
    text += static_cast<char>(0x80U | (point & 0x3fU));
  } else {
    if (point < 0x10000) {
      text += static_cast<char>(0xe0U | point >> 12U);
    } else {
      text += static_cast<char>(0xf0U | (point >> 18U & 7U));
      text += static_cast<char>(0x80U | (point >> 12U & 0x3fU));
    }
    text += static_cast<char>(0x80U | (point >> 6U & 0x3fU));
    text += static_cast<char>(0x80U | (point & 0x3fU));
  }
}

// Takes one escape of Go's %q, after its backslash. Returns false if it is malformed.
bool take_escape(std::string_view& rest, std::string& into) {
  constexpr std::string_view kLetters = "abfnrtv";
  constexpr std::string_view kBytes = "\a\b\f\n\r\t\v";
  if (rest.empty()) {
    return false;
  }
  const char kind = rest.front();
  rest.remove_prefix(1);
  if (kind == '"' || kind == '\\') {
    into += kind;
    return true;
  }
  if (const std::size_t place = kLetters.find(kind); place != std::string_view::npos) {
    into += kBytes[place];
    return true;
  }
  const std::size_t digits = kind == 'x' ? 2 : kind == 'u' ? 4 : kind == 'U' ? 8 : 0;
  std::uint32_t value = 0;
  if (digits == 0 || rest.size() < digits ||
      std::from_chars(rest.data(), rest.data() + digits, value, 16).ptr != rest.data() + digits) {
    return false;
  }
  rest.remove_prefix(digits);
  if (kind == 'x') {
    into += static_cast<char>(value);
  } else {
    append_utf8(into, value);
  }
  return true;
}

// The first text in double quotes after `from`, which the server wrote with Go's %q; `from` then has the rest.
// Empty: there is none.
[[nodiscard]] std::string quoted(std::string_view& from) {
  const std::size_t begin = from.find('"');
  if (begin == std::string_view::npos) {
    return {};
  }
  std::string_view rest = from.substr(begin + 1);
  std::string text;
  while (!rest.empty()) {
    const char c = rest.front();
    rest.remove_prefix(1);
    if (c == '"') {
      from = rest;
      return text;
    }
    if (c != '\\') {
      text += c;
    } else if (!take_escape(rest, text)) {
      return {};
    }
  }
  return {};
}

}  // namespace

ServerError read_server_error(std::string_view text) {
  if (text.starts_with('\'')) {
    text.remove_prefix(1);
  }
  if (text.ends_with('\'')) {
    text.remove_suffix(1);
  }
  for (const Row& row : kRows) {
    if (begins_with(text, row.begin)) {
      ServerError read{row.scope, row.error};
      if (row.scope == Scope::publish || row.scope == Scope::subscription) {
        read.subject = quoted(text);
        if (constexpr std::string_view kGroup = " using queue "; text.starts_with(kGroup)) {
          read.group = quoted(text);
        }
      }
      return read;
    }
  }
  return {Scope::connection, kOther};
}

}  // namespace weft::nats
