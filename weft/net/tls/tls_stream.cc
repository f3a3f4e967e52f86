// SPDX-License-Identifier: MIT
#ifdef WEFT_HAVE_OPENSSL

#include "weft/net/tls/tls_stream.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "weft/mem/buffer.h"
#include "weft/net/admit/token_bucket.h"
#include "weft/net/tls/tls.h"
#include "weft/net/tls/tls_hello.h"
#include "weft/sys/clock.h"
#include "weft/sys/fork.h"

namespace weft::net {
namespace {

constexpr std::size_t kRecord = SSL3_RT_MAX_PLAIN_LENGTH;  // 16 KB
constexpr std::size_t kHeldMax = 64 * 1024;
constexpr std::size_t kPartsMax = sys::kMaxWriteVector;
constexpr std::ptrdiff_t kIdleMax = 64 * 1024;  // bytes that a read() takes and that give the caller nothing
constexpr RateLimit kRenewals{.per_second = 8, .burst = 64};  // messages of TLS after the handshake

// Cuts the bytes of a write into as few records as possible, and copies only where a record has several
// parts.
class RecordCutter {
 public:
  explicit RecordCutter(std::span<const Bytes> from) noexcept : from_(from.first(std::min(from.size(), kPartsMax))) {
    skip_empty();
  }
  RecordCutter(const RecordCutter&) = delete;
  RecordCutter& operator=(const RecordCutter&) = delete;
  ~RecordCutter() {
    if (copy_ != nullptr) {
      copy_->release();
    }
  }

  [[nodiscard]] bool empty() const noexcept { return from_.empty(); }
  [[nodiscard]] Bytes next() noexcept {
    if (from_.size() == 1 || from_.front().size() - skip_ >= kRecord || !has_copy()) {
      const Bytes whole = from_.front().subspan(skip_);
      return take(std::min(whole.size(), kRecord));
    }
    std::size_t size = 0;
    while (size < kRecord && !from_.empty()) {
      const Bytes part = take(std::min(from_.front().size() - skip_, kRecord - size));
      copy_bytes(copy_->data() + size, part);
      size += part.size();
    }
    return {copy_->data(), size};
  }

 private:
  [[nodiscard]] bool has_copy() noexcept {
    copy_ = copy_ != nullptr ? copy_ : mem::Buffer::make(kRecord);
    return copy_ != nullptr;
  }
  Bytes take(std::size_t size) noexcept {
    const Bytes taken = from_.front().subspan(skip_, size);
    skip_ += size;
    skip_empty();
    return taken;
  }
  void skip_empty() noexcept {
    while (!from_.empty() && skip_ == from_.front().size()) {
      from_ = from_.subspan(1);
      skip_ = 0;
    }
  }

  std::span<const Bytes> from_;
  std::size_t skip_ = 0;  // bytes of the first part that were taken
  mem::Buffer* copy_ = nullptr;
};

// TlsStream: OpenSSL between a connection and the stream below. OpenSSL reads through receive(), a record's
// worth or more at a time. It writes through send_out(), which takes every byte and holds those that the
// socket does not take. So an OpenSSL write is never repeated with the same bytes, and the queue above may
// drop its messages.
class TlsStream final : public ByteStream {
 public:
  TlsStream(std::unique_ptr<ByteStream> below, std::shared_ptr<const TlsContext> context,
            std::unique_ptr<SSL, void (*)(SSL*)> ssl) noexcept
      : below_(std::move(below)), context_(std::move(context)), ssl_(std::move(ssl)) {}
  TlsStream(const TlsStream&) = delete;
  TlsStream& operator=(const TlsStream&) = delete;
  ~TlsStream() override {
    if (held_ == nullptr) {
      announce_end();
    }
    release_held();
  }

  [[nodiscard]] bool attach();

  [[nodiscard]] int fd() const override { return below_->fd(); }
  [[nodiscard]] sys::IoResult read(std::span<MutableBytes> into) override;
  [[nodiscard]] sys::IoResult write(std::span<const Bytes> from) override;
  void shutdown_write() override;
  void break_off() noexcept override {
    write_ended_ = true;  // nothing is announced
    below_->break_off();
  }
  [[nodiscard]] std::string peer_address() const override { return below_->peer_address(); }
  [[nodiscard]] const ByteStream* below() const noexcept override { return below_.get(); }
  [[nodiscard]] StreamState state() const noexcept override {
    const bool by_tls = failed_ && os_errno_ == 0 && !below_ended_;
    return {established_, ended_ || failed_, held_ != nullptr, failure_, false, by_tls};
  }

  [[nodiscard]] bool established() const noexcept { return established_; }
  [[nodiscard]] SSL* ssl() const noexcept { return ssl_.get(); }
  bool shake_hands();

 private:
  static BIO_METHOD* make_method();
  static void note_message(int sent, int version, int type, const void* bytes, std::size_t size, SSL* ssl, void* self);
  [[nodiscard]] sys::IoResult read_records(std::span<MutableBytes> into);
  bool receive(MutableBytes into, std::size_t& got);
  bool send_out(Bytes from);
  [[nodiscard]] bool hold(Bytes bytes);
  bool push_held();
  void announce_end() noexcept;
  void release_held() noexcept;
  void fail();
  [[nodiscard]] sys::IoResult failure() const noexcept {
    return {sys::IoResult::Status::failed, 0, os_errno_ != 0 ? os_errno_ : EPROTO};
  }

  std::unique_ptr<ByteStream> below_;
  std::shared_ptr<const TlsContext> context_;
  std::unique_ptr<SSL, void (*)(SSL*)> ssl_;
  mem::Buffer* held_ = nullptr;  // encrypted bytes that the socket did not take
  std::size_t held_begin_ = 0;
  std::size_t held_end_ = 0;
  Error failure_;
  int os_errno_ = 0;  // the socket's
  HelloBound hello_;
  TokenBucket renewals_;
  std::ptrdiff_t spare_ = 0;  // bytes that this read() may still take without giving any
  bool flooded_ = false;      // more renewals than the limit
  bool established_ = false;
  bool drained_ = false;  // the last read was short: the socket has no more bytes, but perhaps an end
  bool emptied_ = false;  // the socket reported would_block
  bool below_ended_ = false;
  bool ended_ = false;  // the peer's TLS announced the end
  bool failed_ = false;
  bool write_ended_ = false;
  sys::Birth birth_;
};

// --- functions that OpenSSL calls ---

BIO_METHOD* TlsStream::make_method() {
  BIO_METHOD* const method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "weft stream");
  if (method == nullptr) {
    return nullptr;
  }
  BIO_meth_set_read_ex(method, [](BIO* bio, char* into, std::size_t size, std::size_t* got) -> int {
    BIO_clear_retry_flags(bio);
    auto& stream = *static_cast<TlsStream*>(BIO_get_data(bio));
    if (stream.receive(MutableBytes(reinterpret_cast<std::uint8_t*>(into), size), *got)) {
      return 1;
    }
    if (!stream.below_ended_ && stream.os_errno_ == 0 && !stream.flooded_ && stream.failure_ == Errc::ok) {
      BIO_set_retry_read(bio);
    }
    return 0;
  });
  BIO_meth_set_write_ex(method, [](BIO* bio, const char* from, std::size_t size, std::size_t* sent) -> int {
    BIO_clear_retry_flags(bio);
    auto& stream = *static_cast<TlsStream*>(BIO_get_data(bio));
    const bool taken = stream.send_out(Bytes(reinterpret_cast<const std::uint8_t*>(from), size));
    *sent = taken ? size : 0;
    return taken ? 1 : 0;
  });
  BIO_meth_set_ctrl(method, [](BIO* /*bio*/, int command, long /*number*/, void* /*argument*/) -> long {
    return command == BIO_CTRL_FLUSH ? 1 : 0;
  });
  return method;
}

bool TlsStream::attach() {
  static BIO_METHOD* const method = make_method();
  BIO* const bio = method == nullptr ? nullptr : BIO_new(method);
  if (bio == nullptr) {
    return false;
  }
  BIO_set_data(bio, this);
  BIO_set_init(bio, 1);
  SSL_set_bio(ssl(), bio, bio);
  return true;
}

// Key updates and tickets bring the caller nothing, and a key update costs as much as many records.
void TlsStream::note_message(int sent, int /*version*/, int type, const void* /*bytes*/, std::size_t /*size*/,
                             SSL* /*ssl*/, void* self) {
  if (sent == 0 && type == SSL3_RT_HANDSHAKE) {
    auto& stream = *static_cast<TlsStream*>(self);
    stream.flooded_ = !stream.renewals_.try_take(kRenewals, sys::now()) || stream.flooded_;
  }
}

bool TlsStream::receive(MutableBytes into, std::size_t& got) {
  if (drained_ || emptied_ || below_ended_ || os_errno_ != 0 || spare_ <= 0 || flooded_) {
    return false;
  }
  const sys::IoResult result = below_->read({&into, 1});
  spare_ -= static_cast<std::ptrdiff_t>(result.bytes);
  drained_ = result.bytes < into.size();
  emptied_ = result.status == sys::IoResult::Status::would_block;
  below_ended_ = result.status == sys::IoResult::Status::end_of_stream;
  if (result.status == sys::IoResult::Status::failed) {
    os_errno_ = result.os_errno;
  }
  if (!established_ && SSL_is_server(ssl()) == 1 && !hello_.check(Bytes(into).first(result.bytes))) {
    failure_ = Error(Errc::protocol_error, "the hello of a TLS client exceeds its limit");
    return false;
  }
  got = result.bytes;
  return result.status == sys::IoResult::Status::done;
}

bool TlsStream::send_out(Bytes from) {
  if (os_errno_ != 0) {
    return false;
  }
  if (held_ == nullptr) {
    const sys::IoResult result = below_->write({&from, 1});
    if (result.status == sys::IoResult::Status::failed) {
      os_errno_ = result.os_errno;
      return false;
    }
    from = from.subspan(result.bytes);
  }
  return from.empty() || hold(from);
}

// --- bytes that the socket did not take ---

bool TlsStream::hold(Bytes bytes) {
  const std::size_t size = held_end_ - held_begin_;
  if (held_ == nullptr || held_->capacity() - held_end_ < bytes.size()) {
    mem::Buffer* const block = size + bytes.size() > kHeldMax ? nullptr : mem::Buffer::make(size + bytes.size());
    if (block == nullptr) {
      failure_ = Error(Errc::resource_exhausted, "no memory for what TLS has to send");
      return false;
    }
    if (held_ != nullptr) {
      copy_bytes(block->data(), Bytes(held_->data() + held_begin_, size));
      release_held();
    }
    held_ = block;
    held_begin_ = 0;
    held_end_ = size;
  }
  copy_bytes(held_->data() + held_end_, bytes);
  held_end_ += bytes.size();
  return true;
}

void TlsStream::release_held() noexcept {
  if (held_ != nullptr) {
    held_->release();
    held_ = nullptr;
  }
}

// Returns true if the socket took at least one byte.
bool TlsStream::push_held() {
  const Bytes from(held_->data() + held_begin_, held_end_ - held_begin_);
  const sys::IoResult result = below_->write({&from, 1});
  if (result.status == sys::IoResult::Status::failed) {
    os_errno_ = result.os_errno;
    fail();
    return false;
  }
  held_begin_ += result.bytes;
  if (held_begin_ == held_end_) {
    release_held();
    if (write_ended_) {
      below_->shutdown_write();
    }
  }
  return result.bytes != 0;
}

// --- the ByteStream interface ---

// Called after a failed OpenSSL call.
void TlsStream::fail() {
  failed_ = true;
  if (flooded_) {
    failure_ = Error(Errc::protocol_error, "more key updates and tickets than the limit");
  } else if (os_errno_ == 0 && failure_ == Errc::ok) {
    const unsigned long number = ERR_peek_last_error();
    const char* const reason = number == 0 ? nullptr : ERR_reason_error_string(number);
    if (below_ended_) {
      failure_ = Error(Errc::connection_closed, established_ ? StaticText("the stream ended without the end of its TLS")
                                                             : StaticText("the stream ended inside its TLS handshake"));
    } else if (const long verdict = SSL_get_verify_result(ssl());
               verdict != X509_V_OK && ERR_GET_REASON(number) == SSL_R_CERTIFICATE_VERIFY_FAILED) {
      failure_ = Error(Errc::protocol_error, StaticText::of_immortal(X509_verify_cert_error_string(verdict)));
    } else {
      failure_ =
          Error(Errc::protocol_error, reason != nullptr ? StaticText::of_immortal(reason) : StaticText("TLS failed"));
    }
  }
  ERR_clear_error();
}

// Returns true if the handshake is over.
bool TlsStream::shake_hands() {
  ERR_clear_error();
  const int result = SSL_do_handshake(ssl());
  established_ = result == 1;
  if (established_) {
    SSL_set_msg_callback(ssl(), &note_message);
    SSL_set_msg_callback_arg(ssl(), this);
  }
  if (!established_ && SSL_get_error(ssl(), result) != SSL_ERROR_WANT_READ) {
    fail();
  }
  return established_;
}

sys::IoResult TlsStream::read(std::span<MutableBytes> into) {
  using Status = sys::IoResult::Status;
  sys::IoResult result;
  emptied_ = false;
  spare_ = kIdleMax;
  do {  // a read may end inside a record, and would_block is for an empty socket only
    drained_ = false;
    result = read_records(into);
  } while (result.status == Status::would_block && !emptied_ && spare_ > 0);
  if (spare_ <= 0 && !emptied_ && (result.status == Status::would_block || result.status == Status::done)) {
    return {.status = Status::done, .bytes = result.bytes, .cut = true};
  }
  return result;
}

sys::IoResult TlsStream::read_records(std::span<MutableBytes> into) {
  using Status = sys::IoResult::Status;
  if (!established_ && !failed_ && !write_ended_ && !shake_hands() && !failed_) {
    return {};
  }
  if (failed_) {
    return failure();
  }
  ERR_clear_error();
  std::size_t total = 0;
  bool more = established_ && !ended_;
  bool asked = false;
  for (std::size_t i = 0; i < std::min(into.size(), sys::kMaxReadVector) && more; ++i) {
    MutableBytes part = into[i];
    while (!part.empty() && more) {
      std::size_t got = 0;
      asked = true;
      if (SSL_read_ex(ssl(), part.data(), part.size(), &got) != 1) {
        more = false;
        const int why = SSL_get_error(ssl(), 0);
        ended_ = why == SSL_ERROR_ZERO_RETURN;
        if (!ended_ && why != SSL_ERROR_WANT_READ) {
          fail();
        }
      }
      total += got;
      part = part.subspan(got);
      // Of honest records more than a third is for the caller.
      spare_ = std::min(spare_ + 3 * static_cast<std::ptrdiff_t>(got), kIdleMax);
    }
  }
  if (flooded_ && !failed_) {
    fail();  // after the bytes that came before
  }
  if (total != 0 || (more && !asked)) {
    return {Status::done, total, 0};
  }
  if (failed_) {
    return failure();
  }
  return {ended_ || (write_ended_ && !established_) ? Status::end_of_stream : Status::would_block, 0, 0};
}

sys::IoResult TlsStream::write(std::span<const Bytes> from) {
  using Status = sys::IoResult::Status;
  bool moved = held_ != nullptr && !failed_ && push_held();
  if (failed_) {
    return failure();
  }
  ERR_clear_error();
  std::size_t total = 0;
  RecordCutter records(from);
  moved = moved || (records.empty() && held_ == nullptr);
  while (established_ && !write_ended_ && held_ == nullptr && !records.empty()) {
    const Bytes record = records.next();
    std::size_t taken = 0;
    if (SSL_write_ex(ssl(), record.data(), record.size(), &taken) != 1) {
      fail();
      break;
    }
    total += taken;
  }
  if (total == 0 && failed_) {
    return failure();
  }
  return {total != 0 || moved ? Status::done : Status::would_block, total, 0};
}

// Also a stream that is destroyed announces its end, so that the peer can tell it from a truncation (RFC 8446, 6.1).
// Not after a record that was cut, and not in a forked child, which has no part in the parent's connection.
void TlsStream::announce_end() noexcept {
  const bool ended = std::exchange(write_ended_, true);
  if (established_ && !failed_ && !ended && !birth_.elsewhere()) {
    ERR_clear_error();
    (void)SSL_shutdown(ssl());
    ERR_clear_error();
  }
}

void TlsStream::shutdown_write() {
  if (write_ended_) {
    return;
  }
  announce_end();
  if (held_ == nullptr) {
    below_->shutdown_write();
  }
}

std::string subject_of(const X509* certificate) {
  BIO* const text = BIO_new(BIO_s_mem());
  if (text == nullptr) {
    return {};
  }
  std::string subject;
  if (X509_NAME_print_ex(text, X509_get_subject_name(certificate), 0, XN_FLAG_RFC2253) > 0) {
    char* data = nullptr;
    const long size = BIO_get_mem_data(text, &data);
    subject.assign(data, static_cast<std::size_t>(size));
  }
  BIO_free(text);
  return subject;
}

}  // namespace

TlsContext::~TlsContext() { SSL_CTX_free(ssl_ctx); }

Result<std::unique_ptr<ByteStream>> make_tls_stream(std::unique_ptr<ByteStream> below,
                                                    std::shared_ptr<const TlsContext> context,
                                                    std::unique_ptr<SSL, void (*)(SSL*)> ssl) {
  const bool begins = SSL_is_server(ssl.get()) == 0;
  auto stream = std::make_unique<TlsStream>(std::move(below), std::move(context), std::move(ssl));
  if (!stream->attach()) {
    return Error(Errc::resource_exhausted, "no memory for a TLS connection");
  }
  if (begins) {
    (void)stream->shake_hands();  // the first read reports a failure
  }
  return std::unique_ptr<ByteStream>(std::move(stream));
}

std::optional<TlsInfo> tls_info(const ByteStream& stream) {
  const TlsStream* tls = nullptr;
  for (const ByteStream* layer = &stream; layer != nullptr && tls == nullptr; layer = layer->below()) {
    tls = dynamic_cast<const TlsStream*>(layer);
  }
  if (tls == nullptr || !tls->established()) {
    return std::nullopt;
  }
  TlsInfo info;
  const unsigned char* protocol = nullptr;
  unsigned size = 0;
  SSL_get0_alpn_selected(tls->ssl(), &protocol, &size);
  info.protocol.assign(reinterpret_cast<const char*>(protocol), size);
  const bool verified =
      (SSL_get_verify_mode(tls->ssl()) & SSL_VERIFY_PEER) != 0 && SSL_get_verify_result(tls->ssl()) == X509_V_OK;
  if (const X509* const certificate = SSL_get0_peer_certificate(tls->ssl()); verified && certificate != nullptr) {
    info.peer_subject = subject_of(certificate);
  }
  info.resumed = SSL_session_reused(tls->ssl()) == 1;
  return info;
}

}  // namespace weft::net

#endif
