// SPDX-License-Identifier: MIT
// LocalEnd: the handshake with peers that speak ZMTP 2.0 (RFC 15) or 1.0 (RFC 13).
#include "weft/zmtp/local_end.h"

namespace weft::zmtp {
namespace {

// On the wire of ZMTP 2.0 an XPUB is a PUB and an XSUB a SUB.
WireType old_type(WireType type) {
  switch (type) {
    case WireType::xpub: return WireType::pub;
    case WireType::xsub: return WireType::sub;
    default: return type;
  }
}

}  // namespace

bool LocalEnd::takes_old_peers() const noexcept { return config_.takes_old_peers && mechanism_->name() == "NULL"; }

// The peer has shown that it is old. Offers our side of the handshake at once; no part of it depends on the
// peer.
bool LocalEnd::begin_old_greeting() {
  if (!takes_old_peers()) {
    return fail(Errc::protocol_error, "peer speaks ZMTP 2.0 or older, which knows no security"), false;
  }
  const bool bare = peer_.version == Version::v1;
  if (greeting_offered_ > (bare ? kSignatureSize : kMajorEnd)) {
    greeted_too_much_ = true;
    return fail(Errc::protocol_error, "peer speaks ZMTP 2.0 or older"), false;
  }
  const auto size = static_cast<std::uint8_t>(config_.identity.size());
  if (!bare) {  // a ZMTP 1.0 peer has read the signature as the header of this frame
    offer_greeting(kMajorEnd);
    output_.push_back(static_cast<std::uint8_t>(old_type(config_.socket_type)));
    std::uint8_t header[kFrameHeaderSizeMaxV1];
    const std::size_t header_size =
        framing() == Framing::v1 ? write_frame_header_v1(header, 0, size) : write_frame_header(header, 0, size);
    output_.insert(output_.end(), header, header + header_size);
  }
  output_.insert(output_.end(), config_.identity.begin(), config_.identity.end());
  phase_ = Phase::old_greeting;
  return true;
}

// Takes the greeting and the identity together, or nothing.
std::size_t LocalEnd::handle_old_greeting(Bytes input, Instant now) {
  std::size_t taken = 0;
  if (peer_.version != Version::v1) {
    taken = kOldGreetingSize;
    if (input.size() < taken || !accept_old_type(input[taken - 1])) {
      return 0;
    }
  }
  const Bytes rest = input.subspan(taken);
  ZmtpFrameHeader header;
  const ParseStatus status =
      framing() == Framing::v1 ? parse_frame_header_v1(rest, header) : parse_frame_header(rest, header);
  if (status == ParseStatus::need_more) {
    return 0;
  }
  if (status == ParseStatus::malformed || (header.flags & (kMore | kCommand)) != 0 || header.body_size > kIdentityMax) {
    fail(Errc::protocol_error, "malformed identity of a peer that speaks ZMTP 2.0 or older");
    return 0;
  }
  if (header.body_size > rest.size() - header.header_size) {
    return 0;
  }
  const auto size = static_cast<std::size_t>(header.body_size);
  if (!accept_identity(rest.subspan(header.header_size, size))) {
    return 0;
  }
  if (peer_.version != Version::v1) {
    peer_.metadata.emplace_back("Socket-Type", socket_type_name(peer_.type));
  }
  if (size > 0) {
    peer_.metadata.emplace_back("Identity", peer_.identity);
  }
  phase_ = Phase::traffic;
  started_ = last_ping_ = now;
  return taken + header.header_size + size;
}

bool LocalEnd::accept_old_type(std::uint8_t number) {
  const auto type = static_cast<WireType>(number);
  if (number >= kSocketTypeCount || !compatible(config_.socket_type, type)) {
    return fail(Errc::incompatible_peer, number < kSocketTypeCount
                                             ? StaticText("peer's socket type cannot talk to ours")
                                             : StaticText("peer's socket type is unknown")),
           false;
  }
  peer_.type = type;
  return true;
}

}  // namespace weft::zmtp
