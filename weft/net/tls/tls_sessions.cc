// SPDX-License-Identifier: MIT
#ifdef WEFT_HAVE_OPENSSL

#include "weft/net/tls/tls_sessions.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <new>
#include <utility>

namespace weft::net {

namespace {

// The place of the server's name, a std::string, in an SSL.
int name_index() noexcept {
  static const int index =
      SSL_get_ex_new_index(0, nullptr, nullptr, nullptr,
                           [](void* /*ssl*/, void* name, CRYPTO_EX_DATA* /*all*/, int /*index*/, long /*number*/,
                              void* /*argument*/) { delete static_cast<std::string*>(name); });
  return index;
}

std::size_t bytes_of(ssl_st* ssl, ssl_session_st* session) noexcept {
  auto bytes = static_cast<std::size_t>(std::max(i2d_SSL_SESSION(session, nullptr), 0));
  const STACK_OF(X509)* const chain = SSL_get_peer_cert_chain(ssl);
  for (int i = 0; i < sk_X509_num(chain); ++i) {
    bytes += static_cast<std::size_t>(std::max(i2d_X509(sk_X509_value(chain, i), nullptr), 0));
  }
  return bytes;
}

bool is_usable(ssl_session_st* session, TlsSessions::WallTime now) noexcept {
  using std::chrono::seconds;
  const seconds age = std::chrono::floor<seconds>(now.time_since_epoch()) - seconds(SSL_SESSION_get_time(session));
  const seconds most =
      std::min(seconds(SSL_SESSION_get_timeout(session)), std::chrono::duration_cast<seconds>(TlsSessions::kAgeMax));
  std::time_t at = std::chrono::floor<seconds>(now.time_since_epoch()).count();
  const X509* const certificate = SSL_SESSION_get0_peer(session);
  return age >= seconds::zero() && age < most && SSL_SESSION_is_resumable(session) == 1 && certificate != nullptr &&
         X509_cmp_time(X509_get0_notAfter(certificate), &at) > 0;
}

}  // namespace

void FreeTlsSession::operator()(ssl_session_st* session) const noexcept { SSL_SESSION_free(session); }

void TlsSessions::serve(ssl_ctx_st* ssl_ctx) noexcept {
  SSL_CTX_set_app_data(ssl_ctx, this);
  SSL_CTX_set_session_cache_mode(ssl_ctx, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
  SSL_CTX_sess_set_new_cb(ssl_ctx, &TlsSessions::take_session);
}

bool TlsSessions::attach(ssl_st* ssl, const std::string& name, WallTime now) {
  auto kept = std::make_unique<std::string>(name);
  if (name_index() < 0 || SSL_set_ex_data(ssl, name_index(), kept.get()) != 1) {
    ERR_clear_error();
    return false;
  }
  (void)kept.release();
  if (const TlsSession session = take(name, now); session != nullptr && SSL_set_session(ssl, session.get()) != 1) {
    ERR_clear_error();  // a whole handshake
  }
  return true;
}

// OpenSSL's callback for a new ticket. Keeps a copy: OpenSSL spoils the session of a connection that ends without its
// announcement.
int TlsSessions::take_session(ssl_st* ssl, ssl_session_st* session) noexcept {
  auto* const self = static_cast<TlsSessions*>(SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl)));
  const auto* const name = static_cast<const std::string*>(SSL_get_ex_data(ssl, name_index()));
  if (self != nullptr && name != nullptr && bytes_of(ssl, session) <= kBytesMax) {
    try {
      self->keep(*name, TlsSession(SSL_SESSION_dup(session)));
    } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): the next connection makes a whole handshake
    }
  }
  ERR_clear_error();
  return 0;  // `session` stays OpenSSL's
}

std::list<TlsSessions::Name>::iterator TlsSessions::find(std::string_view name) {
  return std::find_if(names_.begin(), names_.end(), [name](const Name& each) { return each.text == name; });
}

void TlsSessions::keep(std::string_view name, TlsSession session) {
  if (session == nullptr) {
    return;
  }
  const sync::LockGuard lock(mutex_);
  auto at = find(name);
  if (at == names_.end()) {
    names_.push_front({std::string(name), {}});
    names_.front().sessions.reserve(kSessionsMax);
    at = names_.begin();
    if (names_.size() > kNamesMax) {
      names_.pop_back();
    }
  }
  if (at->sessions.size() == kSessionsMax) {
    at->sessions.erase(at->sessions.begin());
  }
  at->sessions.push_back(std::move(session));
  names_.splice(names_.begin(), names_, at);
}

TlsSession TlsSessions::take(std::string_view name, WallTime now) {
  const sync::LockGuard lock(mutex_);
  TlsSession session;
  if (const auto at = find(name); at != names_.end()) {
    while (session == nullptr && !at->sessions.empty()) {
      session = std::move(at->sessions.back());
      at->sessions.pop_back();
      if (!is_usable(session.get(), now)) {
        session.reset();
      }
    }
    if (at->sessions.empty()) {
      names_.erase(at);
    } else {
      names_.splice(names_.begin(), names_, at);
    }
  }
  return session;
}

std::size_t TlsSessions::size() const {
  const sync::LockGuard lock(mutex_);
  std::size_t sessions = 0;
  for (const Name& name : names_) {
    sessions += name.sessions.size();
  }
  return sessions;
}

}  // namespace weft::net

#endif
