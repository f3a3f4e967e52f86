// SPDX-License-Identifier: MIT
#include "weft/net/socks5.h"

#include <cerrno>
#include <utility>

#include "weft/base/assert.h"
#include "weft/base/endian.h"
#include "weft/sys/address.h"

namespace weft::net {
namespace {

constexpr std::uint8_t kVersion = 5;
constexpr std::uint8_t kNoLogin = 0x00;
constexpr std::uint8_t kPassword = 0x02;
constexpr std::uint8_t kNoMethod = 0xFF;
constexpr std::uint8_t kLoginVersion = 1;  // of RFC 1929
constexpr std::uint8_t kConnect = 1;
constexpr std::uint8_t kIpv4 = 1;
constexpr std::uint8_t kName = 3;
constexpr std::uint8_t kIpv6 = 4;
constexpr std::size_t kShortReply = 2;
constexpr std::size_t kReplyHead = 5;  // version, outcome, reserved, kind of address, its first byte
constexpr std::size_t kPortSize = 2;
constexpr std::size_t kHostMax = 255;
constexpr std::size_t kLoginMax = 1 + 2 * (1 + 255);

void append_short(std::vector<std::uint8_t>& to, std::string_view text) {
  WEFT_ASSERT(text.size() <= UINT8_MAX);
  to.push_back(static_cast<std::uint8_t>(text.size()));
  to.insert(to.end(), text.begin(), text.end());
}

// RFC 1928, section 6.
Error refusal(std::uint8_t outcome) {
  switch (outcome) {
    case 1: return {Errc::connection_failed, "SOCKS proxy: general failure"};
    case 2: return {Errc::connection_failed, "SOCKS proxy: not allowed by its rules", EACCES};
    case 3: return {Errc::connection_failed, "SOCKS proxy: network unreachable", ENETUNREACH};
    case 4: return {Errc::connection_failed, "SOCKS proxy: host unreachable", EHOSTUNREACH};
    case 5: return {Errc::connection_failed, "SOCKS proxy: connection refused", ECONNREFUSED};
    case 6: return {Errc::connection_failed, "SOCKS proxy: time to live expired", ETIMEDOUT};
    case 7: return {Errc::connection_failed, "SOCKS proxy: it does not connect"};
    case 8: return {Errc::connection_failed, "SOCKS proxy: it does not take this kind of address"};
    default: return {Errc::connection_failed, "SOCKS proxy: refused for a reason unknown here"};
  }
}

// The size of the reply to a request, as far as its first bytes determine it. 0: the kind of address does not
// exist.
std::size_t reply_size(Bytes reply) {
  if (reply.size() < kReplyHead) {
    return kReplyHead;
  }
  switch (reply[3]) {
    case kIpv4: return kReplyHead - 1 + 4 + kPortSize;
    case kIpv6: return kReplyHead - 1 + 16 + kPortSize;
    case kName: return kReplyHead + reply[4] + kPortSize;
    default: return 0;
  }
}

}  // namespace

Result<Socks5Proxy> parse_socks5_proxy(std::string_view address, std::string username, std::string password) {
  Socks5Proxy proxy;
  proxy.password = Secret(std::move(password));
  proxy.endpoint = WEFT_TRY(parse_endpoint(std::string("tcp://").append(address), false));
  proxy.username = std::move(username);
  return proxy;
}

void Socks5::start(const Socks5Proxy& proxy, std::string_view host, std::uint16_t port) {
  WEFT_ASSERT(host.size() <= kHostMax);
  username_ = proxy.username;
  password_ = proxy.password;
  fault_.reset();
  input_.clear();
  wipe(output_);
  output_sent_ = 0;
  step_ = Step::method;
  output_ = {kVersion, 1, kNoLogin};
  if (!username_.empty()) {
    output_ = {kVersion, 2, kNoLogin, kPassword};
  }
  request_ = {kVersion, kConnect, 0};
  if (const auto numeric = sys::SocketAddress::parse_numeric(host, port)) {
    const Bytes address = numeric->ip_bytes();
    request_.push_back(address.size() == 4 ? kIpv4 : kIpv6);
    request_.insert(request_.end(), address.begin(), address.end());
  } else {
    request_.push_back(kName);
    append_short(request_, host);
  }
  request_.resize(request_.size() + kPortSize);
  store_big_endian<std::uint16_t>(request_.data() + request_.size() - kPortSize, port);
}

void Socks5::consume_output(std::size_t size) noexcept {
  WEFT_ASSERT(size <= output_.size() - output_sent_);
  output_sent_ += size;
  if (step_ == Step::login && output_sent_ == output_.size()) {
    wipe(output_);
    output_sent_ = 0;
  }
}

std::size_t Socks5::wanted() const noexcept {
  if (step_ == Step::done || fault_) {
    return 0;
  }
  return (step_ == Step::reply ? reply_size(input_) : kShortReply) - input_.size();
}

// Byte by byte: a reply is short, and a wrong byte is a fault without waiting for the rest.
void Socks5::handle_input(Bytes input) {
  WEFT_ASSERT(input.size() <= wanted());
  for (const std::uint8_t byte : input) {
    if (fault_) {
      return;
    }
    input_.push_back(byte);
    handle_reply();
  }
}

void Socks5::handle_reply() {
  const bool login = step_ == Step::login;
  if (input_[0] != (login ? kLoginVersion : kVersion)) {
    fault_ = Error(Errc::protocol_error, login ? StaticText("SOCKS proxy: malformed answer to the password")
                                               : StaticText("SOCKS proxy: it does not speak SOCKS5"));
    return;
  }
  if (input_.size() < kShortReply) {
    return;
  }
  if (step_ == Step::method) {
    choose_method(input_[1]);
  } else if (login) {
    if (input_[1] != 0) {
      fault_ = Error(Errc::connection_failed, "SOCKS proxy: name or password refused", EACCES);
      return;
    }
    ask();
  } else if (input_[1] != 0) {
    fault_ = refusal(input_[1]);
  } else if (const std::size_t size = reply_size(input_); size == 0) {
    fault_ = Error(Errc::protocol_error, "SOCKS proxy: malformed reply");
  } else if (input_.size() == size) {
    step_ = Step::done;
  }
}

void Socks5::choose_method(std::uint8_t method) {
  if (method == kNoLogin) {
    ask();
  } else if (method == kPassword && !username_.empty()) {
    output_.clear();
    output_.reserve(kLoginMax);  // a vector that grows leaves copies
    output_.push_back(kLoginVersion);
    append_short(output_, username_);
    append_short(output_, password_.text());
    password_.forget();
    output_sent_ = 0;
    step_ = Step::login;
    input_.clear();
  } else if (method == kNoMethod || method == kPassword) {
    fault_ =
        Error(Errc::connection_failed, username_.empty() ? StaticText("SOCKS proxy: it wants a name and a password")
                                                         : StaticText("SOCKS proxy: no common login"));
  } else {
    fault_ = Error(Errc::protocol_error, "SOCKS proxy: it chose a login that was not offered");
  }
}

void Socks5::ask() {
  password_.forget();
  wipe(output_);
  output_ = request_;
  output_sent_ = 0;
  step_ = Step::reply;
  input_.clear();
}

}  // namespace weft::net
