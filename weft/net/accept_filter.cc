// SPDX-License-Identifier: MIT
#include "weft/net/accept_filter.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "weft/sys/address.h"
#include "weft/sys/socket.h"

namespace weft::net {
namespace {

constexpr Error kNoNetwork(Errc::invalid_argument, "a network is a numeric address, or one and the bits that count");
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

bool same_bits(Bytes a, Bytes b, std::size_t bits) noexcept {
  const std::size_t whole = bits / 8;
  if (!std::equal(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(whole), b.begin())) {
    return false;
  }
  const auto mask = static_cast<std::uint8_t>(0xFF00U >> (bits % 8));
  return bits % 8 == 0 || ((a[whole] ^ b[whole]) & mask) == 0;
}

}  // namespace

Result<AcceptFilter::Network> AcceptFilter::parse_network(std::string_view text) {
  const std::size_t slash = text.find('/');
  const auto address = sys::SocketAddress::parse_numeric(text.substr(0, slash), 0);
  if (!address) {
    return kNoNetwork;
  }
  const Bytes bytes = address->ip_bytes();
  Network network{{bytes.begin(), bytes.end()}, bytes.size() * 8};
  if (slash != std::string_view::npos) {
    const auto most = static_cast<std::int64_t>(network.bits);
    network.bits = static_cast<std::size_t>(WEFT_TRY(parse_number(text.substr(slash + 1), most, kNoNetwork)));
  }
  return network;
}

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
  const auto add_network = [&](std::string_view entry) -> Result<void> {
    filter.networks_.push_back(WEFT_TRY(parse_network(entry)));
    return {};
  };
  const auto add_process = [&](std::string_view entry) -> Result<void> {
    filter.processes_.push_back(WEFT_TRY(parse_process(entry)));
    return {};
  };
  WEFT_TRY(for_each_entry(networks, add_network));
  WEFT_TRY(for_each_entry(processes, add_process));
  return filter;
}

bool AcceptFilter::admits(int fd) const noexcept {
  if (networks_.empty() && processes_.empty()) {
    return true;
  }
  // The listener's own family: the other end of a unix connection has no name, but is one all the same.
  const auto local = sys::local_address(fd);
  if (!local) {
    return false;
  }
  if (local->is_ip()) {
    const auto peer = sys::peer_address(fd);
    return networks_.empty() ||
           (peer && std::any_of(networks_.begin(), networks_.end(), [&](const Network& network) {
              const Bytes bytes = peer->ip_bytes();
              return bytes.size() == network.address.size() && same_bits(bytes, network.address, network.bits);
            }));
  }
  const auto peer = sys::peer_credentials(fd);
  return processes_.empty() ||
         (peer && std::any_of(processes_.begin(), processes_.end(), [&](const Process& process) {
            return process.number == (process.kind == 'p' ? peer->pid : process.kind == 'u' ? peer->uid : peer->gid);
          }));
}

}  // namespace weft::net
