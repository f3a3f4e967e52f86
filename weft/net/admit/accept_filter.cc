// SPDX-License-Identifier: MIT
#include "weft/net/admit/accept_filter.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "weft/sys/address.h"
#include "weft/sys/socket.h"

namespace weft::net {
namespace {

constexpr Error kNoProcess(Errc::invalid_argument, "a process is pid:, uid: or gid: and a number");

Result<std::int64_t> parse_number(std::string_view text, std::int64_t max, const Error& otherwise) {
  std::int64_t number = -1;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (status != std::errc() || end != text.data() + text.size() || number < 0 || number > max) {
    return otherwise;
  }
  return number;
}

// Calls take(entry) for each entry of a list with commas.
template <typename Take>
Result<void> for_each_entry(std::string_view list, Take take) {
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size() - 1);
    const bool last = list[comma] != ',';
    WEFT_TRY(take(list.substr(0, last ? list.size() : comma)));
    list.remove_prefix(last ? list.size() : comma + 1);
  }
  return {};
}

}  // namespace

Result<AcceptFilter::Process> AcceptFilter::parse_process(std::string_view text) {
  for (const std::string_view kind : {"pid:", "uid:", "gid:"}) {
    if (text.starts_with(kind)) {
      const std::int64_t max = std::numeric_limits<std::uint32_t>::max();
      return Process{kind[0], WEFT_TRY(parse_number(text.substr(kind.size()), max, kNoProcess))};
    }
  }
  return kNoProcess;
}

Result<AcceptFilter> AcceptFilter::parse(std::string_view networks, std::string_view processes) {
  AcceptFilter filter;
  const auto add_process = [&](std::string_view entry) -> Result<void> {
    filter.processes_.push_back(WEFT_TRY(parse_process(entry)));
    return {};
  };
  filter.networks_ = WEFT_TRY(parse_ip_prefixes(networks));
  WEFT_TRY(for_each_entry(processes, add_process));
  return filter;
}

bool AcceptFilter::admits(int fd) const noexcept {
  if (networks_.empty() && processes_.empty()) {
    return true;
  }
  // Checks the listener's own family: the other end of a unix connection has no name, but does have
  // credentials. A vsock has no filter.
  const auto local = sys::local_address(fd);
  if (!local) {
    return false;
  }
  if (local->is_ip()) {
    const auto peer = sys::peer_address(fd);
    return networks_.empty() || (peer && std::any_of(networks_.begin(), networks_.end(), [&](const IpPrefix& network) {
                                   return network.contains(peer->ip_bytes());
                                 }));
  }
  if (!local->is_unix()) {
    return true;
  }
  const auto peer = sys::peer_credentials(fd);
  return processes_.empty() ||
         (peer && std::any_of(processes_.begin(), processes_.end(), [&](const Process& process) {
            return process.number == (process.kind == 'p' ? peer->pid : process.kind == 'u' ? peer->uid : peer->gid);
          }));
}

}  // namespace weft::net
