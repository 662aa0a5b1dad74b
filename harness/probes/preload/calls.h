// Numbers and names of the calls that the probes of communication wrap: `call` of a record.
//
// Each table of calls (socket_calls.h, mpi_calls.h, nccl_calls.h, wait_calls.h) has a range of its own, so that a number alone tells the call.
#ifndef HARNESS_PROBES_PRELOAD_CALLS_H
#define HARNESS_PROBES_PRELOAD_CALLS_H

enum { CALLS_SOCKET = 100, CALLS_MPI = 200, CALLS_NCCL = 400, CALLS_WAIT = 500 };

// "MPI_Put"; "unknown call" where no table has the number.
const char *probe_call_name(unsigned call);

#endif
