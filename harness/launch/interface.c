// See interface.h. A datagram socket that is connected has the address that the kernel would send from, without a packet; whose interface that
// is, tells the list of addresses. To an address of this machine that is the interface that has it.
// Source: connect(2) and udp(7); getifaddrs(3).
#include "harness/launch/interface.h"

#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static bool is_same(const struct sockaddr *a, const struct sockaddr *b)
{
    if (a == NULL || a->sa_family != b->sa_family)
        return false;
    if (a->sa_family == AF_INET)
        return ((const struct sockaddr_in *)a)->sin_addr.s_addr == ((const struct sockaddr_in *)b)->sin_addr.s_addr;
    return memcmp(&((const struct sockaddr_in6 *)a)->sin6_addr, &((const struct sockaddr_in6 *)b)->sin6_addr, sizeof(struct in6_addr)) == 0;
}

// The address that this machine sends from.
static bool source_of(const struct addrinfo *to, struct sockaddr_storage *from)
{
    socklen_t size = sizeof *from;
    int fd = socket(to->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool ok = fd >= 0 && connect(fd, to->ai_addr, to->ai_addrlen) == 0 && getsockname(fd, (struct sockaddr *)from, &size) == 0;
    if (fd >= 0)
        close(fd);
    return ok;
}

bool interface_to(const char *host, char *name, size_t size)
{
    struct addrinfo hints = {.ai_socktype = SOCK_DGRAM}, *found = NULL;
    struct ifaddrs *all = NULL;
    struct sockaddr_storage from;
    bool ok = false;
    if (getaddrinfo(host, "9", &hints, &found) != 0)
        return false;
    if (getifaddrs(&all) == 0 && source_of(found, &from))
        for (const struct ifaddrs *i = all; i != NULL && !ok; i = i->ifa_next)
            if (is_same(i->ifa_addr, (const struct sockaddr *)&from)) {
                snprintf(name, size, "%s", i->ifa_name);
                ok = true;
            }
    freeifaddrs(all);
    freeaddrinfo(found);
    return ok;
}
