// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <string>

#include "weft/nats/protocol/nkey.h"

// For tests: keys, and credentials of users that an operator's server takes. They need libsodium.
namespace weft::nats::test {

inline NKey key_of(KeyKind kind, std::uint8_t fill) {
  std::array<std::uint8_t, NKey::kSeedSize> seed;
  seed.fill(fill);
  return NKey::from_bytes(kind, seed).value();
}

// An operator, an account and a user, with tokens that the keys sign.
class Authority {
 public:
  [[nodiscard]] std::string config() const {
    return "operator: \"" + operator_token() + "\"\nresolver: MEMORY\nsystem_account: " + system_.public_key() +
           "\nresolver_preload: { " + account_.public_key() + ": \"" + account_token(account_, "-1") + "\", " +
           system_.public_key() + ": \"" + account_token(system_, "0") + "\" }\n";
  }
  void write_credentials(const std::string& file, long lifetime) const {
    const std::string token =
        sign(R"({"jti":"u","iat":1,"iss":")" + account_.public_key() + R"(","name":"u","sub":")" + user_.public_key() +
                 R"(","exp":)" + std::to_string(std::time(nullptr) + lifetime) +
                 R"(,"nats":{"pub":{},"sub":{},"subs":-1,"data":-1,"payload":-1,"type":"user","version":2}})",
             account_);
    const std::string fresh = file + ".new";
    std::ofstream(fresh) << "-----BEGIN NATS USER JWT-----\n"
                         << token << "\n------END NATS USER JWT------\n\n"
                         << "-----BEGIN USER NKEY SEED-----\n"
                         << user_.seed() << "\n------END USER NKEY SEED------\n";
    std::filesystem::rename(fresh, file);
  }

 private:
  [[nodiscard]] static std::string sign(const std::string& claims, const NKey& by) {
    const std::string text =
        base64_url(as_bytes(R"({"typ":"JWT","alg":"ed25519-nkey"})")) + '.' + base64_url(as_bytes(claims));
    return text + '.' + by.sign(as_bytes(text));
  }
  [[nodiscard]] std::string operator_token() const {
    return sign(R"({"jti":"o","iat":1,"iss":")" + operator_.public_key() + R"(","name":"o","sub":")" +
                    operator_.public_key() + R"(","nats":{"type":"operator","version":2}})",
                operator_);
  }
  // `kept`: the bound of JetStream for each kind of storage; -1: none, which a system account may not have.
  [[nodiscard]] std::string account_token(const NKey& account, const std::string& kept) const {
    return sign(R"({"jti":"a","iat":1,"iss":")" + operator_.public_key() + R"(","name":"a","sub":")" +
                    account.public_key() +
                    R"(","nats":{"limits":{"subs":-1,"data":-1,"payload":-1,"imports":-1,"exports":-1,)"
                    R"("wildcards":true,"conn":-1,"leaf":-1,"mem_storage":)" +
                    kept + R"(,"disk_storage":)" + kept +
                    R"(,"streams":-1,"consumer":-1},"default_permissions":{"pub":{},"sub":{}},)"
                    R"("type":"account","version":2}})",
                operator_);
  }

  const NKey operator_ = key_of(KeyKind::operators, 3);
  const NKey account_ = key_of(KeyKind::account, 4);
  const NKey system_ = key_of(KeyKind::account, 6);
  const NKey user_ = key_of(KeyKind::user, 5);
};

}  // namespace weft::nats::test
