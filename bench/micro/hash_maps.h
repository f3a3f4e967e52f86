// SPDX-License-Identifier: MIT
#pragma once

// The rival hash maps that this machine has.
#if __has_include(<boost/unordered/unordered_flat_map.hpp>)
#include <boost/unordered/unordered_flat_map.hpp>
#define WEFT_RIVAL_BOOST_FLAT_MAP
#endif
#if __has_include(<tsl/robin_map.h>)
#include <tsl/robin_map.h>
#define WEFT_RIVAL_ROBIN_MAP
#endif
