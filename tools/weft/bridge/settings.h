// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/time.h"
#include "weft/serve/config/problem.h"

// The file of a bridge: [bridge], [fleet], and a table in an array for each section.
namespace weft::bridge {

// Which programs of ZeroMQ a section serves.
enum class Role : std::uint8_t {
  publishers,   // PUB: their messages go to the fleet
  subscribers,  // SUB: the fleet's messages go to them
  clients,      // REQ, DEALER: their requests go to a service of the fleet
  workers,      // REP, or DEALER and ROUTER: they answer the requests of the fleet to a topic
};
[[nodiscard]] std::string_view name_of(Role role) noexcept;

// CURVE of a section's socket. The names of files, and the keys once they were read: 32 bytes, or empty.
struct Curve {
  std::string key_file{};         // our own pair
  bool server = false;            // clients must have our public key
  std::string server_key_text{};  // of the other end: Z85, or a file that has it
  std::string public_key{};
  std::string secret_key{};
  std::string server_key{};
};

struct Section {
  Role role = Role::publishers;
  std::string name{};  // in metrics and in Weft-Via
  serve::config::Position at{};
  std::vector<std::string> bind{};
  std::vector<std::string> connect{};
  std::int64_t queue_messages = 1000;     // for each peer, and each way
  std::int64_t message_bytes = 16 << 20;  // of a frame that comes in
  Curve curve{};

  // Of publishers and subscribers.
  std::string prefix{};                    // of the topics in the fleet
  std::string separator = ".";             // of the topics of ZeroMQ
  std::vector<std::string> subscribe{""};  // publishers: prefixes of the topics of ZeroMQ
  std::string network{};                   // sections of one network pass nothing to each other
  bool headers = false;                    // the last frame is a block of headers
  std::vector<std::string> newest{};       // subscribers: filters of the fleet whose newest values are kept
  std::int64_t newest_topics = 10'000;
  std::int64_t newest_bytes = 64 << 20;

  // Of clients and workers.
  std::string topic{};   // of the service
  std::string group{};   // of the workers
  bool dealers = false;  // the workers have DEALER or ROUTER, and not REP
  Duration deadline = std::chrono::seconds(5);
  std::int64_t pending = 1000;            // requests under way
  std::int64_t pending_bytes = 64 << 20;  // of their frames
};

struct FleetSettings {
  std::string fleet = "local";
  std::string space{};
  std::string directory{};
  std::string listen{};
  std::string curve_key{};
  std::string credentials{};
  std::string tls_certificate{};
  std::string tls_key{};
  std::string tls_authorities{};
  std::string tls_name{};
};

struct Settings {
  std::string name{};  // of the bridge, in Weft-Via; empty: a random one
  Duration drain = std::chrono::seconds(5);
  FleetSettings fleet{};
  std::vector<Section> sections{};
};

inline constexpr std::size_t kSectionsMax = 64;

// Reads the text of a file. `source` names it in problems, each of which has its line. With a problem the settings are
// not to be used. Throws std::bad_alloc.
[[nodiscard]] Settings read_settings(std::string_view text, const std::string& source,
                                     serve::config::Problems& problems);

}  // namespace weft::bridge
