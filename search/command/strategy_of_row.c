/* See search/command/strategy_of_row.h. */
#include "search/command/strategy_of_row.h"

#include <stdio.h>
#include <string.h>

#include "workloads/strategy/strategy.h"

/* What was taken of a strategy space. */
static const char *choices_of(pl_results_reader *reader, const pl_result_row *row, pl_arena *arena) {
  const pl_column_list columns = pl_results_reader_columns(reader);
  const char *text = "";
  for (uint32_t c = PL_RESULT_FIRST_PROGRAM + 1; text != NULL && c < columns.n; c++) {
    const char *name = columns.at[c].name;
    if (strncmp(name, "choice_", 7) != 0) continue;
    text = pl_arena_printf(arena, "%s%s%s=%.48s", text, text[0] != '\0' ? "," : "", name + 7,
                           (const char *)row + columns.at[c].offset);
  }
  return text;
}

const char *pl_strategy_of_row(pl_results_reader *reader, const pl_result_row *row, pl_arena *arena) {
  const char *choices = pl_results_reader_has_program(reader) ? choices_of(reader, row, arena) : "";
  if (row->search != NULL && row->search->strategy.text[0] != '\0') {
    /* What lies on the device alone is not written there, and says that the row was a program. */
    bool says = choices == NULL || row->tmp < 0 || strncmp(choices, "offload=", 8) != 0 ||
                strstr(row->search->strategy.text, ",offload=") != NULL;
    return pl_arena_printf(arena, "%.1024s%s%s", row->search->strategy.text, says ? "" : ",", says ? "" : choices);
  }
  if (choices == NULL || row->tmp < 0) return choices; /* a tree has no one degree */
  char cut[48] = "";
  if (row->etp > 1) snprintf(cut, sizeof cut, ",etp=%d", row->etp);
  if (row->ep_overlap > 0 && row->ep_overlap < PL_EP_OVERLAP_COUNT)
    snprintf(cut + strlen(cut), sizeof cut - strlen(cut), ",ep_overlap=%s", pl_ep_overlap_names[row->ep_overlap]);
  return pl_arena_printf(arena,
                         "pp=%d,dp=%d,tmp=%d,cp=%d,ep=%d%s,mbs=%d,schedule=%.16s,vpp=%d,sp=%d,recompute=%.16s,zero=%d,"
                         "overlap=%d,order=%.16s,assign=%.512s%s%s",
                         row->pp, row->dp, row->tmp, row->cp, row->ep, cut, row->mbs, row->schedule.text, row->vpp,
                         row->sp, row->recompute.text, row->zero, row->overlap, row->order.text, row->assign.text,
                         choices[0] != '\0' ? "," : "", choices);
}
