// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"

namespace weft::topic {

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
