// Steps and bytes of the collectives of a group, on two tiers. See model.h and docs/advise.md.
//
// B bytes over n ranks, near = n' of them in a group of tier 0, G = n / n' groups; p the largest part (B / n where all are equal).
//            tier 0 [bytes]        tier 1 [bytes]            alpha
//   direct   (n - 1) p             (n - n') p                the larger of the tiers in use: everything is sent at once
//   ring     (n' - 1) / n' B'      (G - 1) / G B' / n'       (n' - 1) alpha0 + (G - 1) alpha1
//   tree     the same              the same                  log2 n' alpha0 + log2 G alpha1
// with B' = n p, so that parts of unequal size cost as the largest. Of direct, what goes to another group passes the rank's own line too; ring and tree
// go between groups once for all ranks near, each with its share, on a line of its own (a network card each).
#include "harness/advise/model.h"

struct group exchange_group(const struct machine *m, int ranks, int stride)
{
    int near = m->tiers[1].ranks > 0 && m->tiers[0].ranks > 0 ? m->tiers[0].ranks / stride : ranks;
    return (struct group){ranks, near < 1 ? 1 : near > ranks ? ranks : near};
}

static double steps(enum exchange e, double ranks) { return e == EXCHANGE_RING ? ranks - 1 : ceil(log2(ranks)); }

static struct phase direct(const struct machine *m, struct group g, double part)
{
    double inside = g.near > 1 ? m->tiers[0].alpha_s : 0, between = g.ranks > g.near ? m->tiers[1].alpha_s : 0;
    return (struct phase){.alpha_s = fmax(inside, between), .bytes = {(g.ranks - 1) * part, (g.ranks - g.near) * part}, .message_bytes = part};
}

struct phase exchange_half(const struct machine *m, struct group g, double bytes, double part_bytes)
{
    double part = fmax(part_bytes, bytes / g.ranks), all = part * g.ranks, near = g.near, groups = ceil((double)g.ranks / near);
    if (g.ranks == 1)
        return (struct phase){0};
    if (m->exchange == EXCHANGE_DIRECT)
        return direct(m, g, part);
    return (struct phase){.alpha_s = steps(m->exchange, near) * m->tiers[0].alpha_s + steps(m->exchange, groups) * m->tiers[1].alpha_s,
                          .bytes = {(near - 1) / near * all, (groups - 1) / groups * all / near}, .message_bytes = part};
}

double exchange_sent(struct group g, double bytes, double part_bytes)
{
    return (g.ranks - 1) * fmax(part_bytes, bytes / g.ranks);
}

double phase_seconds(const struct machine *m, const struct phase *p)
{
    return p->alpha_s + fmax(p->bytes[0] * m->tiers[0].beta_s_per_byte, p->bytes[1] * m->tiers[1].beta_s_per_byte);
}
