// SPDX-License-Identifier: MIT
#include "weft/topic/hub_link_of.h"

#include <utility>

#include "weft/msg/context.h"
#include "weft/msg/socket/context_core.h"
#include "weft/topic/kept/hub_link.h"
#include "weft/topic/node/node.h"

namespace weft::topic {

namespace {

Result<std::shared_ptr<HubLink>> make(Node& node) {
  if (node.fleet().kind != Fleet::Kind::local) {
    return Error(Errc::not_supported,
                 "only a local fleet keeps topics: the handles of an inproc or tcp fleet have no hub");
  }
  return msg::or_no_memory([&]() -> Result<std::shared_ptr<HubLink>> {
    const LocalDirectory directory =
        WEFT_TRY(LocalDirectory::open(node.options().runtime_directory, node.fleet().name));
    LinkSettings settings;
    settings.endpoint = "ipc://" + directory.path() + "/hub.sock";
    settings.id = instance_text(node.instance());
    settings.names = node.names();
    settings.async = node.async();
    settings.make_socket = [weak = std::weak_ptr<msg::ContextCore>(node.context())]() -> Result<Socket> {
      const auto context = weak.lock();
      if (context == nullptr) {
        return Error(Errc::closed, "the context was closed");
      }
      return Socket(WEFT_TRY(context->make_socket(SocketType::dealer)));
    };
    return std::make_shared<HubLink>(node.loop(), std::move(settings));
  });
}

}  // namespace

Result<std::shared_ptr<HubLink>> hub_link_of(Node& node) { return node.hub_link(make); }

}  // namespace weft::topic
