/* See netmodel/device/device_power.h. */
#include "netmodel/device/device_power.h"

#include <math.h>

static const double STATIC_SHARE = 0.1, EXPONENT = 0.75;

pl_code pl_device_limit_power(pl_device_profile *profile, double power_W, const char *what, pl_error *error) {
  double own_W = profile->power_W;
  if (!(own_W > 0) || !(profile->sustained_compute > 0))
    return pl_fail(error, PL_BAD_INPUT, "%s: the profile of %s has no %s", what, profile->name,
                   own_W > 0 ? "'sustained', which a power limit acts on" : "'power' of its own to compare with");
  if (!(power_W >= own_W / 5 && power_W <= 2 * own_W))
    return pl_fail(error, PL_BAD_INPUT, "%s: %g W are no limit of %s, whose own is %g W (from %g to %g can be said)",
                   what, power_W, profile->name, own_W, own_W / 5, 2 * own_W);
  double share = (power_W / own_W - STATIC_SHARE) / (1 - STATIC_SHARE);
  profile->sustained_compute = fmin(1, profile->sustained_compute * pow(share, EXPONENT));
  profile->power_W = power_W;
  return PL_OK;
}
