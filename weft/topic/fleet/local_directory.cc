// SPDX-License-Identifier: MIT
#include "weft/topic/fleet/local_directory.h"

#include <cerrno>

#include "weft/net/stream/endpoint.h"
#include "weft/sys/address.h"
#include "weft/sys/path.h"
#include "weft/sys/socket.h"
#include "weft/topic/fleet/fleet.h"
#include "weft/topic/wire/control.h"

namespace weft::topic {

namespace {
constexpr std::string_view kSuffix = ".sock";
}

Result<LocalDirectory> LocalDirectory::open(const std::string& runtime_directory, const std::string& fleet) {
  LocalDirectory directory;
  directory.path_ = runtime_directory.empty() ? sys::runtime_directory() : runtime_directory;
  WEFT_TRY(sys::make_owned_directory(directory.path_));
  directory.path_ += "/topics";
  WEFT_TRY(sys::make_owned_directory(directory.path_));
  directory.path_ += "/" + fleet;
  WEFT_TRY(sys::make_owned_directory(directory.path_));
  if (directory.path_.size() + 1 + 16 + kSuffix.size() > net::kMaxIpcPath) {
    return Error(Errc::invalid_argument, "the runtime directory's path is too long for a socket");
  }
  return directory;
}

std::string LocalDirectory::endpoint(std::uint64_t instance) const {
  return "ipc://" + path_ + "/" + instance_text(instance) + std::string(kSuffix);
}

std::uint64_t LocalDirectory::instance_at(std::string_view endpoint) const noexcept {
  constexpr std::string_view kScheme = "ipc://";
  if (!endpoint.starts_with(kScheme) || !endpoint.ends_with(kSuffix)) {
    return 0;
  }
  endpoint.remove_prefix(kScheme.size());
  endpoint.remove_suffix(kSuffix.size());
  if (endpoint.size() != path_.size() + 17 || !endpoint.starts_with(path_) || endpoint[path_.size()] != '/') {
    return 0;
  }
  return parse_instance(endpoint.substr(path_.size() + 1));
}

Result<std::vector<std::uint64_t>> LocalDirectory::listening() const {
  const std::vector<std::string> names = WEFT_TRY(sys::list_directory(path_, 64 * Fleet::kLocalHandlesMax));
  std::vector<std::uint64_t> instances;
  for (std::string_view name : names) {
    if (!name.ends_with(kSuffix)) {
      continue;
    }
    name.remove_suffix(kSuffix.size());
    const std::uint64_t instance = parse_instance(name);
    if (instance != 0 && is_listening(instance)) {
      instances.push_back(instance);
    }
  }
  return instances;
}

bool LocalDirectory::is_listening(std::uint64_t instance) const {
  const std::string file = endpoint(instance).substr(6);
  const auto address = sys::SocketAddress::from_path(file);
  if (!address) {
    return false;
  }
  // A name has one life: an instance's number is never used again. So a socket that nothing is bound to is left over,
  // or its handle is between its bind and now; the lock keeps that handle out.
  const sys::Fd lock = sys::lock_parent_directory(file);
  if (sys::is_unix_stream_bound(*address)) {
    return true;
  }
  const auto probe = sys::open_unix_connection(*address, {});
  if (probe || probe.error().os_errno() != ECONNREFUSED) {
    return probe.has_value();  // or, without descriptors, nothing is known
  }
  if (lock.valid()) {
    (void)sys::remove_file(file);
  }
  return false;
}

}  // namespace weft::topic
