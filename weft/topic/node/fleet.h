// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/base/result.h"
#include "weft/sync/lock.h"

namespace weft::msg {
class ContextCore;
}

namespace weft::topic {

class Node;

// Fleet: the option `fleet`, parsed. Affinity: immutable.
struct Fleet {
  enum class Kind : std::uint8_t { inproc, local, tcp, nats };
  static constexpr std::size_t kNameMax = 32;
  // Every handle connects to every other one and sends it the list of all: to begin at once costs the third power.
  static constexpr std::size_t kLocalHandlesMax = 128;

  Kind kind = Kind::local;
  std::string name;                // inproc, local; of "local": "default"
  std::vector<std::string> peers;  // tcp
  std::string servers;             // nats: the list of their URLs
  bool tls = false;                // tcp: every endpoint is tls+tcp

  [[nodiscard]] std::string_view scheme() const noexcept { return tls ? "tls+tcp://" : "tcp://"; }  // of kind tcp

  // Errors: invalid_argument.
  [[nodiscard]] static Result<Fleet> parse(std::string_view text);
};

// ProcessFleets: the handles of this process that connect over inproc: those of one Context and one fleet.
// Owner: the process. Affinity: any thread. Lock order: before every lock of a node.
class ProcessFleets {
 public:
  static ProcessFleets& instance();

  // Connects the node with every other one of the key, in both directions.
  // After an error, or an exception std::bad_alloc, the node leaves.
  [[nodiscard]] Result<void> join(Node& node, const msg::ContextCore* context, const std::string& fleet);
  // Connects the node with each other one that has joined. Errors: those of Node::link_inproc().
  [[nodiscard]] Result<void> link_all(Node& node);
  void leave(Node& node, const msg::ContextCore* context, const std::string& fleet) noexcept;

 private:
  using Key = std::pair<const msg::ContextCore*, std::string>;
  sync::StdMutex mutex_;
  std::map<Key, std::vector<Node*>> nodes_ WEFT_GUARDED_BY(mutex_);
};

// LocalDirectory: the sockets of a local fleet, one file for each handle: "<instance>.sock".
// Affinity: any thread, any process; the file system orders it.
class LocalDirectory {
 public:
  // Makes the directories, all of mode 0700. Errors: invalid_state (another user's, or one that others may enter);
  // invalid_argument (the path is too long for a socket); errors of the system.
  [[nodiscard]] static Result<LocalDirectory> open(const std::string& runtime_directory, const std::string& fleet);

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] std::string endpoint(std::uint64_t instance) const;  // "ipc://..."
  // The instances with a listener. Removes the files of handles that ended without removing them.
  [[nodiscard]] Result<std::vector<std::uint64_t>> listening() const;
  // The instance of an endpoint in this directory; 0 if it is not there.
  [[nodiscard]] std::uint64_t instance_at(std::string_view endpoint) const noexcept;
  // Whether a handle listens there. If not, removes its file.
  [[nodiscard]] bool is_listening(std::uint64_t instance) const;

 private:
  std::string path_;
};

}  // namespace weft::topic
