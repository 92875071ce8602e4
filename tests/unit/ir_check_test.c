/* The check of programs: a right program passes, and each kind of mistake in it is named with its place. A case is an
 * edit of the right program: one piece of its text replaced by another. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "tests/support/arena_fixture.h"
#include "workloads/language/ir_check.h"
#include "workloads/language/ir_table.h"
#include "workloads/language/ir_text.h"

/* Two stages of two replicas, two microbatches. */
static const char right[] =
    /* 1 */ "plir 1 distributed m\n"
            /* 2 */ "mesh pp=2, dp=2\n"
            /* 3 */ "microbatches 2\n"
            /* 4 */ "func @layer(%x: fp32[b=4/dp, h=8]) {\n"
            /* 5 */ "  %w = param \"w\"() : fp32[h=8, f=6]\n"
            /* 6 */ "  %y = product(%x, %w) {over=h} : fp32[b=4/dp, f=6]\n"
            /* 7 */ "  keep \"x\"(%x)\n"
            /* 8 */ "  return %y\n"
            /* 9 */ "}\n"
            /* 10 */ "func @layer.backward(%dy: fp32[b=4/dp, f=6]) {\n"
            /* 11 */ "  %x = kept \"x\"() : fp32[b=4/dp, h=8]\n"
            /* 12 */ "  %dw = product(%x, %dy) {over=b} : fp32[h=8, f=6] partial(dp)\n"
            /* 13 */ "  accumulate \"w\"(%dw)\n"
            /* 14 */ "}\n"
            /* 15 */ "func @layer.update() {\n"
            /* 16 */ "  %g = gradient \"w\"() : fp32[h=8, f=6] partial(dp)\n"
            /* 17 */ "  %s = all_reduce(%g) {over=dp} : fp32[h=8, f=6]\n"
            /* 18 */ "  %t = sum_classes(%s) {classes=(a, b), tag=\"w\"} : fp32[h=8, f=6]\n"
            /* 19 */ "  %w = param \"w\"() : fp32[h=8, f=6]\n"
            /* 20 */ "  %n = sgd(%w, %t) {rate=0.1} : fp32[h=8, f=6]\n"
            /* 21 */ "  store \"w\"(%n)\n"
            /* 22 */ "}\n"
            /* 23 */ "func @a() {\n"
            /* 24 */ "  %x = input \"pictures\"() : fp32[b=4/dp, h=8]\n"
            /* 25 */ "  %y = call @layer \"h.0\"(%x) : fp32[b=4/dp, f=6]\n"
            /* 26 */ "  send(%y) {to=b, tag=\"y\"}\n"
            /* 27 */ "}\n"
            /* 28 */ "func @a.backward() {\n"
            /* 29 */ "  %dy = receive() {from=b, tag=\"dy\"} : fp32[b=4/dp, f=6]\n"
            /* 30 */ "  call @layer.backward \"h.0\"(%dy)\n"
            /* 31 */ "}\n"
            /* 32 */ "func @update() {\n"
            /* 33 */ "  call @layer.update \"h.0\"()\n"
            /* 34 */ "}\n"
            /* 35 */ "func @b() {\n"
            /* 36 */ "  %y = receive() {from=a, tag=\"y\"} : fp32[b=4/dp, f=6]\n"
            /* 37 */ "  %x = input \"pictures\"() : fp32[b=4/dp, h=8]\n"
            /* 38 */ "  %z = call @layer \"h.0\"(%x) : fp32[b=4/dp, f=6]\n"
            /* 39 */ "  %q = multiply(%y, %z) : fp32[b=4/dp, f=6]\n"
            /* 40 */ "  %l = sum(%q) {over=(b, f)} : fp32[] partial(dp)\n"
            /* 41 */ "  loss(%l)\n"
            /* 42 */ "  keep \"y\"(%y)\n"
            /* 43 */ "}\n"
            /* 44 */ "func @b.backward() {\n"
            /* 45 */ "  %y = kept \"y\"() : fp32[b=4/dp, f=6]\n"
            /* 46 */ "  send(%y) {to=a, tag=\"dy\"}\n"
            /* 47 */ "  call @layer.backward \"h.0\"(%y)\n"
            /* 48 */ "}\n"
            /* 49 */ "class a at pp=0 {\n"
            /* 50 */ "  chunk 0 forward @a backward @a.backward\n"
            /* 51 */ "  steps F0.0 F0.1 B0.0 B0.1\n"
            /* 52 */ "  update @update\n"
            /* 53 */ "}\n"
            /* 54 */ "class b at pp=1 {\n"
            /* 55 */ "  chunk 1 forward @b backward @b.backward\n"
            /* 56 */ "  steps F1.0 B1.0 F1.1 B1.1\n"
            /* 57 */ "  update @update\n"
            /* 58 */ "}\n";

typedef struct edit {
  const char *from, *to, *message; /* behind "t:" */
} edit;

static const edit edits[] = {
    /* ops */
    {"product(%x, %w)", "product(%x)", "6:8: product has 1 operand; it takes 2"},
    {"%y = product(%x, %w)", "product(%x, %w)", "6:*"},
    {"keep \"x\"", "keep", "7:3: keep lacks its path: keep \"path\"(...)"},
    {"product(%x, %w)", "product \"w\"(%x, %w)", "6:8: product takes no path, here \"w\""},
    {"product(%x, %w)", "product(%x, %w)", NULL},
    {"%y = product(%x, %w) {over=h}", "%y = product(%x, %w) {over=h, narrow=\"fp8\", as=\"fp32\"}", NULL},
    {"%y = product(%x, %w) {over=h}",
     "%x8 = cast(%x) {copies=2} : fp8[b=4/dp, h=8]\n  %y = product(%x8, %w) {over=h, narrow=\"fp8\", as=\"fp32\"}",
     NULL},
    {"%y = product(%x, %w) {over=h}",
     "%x8 = cast(%x) : fp8[b=4/dp, h=8]\n  %y = product(%x8, %w) {over=h, narrow=\"fp8\"}",
     "7:8: narrow=\"fp8\" of product without as=\"...\", the type of its result"},
    {"%y = product(%x, %w) {over=h}", "%x8 = cast(%x) {copies=0} : fp8[b=4/dp, h=8]\n  %y = product(%x, %w) {over=h}",
     "6:9: copies=0 of cast: 1, or 2 with the transposed one"},
    {"%y = product(%x, %w) {over=h}", "%x8 = cast(%x) {scaled=3} : fp8[b=4/dp, h=8]\n  %y = product(%x, %w) {over=h}",
     "6:9: scaled=3 of cast: 0, 1 or 2"},
    {"%y = product(%x, %w) {over=h}", "%x8 = cast(%x) : fp8[b=4/dp, h=8]\n  %y = product(%x8, %w) {over=h}",
     "7:8: operand 2 of product is fp32 and operand 1 is fp8: cast one of them"},
    {"%y = product(%x, %w) {over=h}",
     "%x8 = cast(%x) : fp8[b=4/dp, h=8]\n  %y = product(%x8, %w) {over=h, narrow=\"fp4\", as=\"fp32\"}",
     "7:8: operand 2 of product is fp32 and operand 1 is fp8: cast one of them"},
    {"%y = product(%x, %w) {over=h}", "%y = product(%x, %w) {over=h, narrow=\"fp7\"}",
     "6:8: narrow=\"fp7\" of product is no type to compute in: fp32, tf32, fp16, bf16, fp8, fp4"},
    {"call @layer \"h.0\"(%x)", "call \"h.0\"(%x)",
     "25:8: call lacks the function that is called: call @name \"instance\"(...)"},
    {"loss(%l)", "loss @layer(%l)", "41:3: loss calls no function; 'call' does"},
    {"{rate=0.1}", "{rat=0.1}", "20:8: sgd has no attribute 'rat'; did you mean 'rate'?"},
    {"{rate=0.1}", "{rate=h}", "20:8: rate of sgd (*) is a number, not names"},
    {"{rate=0.1}", "{rate=1}", NULL},
    {"{rate=0.1}", "", "20:8: sgd lacks {rate=...}: *"},
    {"%y = product(%x, %w) {over=h} : fp32[b=4/dp, f=6]", "%y = product(%x, %w) {over=h} : fp32[b=4/dp, f=7]",
     "6:8: result 1 of product is written as fp32[b=4, f=7]; from its operands follows fp32[b=4, f=6]"},
    {"%w = param \"w\"() : fp32[h=8, f=6]\n  %y", "%w = param \"w\"() : fp32[h=9, f=6]\n  %y", "6:8: *h=*"},
    {"%x = input \"pictures\"() : fp32[b=4/dp, h=8]\n  %y", "%x = input \"pictures\"() : fp32[b=5/dp, h=8]\n  %y",
     "24:8: b=5 is cut into 2 parts, which do not divide it, in fp32[b=5/dp, h=8]"},
    {"func @layer(%x: fp32[b=4/dp", "func @layer(%x: fp32[b=3/dp", "4:6: argument %x: b=3 is cut into 2 parts, *"},
    {"{over=b} : fp32[h=8, f=6] partial(dp)", "{over=b} : fp32[h=8, f=6]",
     "12:9: result 1 of product is the same along axis dp*"},
    {"all_reduce(%g) {over=dp} : fp32[h=8, f=6]", "all_reduce(%g) {over=dp} : fp32[h=8, f=6] partial(dp)",
     "17:8: *dp*"},
    {"all_reduce(%g) {over=dp}", "all_reduce(%g) {over=tp}", "17:8: *tp*"},
    {"plir 1 distributed m\nmesh pp=2, dp=2", "plir 1 training m\nmesh pp=2, dp=2",
     "17:8: all_reduce stands in programs of level distributed only; this one is of level training"},
    /* kernels */
    {"call @layer \"h.0\"", "kernel @layer \"h.0\"",
     "25:8: kernel stands in programs of level kernels only; this one is of level distributed"},
    {"plir 1 distributed m", "plir 1 kernels m", NULL},
    /* calls */
    {"%x = input \"pictures\"() : fp32[b=4/dp, h=8]\n  %y", "%x = input \"pictures\"() : fp32[b=4, h=8]\n  %y",
     "25:8: operand 1 of this call is fp32[b=4, h=8], and that of @layer is fp32[b=4/dp, h=8]"},
    {"%y = call @layer \"h.0\"(%x) : fp32[b=4/dp, f=6]", "%y = call @layer \"h.0\"(%x) : fp32[b=4/dp, f=5]",
     "25:8: result 1 of this call is fp32[b=4/dp, f=5], and that of @layer is fp32[b=4/dp, f=6]"},
    {"%y = call @layer \"h.0\"(%x) : fp32[b=4/dp, f=6]", "%y = call @layer \"h.0\"() : fp32[b=4/dp, f=6]",
     "25:8: @layer has 0 operands; it takes 1"},
    {"call @layer.backward \"h.0\"(%dy)", "%r = call @layer.backward \"h.0\"(%dy) : fp32[]",
     "30:8: @layer.backward has 1 result; it gives 0"},
    {"call @layer.backward \"h.0\"(%dy)", "call @layer.backward \"h.0\"(%dy) {piece=2, pieces=2}",
     "30:3: piece=2 of a call: of 2 pieces there are 0 to 1"},
    {"call @layer.backward \"h.0\"(%dy)", "call @layer.backward \"h.0\"(%dy) {pieces=0}",
     "30:3: pieces=0 of a call: 1 or more"},
    /* state */
    {"call @layer.backward \"h.0\"(%dy)", "call @layer.backward \"h.0\"(%dy) {piece=1, pieces=2}",
     "11:8: nothing keeps \"h.0.x of piece 1\" before the backward function reads it: *"},
    {"call @layer.backward \"h.0\"(%dy)", "call @layer.backward \"h.1\"(%dy)",
     "11:8: nothing keeps \"h.1.x\" before the backward function reads it: *"},
    {"kept \"x\"() : fp32[b=4/dp, h=8]", "kept \"z\"() : fp32[b=4/dp, h=8]",
     "11:8: nothing keeps \"h.0.z\" before the backward function reads it: *"},
    {"keep \"x\"(%x)", "keep \"x\"(%y)",
     "11:8: \"h.0.x\" is kept as fp32[b=4/dp, f=6], in line 7, and read as fp32[b=4/dp, h=8]"},
    {"keep \"x\"(%x)", "keep \"x\"(%x)\n keep \"x\"(%x)", "8:2: \"h.0.x\" is kept twice in one pass: in line 7 too; *"},
    {"call @layer.update \"h.0\"()", "call @layer.update \"h.0\"()\n%x = kept \"x\"() : fp32[]\n",
     "34:6: nothing keeps \"x\" before the update function reads it: *"},
    {"call @layer.update \"h.0\"()", "%x = param \"x\"() : fp32[]\nkeep \"x\"(%x)\n",
     "34:1: the update function keeps nothing: it belongs to no microbatch"},
    {"%g = gradient \"w\"() : fp32[h=8, f=6] partial(dp)\n  %s = all_reduce(%g) {over=dp} : fp32[h=8, f=6]",
     "%s = gradient \"w\"() : fp32[h=8, f=6]",
     "16:8: the gradient \"h.0.w\" is fp32[h=8, f=6] here and fp32[h=8, f=6] partial(dp) in line 13: one path has one "
     "type"},
    {"%w = param \"w\"() : fp32[h=8, f=6]\n  %n", "%w = param \"w\"() : fp32[h=8, f=6/dp]\n  %n", "20:*"},
    {"store \"w\"(%n)", "%m = state \"w\"() {slot=\"m\"} : fp32[h=8]\n store \"w\"(%n)",
     "21:8: \"h.0.w\" is fp32[h=8] here and fp32[h=8, f=6] in line 5: a parameter, its gradient and its state have one "
     "shape"},
    {"store \"w\"(%n)", "%m = state \"w\"() {slot=\"m\"} : bf16[h=8, f=6]\n store \"w\"(%n) {slot=\"m\"}",
     "22:2: state \"h.0.w\" of slot m is fp32[h=8, f=6] here and bf16[h=8, f=6] in line 21: one path has one type"},
    {"store \"w\"(%n)", "%m = state \"w\"() {slot=\"m\"} : bf16[h=8/dp, f=6]\n store \"w\"(%n)", NULL},
    /* classes */
    {"class b at pp=1 {", "class b at pp=0 {",
     "54:7: class a and class b both have device 0 of the mesh: they differ in no coordinate"},
    {"class b at pp=1 {", "class b at pp=1, dp=0 {", "49:7: device 3 of 4 on the mesh is in no class"},
    {"class a at pp=0 {\n  chunk 0 forward @a", "class a at pp=0 {\n  chunk 0 forward @layer",
     "50:3: @layer, the forward function, has 1 arguments and 1 results, and needs to have none: *"},
    {"chunk 0 forward @a backward", "chunk 0 backward", "50:3: chunk 0 has no forward function"},
    {"chunk 0 forward @a backward @a.backward", "chunk 0 forward @a weights @a.backward",
     "50:3: chunk 0 has a weights function and no backward one"},
    {"chunk 1 forward", "chunk 2 forward", "55:3: chunk 2 of 2: they are numbered from 0, without a gap"},
    {"chunk 1 forward", "chunk 0 forward", "55:3: chunk 0 belongs to class a and to class b: it is run by one"},
    {"%x = input \"pictures\"() : fp32[b=4/dp, h=8]\n  %y",
     "%i = input \"p\"() : fp32[b=4/pp]\n%x = input \"pictures\"() : fp32[b=4/dp, h=8]\n %y",
     "24:8: input lies or meets along axis pp, of which class a, that runs it, has pp=0 alone: *"},
    {"%s = all_reduce(%g) {over=dp} : fp32[h=8, f=6]",
     "%s = all_reduce(%g) {over=dp} : fp32[h=8, f=6]\n%u = shift(%s) {over=pp, by=1} : fp32[h=8, f=6]",
     "18:6: shift lies or meets along axis pp, of which class a, *"},
    {"class b at pp=1 {\n  chunk 1 forward @b backward @b.backward\n  steps F1.0 B1.0 F1.1 B1.1\n  update @update\n}\n",
     "", "49:7: device 2 of 4 on the mesh is in no class"},
    /* steps */
    {"F0.0 F0.1 B0.0 B0.1", "F0.0 F0.1 B0.1", "49:7: class a lacks step B0.0"},
    {"F0.0 F0.1 B0.0 B0.1", "F0.0 F0.1 F0.0 B0.0 B0.1", "51:19: F0.0 is run twice: before in line 51"},
    {"F0.0 F0.1 B0.0 B0.1", "F0.0 B0.1 F0.1 B0.0", "51:14: B0.1 stands before its F0.1"},
    {"F0.0 F0.1 B0.0 B0.1", "F0.0 F0.1 B0.0 B0.1 F0.2", "51:29: F0.2: microbatches are numbered from 0 to 1"},
    {"F0.0 F0.1 B0.0 B0.1", "F0.0 F0.1 B0.0 B0.1 F1.0", "51:29: F1.0: class a has no chunk 1"},
    {"F0.0 F0.1 B0.0 B0.1", "F0.0 F0.1 B0.0 B0.1 W0.0", "51:29: W0.0: chunk 0 has no weights function"},
    {"microbatches 2", "microbatches 2000000000", "49:7: class a lacks step F0.2"},
    /* steps beside each other */
    {"F0.0 F0.1 B0.0 B0.1", "F0.0 F0.1+B0.0 B0.1", NULL},
    {"F0.0 F0.1 B0.0 B0.1", "F0.0 F0.1+B0.0+B0.1",
     "29:9: deadlock: B0.1 of class a waits in line 29 for receive \"dy\" from class b, and F1.1 of class b *"},
    {"F0.0 F0.1 B0.0 B0.1", "F0.0+F0.1 B0.0 B0.1",
     "51:14: F0.1: what runs beside a forward pass is a backward one (F0.1+B0.0)"},
    {"F0.0 F0.1 B0.0 B0.1", "F0.0 F0.1 B0.0+B0.1",
     "51:19: B0.0: of steps that run beside each other the first is a forward pass (F0.1+B0.0)"},
    {"F0.0 F0.1 B0.0 B0.1", "F0.0 B0.0 F0.1+B0.1", "*"}, /* it cannot have come back before it was sent */
    /* chunks with some of the microbatches */
    {"backward @a.backward\n  steps F0.0 F0.1 B0.0 B0.1",
     "backward @a.backward microbatches 0 to 1\n  steps F0.0 F0.1 B0.0 B0.1", NULL},
    {"backward @a.backward\n", "backward @a.backward microbatches 0 to 0\n",
     "51:14: F0.1: chunk 0 has microbatches 0 to 0 alone"},
    {"backward @a.backward\n", "backward @a.backward microbatches 1 to 2\n",
     "50:3: chunk 0 has microbatches 1 to 2: they are numbered from 0 to 1"},
    {"backward @a.backward\n", "backward @a.backward microbatches 0 to 1 backward @a.backward\n", "50:*"},
    /* places of fewer microbatches */
    {"microbatches 2", "microbatches 2\nmicrobatches 1 at dp=1", NULL},
    {"microbatches 2", "microbatches 2\nmicrobatches 2 at dp=1",
     "4:1: 2 microbatches: a place that is named runs fewer than the 2 of all others, and one or more"},
    {"microbatches 2", "microbatches 2\nmicrobatches 1 at dp=1\nmicrobatches 1 at dp=1, pp=0",
     "5:1: devices at this place have 1 microbatches already: see line 4"},
    {"microbatches 2", "microbatches 2\nmicrobatches 1 at dp=0\nmicrobatches 1 at dp=1",
     "4:1: no device runs all 2 microbatches: *"},
    {"microbatches 2", "microbatches 2\nmicrobatches 1 at pp=1",
     "50:7: class a is at one place of axis pp, along which devices run unlike numbers of microbatches: *"},
    {"microbatches 2\nfunc @layer(%x: fp32[b=4/dp, h=8]) {",
     "microbatches 2\nmicrobatches 1 at dp=1\nfunc @layer(%x: fp32[b=4/dp, h=8]) {\n%a = all_gather(%x) {over=dp, "
     "dim=b} : "
     "fp32[b=4, h=8]",
     "6:6: all_gather meets along axis dp in a step, and some devices along it run fewer microbatches: *"},
    {"microbatches 2\nfunc @layer(%x: fp32[b=4/dp, h=8]) {",
     "microbatches 2\nmicrobatches 1 at dp=1\nfunc @layer(%x: fp32[b=4/dp, h=8]) {\n%a = input \"more\"() : fp32[b=4, "
     "h=8]",
     "6:6: input \"more\" is not cut on b along axis dp, and some devices along it run fewer microbatches: *"},
    {"microbatches 2\nfunc @layer(%x: fp32[b=4/dp, h=8]) {\n  %w = param \"w\"() : fp32[h=8, f=6]\n",
     "microbatches 2\nmicrobatches 1 at dp=1\nfunc @layer(%x: fp32[b=4/dp, h=8]) {\n  %w = param \"w\"() : fp32[h=8, "
     "f=6]\n  accumulate \"w\"(%w)\n",
     "7:3: accumulate adds up what devices along axis dp hold alike, and some of them run fewer microbatches: *"},
    /* order */
    {"F0.0 F0.1 B0.0 B0.1", "F0.0 B0.0 F0.1 B0.1", NULL},
    {"F1.0 B1.0 F1.1 B1.1", "F1.1 B1.1 F1.0 B1.0", NULL}, /* sends do not wait */
    {"F0.0 F0.1 B0.0 B0.1\n  update @update\n}\nclass b at pp=1 {\n  chunk 1 forward @b backward @b.backward\n  steps "
     "F1.0 B1.0 F1.1 B1.1",
     "F0.0 B0.0 F0.1 B0.1\n  update @update\n}\nclass b at pp=1 {\n  chunk 1 forward @b backward @b.backward\n  steps "
     "F1.1 B1.1 F1.0 B1.0",
     "29:9: deadlock: B0.0 of class a waits in line 29 for receive \"dy\" from class b, and F1.1 of class b waits in "
     "line 36 for receive \"y\": another order of their steps is needed"},
    {"tag=\"y\"} : fp32", "tag=\"yy\"} : fp32",
     "36:8: this never comes: F1.0 of class b waits in line 36 for receive \"yy\" from class a, in whose list there is "
     "no send of this tag and microbatch for it any more"},
    {"send(%y) {to=b, tag=\"y\"}", "send(%y) {to=b, tag=\"y\"}\nsend(%y) {to=b, tag=\"more\"}",
     "27:1: what class a sends in microbatch 0 under the tag \"more\" is never received by class b"},
    {"send(%y) {to=b, tag=\"y\"}", "send(%y) {to=c, tag=\"y\"}", "26:3: 'c' is not a class (there are: a, b)"},
    {"send(%y) {to=b, tag=\"y\"}", "send(%y) {to=(a, b), tag=\"y\"}", "26:3: to names 2 classes; it needs one"},
    {"receive() {from=a, tag=\"y\"} : fp32[b=4/dp, f=6]", "receive() {from=a, tag=\"y\"} : bf16[b=4/dp, f=6]", "39:*"},
    {"send(%y) {to=a, tag=\"dy\"}", "%yy = cast(%y) : bf16[b=4/dp, f=6]\nsend(%yy) {to=a, tag=\"dy\"}",
     "29:9: receive of fp32[b=4/dp, f=6] meets send of bf16[b=4/dp, f=6] in line 47: they have one type"},
    {"send(%y) {to=b, tag=\"y\"}", "send(%y) {to=b, tag=\"y\"}\nsend(%y) {to=b, tag=\"y\"}",
     "27:1: class a sends to class b under the tag \"y\" twice in one microbatch: in line 26 too"},
    {"%w = param \"w\"() : fp32[h=8, f=6]\n  %n",
     "%t2 = sum_classes(%s) {classes=(a, b), tag=\"w\"} : fp32[h=8, f=6]\n%w = param \"w\"() : fp32[h=8, f=6]\n  %n",
     "19:9: this sum over classes has been met in this iteration: another one needs another tag"},
    {"{classes=(a, b)", "{classes=a", "18:8: a sum over classes is over two or more"},
    {"{classes=(a, b)", "{classes=(a, b, a)", "18:8: class a is named twice"},
    {"{classes=(a, b)", "{classes=(a, c)", "18:8: 'c' is not a class (there are: a, b)"},
    {"F1.0 B1.0 F1.1 B1.1\n  update @update", "F1.0 B1.0 F1.1 B1.1",
     "18:8: this never comes: the update of class a waits in line 18 for sum_classes \"w\" from class b, in whose list "
     "there is no sum_classes of the same classes for it any more"},
};

/* `wanted`: pieces in this order, '*' between them. */
static bool fits(const char *message, const char *wanted) {
  for (const char *star; (star = strchr(wanted, '*')) != NULL; wanted = star + 1) {
    char piece[256];
    snprintf(piece, sizeof piece, "%.*s", (int)(star - wanted), wanted);
    const char *found = strstr(message, piece);
    if (found == NULL) return false;
    message = found + strlen(piece);
  }
  size_t length = strlen(message);
  return *wanted == '\0' || (length >= strlen(wanted) && strcmp(message + length - strlen(wanted), wanted) == 0);
}

static pl_code check(const char *text, pl_error *error) {
  pl_ir_module module;
  *error = PL_ERROR_INIT;
  pl_code code = pl_ir_parse("t", text, strlen(text), &arena, &module, error);
  return code == PL_OK ? pl_ir_check(&module, error) : code;
}

static void a_right_program_passes(void **state) {
  (void)state;
  pl_error error;
  if (check(right, &error) != PL_OK) fail_msg("%s", error.message);
}

static void each_mistake_is_named(void **state) {
  (void)state;
  int n_others = 0;
  for (size_t i = 0; i < sizeof edits / sizeof edits[0]; i++) {
    const char *at = strstr(right, edits[i].from);
    assert_non_null(at);
    char text[sizeof right + 1024];
    snprintf(text, sizeof text, "%.*s%s%s", (int)(at - right), right, edits[i].to, at + strlen(edits[i].from));
    pl_error error;
    pl_code code = check(text, &error);
    bool as_wanted = edits[i].message == NULL ? code == PL_OK
                                              : code == PL_BAD_INPUT && strncmp(error.message, "t:", 2) == 0 &&
                                                    fits(error.message + 2, edits[i].message);
    if (as_wanted) continue;
    n_others++;
    print_error("case %zu: %s\n-> %s\nsays   %s\nwanted t:%s\n", i, edits[i].from, edits[i].to,
                code == PL_OK ? "nothing" : error.message, edits[i].message != NULL ? edits[i].message : "nothing");
  }
  assert_int_equal(n_others, 0);
}

/* Functions that call each other grow fast: 2^40 ops are refused, not counted. */
static void programs_have_an_end(void **state) {
  (void)state;
  char text[8192];
  size_t used = (size_t)snprintf(text, sizeof text, "plir 1 model m\nfunc @f0() {\n%%x = param \"x\"() : fp32[]\n}\n");
  for (int i = 1; i <= 40; i++)
    used += (size_t)snprintf(text + used, sizeof text - used,
                             "func @f%d() {\ncall @f%d \"a\"()\ncall @f%d \"b\"()\n}\n", i, i - 1, i - 1);
  snprintf(text + used, sizeof text - used, "class all {\nchunk 0 forward @f40\nsteps F0.0\n}\n");
  pl_error error;
  assert_int_equal(check(text, &error), PL_BAD_INPUT);
  assert_non_null(strstr(error.message, "has more than 4194304 ops, those of the functions that it calls included"));

  used = (size_t)snprintf(text, sizeof text, "plir 1 model m\nfunc @f0() {\n}\n");
  for (int i = 1; i <= 70; i++)
    used += (size_t)snprintf(text + used, sizeof text - used, "func @f%d() {\ncall @f%d()\n}\n", i, i - 1);
  assert_int_equal(check(text, &error), PL_BAD_INPUT);
  assert_string_equal(error.message, "t:194:1: calls nest 65 deep here; at most 64");

  used = (size_t)snprintf(text, sizeof text, "plir 1 model m\nfunc @f0() {\n%%x = param \"x\"() : fp32[]\n}\n");
  for (int i = 1; i <= 20; i++)
    used += (size_t)snprintf(text + used, sizeof text - used, "func @f%d() {\ncall @f%d \"a_long.instance\"()\n}\n", i,
                             i - 1);
  assert_int_equal(check(text, &error), PL_BAD_INPUT);
  assert_string_equal(error.message, "t:51:1: a path inside this call has 257 letters; at most 255");
}

/* Without a file: function and op instead of a line. */
static void programs_of_passes_are_named_by_op(void **state) {
  (void)state;
  pl_ir_module module;
  pl_error error = PL_ERROR_INIT;
  pl_ir_module_init(&module, &arena, "made", PL_IR_MODEL);
  pl_ir_function *f = pl_ir_function_add(&module, "f");
  pl_ir_type type = pl_ir_type_of(PL_IR_F32, 1, &(pl_ir_dim){pl_ir_name_of("h"), 4});
  pl_ir_type other = pl_ir_type_of(PL_IR_F32, 1, &(pl_ir_dim){pl_ir_name_of("h"), 5});
  int32_t x = pl_ir_argument(&module, f, "x", &type);
  pl_ir_op_add(&module, f,
               &(pl_ir_making){.row = pl_ir_row_of("relu"),
                               .n_inputs = 1,
                               .inputs = &x,
                               .n_outputs = 1,
                               .output_names = &(const char *){"y"},
                               .output_types = &other,
                               .callee = PL_IR_NONE});
  assert_int_equal(pl_ir_check(&module, &error), PL_BAD_INPUT);
  assert_string_equal(error.message, "program made: @f, op 1 (relu %y): result 1 of relu is written as fp32[h=5]; from "
                                     "its operands follows fp32[h=4]");
  f->ops[0].inputs = &(int32_t){1};
  error = PL_ERROR_INIT;
  assert_int_equal(pl_ir_check(&module, &error), PL_BAD_INPUT);
  assert_string_equal(error.message, "program made: @f, op 1 (relu %y): operand 1 is used before it is made");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(a_right_program_passes, set_up, tear_down),
      cmocka_unit_test_setup_teardown(each_mistake_is_named, set_up, tear_down),
      cmocka_unit_test_setup_teardown(programs_have_an_end, set_up, tear_down),
      cmocka_unit_test_setup_teardown(programs_of_passes_are_named_by_op, set_up, tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
