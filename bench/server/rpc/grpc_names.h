// SPDX-License-Identifier: MIT
#pragma once

// The methods of the rivals that speak gRPC: server_grpc, client_grpc, and the crate tonic.
namespace bench {

inline constexpr char kGrpcCall[] = "/bench.Echo/Call";
inline constexpr char kGrpcPush[] = "/bench.Echo/Push";

}  // namespace bench
