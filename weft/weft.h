// SPDX-License-Identifier: MIT
#pragma once

// All headers that a program with sockets needs.
#include "weft/base/bytes.h"
#include "weft/base/error.h"
#include "weft/base/result.h"
#include "weft/base/time.h"
#include "weft/msg/async_socket.h"
#include "weft/msg/context.h"
#include "weft/msg/message/message.h"
#include "weft/msg/message/monitor.h"
#include "weft/msg/message/options.h"
#include "weft/msg/poll.h"
#include "weft/msg/proxy.h"
#include "weft/msg/socket.h"
#include "weft/msg/version.h"
