// SPDX-License-Identifier: MIT
#pragma once

// The hash maps that are rivals, as far as this machine has them.
#if __has_include(<boost/unordered/unordered_flat_map.hpp>)
#include <boost/unordered/unordered_flat_map.hpp>
#define WEFT_RIVAL_BOOST_FLAT_MAP
#endif
#if __has_include(<tsl/robin_map.h>)
#include <tsl/robin_map.h>
#define WEFT_RIVAL_ROBIN_MAP
#endif
