// SPDX-License-Identifier: MIT
#pragma once

#include "weft/base/histogram.h"

namespace bench {

using Histogram = weft::Histogram<8>;  // buckets 0.4 % wide

}  // namespace bench
