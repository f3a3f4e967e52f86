// SPDX-License-Identifier: MIT
// The system without a library: the limits that a cell is compared with.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstring>

#include "bench/engine/end.h"
#include "bench/engine/ring.h"

#ifdef BENCH_HAVE_SODIUM
#include <sodium.h>
#endif
#ifdef BENCH_HAVE_OPENSSL
#include <openssl/ssl.h>
#endif

namespace bench {
namespace {

constexpr std::size_t kBlock = std::size_t{256} << 10U;
constexpr std::size_t kHeader = 5;             // a flag and 4 bytes of length
constexpr std::size_t kOwnWrite = 64U << 10U;  // a message of this size or more is not copied into the block

void check_system(bool good, const char* call) {
  if (!good) [[unlikely]] {
    fail(std::string(call) + ": " + std::strerror(errno));
  }
}

union Address {
  sockaddr any;
  sockaddr_in tcp;
  sockaddr_un ipc;
};

// Returns the address that the kernel chose for a listener.
socklen_t name_of(int fd, Address& address) {
  socklen_t size = sizeof address;
  check_system(getsockname(fd, &address.any, &size) == 0, "getsockname");
  return size;
}

void set_no_delay(const Cell& cell, int fd) {
  const int one = 1;
  if (cell.transport == "tcp") {
    check_system(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) == 0, "TCP_NODELAY");
  }
}

#ifdef BENCH_HAVE_OPENSSL
// OpenSSL on a socket that waits: SSL_write and SSL_read, and nothing else. Each process or thread uses one side.
class SslSocket {
 public:
  explicit SslSocket(const Addresses& addresses) : addresses_(addresses) {}
  SslSocket(const SslSocket&) = delete;
  SslSocket& operator=(const SslSocket&) = delete;
  ~SslSocket() {
    SSL_free(ssl_);
    SSL_CTX_free(context_);
  }

  // Shakes hands in the first call.
  void begin(int fd, bool listens) {
    if (ssl_ != nullptr) [[likely]] {
      return;
    }
    context_ = SSL_CTX_new(listens ? TLS_server_method() : TLS_client_method());
    const char* const certificate = addresses_.certificate.data();
    const bool good = listens ? SSL_CTX_use_certificate_chain_file(context_, certificate) == 1 &&
                                    SSL_CTX_use_PrivateKey_file(context_, addresses_.key.data(), SSL_FILETYPE_PEM) == 1
                              : SSL_CTX_load_verify_file(context_, certificate) == 1;
    if (!good) {
      fail("a file of TLS");
    }
    SSL_CTX_set_verify(context_, listens ? SSL_VERIFY_NONE : SSL_VERIFY_PEER, nullptr);
    SSL_CTX_set_min_proto_version(context_, TLS1_3_VERSION);
    SSL_CTX_set_read_ahead(context_, 1);  // one system call for each record, not two
    ssl_ = SSL_new(context_);
    SSL_set_fd(ssl_, fd);
    if ((listens ? SSL_accept(ssl_) : SSL_connect(ssl_)) != 1) {
      fail("the handshake of TLS");
    }
  }
  std::size_t read(void* target, std::size_t capacity) {
    std::size_t got = 0;
    if (SSL_read_ex(ssl_, target, capacity, &got) != 1) {
      fail("SSL_read");
    }
    return got;
  }
  void write(const void* data, std::size_t size) {
    std::size_t sent = 0;
    if (size != 0 && SSL_write_ex(ssl_, data, size, &sent) != 1) {
      fail("SSL_write");
    }
  }

 private:
  const Addresses& addresses_;
  SSL_CTX* context_ = nullptr;
  SSL* ssl_ = nullptr;
};
#endif

// Frames over a stream. One-way patterns collect up to 256 KB before they write, and read up to 256 KB at once.
class StreamEnd final : public End {
 public:
  StreamEnd(const Cell& cell, int fd, bool listens, bool spinning, const Addresses& addresses)
      : cell_(cell), fd_(fd), listens_(listens), spinning_(spinning), direct_(cell.pattern == Pattern::round_trip) {
#ifdef BENCH_HAVE_OPENSSL
    if (cell.tls) {
      ssl_ = std::make_unique<SslSocket>(addresses);
      serves_ = listens;
    }
#else
    (void)addresses;
#endif
  }
  ~StreamEnd() override {
#ifdef BENCH_HAVE_OPENSSL
    ssl_.reset();
#endif
    close(fd_);
  }
  StreamEnd(const StreamEnd&) = delete;
  StreamEnd& operator=(const StreamEnd&) = delete;

  void send(const void* data, std::size_t size) override {
    std::array<unsigned char, kHeader> header{};
    const auto length = static_cast<std::uint32_t>(size);
    std::memcpy(header.data() + 1, &length, sizeof length);
    if (!direct_ && size < kOwnWrite) {
      if (filled_ + kHeader + size > kBlock) {
        flush();
      }
      std::memcpy(out_.data() + filled_, header.data(), kHeader);
      std::memcpy(out_.data() + filled_ + kHeader, data, size);
      filled_ += kHeader + size;
      return;
    }
    flush();
    std::array<iovec, 2> parts{{{header.data(), kHeader}, {const_cast<void*>(data), size}}};
    write_all(parts);
  }

  void flush() override {
    std::array<iovec, 2> parts{{{out_.data(), filled_}, {nullptr, 0}}};
    write_all(parts);
    filled_ = 0;
  }

  std::size_t receive(void* target, std::size_t capacity) override {
    accept_once();
    while (end_ - begin_ < kHeader) {
      std::memmove(in_.data(), in_.data() + begin_, end_ - begin_);
      end_ -= begin_;
      begin_ = 0;
      end_ += read_some(in_.data() + end_, kBlock - end_);
    }
    std::uint32_t length = 0;
    std::memcpy(&length, in_.data() + begin_ + 1, sizeof length);
    begin_ += kHeader;
    if (length > capacity) {
      fail("a frame that was not sent");
    }
    const std::size_t here = std::min<std::size_t>(length, end_ - begin_);
    std::memcpy(target, in_.data() + begin_, here);
    begin_ += here;
    read_rest(static_cast<unsigned char*>(target) + here, length - here);
    return length;
  }

 private:
  void accept_once() {
    if (listens_) [[unlikely]] {
      const int fd = accept(fd_, nullptr, nullptr);
      check_system(fd >= 0, "accept");
      close(fd_);
      fd_ = fd;
      set_no_delay(cell_, fd_);
      listens_ = false;
    }
#ifdef BENCH_HAVE_OPENSSL
    if (ssl_ != nullptr) {
      ssl_->begin(fd_, serves_);
    }
#endif
  }

  // The block is empty: a long rest is read directly to its place, a short one together with the next messages.
  void read_rest(unsigned char* target, std::size_t size) {
    while (size >= kBlock / 2) {
      const std::size_t got = read_some(target, size);
      target += got;
      size -= got;
    }
    while (size > 0) {
      begin_ = 0;
      end_ = read_some(in_.data(), kBlock);
      begin_ = std::min(size, end_);
      std::memcpy(target, in_.data(), begin_);
      target += begin_;
      size -= begin_;
    }
  }

  std::size_t read_some(void* target, std::size_t capacity) {
#ifdef BENCH_HAVE_OPENSSL
    if (ssl_ != nullptr) {
      return ssl_->read(target, capacity);
    }
#endif
    ssize_t got = -1;
    if (spinning_) {
      yield_until(
          [&] {
            got = recv(fd_, target, capacity, MSG_DONTWAIT);
            return got >= 0 || errno != EAGAIN;
          },
          8);
    } else {
      do {
        got = recv(fd_, target, capacity, 0);
      } while (got < 0 && errno == EINTR);
    }
    check_system(got > 0, "recv");
    return static_cast<std::size_t>(got);
  }

  void write_all(std::array<iovec, 2>& parts) {
    accept_once();
#ifdef BENCH_HAVE_OPENSSL
    if (ssl_ != nullptr) {
      ssl_->write(parts[0].iov_base, parts[0].iov_len);
      ssl_->write(parts[1].iov_base, parts[1].iov_len);
      return;
    }
#endif
    while (parts[0].iov_len + parts[1].iov_len > 0) {
      ssize_t sent = writev(fd_, parts.data(), 2);
      check_system(sent >= 0 || errno == EINTR, "writev");
      for (iovec& part : parts) {
        const std::size_t step =
            std::min<std::size_t>(static_cast<std::size_t>(std::max<ssize_t>(sent, 0)), part.iov_len);
        part.iov_base = static_cast<unsigned char*>(part.iov_base) + step;
        part.iov_len -= step;
        sent -= static_cast<ssize_t>(step);
      }
    }
  }

  const Cell& cell_;
  int fd_;
#ifdef BENCH_HAVE_OPENSSL
  std::unique_ptr<SslSocket> ssl_;
  bool serves_ = false;
#endif
  bool listens_;
  const bool spinning_;
  const bool direct_;
  std::vector<unsigned char> out_ = std::vector<unsigned char>(kBlock);
  std::vector<unsigned char> in_ = std::vector<unsigned char>(kBlock);
  std::size_t filled_ = 0;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

struct RingPair {
  RingPair(std::size_t size, bool sleeping) : to_leader(size, sleeping), to_follower(size, sleeping) {}
  Ring to_leader, to_follower;
};

class RingEnd final : public End {
 public:
  RingEnd(std::shared_ptr<RingPair> rings, bool leads) : rings_(std::move(rings)), leads_(leads) {}
  void send(const void* data, std::size_t size) override {
    (leads_ ? rings_->to_follower : rings_->to_leader).send(data, size);
  }
  std::size_t receive(void* target, std::size_t) override {
    return (leads_ ? rings_->to_leader : rings_->to_follower).receive(target);
  }

 private:
  std::shared_ptr<RingPair> rings_;
  bool leads_;
};

#ifdef BENCH_HAVE_SODIUM
// Seals messages as CURVE does, with libsodium and nothing else: a box with a key agreed before and a counter
// as the nonce. So it is the limit of CURVE with libsodium.
class SealedEnd final : public End {
 public:
  SealedEnd(std::unique_ptr<End> end, std::size_t size) : end_(std::move(end)), box_(size + crypto_box_MACBYTES) {
    check_system(sodium_init() >= 0, "sodium_init");
  }
  void send(const void* data, std::size_t size) override {
    next_nonce();
    (void)crypto_box_easy_afternm(box_.data(), static_cast<const unsigned char*>(data), size, nonce_.data(), kKey);
    end_->send(box_.data(), size + crypto_box_MACBYTES);
  }
  std::size_t receive(void* target, std::size_t) override {
    const std::size_t size = end_->receive(box_.data(), box_.size());
    next_nonce();
    if (size < crypto_box_MACBYTES || crypto_box_open_easy_afternm(static_cast<unsigned char*>(target), box_.data(),
                                                                   size, nonce_.data(), kKey) != 0) {
      fail("a box that was not sent");
    }
    return size - crypto_box_MACBYTES;
  }
  void flush() override { end_->flush(); }

 private:
  static constexpr unsigned char kKey[crypto_box_BEFORENMBYTES] = {1, 2, 3};

  void next_nonce() { sodium_increment(nonce_.data(), nonce_.size()); }

  std::unique_ptr<End> end_;
  std::vector<unsigned char> box_;
  std::array<unsigned char, crypto_box_NONCEBYTES> nonce_{};
};
#endif

// Seals the stream of a CURVE cell, which is one-way: prepare() refuses CURVE round trips.
std::unique_ptr<End> make_stream_end(const Cell& cell, int fd, bool listens, bool spinning,
                                     const Addresses& addresses) {
  auto end = std::make_unique<StreamEnd>(cell, fd, listens, spinning, addresses);
#ifdef BENCH_HAVE_SODIUM
  if (cell.curve) {
    return std::make_unique<SealedEnd>(std::move(end), cell.size);
  }
#endif
  return end;
}

#ifdef BENCH_HAVE_SODIUM
constexpr bool kSeals = true;
#else
constexpr bool kSeals = false;
#endif

#ifdef BENCH_HAVE_OPENSSL
constexpr bool kTls = true;
#else
constexpr bool kTls = false;
#endif

class RawEngine final : public Engine {
 public:
  explicit RawEngine(bool spinning) : spinning_(spinning) {}
  std::string version() const override { return spinning_ ? "spinning" : "sleeping"; }
  std::string path() const override { return ""; }
  void prepare(const Cell& cell, Addresses& addresses) override {
    if (cell.times != 1 || cell.storms() || (cell.curve && (!kSeals || cell.trips())) ||
        (cell.tls && (!kTls || cell.trips())) || cell.moved) {
      fail("no raw limit for " + cell.name);
    }
    if (cell.tls) {
      make_certificate(addresses);
    }
  }

  Ends bind(const Cell& cell, Addresses& addresses) override {
    Ends ends;
    if (cell.transport == "inproc") {
      const bool sleeping = cell.pattern == Pattern::round_trip && !spinning_;
      rings_ = std::make_shared<RingPair>(cell.size, sleeping);
      ends.push_back(std::make_unique<RingEnd>(rings_, cell.binder() == Side::leader));
      return ends;
    }
    Address address{};
    address.any.sa_family = cell.transport == "tcp" ? AF_INET : AF_UNIX;
    socklen_t size = sizeof(sa_family_t);  // of ipc: the kernel chooses a name
    if (cell.transport == "tcp") {
      address.tcp.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      size = sizeof address.tcp;
    }
    const int fd = socket(address.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    check_system(fd >= 0 && ::bind(fd, &address.any, size) == 0 && listen(fd, 1) == 0, "listen");
    size = name_of(fd, address);
    std::memcpy(addresses.endpoints[0].data(), &address, size);
    addresses.endpoints[1][0] = static_cast<char>(size);
    ends.push_back(make_stream_end(cell, fd, true, spinning_, addresses));
    return ends;
  }

  Ends connect(const Cell& cell, const Addresses& addresses) override {
    Ends ends;
    if (cell.transport == "inproc") {
      ends.push_back(std::make_unique<RingEnd>(rings_, cell.binder() != Side::leader));
      return ends;
    }
    Address address{};
    const socklen_t size = static_cast<unsigned char>(addresses.endpoints[1][0]);
    std::memcpy(&address, addresses.endpoints[0].data(), size);
    const int fd = socket(address.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    check_system(fd >= 0 && ::connect(fd, &address.any, size) == 0, "connect");
    set_no_delay(cell, fd);
    ends.push_back(make_stream_end(cell, fd, false, spinning_, addresses));
    return ends;
  }

 private:
  const bool spinning_;
  std::shared_ptr<RingPair> rings_;
};

}  // namespace

std::unique_ptr<Engine> make_raw(bool spinning) { return std::make_unique<RawEngine>(spinning); }

}  // namespace bench
