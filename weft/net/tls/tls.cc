// SPDX-License-Identifier: MIT
#include "weft/net/tls/tls.h"

#ifdef WEFT_HAVE_OPENSSL

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <cerrno>
#include <memory>
#include <utility>

#include "weft/net/tls/server_name.h"
#include "weft/net/tls/tls_stream.h"
#include "weft/sys/address.h"

namespace weft::net {
namespace {

constexpr Error kNoMemoryForTls(Errc::resource_exhausted, "no memory for TLS");
constexpr unsigned char kTicketContext[] = "weft";
constexpr long kCertificatesMax = 32 * 1024;  // bytes of a client's certificate and its chain

// The errno with which the system kept OpenSSL from a file that may be a good one; 0: the file cannot be used. Empties
// OpenSSL's list of errors.
int take_shortage() noexcept {
  int shortage = 0;
  while (const unsigned long error = ERR_get_error()) {
    const int reason = ERR_GET_REASON(error);
    if (ERR_SYSTEM_ERROR(error) && (reason == EMFILE || reason == ENFILE || reason == ENOMEM)) {
      shortage = reason;
    } else if (!ERR_SYSTEM_ERROR(error) && reason == ERR_R_MALLOC_FAILURE) {
      shortage = ENOMEM;
    }
  }
  return shortage;
}

// Builds the error and the reason that OpenSSL gives for a file.
Error refuse(const std::string& file, StaticText text, std::string* why) {
  if (why != nullptr) {
    char reason[256] = "";
    ERR_error_string_n(ERR_peek_error(), reason, sizeof(reason));
    const std::string_view all(reason);  // "error:0480006C:PEM routines::no start line"
    *why = file + ": " + text.c_str() + ": " + std::string(all.substr(all.rfind(':') + 1));
  }
  const int shortage = take_shortage();
  return shortage != 0 ? Error(Errc::resource_exhausted, text, shortage) : Error(Errc::invalid_argument, text);
}

struct FreeOpenSsl {
  void operator()(BIO* bio) const noexcept { BIO_free(bio); }
  void operator()(X509* certificate) const noexcept { X509_free(certificate); }
  void operator()(EVP_PKEY* key) const noexcept { EVP_PKEY_free(key); }
};
using Bio = std::unique_ptr<BIO, FreeOpenSsl>;
using Certificate = std::unique_ptr<X509, FreeOpenSsl>;
using Key = std::unique_ptr<EVP_PKEY, FreeOpenSsl>;

Bio reader_of(const std::string& pem) { return Bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()))); }
int no_pass_phrase(char* /*buffer*/, int /*size*/, int /*writes*/, void* /*argument*/) { return -1; }

// The next certificate. `bad`: the text there is not a certificate, as opposed to the end of the text.
Certificate next_certificate(BIO* from, bool& bad) {
  Certificate certificate(PEM_read_bio_X509(from, nullptr, &no_pass_phrase, nullptr));
  bad = certificate == nullptr && ERR_GET_REASON(ERR_peek_last_error()) != PEM_R_NO_START_LINE;
  if (!bad) {
    ERR_clear_error();
  }
  return certificate;
}

Result<void> use_certificate_pem(SSL_CTX* ssl_ctx, const std::string& certificate_pem, const std::string& key_pem,
                                 std::string* why) {
  const Bio chain = reader_of(certificate_pem);
  bool bad = false;
  Certificate certificate = chain == nullptr ? nullptr : next_certificate(chain.get(), bad);
  bool taken = certificate != nullptr && SSL_CTX_use_certificate(ssl_ctx, certificate.get()) == 1;
  while (taken && (certificate = next_certificate(chain.get(), bad)) != nullptr) {
    taken = SSL_CTX_add1_chain_cert(ssl_ctx, certificate.get()) == 1;
  }
  if (!taken || bad) {
    return refuse("PEM", "the certificate cannot be used", why);
  }
  const Bio reader = reader_of(key_pem);
  const Key key(reader == nullptr ? nullptr : PEM_read_bio_PrivateKey(reader.get(), nullptr, &no_pass_phrase, nullptr));
  if (key == nullptr) {
    return refuse("PEM", "the key cannot be used", why);
  }
  if (SSL_CTX_use_PrivateKey(ssl_ctx, key.get()) != 1 || SSL_CTX_check_private_key(ssl_ctx) != 1) {
    return refuse("PEM", "the key is not the certificate's", why);
  }
  return {};
}

Result<void> trust_pem(SSL_CTX* ssl_ctx, const std::string& pem, std::string* why) {
  const Bio reader = reader_of(pem);
  int count = 0;
  bool bad = reader == nullptr;
  for (Certificate one; !bad && (one = next_certificate(reader.get(), bad)) != nullptr; ++count) {
    bad = X509_STORE_add_cert(SSL_CTX_get_cert_store(ssl_ctx), one.get()) != 1;
  }
  return bad || count == 0 ? refuse("PEM", "the authorities of servers cannot be used", why) : Result<void>();
}

// OpenSSL is silent about a file of the system's authorities that it could not open. Their directory is read later, for
// each certificate.
Result<void> trust_system(SSL_CTX* ssl_ctx, std::string* why) {
  const char* const file = X509_get_default_cert_file();
  if (const Bio probe(BIO_new_file(file, "r")); probe == nullptr) {
    if (const Error error = refuse(file, "the system's authorities cannot be used", why);
        error == Errc::resource_exhausted) {
      return error;
    }
  }
  SSL_CTX_set_default_verify_paths(ssl_ctx);
  return {};
}

Result<std::string> wire_protocols(const std::vector<std::string>& protocols) {
  std::string wire;
  for (const std::string& protocol : protocols) {
    if (protocol.empty() || protocol.size() > 255) {
      return Error(Errc::invalid_argument, "an ALPN protocol has 1 to 255 bytes");
    }
    wire += static_cast<char>(protocol.size());
    wire += protocol;
  }
  if (wire.size() > 0xFFFF) {
    return Error(Errc::invalid_argument, "too many ALPN protocols");
  }
  return wire;
}

Result<std::shared_ptr<TlsContext>> make_context(const SSL_METHOD* method, const std::vector<std::string>& protocols) {
  ERR_clear_error();
  std::string wire = WEFT_TRY(wire_protocols(protocols));
  std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)> made(SSL_CTX_new(method), &SSL_CTX_free);
  if (made == nullptr) {
    ERR_clear_error();
    return kNoMemoryForTls;
  }
  auto context = std::make_shared<TlsContext>(made.get());
  SSL_CTX* const ssl_ctx = made.release();
  context->protocols = std::move(wire);
  if (SSL_CTX_set_min_proto_version(ssl_ctx, TLS1_3_VERSION) != 1) {
    ERR_clear_error();
    return Error(Errc::not_supported, "this OpenSSL has no TLS 1.3");
  }
  SSL_CTX_set_mode(ssl_ctx, SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_read_ahead(ssl_ctx, 1);  // one system call for all available bytes, not two for each record
  SSL_CTX_set_session_cache_mode(ssl_ctx, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_default_passwd_cb(ssl_ctx, &no_pass_phrase);  // never prompts at a terminal
  return context;
}

Result<void> use_certificate(SSL_CTX* ssl_ctx, const std::string& certificate_file, const std::string& key_file,
                             std::string* why) {
  if (SSL_CTX_use_certificate_chain_file(ssl_ctx, certificate_file.c_str()) != 1) {
    return refuse(certificate_file, "the certificate cannot be used", why);
  }
  if (SSL_CTX_use_PrivateKey_file(ssl_ctx, key_file.c_str(), SSL_FILETYPE_PEM) != 1) {
    return refuse(key_file, "the key cannot be used", why);
  }
  if (SSL_CTX_check_private_key(ssl_ctx) != 1) {
    return refuse(key_file, "the key is not the certificate's", why);
  }
  return {};
}

int choose_protocol(SSL* /*ssl*/, const unsigned char** chosen, unsigned char* size, const unsigned char* offered,
                    unsigned offered_size, void* argument) {
  const std::string& ours = static_cast<const TlsContext*>(argument)->protocols;
  unsigned char* found = nullptr;
  if (SSL_select_next_proto(&found, size, reinterpret_cast<const unsigned char*>(ours.data()),
                            static_cast<unsigned>(ours.size()), offered, offered_size) != OPENSSL_NPN_NEGOTIATED) {
    return SSL_TLSEXT_ERR_ALERT_FATAL;  // RFC 7301, 3.2
  }
  *chosen = found;
  return SSL_TLSEXT_ERR_OK;
}

Result<std::shared_ptr<const TlsContext>> make_server_context(const TlsServerOptions& options, std::string* why) {
  const auto context = WEFT_TRY(make_context(TLS_server_method(), options.protocols));
  SSL_CTX* const ssl_ctx = context->ssl_ctx;
  WEFT_TRY(options.certificate_pem.empty()
               ? use_certificate(ssl_ctx, options.certificate_file, options.key_file, why)
               : use_certificate_pem(ssl_ctx, options.certificate_pem, options.key_pem, why));
  if (!options.client_ca_file.empty()) {
    const char* const file = options.client_ca_file.c_str();
    STACK_OF(X509_NAME)* const names = SSL_load_client_CA_file(file);
    if (names == nullptr || SSL_CTX_load_verify_file(ssl_ctx, file) != 1) {
      sk_X509_NAME_pop_free(names, X509_NAME_free);
      return refuse(options.client_ca_file, "the authorities of clients cannot be used", why);
    }
    SSL_CTX_set_client_CA_list(ssl_ctx, names);
    SSL_CTX_set_verify(ssl_ctx, SSL_VERIFY_PEER | (options.client_required ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0),
                       nullptr);
    SSL_CTX_set_max_cert_list(ssl_ctx, kCertificatesMax);
    SSL_CTX_set_num_tickets(ssl_ctx, 0);  // a resumption would not check the certificate's dates again
  }
  SSL_CTX_set_session_id_context(ssl_ctx, kTicketContext, sizeof(kTicketContext) - 1);
  if (!context->protocols.empty()) {
    SSL_CTX_set_alpn_select_cb(ssl_ctx, &choose_protocol, context.get());
  }
  return std::shared_ptr<const TlsContext>(context);
}

std::unique_ptr<SSL, void (*)(SSL*)> make_ssl(const TlsContext& context) {
  ERR_clear_error();
  return {SSL_new(context.ssl_ctx), &SSL_free};
}

}  // namespace

bool tls_available() noexcept { return true; }

// --- server ---

Result<std::shared_ptr<TlsServer>> TlsServer::make(const TlsServerOptions& options, std::string* why) {
  auto context = WEFT_TRY(make_server_context(options, why));
  return std::shared_ptr<TlsServer>(new TlsServer(options, std::move(context)));
}

Result<void> TlsServer::reload(std::string* why) {
  TlsServerOptions options;
  {
    const sync::LockGuard lock(mutex_);
    options = options_;
  }
  auto context = WEFT_TRY(make_server_context(options, why));
  const sync::LockGuard lock(mutex_);
  context_.swap(context);
  return {};
}

void TlsServer::adopt(const TlsServer& other) {
  if (&other == this) {
    return;
  }
  TlsServerOptions options;
  std::shared_ptr<const TlsContext> context;
  {
    const sync::LockGuard lock(other.mutex_);
    options = other.options_;
    context = other.context_;
  }
  const sync::LockGuard lock(mutex_);
  options_ = std::move(options);
  context_.swap(context);
}

Result<std::unique_ptr<ByteStream>> TlsServer::wrap(std::unique_ptr<ByteStream> stream) const {
  std::shared_ptr<const TlsContext> context;
  {
    const sync::LockGuard lock(mutex_);
    context = context_;
  }
  auto ssl = make_ssl(*context);
  if (ssl == nullptr) {
    return kNoMemoryForTls;
  }
  SSL_set_accept_state(ssl.get());
  return make_tls_stream(std::move(stream), std::move(context), std::move(ssl));
}

// --- client ---

Result<std::shared_ptr<TlsClient>> TlsClient::make(const TlsClientOptions& options, std::string* why) {
  auto context = WEFT_TRY(make_context(TLS_client_method(), options.protocols));
  SSL_CTX* const ssl_ctx = context->ssl_ctx;
  if (!options.certificate_file.empty()) {
    WEFT_TRY(use_certificate(ssl_ctx, options.certificate_file, options.key_file, why));
  }
  if (options.verify && (options.system_too || (options.ca_file.empty() && options.ca_pem.empty()))) {
    WEFT_TRY(trust_system(ssl_ctx, why));
  }
  if (options.verify && !options.ca_file.empty() && SSL_CTX_load_verify_file(ssl_ctx, options.ca_file.c_str()) != 1) {
    return refuse(options.ca_file, "the authorities of servers cannot be used", why);
  }
  if (options.verify && !options.ca_pem.empty()) {
    WEFT_TRY(trust_pem(ssl_ctx, options.ca_pem, why));
  }
  SSL_CTX_set_verify(ssl_ctx, options.verify ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, nullptr);
  const std::string& protocols = context->protocols;
  if (!protocols.empty() &&
      SSL_CTX_set_alpn_protos(ssl_ctx, reinterpret_cast<const unsigned char*>(protocols.data()),
                              static_cast<unsigned>(protocols.size())) != 0) {  // 0 is success here
    ERR_clear_error();
    return kNoMemoryForTls;
  }
  context->sessions.serve(ssl_ctx);
  return std::shared_ptr<TlsClient>(new TlsClient(options.verify && options.check_name, std::move(context)));
}

Result<std::unique_ptr<ByteStream>> TlsClient::wrap(std::unique_ptr<ByteStream> stream,
                                                    const std::string& server_name) const {
  const auto parsed = parse_server_name(server_name);
  if (checks_name_ && !parsed) {
    return parsed.error();
  }
  const std::string name(parsed ? *parsed : std::string_view());
  auto ssl = make_ssl(*context_);
  if (ssl == nullptr) {
    return kNoMemoryForTls;
  }
  SSL_set_connect_state(ssl.get());
  X509_VERIFY_PARAM* const check = SSL_get0_param(ssl.get());
  // The names of a certificate are those in its subjectAltName (RFC 9525).
  X509_VERIFY_PARAM_set_hostflags(check, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
  bool taken = true;
  if (const auto address = sys::SocketAddress::parse_numeric(name, 0); address) {
    const Bytes bytes = address->ip_bytes();
    taken = !checks_name_ || X509_VERIFY_PARAM_set1_ip(check, bytes.data(), bytes.size()) == 1;
  } else if (!name.empty()) {  // an address is not sent as a name (RFC 6066, 3)
    taken = SSL_set_tlsext_host_name(ssl.get(), name.c_str()) == 1 &&
            (!checks_name_ || SSL_set1_host(ssl.get(), name.c_str()) == 1);
  }
  if (!taken || !context_->sessions.attach(ssl.get(), name)) {
    ERR_clear_error();
    return kNoMemoryForTls;
  }
  return make_tls_stream(std::move(stream), context_, std::move(ssl));
}

}  // namespace weft::net

#else  // without OpenSSL

namespace weft::net {

namespace {
constexpr Error kNoTls(Errc::not_supported, "this build has no TLS");
Error refuse(std::string* why) {
  if (why != nullptr) {
    *why = "this build of Weft has no TLS: OpenSSL 3 was not there when it was configured";
  }
  return kNoTls;
}
}  // namespace

bool tls_available() noexcept { return false; }
Result<std::shared_ptr<TlsServer>> TlsServer::make(const TlsServerOptions& /*options*/, std::string* why) {
  return refuse(why);
}
Result<void> TlsServer::reload(std::string* why) { return refuse(why); }
void TlsServer::adopt(const TlsServer& /*other*/) {}
Result<std::unique_ptr<ByteStream>> TlsServer::wrap(std::unique_ptr<ByteStream> /*stream*/) const { return kNoTls; }
Result<std::shared_ptr<TlsClient>> TlsClient::make(const TlsClientOptions& /*options*/, std::string* why) {
  return refuse(why);
}
Result<std::unique_ptr<ByteStream>> TlsClient::wrap(std::unique_ptr<ByteStream> /*stream*/,
                                                    const std::string& /*server_name*/) const {
  return kNoTls;
}
std::optional<TlsInfo> tls_info(const ByteStream& /*stream*/) { return std::nullopt; }

}  // namespace weft::net

#endif
