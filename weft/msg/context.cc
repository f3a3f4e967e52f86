// SPDX-License-Identifier: MIT
#include "weft/msg/context.h"

#include "weft/msg/socket/context_core.h"

namespace weft {

Context::Context(const ContextOptions& options) : core_(std::make_shared<msg::ContextCore>(options)) {}

Context& Context::operator=(Context&& other) noexcept {
  if (this != &other) {
    close();
    core_ = std::move(other.core_);
  }
  return *this;
}

Context::~Context() { close(); }

Result<Socket> Context::socket(SocketType type) {
  if (core_ == nullptr) {
    return Error(Errc::closed, "the context is closed or was moved from");
  }
  return Socket(WEFT_TRY(core_->make_socket(type)));
}

void Context::shut_down() {
  if (core_ != nullptr) {
    core_->shut_down();
  }
}

void Context::close() {
  if (core_ != nullptr) {
    core_->close();
    core_.reset();
  }
}

}  // namespace weft
