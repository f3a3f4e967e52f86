// SPDX-License-Identifier: MIT
// Node: the other handles of the fleet.
#include <new>

#include "weft/base/no_memory.h"
#include "weft/net/stream/endpoint.h"
#include "weft/topic/node/node.h"

namespace weft::topic {

Result<void> Node::handle_peer_opened(std::uint64_t instance, const std::string& inproc_endpoint, bool inner) {
  if (!async()) {
    WEFT_TRY(link_inproc(instance, inproc_endpoint, inner));
    exchange_soon(instance, true);
    return {};
  }
  loop_.post([this, instance, inproc_endpoint, inner] {
    if (or_no_memory([&] { return link_inproc(instance, inproc_endpoint, inner); })) {
      exchange_soon(instance, true);
    } else {
      repair_soon();  // links every handle that has joined
    }
  });
  return {};
}

void Node::handle_peer_closed(std::uint64_t instance, const std::string& inproc_endpoint) noexcept {
  if (!async()) {
    links_.unlink_inproc(instance, inproc_endpoint);
    return;
  }
  try {
    loop_.post([this, instance, inproc_endpoint] { links_.unlink_inproc(instance, inproc_endpoint); });
  } catch (const std::bad_alloc&) {
    links_.abandon_inproc(instance, inproc_endpoint);
  }
}

Result<void> Node::add_peer(std::string_view endpoint) {
  if (fleet().kind != Fleet::Kind::tcp) {
    return Error(Errc::not_supported, "only a tcp fleet has listed peers");
  }
  return or_no_memory([&]() -> Result<void> {
    const net::Endpoint parsed = WEFT_TRY(net::parse_endpoint(endpoint, false));
    if (fleet().tls && parsed.transport != net::Transport::tls_tcp) {
      return Error(Errc::invalid_argument, "every endpoint of a tls+tcp fleet is tls+tcp://");
    }
    return links_.connect(parsed.text(), 0, LinkConnections::Source::given);
  });
}

Result<void> Node::remove_peer(std::string_view endpoint) {
  return or_no_memory([&]() -> Result<void> {
    const std::string text = WEFT_TRY(net::parse_endpoint(endpoint, false)).text();
    // One that only sent its endpoint is not listed. A removed peer may send it at once.
    if (!with_mesh([&](MeshState& mesh) { return mesh.links().unlist(text); })) {
      return Error(Errc::no_such_endpoint, "no peer is listed at this endpoint");
    }
    links_.drop(text);
    return {};
  });
}

// --- waiting for the mesh ---

void Node::mesh_changed() noexcept {
  constexpr Error kGone(Errc::connection_closed, "the handle that was asked is gone");
  with_mesh([&](MeshState& mesh) { mesh.requests().take_ended([&](std::uint64_t id) { calls_.fail(id, kGone); }); });
  mesh_.changed();
  if (async()) {
    mesh_.event().pulse();
  }
}

}  // namespace weft::topic
