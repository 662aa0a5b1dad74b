// Which settings of Open MPI suit a fabric over TCP: the candidates, what was measured of each, and which is chosen.
//
// What: the fabric's own settings; the same with another number of links; Open MPI's own choice, with nothing but the transport named; what docs/net.md says of shaped lines. Each
//       is measured in what sharded training asks for: an all-gather and a reduce-scatter of float32, nonblocking, at once on one communicator.
// How:  the fabric's own are kept unless another is shown to be faster: unless the interval of the quotient of both lies below 1, which takes four
//       starts of each (statistics_launches_coverage).
#ifndef HARNESS_ADVISE_SETTINGS_H
#define HARNESS_ADVISE_SETTINGS_H

#include <stdio.h>

#include "harness/fabric/fabric.h"
#include "harness/net/rows.h"

enum { SETTINGS_MOST = 4, SETTING_TEXT = 160 };
struct setting {
    char name[SETTING_TEXT];
    char *mca[FABRIC_WORDS + 1];   // "NAME=VALUE", NULL at the end; owned
    int64_t run;                   // of net that measured it, 0: none
    struct interval seconds;       // at a coverage that leaves the quotient one of 95 %; count 0: not measured
    int starts;                    // that the seconds are over
    struct interval over_first;    // quotient over the fabric's own
    char failed[SETTING_TEXT];     // why it could not be measured, or ""
};
struct settings {
    int count, chosen;             // count 1: no others were tried
    char why[SETTING_TEXT];        // why not, or ""
    int64_t bytes;                 // of each call
    int ranks;
    struct setting items[SETTINGS_MOST];
};

// Open MPI is told to use TCP.
bool settings_tcp(char *const *mca);
// The fabric's own first; those that come to the same are one. To be freed.
void settings_make(const struct fabric *f, struct settings *out);
void settings_free(struct settings *s);
// Seconds of one from a run of net. Errors: it did not measure the call.
bool settings_take(struct setting *s, const struct net_rows *rows, struct error *error);
void settings_choose(struct settings *s);
// A fabric file that is `f` with these options. Errors: it cannot be written.
bool settings_write(const struct fabric *f, char *const *mca, const char *path, struct error *error);

// "mpirun --mca NAME VALUE ...", as a shell takes it. Owned by the caller.
char *settings_mpirun(char *const *mca);
void settings_print(const struct settings *s, const char *fabric, FILE *out);
json_t *settings_json(const struct settings *s);

#endif
