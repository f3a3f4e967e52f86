// SPDX-License-Identifier: MIT
#include "weft/nats/protocol/info.h"

#include <new>
#include <utility>

#include "weft/base/text/json_string.h"
#include "weft/base/version.h"

#if __has_include(<nlohmann/json.hpp>)
#define WEFT_NATS_JSON
#include <nlohmann/json.hpp>
#endif

namespace weft::nats {

#ifdef WEFT_NATS_JSON

namespace {

using Json = nlohmann::json;

// InfoReader: takes the events of nlohmann/json's parser, which keeps no value and does not recurse. A function that
// returns false ends the parsing.
class InfoReader {
 public:
  explicit InfoReader(ServerInfo& into) noexcept : into_(into) {}

  bool null() { return value(); }
  bool boolean(bool read) {
    if (bool* const place = depth_ == 1 ? flag() : nullptr; place != nullptr) {
      *place = read;
    } else if (depth_ == 1 && is_known()) {
      return false;
    }
    return value();
  }
  bool number_integer(Json::number_integer_t read) {
    if (depth_ == 1 && is_known()) {
      if (key_ != "proto") {
        return false;
      }
      into_.proto = read;
    }
    return value();
  }
  bool number_unsigned(Json::number_unsigned_t read) {
    if (depth_ == 1 && is_known()) {
      if (key_ == "proto") {
        into_.proto = static_cast<std::int64_t>(read < 0xFFFF ? read : 0xFFFF);
      } else if (key_ == "max_payload") {
        into_.max_payload = read < kMessageMax ? read : kMessageMax;
      } else if (key_ == "client_id") {
        into_.client_id = read;
      } else {
        return false;
      }
    }
    return value();
  }
  bool number_float(Json::number_float_t /*read*/, const std::string& /*text*/) { return strange(); }
  bool binary(Json::binary_t& /*read*/) { return strange(); }
  bool string(std::string& read) {
    if (depth_ == 1) {
      if (std::string* const place = text(); place != nullptr) {
        if (read.size() > (place == &into_.nonce ? kNonceMax : kServerTextMax)) {
          return false;
        }
        *place = std::move(read);
      } else if (is_known()) {
        return false;
      }
    } else if (depth_ == 2 && in_urls_) {
      if (read.size() > kServerTextMax) {
        return false;
      }
      if (into_.connect_urls.size() < kServersMax) {
        into_.connect_urls.push_back(std::move(read));
      }
    }
    return value();
  }
  bool start_object(std::size_t /*size*/) {
    if (depth_ == 1 && is_known()) {
      return false;
    }
    return enter();
  }
  bool key(std::string& name) {
    if (depth_ == 1) {
      key_ = std::move(name);
    }
    return true;
  }
  bool end_object() { return leave(); }
  bool start_array(std::size_t /*size*/) {
    if (depth_ == 0 || (depth_ == 1 && is_known() && key_ != "connect_urls")) {
      return false;
    }
    in_urls_ = depth_ == 1 && key_ == "connect_urls";
    if (in_urls_) {
      into_.connect_urls.clear();
    }
    return enter();
  }
  bool end_array() { return leave(); }
  bool parse_error(std::size_t /*place*/, const std::string& /*token*/, const Json::exception& /*why*/) {
    return false;
  }

 private:
  [[nodiscard]] bool* flag() noexcept {
    return key_ == "headers"         ? &into_.headers
           : key_ == "auth_required" ? &into_.auth_required
           : key_ == "tls_required"  ? &into_.tls_required
           : key_ == "tls_available" ? &into_.tls_available
           : key_ == "ldm"           ? &into_.lame_duck
           : key_ == "jetstream"     ? &into_.jetstream
                                     : nullptr;
  }
  [[nodiscard]] std::string* text() noexcept {
    return key_ == "server_id"     ? &into_.server_id
           : key_ == "server_name" ? &into_.server_name
           : key_ == "version"     ? &into_.version
           : key_ == "nonce"       ? &into_.nonce
                                   : nullptr;
  }
  [[nodiscard]] bool is_known() noexcept {
    return flag() != nullptr || text() != nullptr || key_ == "proto" || key_ == "max_payload" || key_ == "client_id" ||
           key_ == "connect_urls";
  }
  [[nodiscard]] bool value() const noexcept { return depth_ != 0; }  // the whole text is one object
  [[nodiscard]] bool strange() noexcept { return value() && (depth_ != 1 || !is_known()); }
  [[nodiscard]] bool enter() noexcept { return ++depth_ <= kInfoDepthMax; }
  [[nodiscard]] bool leave() noexcept {
    in_urls_ = in_urls_ && depth_ != 2;
    --depth_;
    return true;
  }

  ServerInfo& into_;
  std::string key_;
  unsigned depth_ = 0;
  bool in_urls_ = false;
};

}  // namespace

Result<ServerInfo> read_info(std::string_view json) {
  if (json.size() > kInfoMax) {
    return Error(Errc::protocol_error, "the server's INFO is too long");
  }
  try {
    ServerInfo info;
    InfoReader reader(info);
    if (!Json::sax_parse(json.begin(), json.end(), &reader)) {
      return Error(Errc::protocol_error, "the server's INFO is malformed");
    }
    return Result<ServerInfo>(std::in_place, std::move(info));
  } catch (const std::bad_alloc&) {
    return Error(Errc::resource_exhausted, "no memory to read INFO");
  }
}

#else

Result<ServerInfo> read_info(std::string_view /*json*/) {
  return Error(Errc::not_supported, "this build has no nlohmann/json, which NATS needs");
}

#endif

namespace {

#define WEFT_NATS_TEXT(number) #number
#define WEFT_NATS_VERSION(major, minor, patch) WEFT_NATS_TEXT(major) "." WEFT_NATS_TEXT(minor) "." WEFT_NATS_TEXT(patch)
constexpr std::string_view kVersionText = WEFT_NATS_VERSION(WEFT_VERSION_MAJOR, WEFT_VERSION_MINOR, WEFT_VERSION_PATCH);

class ConnectWriter {
 public:
  void flag(std::string_view name, bool value) {
    begin(name);
    text_ += value ? "true" : "false";
  }
  void number(std::string_view name, std::string_view digits) {
    begin(name);
    text_ += digits;
  }
  void text(std::string_view name, std::string_view value) {
    begin(name);
    append_json_string(value, text_);
  }
  void optional_text(std::string_view name, std::string_view value) {
    if (!value.empty()) {
      text(name, value);
    }
  }
  [[nodiscard]] Secret end() {
    text_ += '}';
    return Secret(std::move(text_));
  }
  // Growth would leave copies of the secrets in freed memory.
  void reserve(std::size_t bytes) { text_.reserve(bytes); }

 private:
  void begin(std::string_view name) {
    text_ += text_.empty() ? "{\"" : ",\"";
    text_.append(name).append("\":");
  }
  std::string text_;
};

}  // namespace

Secret write_connect(const ConnectFields& fields) {
  ConnectWriter json;
  json.reserve(512 + kJsonEscapedSize *
                         (fields.name.size() + fields.user.size() + fields.password.size() + fields.token.size() +
                          fields.jwt.size() + fields.nkey.size() + fields.signature.size()));
  json.flag("verbose", false);
  json.flag("pedantic", false);
  json.flag("tls_required", fields.tls);
  json.text("lang", "weft");
  json.text("version", kVersionText);
  json.optional_text("name", fields.name);
  json.optional_text("user", fields.user);
  json.optional_text("pass", fields.password);
  json.optional_text("auth_token", fields.token);
  json.optional_text("jwt", fields.jwt);
  json.optional_text("nkey", fields.nkey);
  json.optional_text("sig", fields.signature);
  json.flag("echo", fields.echo);
  json.flag("headers", fields.headers);
  json.flag("no_responders", fields.headers);
  json.number("protocol", "1");
  return json.end();
}

}  // namespace weft::nats
