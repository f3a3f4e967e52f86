// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string_view>

namespace weft::serve {

// The pages of the admin port, by their paths. Affinity: immutable.
enum class AdminPage : std::uint8_t { none, metrics, health, readiness, debug, cores, sessions, handlers, traces };

struct AdminPath {
  std::string_view path;
  AdminPage page;
};
inline constexpr AdminPath kAdminPaths[] = {
    {"/metrics", AdminPage::metrics},         {"/healthz", AdminPage::health},
    {"/readyz", AdminPage::readiness},        {"/debug", AdminPage::debug},
    {"/debug/cores", AdminPage::cores},       {"/debug/sessions", AdminPage::sessions},
    {"/debug/handlers", AdminPage::handlers}, {"/debug/traces", AdminPage::traces}};

inline AdminPage page_of(std::string_view path) noexcept {
  const auto* const at = std::find_if(std::begin(kAdminPaths), std::end(kAdminPaths),
                                      [path](const AdminPath& each) { return each.path == path; });
  return at == std::end(kAdminPaths) ? AdminPage::none : at->page;
}
constexpr bool is_debug(AdminPage page) noexcept { return page >= AdminPage::debug; }
constexpr bool asks_cores(AdminPage page) noexcept {
  return page == AdminPage::health || page == AdminPage::cores || page == AdminPage::sessions;
}

}  // namespace weft::serve
