/* Passes that were compiled before. Most stages of a pipeline run as many blocks of the same kinds between collectives
 * that take as long, and differ in who is in their groups: what one of them is made of serves the others, too. Parts
 * are gone through a dozen times until a run is explained, so it matters less that they are made once than that there
 * are fewer of them.
 */
#ifndef PL_WORKLOADS_PIECES_KNOWN_H
#define PL_WORKLOADS_PIECES_KNOWN_H

#include "workloads/compile/pieces.h"

/* The pieces of a pass that is alike for the crew, if one of the last few was: with the segments and effects that it
 * has, which the graph may not tell apart (pl_compile_options.shares_passes). False: none was. */
bool pl_pieces_recall(const pl_piece_context *context, const pl_pass *pass, pl_category category, pl_pieces *pieces);
/* Keeps what was made just now. */
void pl_pieces_remember(const pl_piece_context *context, const pl_pass *pass, pl_category category,
                        const pl_pieces *pieces);

#endif
