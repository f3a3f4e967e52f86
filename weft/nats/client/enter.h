// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <string>

#include "weft/base/result.h"
#include "weft/nats/client/options.h"
#include "weft/nats/protocol/info.h"
#include "weft/nats/protocol/server_list.h"
#include "weft/net/stream/byte_stream.h"
#include "weft/rt/task/task.h"
#include "weft/serve/session/shard.h"

namespace weft::nats {

// Entered: a connection whose server has sent INFO, and with TLS if it shall have it. The next byte is CONNECT's.
struct Entered {
  std::unique_ptr<net::ByteStream> stream;
  ServerInfo info;
  bool tls = false;
};

// Connects to the server, reads INFO and shakes hands, within the times of the options. The client reads INFO a byte
// at a time, about 500 system calls of 0.2 us: no byte after it is taken from the handshake or the session, so no
// plain bytes are mistaken for those of TLS. Errors: timed_out; those of the dialer and of TLS; connection_closed;
// protocol_error (INFO); handshake_refused (TLS was wanted, and the server has none).
[[nodiscard]] rt::Task<Result<Entered>> enter(serve::Shard* shard, const ClientOptions* options, const ServerUrl* url);

// The JSON of CONNECT for this server. Errors: invalid_argument (a seed or a file of another form); handshake_refused
// (the server sent no nonce); those of reading a file; not_supported (nkeys in a build without libsodium).
[[nodiscard]] Result<Secret> make_login(const ClientOptions& options, const ServerUrl& url, const ServerInfo& info,
                                        bool tls);

}  // namespace weft::nats
