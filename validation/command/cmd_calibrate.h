/* `paceline calibrate`: profiles from measurements. */
#ifndef PL_VALIDATION_CMD_CALIBRATE_H
#define PL_VALIDATION_CMD_CALIBRATE_H

int pl_cmd_calibrate(int argc, char **argv);

#endif
