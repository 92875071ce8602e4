/* A GPU under another power limit: what its tensor cores sustain.
 *
 * Over seconds they run at the clock that the power limit leaves (workloads/cost/op_cost.h, "sustained"). Of a limit P
 * a part s P0 goes to leakage and memory whatever the clock is (P0: the limit that the profile's figures are of); the
 * rest makes f V^2, and the voltage falls with the clock:
 *
 *   sustained(P) = sustained(P0) * ((P - s P0) / (P0 - s P0)) ^ 0.75,  s = 0.1
 *
 * Both figures are from published measurements, to which they are rounded: transformer training on H100 takes 10 to 15
 * % longer at 600 than at 700 W (factryze.ai, "Power Capping"): 0.87 to 0.91, here 0.88; products on GB300 do 617
 * TFLOP/s at 500 W and 1,600 to 2,174 at 1,400 W (facebookexperimental/triton, pull request 2023): 0.28 to 0.39, here
 * 0.39. Memory-bound kernels keep their time: memory clocks do not follow the limit in the range of training.
 */
#ifndef PL_NETMODEL_DEVICE_POWER_H
#define PL_NETMODEL_DEVICE_POWER_H

#include "core/base/status.h"
#include "core/cluster/device_profile.h"

/* The profile under a limit of `power_W`. PL_BAD_INPUT, with `what` in front: the profile does not know its own limit
 * or what it sustains; the limit is less than a fifth or more than twice of that. */
pl_code pl_device_limit_power(pl_device_profile *profile, double power_W, const char *what, pl_error *error);

#endif
