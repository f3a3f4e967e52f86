// SPDX-License-Identifier: MIT
#include "weft/topic/consumer.h"

#include "weft/topic/kept/hub_link.h"

namespace weft {

Result<void> Delivery::ack_confirmed() {
  const auto call = WEFT_TRY(confirm());
  return confirmed(*call, link()->run(call));
}

}  // namespace weft
