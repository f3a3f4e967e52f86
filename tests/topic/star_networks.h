// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <string>

#include "tests/topic/networks.h"

namespace weft::topic {

// StarNetworks: a network namespace for each of three servers, and one in the middle, which forwards the packets
// between them. A cut drops the packets of one direction, also those of connections that stand.
// Owner: one thread, which is in the middle afterwards. A process of its own has the namespaces.
class StarNetworks {
 public:
  static constexpr int kServers = 3;
  static constexpr int kMiddle = -1;

  StarNetworks() { missing_ = set_up(); }
  StarNetworks(const StarNetworks&) = delete;
  StarNetworks& operator=(const StarNetworks&) = delete;
  ~StarNetworks() {
    for (const int fd : servers_) {
      if (fd >= 0) {
        ::close(fd);
      }
    }
  }

  // Why there are none; empty: there are.
  [[nodiscard]] const std::string& missing() const { return missing_; }
  [[nodiscard]] static std::string address_of(int server) { return "10.77." + std::to_string(server) + ".2"; }
  // The address of the middle for that server.
  [[nodiscard]] static std::string middle_of(int server) { return "10.77." + std::to_string(server) + ".1"; }
  template <typename Function>
  auto in_server(int server, const Function& function) const {
    return in_network(servers_[static_cast<std::size_t>(server)], function);
  }

  // Each of both is a server, or the middle.
  [[nodiscard]] bool cut(int from, int to) const { return change("add", from, to); }
  [[nodiscard]] bool heal(int from, int to) const { return change("del", from, to); }

 private:
  [[nodiscard]] bool change(const char* how, int from, int to) const {
    if (from == kMiddle) {
      return ip({"rule", how, "iif", "lo", "to", address_of(to), "blackhole"});
    }
    if (to == kMiddle) {
      return in_server(from, [&] { return ip({"rule", how, "iif", "lo", "to", middle_of(from), "blackhole"}); });
    }
    return ip({"rule", how, "from", address_of(from), "to", address_of(to), "blackhole"});
  }
  // The setting of all devices that are made later.
  static bool write_setting(const std::string& name, const char* value) {
    return (std::ofstream("/proc/sys/net/ipv4/" + name) << value << std::flush).good();
  }
  // A cut of one direction is not a wrong source address of the other one.
  static bool take_all_sources() {
    return write_setting("conf/all/rp_filter", "0") && write_setting("conf/default/rp_filter", "0");
  }
  std::string set_up() {
    if (!enter_new_network()) {
      return std::string("not here: no network namespace: ") + std::strerror(errno);
    }
    const int middle = this_network();
    bool linked = ip({"link", "set", "lo", "up"}) && take_all_sources() && write_setting("ip_forward", "1");
    for (int i = 0; i < kServers && linked; ++i) {
      const std::string near = "near" + std::to_string(i);
      linked = ::unshare(CLONE_NEWNET) == 0;
      servers_[static_cast<std::size_t>(i)] = this_network();
      linked = linked && ip({"link", "set", "lo", "up"}) && take_all_sources() &&
               ip({"link", "add", "far", "type", "veth", "peer", "name", near, "netns", file_of_network(middle)}) &&
               ip({"addr", "add", address_of(i) + "/30", "dev", "far"}) && ip({"link", "set", "far", "up"}) &&
               ip({"route", "add", "default", "via", middle_of(i)});
      (void)::setns(middle, CLONE_NEWNET);
      linked = linked && ip({"addr", "add", middle_of(i) + "/30", "dev", near}) && ip({"link", "set", near, "up"});
    }
    ::close(middle);
    return linked ? std::string() : "not here: no networks of veth";
  }

  std::array<int, kServers> servers_{-1, -1, -1};
  std::string missing_;
};

}  // namespace weft::topic
