// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "weft/base/time.h"

namespace weft {

// FleetSecurity: CURVE keys of a `tcp://` fleet, 32 bytes each, all four or none. All handles of a fleet share the
// server's pair. A program with only the public key may connect and receive, and nothing else: a handle also needs the
// secret key, and proves it. Handles of one Context meet without keys. A fleet without keys trusts its network.
// A `tls+tcp://` fleet needs the three PEM files. Each handle presents its certificate in both directions, and accepts
// only peers whose certificate the authorities signed.
struct FleetSecurity {
  std::string curve_server_public;  // of every peer; empty: no encryption
  std::string curve_server_secret;  // of this handle as the one that peers connect to
  std::string curve_public;         // of this handle as the one that connects
  std::string curve_secret;
  // Of a hub at "tcp://HOST:PORT" (TopicsOptions::hub): its public key. The hub has curve_public among the keys of its
  // members. A fleet of any kind may have such a hub; the two keys of the fleet above stay empty without CURVE in it.
  std::string curve_hub_public{};
  std::string tls_certificate{};  // of this handle, then the chain to its authority
  std::string tls_key{};          // its key, without a pass phrase
  std::string tls_authorities{};  // of peers
  std::string tls_server_name{};  // in the certificate of every peer; empty: the host of its endpoint
  // Of a nats fleet, one of them; a user and a password may stand in the URL, too. The files are read at each
  // connection, so renewed ones count. The PEM files above hold there, too; a certificate only if the servers want one.
  std::string user{};
  std::string password{};
  std::string token{};
  std::string nkey_seed_file{};
  std::string credentials_file{};  // .creds: a JWT and a seed

  [[nodiscard]] bool curve() const noexcept { return !curve_server_public.empty(); }
  [[nodiscard]] bool curve_of_hub() const noexcept {
    return !curve_hub_public.empty() && !curve_public.empty() && !curve_secret.empty();
  }
  [[nodiscard]] bool empty() const noexcept {
    return curve_server_public.empty() && curve_server_secret.empty() && curve_public.empty() && curve_secret.empty() &&
           curve_hub_public.empty() && tls_certificate.empty() && tls_key.empty() && tls_authorities.empty() &&
           tls_server_name.empty() && !login();
  }
  [[nodiscard]] bool login() const noexcept {
    return !user.empty() || !password.empty() || !token.empty() || !nkey_seed_file.empty() || !credentials_file.empty();
  }
  [[nodiscard]] bool tls() const noexcept {
    return !tls_certificate.empty() && !tls_key.empty() && !tls_authorities.empty();
  }
};

// TopicsOptions: which fleet a handle joins, and its bounds.
struct TopicsOptions {
  // "inproc:NAME": the handles of one Context. "local" or "local:NAME": the handles of one user on this host, at most
  // 128. "tcp://10.0.0.1:7300,10.0.0.2:7300": the listed hosts, and the peers in their rosters. "tls+tcp://...": the
  // same, encrypted and authenticated (FleetSecurity); then all endpoints are of this kind. "nats://h1:4222,h2" and
  // "tls://h1:4222,h2": servers of NATS, and those of their cluster; docs/fleet.md has
  // the promises for kept topics.
  std::string fleet = "local";
  std::string space{};      // the first token of every topic; empty: none
  char separator = '.';     // between tokens, as the program writes names
  std::string node{};       // this handle's name; empty: made from the process id and a random number
  std::string listen{};     // tcp: "tcp://0.0.0.0:7300"; empty: the system chooses the port
  std::string advertise{};  // tcp: the endpoint to which peers connect; empty: `listen`, with the address that they see
  std::string runtime_directory{};  // local: empty: $XDG_RUNTIME_DIR/weft, or /tmp/weft-UID
  // local: the directory in which the process that hosts the hub keeps topics, a file for each fleet; the same for all
  // handles of a fleet. Empty: runtime_directory if it is given, otherwise $XDG_STATE_HOME/weft or ~/.local/state/weft.
  std::string store_directory{};
  // The hub of the kept topics. "tls+tcp://HOST:PORT": of another host, where `weft hub --listen` serves it; needs the
  // three PEM files of `security`. "tcp://HOST:PORT": the same with CURVE; needs curve_hub_public, curve_public and
  // curve_secret. "ipc://PATH": of another user of this host, whose `weft hub --group` lets a group
  // in. Empty: the hub of the local fleet.
  std::string hub{};
  bool hosts = true;                                   // local: this process becomes the hub if no other one is
  std::vector<std::string> inside{};                   // filters of topics that never leave the process; at most 256
  std::size_t queue_messages_max = 65'536;             // of one subscription
  std::size_t queue_bytes_max = std::size_t{8} << 20;  // the same; a queue exceeds the bound by at most one message
  // that wait for one peer; beyond, the newest are dropped and counted, or publish() waits
  int peer_messages_max = 1000;
  // nats: bytes of messages that wait for the fleet's servers while these are away; beyond, the oldest are dropped
  // and counted. Each of two connections keeps so many, and as many, at least 1 MiB, are on their way to them: beyond
  // that, as when a server does not read, the newest are dropped and counted.
  std::size_t outage_bytes_max = std::size_t{8} << 20;
  // nats: the time between two PINGs. A connection without a byte for two to three times as long is lost: the requests
  // on it fail, and the handle connects again.
  Duration ping_every = std::chrono::seconds(20);
  Duration presence{0};  // how long nodes() of other handles keeps this one while it is silent; 0: not announced
  FleetSecurity security{};
};

// The policy of a full queue of a subscription.
enum class Full : std::uint8_t {
  drop_oldest,
  drop_newest,
  newest_per_topic,  // a message replaces a queued one of its topic; if the queue is full of topics, like drop_oldest
  end,               // the subscription ends: after the queued messages next() fails with resource_exhausted
};

struct SubscriptionOptions {
  Full full = Full::drop_oldest;
  std::size_t queue_messages_max = 0;  // 0: the bound of the handle
  std::size_t queue_bytes_max = 0;     // 0: the bound of the handle
};

// The policy of publish() while a peer's queue is full.
enum class WhenFull : std::uint8_t {
  drop,  // that peer misses the message; dropped_full counts it
  wait,  // publish() waits for room. Queues of subscriptions still follow their own policy
};

struct PublisherOptions {
  WhenFull when_full = WhenFull::drop;
};

// NodeInfo: a handle of the fleet.
struct NodeInfo {
  std::uint64_t instance = 0;  // random, for one life of the handle
  std::string node;            // TopicsOptions::node
  std::string endpoint;        // to which peers connect; empty: only within its process
  Duration presence{0};        // its lease; 0: none
};

}  // namespace weft
