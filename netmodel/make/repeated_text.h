/* Text of one node as the text of the nodes behind it: what a cluster's file consists of. To format every wire and
 * route of every node took as long as to read the file.
 */
#ifndef PL_NETMODEL_REPEATED_TEXT_H
#define PL_NETMODEL_REPEATED_TEXT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Writes `text`, in which node `first` is named, for it and the n - 1 nodes behind it: names are attributes' values
 * that begin with nFIRST, of any attribute but `value`. False: no memory, and nothing is written. */
bool pl_repeated_text_write(const char *text, size_t size, uint32_t first, uint32_t n, FILE *stream);

#endif
