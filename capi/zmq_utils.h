/* SPDX-License-Identifier: MIT */
/* Older programs include this name; everything is in zmq.h. */
#pragma once
#include "zmq.h"
