// SPDX-License-Identifier: MIT
// The pages whose C++ blocks guides.cc and the files beside it run. Each function is a page.
#pragma once

#include <string_view>

#include "weft/base/result.h"

namespace guides {

// An error, after a line on standard error, unless both are equal.
weft::Result<void> expect(std::string_view got, std::string_view wanted);

weft::Result<void> sockets();
weft::Result<void> foundations();  // and tuning
weft::Result<void> beside_asio();
weft::Result<void> clients();
weft::Result<void> operations();
weft::Result<void> calls();
weft::Result<void> web_servers();
weft::Result<void> web_clients();

}  // namespace guides
