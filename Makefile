# fsdpmark: benchmark and conformance tests for Fully Sharded Data Parallel training.
#
#   make run              install what is missing (Debian packages), build, judge the bundled
#                         reference, print the verdict table, write the report to build/report
#   make test             everything that must hold: unit tests, sanitizers, selftest, smoke
#   make                  build everything into build/
#   make unit             the C unit tests alone
#   make implementations  virtual environments in build/ with the pinned Python frameworks
#   make implementation-NAME  what one implementation needs
#   make bench            benchmarks: kernels, the reference's step against PyTorch's, the harness's cost
#   make fuzz             libFuzzer targets; FUZZ_SECONDS=600 each
#   make random           200 random correct configurations of the reference: no false alarm; SEED=1
#   make install          to PREFIX (/usr/local), below DESTDIR where that is set; make uninstall takes it away
#   make info             what was detected
#   make setup            only install the missing Debian packages
#   make clean            remove build/
#
#   CUDA=auto builds the CUDA sources where nvcc is found, CUDA=1 insists, CUDA=0 does not; `make emulated`: the same sources over an
#   emulation of a device, which `make test` runs on any machine (docs/cuda.md).
#   V=1 shows commands; SAN=1 builds with address and undefined-behaviour sanitizers into build/san;
#   BUILD=DIR builds elsewhere; CC=, CFLAGS= and LDFLAGS= as usual.

V ?= 0
SAN ?= 0
BUILD ?= $(if $(filter 1,$(SAN)),build/san,build)
PREFIX ?= /usr/local
CC = gcc
FUZZ_SECONDS ?= 600
SEED ?= 1
VERSION := $(shell sed -n 's/^.define FSDPMARK_VERSION "\(.*\)"/\1/p' harness/library/fsdpmark.h)
Q := $(if $(filter 1,$(V)),,@)

.DEFAULT_GOAL := all
comma := ,
.SUFFIXES:
.DELETE_ON_ERROR:

# ---- what this machine has -------------------------------------------------------------------
REQUIRED := openblas yaml-0.1 jansson sqlite3 libxxhash ompi-c
PACKAGES_cmocka := cmocka
have = $(shell pkg-config --exists $(1) 2>/dev/null && pkg-config --modversion $(1))
MISSING := $(strip $(foreach p,$(REQUIRED) cmocka,$(if $(call have,$(p)),,$(p))))
NEEDS_NOTHING := setup run help info clean uninstall
ifneq ($(MISSING),)
ifneq ($(filter-out $(NEEDS_NOTHING),$(or $(MAKECMDGOALS),all)),)
$(error missing: $(MISSING). Expected these pkg-config modules; `make setup` installs them on Debian 12)
endif
endif
DEP_CFLAGS := $(shell pkg-config --cflags $(REQUIRED) 2>/dev/null)
DEP_LIBS := $(shell pkg-config --libs $(filter-out ompi-c,$(REQUIRED)) 2>/dev/null) -lm -lpthread -ldl
# Optional: PAPI, and libsde of the same package, by which the reference publishes events of its own.
PAPI := $(call have,papi)
SDE := $(if $(PAPI),$(shell $(CC) $(shell pkg-config --cflags papi) -include sde_lib.h -E -x c /dev/null >/dev/null 2>&1 && echo sde))
PAPI_LIBS := $(if $(PAPI),-Wl$(comma)--as-needed $(shell pkg-config --libs papi) $(if $(SDE),-lsde) -Wl$(comma)--no-as-needed)
DEP_CFLAGS += $(if $(PAPI),-DFSDPMARK_PAPI $(shell pkg-config --cflags papi)) $(if $(SDE),-DFSDPMARK_SDE)
MPI_LIBS := $(shell pkg-config --libs ompi-c 2>/dev/null)
COMMIT := $(shell git rev-parse --short=12 HEAD 2>/dev/null)$(shell git diff --quiet HEAD 2>/dev/null || echo +)

# CUDA: an nvcc that knows all of CUDA_ARCHS. The toolkit is where nvcc is.
CUDA ?= auto
CUDA_ARCHS ?= 80 90 100
ifndef NVCC
NVCC := $(or $(shell command -v nvcc 2>/dev/null),$(wildcard /usr/local/cuda/bin/nvcc))
endif
CUDA_HOME := $(patsubst %/bin/nvcc,%,$(if $(NVCC),$(realpath $(shell command -v $(NVCC) 2>/dev/null))))
CUDA_KNOWN := $(if $(NVCC),$(shell $(NVCC) --list-gpu-arch 2>/dev/null))
CUDA_UNKNOWN := $(filter-out $(CUDA_KNOWN:compute_%=%),$(CUDA_ARCHS))
CUDA_WHY_NOT := $(if $(filter-out auto 1 0,$(CUDA)),found CUDA=$(CUDA)$(comma) expected auto$(comma) 1 or 0,$(if $(filter 0,$(CUDA)),CUDA=0,$(if \
  $(NVCC),$(if $(CUDA_UNKNOWN),$(NVCC) does not know $(CUDA_UNKNOWN:%=sm_%),$(if $(filter 1,$(SAN)),SAN=1: sanitizers are of the host)),found no nvcc)))
HAVE_CUDA := $(if $(CUDA_WHY_NOT),,1)
ifndef NCCL_HOME
NCCL_HOME := $(firstword $(patsubst %/include/nccl.h,%,$(wildcard $(CUDA_HOME)/include/nccl.h /usr/include/nccl.h /usr/local/include/nccl.h)))
endif
ifneq ($(if $(HAVE_CUDA),,$(filter-out auto 0,$(CUDA))),)
ifneq ($(filter-out $(NEEDS_NOTHING),$(or $(MAKECMDGOALS),all)),)
$(error CUDA=$(CUDA): $(CUDA_WHY_NOT). Expected the CUDA toolkit (12.8 or later) with nvcc in PATH, NVCC=FILE or /usr/local/cuda; CUDA=0 builds without)
endif
endif

# ---- flags -----------------------------------------------------------------------------------
OPT := -O3
SAN_FLAGS :=
ifeq ($(SAN),1)
OPT := -O1
SAN_FLAGS := -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
endif
CFLAGS ?= -g
override CFLAGS += -std=c11 -D_GNU_SOURCE $(OPT) -fno-math-errno -Wall -Wextra -Werror -Wno-format-truncation $(SAN_FLAGS)
CPPFLAGS += -I. -I$(BUILD)/gen -Iharness/library $(DEP_CFLAGS) -MMD -MP
LDFLAGS += $(SAN_FLAGS) -rdynamic

# ---- sources: every .c of a folder -----------------------------------------------------------
src = $(sort $(foreach d,$(1),$(wildcard $(d)/*.c)))
obj = $(patsubst %.c,$(BUILD)/obj/%.o,$(1))
KERNELS := $(call src,kernels kernels/cpu)
PROTOCOL := $(call src,harness/protocol)
LIBRARY := $(call src,harness/library) # over PROTOCOL and kernels/dtype.c: what an implementation links
STATISTICS := $(call src,harness/statistics) # over PROTOCOL; of workers too, so apart from the harness
TRUTH := $(call src,reference/models reference/truth)
ENGINE := $(call src,reference/sharding reference/engine reference/backends reference/checkpoint)
WORKER := $(call src,reference/worker)
NET := $(call src,harness/net/worker)
CHECKS := $(call src,suite/checks)
HARNESS := $(call src,harness/probes harness/cases harness/launch harness/fabric harness/run harness/judge harness/store harness/report harness/advise harness/net harness/bench)
CLI := $(call src,harness/cli)
NULL := $(call src,suite/implementations/null)
CUDA_SOURCES := $(sort $(wildcard kernels/cuda/*.cu))
CUDA_TESTS := $(sort $(wildcard kernels/cuda/tests/test_*.c kernels/cuda/tests/test_*.cpp))
TESTS := $(filter-out $(CUDA_TESTS),$(sort $(wildcard */tests/test_*.c */*/tests/test_*.c)))
TEST_PROGRAMS := $(patsubst %.c,$(BUILD)/tests/%,$(subst /tests/,/,$(TESTS)))
BENCHES := $(sort $(wildcard */bench/bench_*.c */*/bench/bench_*.c))
BENCH_PROGRAMS := $(patsubst %.c,$(BUILD)/bench/%,$(subst /bench/,/,$(BENCHES)))
FUZZERS := $(patsubst harness/protocol/fuzz/%.c,$(BUILD)/fuzz/%,$(wildcard harness/protocol/fuzz/fuzz_*.c))

LIBS := $(BUILD)/libharness.a $(BUILD)/libstatistics.a $(BUILD)/libreference.a $(BUILD)/libtruth.a $(BUILD)/libprotocol.a $(BUILD)/libkernels.a
SONAME := libfsdpmark.so.$(firstword $(subst ., ,$(VERSION)))
PUBLIC_LIBS := $(BUILD)/libfsdpmark.a $(BUILD)/$(SONAME)
PROGRAMS := $(if $(CLI),$(BUILD)/fsdpmark) $(if $(WORKER),$(BUILD)/fsdp-reference $(BUILD)/fsdp-reference-faulty) \
            $(if $(NULL),$(BUILD)/fsdpmark-null) $(if $(NET),$(BUILD)/fsdpmark-net)

# Preloaded into workers: one library per file of the name of a probe, over the one that the other files make (docs/probes.md).
PROBE_FOLDER := harness/probes/preload
PROBES := $(filter heap socket mpi nccl cuda wait $(if $(PAPI),papi),$(patsubst $(PROBE_FOLDER)/%.c,%,$(call src,$(PROBE_FOLDER))))
PROBE_BASE := $(filter-out $(foreach p,heap socket mpi nccl cuda papi wait,$(PROBE_FOLDER)/$(p).c),$(call src,$(PROBE_FOLDER)))
PROBE_LIBS := $(BUILD)/libfsdpmark-probe.so $(PROBES:%=$(BUILD)/libfsdpmark-probe-%.so)
PROBE_NEEDS_papi := $(if $(PAPI),$(shell pkg-config --libs papi))

CUDA_LIBS := $(if $(HAVE_CUDA),$(BUILD)/libkernels-cuda.a)
CUDA_PROGRAMS := $(if $(HAVE_CUDA),$(BUILD)/fsdp-reference-cuda $(BUILD)/bench-cuda)

all: $(LIBS) $(CUDA_LIBS) $(PUBLIC_LIBS) $(PROBE_LIBS) $(PROGRAMS) $(CUDA_PROGRAMS)

# ---- rules -----------------------------------------------------------------------------------
say = @printf '  %-7s %s\n' '$(1)' '$(2)';
ifeq ($(V),1)
say =
endif

$(BUILD)/obj/%.o: %.c | generated
	$(call say,CC,$<)
	$(Q)mkdir -p $(@D) && $(CC) $(CPPFLAGS) $(CFLAGS) -c $< -o $@
$(BUILD)/faulty/%.o: %.c | generated
	$(call say,CC,$< (faulty))
	$(Q)mkdir -p $(@D) && $(CC) $(CPPFLAGS) -DFSDPMARK_FAULTS $(CFLAGS) -c $< -o $@
$(BUILD)/obj/gen/%.o: $(BUILD)/gen/%.c
	$(Q)mkdir -p $(@D) && $(CC) $(CPPFLAGS) $(CFLAGS) -c $< -o $@

define library
$$(BUILD)/$(1): $(2)
	$$(call say,AR,$$@)
	$$(Q)mkdir -p $$(@D) && rm -f $$@ && ar rcs $$@ $$^
endef
$(eval $(call library,libkernels.a,$(call obj,$(KERNELS))))
$(eval $(call library,libprotocol.a,$(call obj,$(PROTOCOL) $(LIBRARY) $(wildcard kernels/dtype.c))))
$(eval $(call library,libstatistics.a,$(call obj,$(STATISTICS))))
$(eval $(call library,libtruth.a,$(call obj,$(TRUTH))))
$(eval $(call library,libreference.a,$(call obj,$(ENGINE))))
$(eval $(call library,libharness.a,$(call obj,$(HARNESS) $(CHECKS)) $$(BUILD)/obj/gen/check_list.o))

# The library for others: position-independent, and nothing but the names of fsdpmark.h is visible, in the archive too.
PUBLIC := $(patsubst %.c,$(BUILD)/pic/%.o,$(PROTOCOL) $(LIBRARY) $(wildcard kernels/dtype.c))
PUBLIC_NEEDS := -ljansson -lyaml -lm -ldl
$(BUILD)/pic/%.o: %.c | generated
	$(Q)mkdir -p $(@D) && $(CC) $(CPPFLAGS) $(CFLAGS) -fPIC -fvisibility=hidden -c $< -o $@
$(BUILD)/libfsdpmark.a: $(PUBLIC)
	$(call say,AR,$@)
	$(Q)$(CC) -r -nostdlib $^ -o $(BUILD)/pic/fsdpmark.o && objcopy --localize-hidden $(BUILD)/pic/fsdpmark.o && \
	rm -f $@ && ar rcs $@ $(BUILD)/pic/fsdpmark.o
$(BUILD)/$(SONAME): $(PUBLIC)
	$(call say,LD,$@)
	$(Q)$(CC) -shared $(CFLAGS) -Wl,-soname,$(SONAME) $(if $(SAN_FLAGS),,-Wl$(comma)-z$(comma)defs) $^ -o $@ $(PUBLIC_NEEDS)
	$(Q)ln -sf $(SONAME) $(BUILD)/libfsdpmark.so

# Without sanitizers: a library that stands before malloc cannot itself be watched by what stands there.
PROBE_FLAGS = $(filter-out $(SAN_FLAGS),$(CFLAGS)) -O2 -fPIC -fno-builtin -fvisibility=hidden
$(BUILD)/probe/%.o: $(PROBE_FOLDER)/%.c | generated
	$(call say,CC,$<)
	$(Q)mkdir -p $(@D) && $(CC) $(CPPFLAGS) $(PROBE_FLAGS) -c $< -o $@
$(BUILD)/libfsdpmark-probe.so: $(PROBE_BASE:$(PROBE_FOLDER)/%.c=$(BUILD)/probe/%.o)
	$(call say,LD,$@)
	$(Q)$(CC) -shared -Wl,-soname,$(@F) -Wl,-z,defs $^ -o $@ -ldl
$(BUILD)/libfsdpmark-probe-%.so: $(BUILD)/probe/%.o $(BUILD)/libfsdpmark-probe.so
	$(call say,LD,$@)
	$(Q)$(CC) -shared -Wl,-soname,$(@F) -Wl,-rpath,'$$ORIGIN' $^ -o $@ -ldl -lpthread $(PROBE_NEEDS_$*)

.SECONDARY: $(PROBES:%=$(BUILD)/probe/%.o)

LINK = $(CC) $(CFLAGS) $(LDFLAGS) -o $@ $(filter %.o,$^) -Wl,--start-group $(filter %.a,$^) -Wl,--end-group
$(BUILD)/fsdpmark: $(call obj,$(CLI)) $(BUILD)/libharness.a $(BUILD)/libstatistics.a $(BUILD)/libreference.a $(BUILD)/libtruth.a $(BUILD)/libprotocol.a $(BUILD)/libkernels.a
	$(call say,LD,$@)
	$(Q)$(LINK) $(DEP_LIBS) $(PAPI_LIBS)
$(BUILD)/fsdp-reference: $(call obj,$(WORKER)) $(filter-out %/libharness.a,$(LIBS))
	$(call say,LD,$@)
	$(Q)$(LINK) $(DEP_LIBS) $(MPI_LIBS) $(PAPI_LIBS)
$(BUILD)/fsdp-reference-faulty: $(patsubst %.c,$(BUILD)/faulty/%.o,$(WORKER) $(ENGINE)) $(filter-out %/libharness.a %/libreference.a,$(LIBS))
	$(call say,LD,$@)
	$(Q)$(LINK) $(DEP_LIBS) $(MPI_LIBS) $(PAPI_LIBS)
$(BUILD)/fsdpmark-net: $(call obj,$(NET) harness/net/point.c) $(BUILD)/libstatistics.a $(BUILD)/libprotocol.a
	$(call say,LD,$@)
	$(Q)$(LINK) $(DEP_LIBS) $(MPI_LIBS)
$(BUILD)/fsdpmark-null: $(call obj,$(NULL)) $(BUILD)/libfsdpmark.a
	$(call say,LD,$@)
	$(Q)$(LINK) $(PUBLIC_NEEDS)

# A test of folder/tests/test_x.c is the program build/tests/folder/test_x; it may need the built
# programs, so they come first.
define test_program
$$(BUILD)/tests/$(subst /tests/,/,$(1:.c=)): $$(call obj,$(1)) $$(LIBS) | $$(PROGRAMS) $$(PROBE_LIBS)
	$$(call say,LD,$$@)
	$$(Q)mkdir -p $$(@D) && $$(LINK) -lcmocka $$(DEP_LIBS) $$(MPI_LIBS) $$(PAPI_LIBS)
endef
$(foreach t,$(TESTS),$(eval $(call test_program,$(t))))
# Stand-ins for libraries that are not here, which the tests' programs call: build/tests/libstandin-NAME.so.
STANDINS := $(patsubst harness/probes/tests/standin_%.c,$(BUILD)/tests/libstandin-%.so,$(wildcard harness/probes/tests/standin_*.c))
$(BUILD)/tests/libstandin-%.so: harness/probes/tests/standin_%.c | generated
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(CPPFLAGS) $(filter-out $(SAN_FLAGS),$(CFLAGS)) -fPIC -shared -Wl,-soname,$(@F) $< -o $@
$(TEST_PROGRAMS): | $(STANDINS)
define bench_program
$$(BUILD)/bench/$(subst /bench/,/,$(1:.c=)): $$(call obj,$(1)) $$(LIBS)
	$$(call say,LD,$$@)
	$$(Q)mkdir -p $$(@D) && $$(LINK) $$(DEP_LIBS) $$(MPI_LIBS) $$(PAPI_LIBS)
endef
$(foreach t,$(BENCHES),$(eval $(call bench_program,$(t))))

# ---- CUDA: the kernels for a GPU, and the same sources over an emulation of one (docs/cuda.md) ----
# For a GPU. Tests of kernels/cuda/tests but the emulation's own are linked for it too: build/tests/device/, by `make device-tests`; they need one to run.
NVCC_FLAGS = -std=c++17 -O3 -g -fmad=false -Werror all-warnings -Xcompiler -Wall,-Wextra,-Werror,-fno-math-errno \
             $(foreach a,$(CUDA_ARCHS),-gencode arch=compute_$(a),code=sm_$(a))
CUDA_LINK = -L$(CUDA_HOME)/lib64 -Wl,-rpath,$(CUDA_HOME)/lib64 -lcublas -lcudart -lstdc++
$(BUILD)/cuda/%.o: %.cu | generated
	$(call say,NVCC,$<)
	$(Q)mkdir -p $(@D) && $(NVCC) -I. -I$(BUILD)/gen $(NVCC_FLAGS) -MMD -MP -MF $(@:.o=.d) -c $< -o $@
$(BUILD)/cuda/%.o: %.c | generated
	$(call say,CC,$< (cuda))
	$(Q)mkdir -p $(@D) && $(CC) $(CPPFLAGS) -isystem $(CUDA_HOME)/include $(CFLAGS) -c $< -o $@
$(BUILD)/cuda/%.o: %.cpp | generated
	$(call say,NVCC,$<)
	$(Q)mkdir -p $(@D) && $(NVCC) -x cu -I. -I$(BUILD)/gen $(NVCC_FLAGS) -MMD -MP -MF $(@:.o=.d) -c $< -o $@
$(eval $(call library,libkernels-cuda.a,$(CUDA_SOURCES:%.cu=$$(BUILD)/cuda/%.o)))
DEVICE_TESTS := $(filter-out kernels/cuda/tests/test_emulation%,$(CUDA_TESTS))
DEVICE_TEST_PROGRAMS := $(patsubst kernels/cuda/tests/%,$(BUILD)/tests/device/%,$(basename $(DEVICE_TESTS)))
$(BUILD)/tests/device/%: $(BUILD)/cuda/kernels/cuda/tests/%.o $(BUILD)/libkernels-cuda.a $(LIBS)
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D) && $(LINK) -lcmocka $(CUDA_LINK) $(DEP_LIBS) $(MPI_LIBS)

# Emulated, for tests only: never installed, and nothing of it is a GPU's result. Without the address sanitizer, which would have to be told of each
# switch between a block's threads. What a probe may stand before is in shared libraries, as in the toolkit.
EMULATED := $(BUILD)/emulated
CXX = g++
EMULATED_FLAGS = -DFSDPMARK_EMULATION -Ikernels/cuda/tests/include $(CPPFLAGS)
EMULATED_SAN := $(if $(SAN_FLAGS),-fsanitize=undefined -fno-sanitize-recover=all)
EMULATED_CFLAGS = $(filter-out $(SAN_FLAGS) $(OPT),$(CFLAGS)) -O2
EMULATED_CXXFLAGS = -g -std=c++17 -D_GNU_SOURCE -O2 -fno-exceptions -fno-rtti -fno-math-errno -ffp-contract=off -Wall -Wextra -Werror -Wno-unknown-pragmas $(EMULATED_SAN)
EMULATED_LINK = -L$(EMULATED) -Wl,-rpath,'$$ORIGIN:$$ORIGIN/../../emulated' -lcuda-emulated -lstdc++
$(EMULATED)/pic/%.o: %.c | generated
	$(call say,CC,$< (emulated))
	$(Q)mkdir -p $(@D) && $(CC) $(EMULATED_FLAGS) $(EMULATED_CFLAGS) -fPIC -c $< -o $@
$(EMULATED)/%.o: %.c | generated
	$(call say,CC,$< (emulated))
	$(Q)mkdir -p $(@D) && $(CC) $(EMULATED_FLAGS) $(EMULATED_CFLAGS) $(EMULATED_SAN) -c $< -o $@
$(EMULATED)/%.o: %.cu | generated
	$(call say,CXX,$< (emulated))
	$(Q)mkdir -p $(@D) && $(CXX) -x c++ $(EMULATED_FLAGS) $(EMULATED_CXXFLAGS) -c $< -o $@
$(EMULATED)/%.o: %.cpp | generated
	$(call say,CXX,$< (emulated))
	$(Q)mkdir -p $(@D) && $(CXX) $(EMULATED_FLAGS) $(EMULATED_CXXFLAGS) -c $< -o $@
# The runtime and cuBLAS; NCCL over MPI.
$(EMULATED)/libcuda-emulated.so: $(patsubst %.c,$(EMULATED)/pic/%.o,$(call src,kernels/cuda/tests/emulation))
	$(call say,LD,$@)
	$(Q)$(CC) -shared -Wl,-soname,$(@F) -Wl,-z,defs $^ -o $@ $(shell pkg-config --libs openblas) -lm
$(EMULATED)/libnccl-emulated.so: $(patsubst %.c,$(EMULATED)/pic/%.o,$(call src,kernels/cuda/tests/nccl) kernels/dtype.c) $(EMULATED)/libcuda-emulated.so
	$(call say,LD,$@)
	$(Q)$(CC) -shared -Wl,-soname,$(@F) -Wl,-z,defs $(filter %.o,$^) -o $@ -L$(EMULATED) -Wl,-rpath,'$$ORIGIN' -lcuda-emulated $(MPI_LIBS) -lm
$(eval $(call library,emulated/libkernels-cuda.a,$(CUDA_SOURCES:%.cu=$$(EMULATED)/%.o)))
EMULATED_TEST_PROGRAMS := $(patsubst kernels/cuda/tests/%,$(BUILD)/tests/emulated/%,$(basename $(CUDA_TESTS)))
$(BUILD)/tests/emulated/%: $(EMULATED)/kernels/cuda/tests/%.o $(EMULATED)/libkernels-cuda.a $(LIBS) $(EMULATED)/libcuda-emulated.so | $(PROBE_LIBS)
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D) && $(LINK) -lcmocka $(EMULATED_LINK) $(DEP_LIBS) $(MPI_LIBS)
# The worker over CUDA, and its emulated twins: choose_cuda.o stands before choose.o of the archive. Without NCCL's header no_nccl.c takes its place.
CUDA_BACKENDS := $(call src,reference/backends/cuda)
CUDA_NCCL := $(if $(wildcard $(NCCL_HOME)/include/nccl.h),-L$(NCCL_HOME)/lib -Wl$(comma)-rpath$(comma)$(NCCL_HOME)/lib -lnccl)
$(BUILD)/cuda/reference/backends/cuda/cuda_nccl.o: CPPFLAGS += -isystem $(NCCL_HOME)/include
$(BUILD)/fsdp-reference-cuda: $(call obj,$(WORKER)) $(patsubst %.c,$(BUILD)/cuda/%.o,$(filter-out %/$(if $(CUDA_NCCL),no_nccl.c,cuda_nccl.c),$(CUDA_BACKENDS))) \
  $(BUILD)/libkernels-cuda.a $(filter-out %/libharness.a,$(LIBS))
	$(call say,LD,$@)
	$(Q)$(LINK) $(CUDA_NCCL) $(CUDA_LINK) $(DEP_LIBS) $(MPI_LIBS) $(PAPI_LIBS)
$(BUILD)/bench-cuda: $(BUILD)/cuda/kernels/cuda/bench/rates.o $(BUILD)/libkernels-cuda.a $(LIBS)
	$(call say,LD,$@)
	$(Q)$(LINK) $(CUDA_LINK) $(DEP_LIBS)
EMULATED_BACKENDS := $(filter-out %/no_nccl.c,$(CUDA_BACKENDS))
EMULATED_LIBS := $(EMULATED)/libnccl-emulated.so $(EMULATED)/libcuda-emulated.so
$(EMULATED)/faulty/%.o: %.c | generated
	$(call say,CC,$< (emulated, faulty))
	$(Q)mkdir -p $(@D) && $(CC) $(EMULATED_FLAGS) -DFSDPMARK_FAULTS $(EMULATED_CFLAGS) -c $< -o $@
$(EMULATED)/faulty/%.o: %.cu | generated
	$(call say,CXX,$< (emulated, faulty))
	$(Q)mkdir -p $(@D) && $(CXX) -x c++ $(EMULATED_FLAGS) -DFSDPMARK_FAULTS $(EMULATED_CXXFLAGS) -c $< -o $@
$(EMULATED)/fsdp-reference-cuda: $(call obj,$(WORKER)) $(EMULATED_BACKENDS:%.c=$(EMULATED)/%.o) $(EMULATED)/libkernels-cuda.a $(filter-out %/libharness.a,$(LIBS)) | $(EMULATED_LIBS)
	$(call say,LD,$@)
	$(Q)$(LINK) -L$(EMULATED) -lnccl-emulated $(EMULATED_LINK) $(DEP_LIBS) $(MPI_LIBS) $(PAPI_LIBS)
$(EMULATED)/fsdp-reference-cuda-faulty: $(patsubst %.c,$(BUILD)/faulty/%.o,$(filter-out %/choose.c,$(WORKER) $(ENGINE))) $(EMULATED_BACKENDS:%.c=$(EMULATED)/faulty/%.o) \
  $(CUDA_SOURCES:%.cu=$(EMULATED)/faulty/%.o) $(filter-out %/libharness.a %/libreference.a,$(LIBS)) | $(EMULATED_LIBS)
	$(call say,LD,$@)
	$(Q)$(LINK) -L$(EMULATED) -lnccl-emulated $(EMULATED_LINK) $(DEP_LIBS) $(MPI_LIBS) $(PAPI_LIBS)
$(EMULATED)/bench-cuda: $(EMULATED)/kernels/cuda/bench/rates.o $(EMULATED)/libkernels-cuda.a $(LIBS) | $(EMULATED)/libcuda-emulated.so
	$(call say,LD,$@)
	$(Q)$(LINK) $(EMULATED_LINK) $(DEP_LIBS)
# Tests of the backends of CUDA.
CUDA_BACKEND_TESTS := $(if $(SAN_FLAGS),,$(patsubst reference/backends/cuda/tests/%.c,$(BUILD)/tests/emulated/%,$(wildcard reference/backends/cuda/tests/test_*.c)))
EMULATED_TEST_PROGRAMS += $(CUDA_BACKEND_TESTS)
$(CUDA_BACKEND_TESTS): $(BUILD)/tests/emulated/%: $(EMULATED)/reference/backends/cuda/tests/%.o $(EMULATED_BACKENDS:%.c=$(EMULATED)/%.o) $(EMULATED)/libkernels-cuda.a $(LIBS) | $(EMULATED_LIBS) $(PROBE_LIBS)
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D) && $(LINK) -lcmocka -L$(EMULATED) -lnccl-emulated $(EMULATED_LINK) $(DEP_LIBS) $(MPI_LIBS)
EMULATED_PROGRAMS := $(if $(SAN_FLAGS),,$(EMULATED)/fsdp-reference-cuda $(EMULATED)/fsdp-reference-cuda-faulty $(EMULATED)/bench-cuda)
.PHONY: emulated device-tests
emulated: $(EMULATED_PROGRAMS) $(EMULATED_TEST_PROGRAMS)
device-tests: $(if $(HAVE_CUDA),$(DEVICE_TEST_PROGRAMS))
	$(if $(HAVE_CUDA),,$(error device-tests: $(CUDA_WHY_NOT)))
.SECONDARY: $(foreach t,$(basename $(CUDA_TESTS)),$(EMULATED)/$(t).o $(BUILD)/cuda/$(t).o)

# ---- generated sources -----------------------------------------------------------------------
CHECK_NAMES := $(patsubst suite/checks/%.c,%,$(CHECKS))
GENERATED := $(BUILD)/gen/check_list.c $(BUILD)/gen/version.h $(BUILD)/gen/schema.h $(BUILD)/gen/results.h
.PHONY: generated FORCE
generated: $(GENERATED)
# Files below are rewritten only where their text changes, so that nothing is rebuilt for nothing.
update = mkdir -p $(@D) && { cmp -s $@.new $@ && rm -f $@.new || mv $@.new $@; }
$(BUILD)/gen/check_list.c: FORCE
	$(Q)mkdir -p $(@D) && { echo '#include "suite/checks/check.h"'; \
	for c in $(CHECK_NAMES); do echo "extern const struct check check_$$c;"; done; \
	echo 'const struct check *const check_list[] = {'; for c in $(CHECK_NAMES); do echo "    &check_$$c,"; done; \
	echo '    0};'; } > $@.new; $(update)
$(BUILD)/gen/version.h: FORCE
	$(Q)mkdir -p $(@D) && { echo '#define FSDPMARK_VERSION "$(VERSION)"'; echo '#define FSDPMARK_COMMIT "$(COMMIT)"'; } > $@.new; $(update)
RESULT_TEXTS := $(filter-out %/roofline.gp,$(wildcard results/plots/*.gp results/*.css)) # make bench draws the roofline
SCHEMA := results/schema.sql $(wildcard results/schema-*.sql)
$(BUILD)/gen/schema.h: $(SCHEMA) harness/report/embed.sh
	$(Q)mkdir -p $(@D) && sh harness/report/embed.sh $(SCHEMA) > $@
$(BUILD)/gen/results.h: $(RESULT_TEXTS) harness/report/embed.sh
	$(Q)mkdir -p $(@D) && sh harness/report/embed.sh $(RESULT_TEXTS) > $@
FORCE:

# ---- set up, run, test -----------------------------------------------------------------------
.PHONY: all run setup test unit san selftest smoke implementations bench fuzz random install uninstall info help clean
setup:
	$(Q)sh harness/setup/debian.sh

run: setup
	$(Q)$(MAKE) --no-print-directory all
	$(Q)$(BUILD)/fsdpmark check -i reference -p smoke --store $(BUILD)/results.db; status=$$?; \
	$(BUILD)/fsdpmark report --store $(BUILD)/results.db -o $(BUILD)/report || exit $$?; exit $$status

unit: all emulated $(TEST_PROGRAMS)
	$(Q)sh harness/tests/run.sh unit $(BUILD) $(TEST_PROGRAMS) $(EMULATED_TEST_PROGRAMS)
test: all emulated $(TEST_PROGRAMS)
	$(Q)MAKE='$(MAKE)' sh harness/tests/run.sh $(if $(filter 1,$(SAN)),san,all) $(BUILD) $(TEST_PROGRAMS) $(EMULATED_TEST_PROGRAMS)
selftest: all
	$(Q)$(BUILD)/fsdpmark selftest --store $(BUILD)/results.db
smoke: all
	$(Q)$(BUILD)/fsdpmark check -i reference -p smoke --store $(BUILD)/results.db
implementations:
	$(Q)sh suite/implementations/install.sh $(BUILD)
implementation-%: FORCE
	$(Q)sh suite/implementations/install.sh $(BUILD) $*
bench: all $(BENCH_PROGRAMS)
	$(Q)sh harness/bench/run.sh $(BUILD) $(BENCH_PROGRAMS)
random: all
	$(Q)$(BUILD)/fsdpmark random --count 200 --seed $(SEED) -o $(BUILD)/random.yaml
	$(Q)$(BUILD)/fsdpmark check -i reference --case $(BUILD)/random.yaml --store $(BUILD)/results.db

FUZZ_SOURCES := $(PROTOCOL) $(TRUTH) $(KERNELS) $(call src,harness/cases)
$(BUILD)/fuzz/%: harness/protocol/fuzz/%.c $(FUZZ_SOURCES) | generated
	$(call say,FUZZ,$@)
	$(Q)mkdir -p $(@D) && clang -g -O1 -std=c11 -D_GNU_SOURCE -I. -I$(BUILD)/gen $(DEP_CFLAGS) \
	  -fsanitize=fuzzer,address,undefined $< $(FUZZ_SOURCES) -o $@ $(DEP_LIBS)
fuzz: $(FUZZERS)
	$(Q)sh harness/protocol/fuzz/run.sh $(BUILD) $(FUZZ_SECONDS) $(FUZZERS)

AT = $(DESTDIR)$(PREFIX)
# Programs outside the system's folders find the library where it was installed.
RPATH = $(if $(filter /usr,$(PREFIX)),,-Wl$(comma)-rpath$(comma)$(PREFIX)/lib )
install: all
	$(Q)install -d '$(AT)/bin' '$(AT)/include' '$(AT)/lib/pkgconfig' '$(AT)/lib/fsdpmark' '$(AT)/share/fsdpmark' '$(AT)/share/man/man1' '$(AT)/share/man/man3'
	$(Q)install -m 755 $(PROGRAMS) $(filter %/fsdp-reference-cuda,$(CUDA_PROGRAMS)) '$(AT)/bin'
	$(Q)install -m 644 harness/library/fsdpmark.h '$(AT)/include'
	$(Q)install -m 644 $(BUILD)/libfsdpmark.a '$(AT)/lib'
	$(Q)install -m 755 $(BUILD)/$(SONAME) '$(AT)/lib' && ln -sf $(SONAME) '$(AT)/lib/libfsdpmark.so'
	$(Q)install -m 755 $(PROBE_LIBS) '$(AT)/lib/fsdpmark'
	$(Q)sed 's|@prefix@|$(PREFIX)|;s|@version@|$(VERSION)|;s|@rpath@|$(RPATH)|;s|@needs@|$(PUBLIC_NEEDS)|' harness/library/fsdpmark.pc.in \
	  > '$(AT)/lib/pkgconfig/fsdpmark.pc'
	$(Q)install -m 644 docs/man/fsdpmark.1 '$(AT)/share/man/man1' && install -m 644 docs/man/fsdpmark.3 '$(AT)/share/man/man3'
	$(Q)for f in $$(sed -n 's/^\.Fn \(fsdpmark_[a-z_]*\) .*/\1/p' docs/man/fsdpmark.3 | sort -u); do \
	  ln -sf fsdpmark.3 '$(AT)/share/man/man3/'$$f.3; done
	$(Q)rm -rf '$(AT)/share/fsdpmark/suite' && cp -r suite results docs '$(AT)/share/fsdpmark/'
	$(Q)rm -rf '$(AT)/share/fsdpmark/docs/man' '$(AT)/share/fsdpmark/suite/checks'
	$(Q)find '$(AT)/share/fsdpmark' -name __pycache__ -prune -exec rm -rf {} +
uninstall:
	$(Q)rm -f $(foreach p,$(notdir $(PROGRAMS)) fsdp-reference-cuda,'$(AT)/bin/$(p)') '$(AT)/include/fsdpmark.h' '$(AT)/lib/libfsdpmark.a' \
	  '$(AT)/lib/libfsdpmark.so' '$(AT)/lib/$(SONAME)' '$(AT)/lib/pkgconfig/fsdpmark.pc' '$(AT)/share/man/man1/fsdpmark.1' \
	  '$(AT)/share/man/man3/fsdpmark.3' '$(AT)/share/man/man3/'fsdpmark_*.3
	$(Q)rm -rf '$(AT)/share/fsdpmark' '$(AT)/lib/fsdpmark'

info:
	@printf '%-14s %s\n' version '$(VERSION) $(COMMIT)' compiler '$(shell $(CC) --version | head -1)' flags '$(CFLAGS)'
	@printf '%-14s %s\n' $(foreach p,$(REQUIRED) cmocka,$(p) '$(or $(call have,$(p)),missing: make setup)') \
	  papi '$(or $(PAPI),not found: check --counters refuses)' sde '$(if $(SDE),with PAPI,not found: the reference publishes no software-defined events)' \
	  gnuplot '$(or $(shell gnuplot --version 2>/dev/null),not found: reports will have no figures)' \
	  cuda '$(if $(HAVE_CUDA),nvcc $(shell $(NVCC) --version | sed -n 's/.*release \([0-9.]*\).*/\1/p') of $(CUDA_HOME)$(comma) $(CUDA_ARCHS:%=sm_%),none: $(CUDA_WHY_NOT))$(comma) emulated in tests' \
	  venv '$(if $(wildcard build/venv/bin/python),build/venv,none: make implementations)'
help:
	@sed -n 's/^# \{0,1\}//p;/^$$/q' Makefile
clean:
	$(Q)rm -rf $(BUILD)

-include $(shell find $(BUILD)/obj $(BUILD)/pic $(BUILD)/probe $(BUILD)/faulty $(BUILD)/cuda $(BUILD)/emulated -name '*.d' 2>/dev/null)
