/* `paceline validate`: predictions beside measurements. */
#ifndef PL_VALIDATION_CMD_VALIDATE_H
#define PL_VALIDATION_CMD_VALIDATE_H

int pl_cmd_validate(int argc, char **argv);

#endif
