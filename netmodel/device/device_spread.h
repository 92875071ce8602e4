/* Devices of one type are not equally fast, and a synchronous step waits for the slowest.
 *
 * At the power limit each chip has the clock that its silicon leaves it; ln of what products take is spread over chips
 * by a standard deviation s that the profile gives ("spread"). Every layer of a tensor group, every microbatch of a
 * pipeline and every step of replicas ends with its slowest device, so that all of n devices of a type go at the pace
 * of the slowest of n: in the mean exp(s m(n)), with m(n) the mean of the greatest of n standard normals (8: 1.42, 64:
 * 2.34, 512: 3.04). What a profile promises was seen on single machines: kernels timed one by one, and a sustained rate
 * fitted to runs on one machine, which had its slowest of eight in it (and whose runs on A100, whose sustained rate
 * hardly binds, come out right with kernels as they were timed). So what is added is what n have beyond eight:
 *
 *   drag = exp(s (m(n) - m(8))) - 1, nothing up to eight
 *
 * It is of products, convolutions and attention that computing bounds: memory clocks are not what the limit moves. The
 * order of the devices does not matter and none is slower than another: it is an expectation, so that what is folded
 * stays folded. Devices that are known to be slow, and draws of all, are --slow and --jitter
 * (workloads/run/stragglers.h), of which this is the mean beforehand.
 *
 * n counts the devices of the type in the cluster, also where a strategy leaves some idle.
 */
#ifndef PL_NETMODEL_DEVICE_SPREAD_H
#define PL_NETMODEL_DEVICE_SPREAD_H

#include "core/cluster/cluster.h"

enum { PL_SPREAD_SEEN = 8 }; /* devices that were beside each other when profiles were made */

/* The mean of the greatest of n standard normals, to 1e-9; 0 for n = 1. n >= 1. */
double pl_spread_greatest(uint32_t n);

/* profile->compute_drag as it is among `n` devices of the type. */
void pl_device_spread_among(pl_device_profile *profile, uint32_t n);

/* So for each type of the cluster, whose profiles `profiles` are. O(devices). */
void pl_device_spread_find(const pl_cluster *cluster, pl_device_profile *profiles);

#endif
