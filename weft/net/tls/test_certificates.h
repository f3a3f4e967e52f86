// SPDX-License-Identifier: MIT
#pragma once

#ifdef WEFT_HAVE_OPENSSL

#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <atomic>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>

#include "weft/sys/path.h"
#include <gtest/gtest.h>

// For tests: certificates that are made on demand, in a directory of their own.
namespace weft::net::test {

struct CertificateFiles {
  std::string certificate;
  std::string key;
};

// An authority and the certificates that it signed, as PEM files. The destructor removes the files.
class TestAuthority {
 public:
  explicit TestAuthority(const std::string& name = "authority") : directory_(sys::make_private_directory().value()) {
    key_.reset(EVP_EC_gen("P-256"));
    certificate_ = make(name, *key_, kHour, true);
    files_ = write(name, *certificate_, *key_);
  }
  TestAuthority(const TestAuthority&) = delete;
  TestAuthority& operator=(const TestAuthority&) = delete;
  ~TestAuthority() { std::filesystem::remove_all(directory_); }

  [[nodiscard]] const std::string& file() const noexcept { return files_.certificate; }
  [[nodiscard]] std::string path(const std::string& name) const { return directory_ + "/" + name; }
  // For localhost and 127.0.0.1, unless subjectAltName is to be another; null: none. CN is the name. The same name
  // again replaces the files.
  CertificateFiles issue(const std::string& name, long lifetime_s = kHour,
                         const char* names = "DNS:localhost,IP:127.0.0.1") {
    const Key key(EVP_EC_gen("P-256"));
    return write(name, *make(name, *key, lifetime_s, false, names), *key);
  }
  static constexpr long kHour = 3600;

 private:
  struct Free {
    void operator()(EVP_PKEY* key) const noexcept { EVP_PKEY_free(key); }
    void operator()(X509* certificate) const noexcept { X509_free(certificate); }
    void operator()(std::FILE* file) const noexcept { std::fclose(file); }
  };
  using Key = std::unique_ptr<EVP_PKEY, Free>;
  using Certificate = std::unique_ptr<X509, Free>;
  using File = std::unique_ptr<std::FILE, Free>;

  Certificate make(const std::string& name, EVP_PKEY& key, long lifetime_s, bool authority,
                   const char* names = nullptr) {
    static std::atomic<long> serial = 1;
    Certificate made(X509_new());
    X509* const certificate = made.get();
    X509_set_version(certificate, X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(certificate), serial++);
    X509_gmtime_adj(X509_getm_notBefore(certificate), -2 * kHour);
    X509_gmtime_adj(X509_getm_notAfter(certificate), lifetime_s);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_UTF8,
                               reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
    const X509* const issuer = certificate_ != nullptr ? certificate_.get() : certificate;
    X509_set_issuer_name(certificate, X509_get_subject_name(issuer));
    X509_set_pubkey(certificate, &key);
    extend(*certificate, NID_basic_constraints, authority ? "critical,CA:TRUE" : "critical,CA:FALSE");
    if (names != nullptr) {
      extend(*certificate, NID_subject_alt_name, names);
    }
    EXPECT_NE(X509_sign(certificate, key_.get(), EVP_sha256()), 0);
    return made;
  }
  static void extend(X509& certificate, int what, const char* value) {
    X509_EXTENSION* const extension = X509V3_EXT_conf_nid(nullptr, nullptr, what, value);
    EXPECT_EQ(X509_add_ext(&certificate, extension, -1), 1);
    X509_EXTENSION_free(extension);
  }
  CertificateFiles write(const std::string& name, X509& certificate, EVP_PKEY& key) const {
    CertificateFiles files{path(name + ".crt"), path(name + ".key")};
    PEM_write_X509(File(std::fopen(files.certificate.c_str(), "w")).get(), &certificate);
    PEM_write_PrivateKey(File(std::fopen(files.key.c_str(), "w")).get(), &key, nullptr, nullptr, 0, nullptr, nullptr);
    return files;
  }

  std::string directory_;
  Key key_;
  Certificate certificate_;
  CertificateFiles files_;
};

}  // namespace weft::net::test

#endif
