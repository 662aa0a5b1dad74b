// The figures of a piece of advice: the crossover map (bandwidth x model size, best strategy) and throughput against bandwidth.
#ifndef HARNESS_ADVISE_FIGURES_H
#define HARNESS_ADVISE_FIGURES_H

#include "harness/advise/advise.h"
#include "harness/report/plots.h"

// A model of `scale` times the parameters: every unit, and the work of every call, grows alike; what is kept of activations grows by the root, as with the width.
// Writes FOLDER/crossover-map.* and FOLDER/advise-bandwidth.*. why: as of the plots.
bool advise_figures(const struct advice *a, const char *folder, char why[PLOT_WHY], struct error *error);

#endif
