/* Quantities of a platform file as SimGrid 3.32 reads them (src/xbt/xbt_parse_units.cpp), to the last bit: the number,
 * then the unit's factor, multiplied up in steps of 1000 or 1024. False for whatever SimGrid would refuse or warn
 * about: no or an unknown unit (but a plain 0), no number, a number out of range, or a list of several. */
#ifndef PL_NETMODEL_SIMGRID_UNITS_H
#define PL_NETMODEL_SIMGRID_UNITS_H

#include <stdbool.h>

bool pl_simgrid_bandwidth(const char *text, double *value_Bps);
bool pl_simgrid_time(const char *text, double *value_s);
bool pl_simgrid_speed(const char *text, double *value_flops);

#endif
