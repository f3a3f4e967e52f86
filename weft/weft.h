// SPDX-License-Identifier: MIT
#pragma once

// Everything that a program with sockets needs.
#include "weft/base/bytes.h"
#include "weft/base/error.h"
#include "weft/base/result.h"
#include "weft/base/time.h"
#include "weft/msg/async_socket.h"
#include "weft/msg/context.h"
#include "weft/msg/message.h"
#include "weft/msg/monitor.h"
#include "weft/msg/options.h"
#include "weft/msg/poll.h"
#include "weft/msg/proxy.h"
#include "weft/msg/socket.h"
