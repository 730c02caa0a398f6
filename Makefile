# Front door: every target delegates; `make help` lists them.
#   make lab TOPO=dumbbell RTT=100
# BUNDLE=FILE, with any target: a release bundle instead of compilers (off: none); FOR for bundle.
# Variables: TOPO (a template's name or a file), RTT (ms when bare), RATE, PAIRS, BUFFER, LOSS, MTU, IP, ROUTING, RUNTIME,
# EMULATOR, NAME; OPTS for any other option (OPTS='--arms 100'); NODE and CMD for shell, exec and capture; LINK and SET for set;
# PREFIX for install and uninstall; DO for batch (more than one: OPTS="--do '…' --service '…'"); SCENARIO, SIZE, SET and SEEDS for run; ARCHIVE for rerun;
# TAG, NAME and NOTE for run, hstts and tag; TAG, SCENARIO, SINCE and STATUS for runs; RUN for report, export, tag and archive; FIGURE for report; LICENCE and AUTHOR for archive; KIND for images; LAB and STUDENT for notebook; FILE for trace, transfers and adopt; those of HSTTS are in docs/how-to/experiments/hstts.md.
TOPO ?= dumbbell
NODE ?=
CMD ?=
EWAN := .venv/bin/ewan

# A bare RTT is milliseconds. This is the only place in the project that adds a unit.
digits = $(subst 0,,$(subst 1,,$(subst 2,,$(subst 3,,$(subst 4,,$(subst 5,,$(subst 6,,$(subst 7,,$(subst 8,,$(subst 9,,$(subst .,,$(1))))))))))))
rtt = $(if $(call digits,$(RTT)),$(RTT),$(RTT)ms)
# Only what stands on make's command line counts: NAME is in the environment of some systems.
given = $(if $(filter command,$(firstword $(origin $(1)))),$($(1)))
# Links for arm64.
CROSS_LINKER = CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
option = $(if $(call given,$(1)),--$(2) '$(or $(3),$($(1)))')
LAB_OPTIONS = $(call option,RTT,rtt,$(rtt)) $(call option,RATE,rate) $(call option,PAIRS,pairs) \
  $(call option,BUFFER,buffer) $(call option,LOSS,loss) $(call option,MTU,mtu) $(call option,IP,ip) \
  $(call option,ROUTING,routing) $(call option,RUNTIME,runtime) $(call option,EMULATOR,emulator) $(call option,NAME,name) $(OPTS)
HSTTS_OPTIONS = $(call option,APP,app) $(call option,TOPO,topo) $(call option,RTT,rtt,$(rtt)) \
  $(call option,RATE,rate) $(call option,CC,cc) $(call option,CG,cg) $(call option,R,r) $(call option,K,k) \
  $(call option,M,m) $(call option,CA,ca) $(call option,NS,ns) $(call option,B,b) $(call option,MTU,mtu) \
  $(call option,LOSS,loss) $(call option,BUFFER,buffer) $(SIZED) \
  $(call option,NORMALISE,normalise) $(call option,CONSTRAINT,constraint) $(call option,GENERATOR,generator) $(SETTINGS) \
  $(call option,SEEDS,seeds) $(call option,RUNTIME,runtime) $(TAGGED) $(CALLED) $(OPTS)
TAGGED = $(if $(call given,TAG),$(foreach word,$(TAG),--tag '$(word)'))
CALLED = $(call option,NAME,name,$(subst ','\'',$(NAME))) $(call option,NOTE,note,$(subst ','\'',$(NOTE)))
SETTINGS = $(if $(call given,SET),$(foreach word,$(SET),--set '$(word)'))
# SCALE and PROFILE are the names of SIZE in version 0.1; they work until 0.4.
SIZED = $(call option,SIZE,size) $(call option,SCALE,size) $(call option,PROFILE,size)
WHICH = $(call option,NAME,lab)
NAMED = $(if $(call given,NAME),'$(NAME)')

.PHONY: collect help setup install uninstall kernel bundle wheel sdist machine mpi quic udt images image setup-cluster setup-gym setup-notebook notebook course setup-containerlab lab batch run rerun archive hstts transfers report export runs store tag compile up down adopt ps exec shell capture verify certificate calibrate set watch trace metrics doctor studio check check-aarch64 test torture lint lint-rust lint-python lint-page bench papers figures docs clean

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 26
setup: ## what the project needs, checked and installed
	@./setup.sh $(if $(filter setup,$(MAKECMDGOALS)),asked)
install: setup ## ewan on the PATH: a launcher in ~/.local/bin (PREFIX=/usr/local: in its bin)
	@./launcher.sh install $(if $(call given,PREFIX),'$(PREFIX)')
uninstall: ## remove the launcher that make install wrote (PREFIX=)
	@./launcher.sh uninstall $(if $(call given,PREFIX),'$(PREFIX)')
kernel: setup ## the kernel of the virtual clock, built once
	@images/kernel/build.sh >/dev/null
bundle: setup ## the virtual kernel and the node binary for machines without compilers, into target/bundle (FOR=aarch64: the binary alone)
	@$(if $(filter aarch64,$(call given,FOR)),./setup.sh aarch64)
	@$(CROSS_LINKER) python3 -m images.bundle.pack $(call option,FOR,for)
wheel: setup ## the package that pip installs, with the node binary and the virtual kernel, into target/wheel (FOR=aarch64: the binary alone)
	@./setup.sh studio
	@$(if $(filter aarch64,$(call given,FOR)),./setup.sh aarch64)
	@$(CROSS_LINKER) EWAN_WHEEL_FOR=$(call given,FOR) .venv/bin/python -m hatchling build -t wheel -d target/wheel
sdist: setup ## the sources as an archive, into target/wheel
	@.venv/bin/python -m images.wheel.sdist
image: wheel ## the container image of ewan itself: the virtual clock without root in Docker and Podman
	@./setup.sh images
	@images/product/build.sh >/dev/null
machine: ## what hosts that say `machine:` boot, with Debian's own kernel, built once
	@./setup.sh machine
	@images/machine/build.sh >/dev/null
mpi: ## the ranks of `generator: openmpi`, built once with Debian's libopenmpi-dev
	@./setup.sh mpi
	@generator/mpi/build.sh >/dev/null
quic: ## the senders and receivers of `quic:`, quinn and s2n-quic built once with Rust, quic-go with Go, and aioquic of PyPI
	@./setup.sh quic
udt: ## the sender and receiver of `generator: udt`, built once with Debian's libudt-dev
	@./setup.sh udt
	@generator/udt/build.sh >/dev/null
images: ## container images of the nodes, from Debian packages; KIND="host router switch emulator" (RELOCK=1: newer ones)
	@./setup.sh images
	@images/build-images.sh $(if $(call given,KIND),$(KIND)) >/dev/null
setup-cluster: setup ## the Python packages that runs on other machines' cores need: Dask and its schedulers (docs/how-to/experiments/executors.md)
	@./setup.sh cluster
studio: setup ## the lab in a browser: draw, run, watch (OPTS="--lab my.lab.yaml --port 8765"; docs/how-to/labs/studio.md)
	@./setup.sh studio
	@$(EWAN) studio $(OPTS)
setup-gym: setup ## Gymnasium, for learned congestion controls (docs/how-to/experiments/gym.md)
	@./setup.sh gym
setup-notebook: setup ## JupyterLab, for the notebooks of teaching labs (docs/tutorials/course.md)
	@./setup.sh notebook
course: setup ## teaching labs that check themselves; OPTS="start bufferbloat --student 1234"
	@$(EWAN) course $(OPTS)
notebook: setup-notebook ## a teaching lab in JupyterLab; LAB=bufferbloat STUDENT=1234 (STUDENT where its folder is not there yet)
	@[ -e '$(call given,LAB)' ] || $(EWAN) course start '$(call given,LAB)' --student '$(call given,STUDENT)'
	@.venv/bin/jupyter lab '$(call given,LAB)' $(OPTS)
setup-containerlab: ## containerlab of the pinned version, built from source once
	@./setup.sh containerlab
	@images/containerlab/build.sh >/dev/null
lab: setup ## compile, bring up, verify, print; TOPO= RTT= RATE= … RUNTIME=netns|containerlab|virtual
	@$(EWAN) lab '$(TOPO)' $(LAB_OPTIONS)
batch: setup ## up, commands in nodes, down; DO='left1: ping -c 3 right1' RUNTIME= TOPO= …
	@$(EWAN) lab batch '$(TOPO)' $(LAB_OPTIONS) $(call option,DO,do,$(subst ','\'',$(DO)))
run: setup ## a scenario, from its lab to its report; SCENARIO= SIZE= SET="key=value …" SEEDS= RUNTIME= TAG= NAME= NOTE=
	@$(EWAN) run $(if $(call given,SCENARIO),'$(SCENARIO)') $(SIZED) $(SETTINGS) $(call option,SEEDS,seeds) \
	  $(call option,RUNTIME,runtime) $(TAGGED) $(CALLED) $(OPTS)
rerun: setup ## an experiment once more, compared with the first; ARCHIVE=results/…/….tar.zst
	@$(EWAN) exp rerun $(if $(call given,ARCHIVE),'$(ARCHIVE)') $(OPTS)
archive: setup ## an experiment for others: RO-Crate with reproduce.sh; RUN=results/… LICENCE=CC-BY-4.0 AUTHOR="Family, Given <orcid>"
	@$(EWAN) exp archive $(if $(call given,RUN),'$(RUN)') $(call option,LICENCE,licence) $(call option,AUTHOR,author,$(subst ','\'',$(AUTHOR))) $(OPTS)
hstts: setup ## test suite of transport protocols; APP=TU|WM|PP|BU|PA|all RTT= RATE= CC= CG= R= … SIZE=quick|full
	@$(EWAN) suite hstts $(HSTTS_OPTIONS)
transfers: setup ## bulk transfers planned as TS1 and TS2 of the eWAN paper; FILE=requests.yaml RUNTIME= (OPTS=--run: run them)
	@$(EWAN) suite transfers '$(FILE)' $(call option,RUNTIME,runtime) $(TAGGED) $(CALLED) $(OPTS)
report: setup ## HTML report and figures of an experiment; RUN=results/… FIGURE="goodput by buffer" (FLENT=DIR: files for flent)
	@$(EWAN) results report $(if $(call given,RUN),'$(RUN)') $(call option,FIGURE,figure) $(call option,FLENT,flent) $(OPTS)
export: setup ## results for papers and programs; RUN=results/… LATEX=DIR CSV=DIR PARQUET=DIR FLENT=DIR; a scenario: NXE=FILE.xml NS2=FILE.tcl NS3=FILE.cc
	@$(EWAN) results export $(if $(call given,RUN),'$(RUN)') $(call option,LATEX,latex) $(call option,CSV,csv) $(call option,PARQUET,parquet) $(call option,FLENT,flent) \
	  $(call option,NXE,nxe) $(call option,NS2,ns2) $(call option,NS3,ns3) $(SIZED) $(SETTINGS) $(OPTS)
runs: setup ## what was run, when, with what result; TAG=satellite SCENARIO= SINCE=2d STATUS=complete
	@$(EWAN) exp list $(TAGGED) $(call option,SCENARIO,scenario) $(call option,SINCE,since) $(call option,STATUS,status) $(OPTS)
collect: setup ## what shards of a study left becomes one experiment; RUN=results/STUDY
	@$(EWAN) exp collect $(if $(call given,RUN),'$(RUN)') $(OPTS)
store: setup ## what is kept of runs of the virtual clock; OPTS="verify", OPTS="prune --older-than 30d"
	@$(EWAN) exp store $(OPTS)
tag: setup ## name, tags and note of an experiment; RUN=results/… TAG="+satellite -draft" NAME= NOTE=
	@$(EWAN) exp tag $(if $(call given,RUN),'$(RUN)') $(call given,TAG) $(CALLED) $(OPTS)
compile: setup ## plan, picture and table of a description into out/
	@$(EWAN) lab compile '$(TOPO)' $(LAB_OPTIONS)
up: setup ## as lab, without the verification
	@$(EWAN) up '$(TOPO)' $(LAB_OPTIONS)
down: setup ## remove the lab (NAME=, or all of yours)
	@$(EWAN) down $(or $(NAMED),--all)
adopt: setup ## FILE=out/NAME.clab.yml, deployed by containerlab: ps, verify, set, watch, down know it
	@$(EWAN) lab adopt $(if $(call given,FILE),'$(FILE)') $(OPTS)
ps: setup ## labs, nodes, addresses, links
	@$(EWAN) ps $(NAMED)
exec: setup ## NODE= CMD="…"
	@$(EWAN) lab exec $(WHICH) '$(NODE)' -- sh -c '$(subst ','\'',$(CMD))'
shell: setup ## NODE=
	@$(EWAN) lab shell $(WHICH) '$(NODE)'
capture: setup ## NODE= or NODE=LINK: packets until Ctrl-C; OPTS="-w FILE"
	@$(EWAN) lab capture $(WHICH) '$(NODE)' $(OPTS)
verify: setup ## measure every link of the running lab again
	@$(EWAN) lab verify $(NAMED)
certificate: setup ## what a lab was measured to do: the last one, RUN=results/… or NAME=
	@$(EWAN) lab certificate $(or $(if $(call given,RUN),'$(RUN)'),$(NAMED))
calibrate: setup ## what this host can be trusted with (SIZE=quick|full); with TOPO= RTT= …: that lab as deployed
	@$(EWAN) measure $(if $(call given,TOPO),lab '$(TOPO)' $(LAB_OPTIONS),host $(SIZED) $(OPTS))
set: setup ## LINK= SET="rate=500Mbit/s at=+10s"
	@$(EWAN) lab set $(WHICH) '$(LINK)' $(SET)
watch: setup ## live view of rates, queues and drops
	@$(EWAN) lab watch $(NAMED)
trace: setup ## what a trace of a link's rate, delay and loss holds; FILE=
	@$(EWAN) trace check '$(FILE)' $(OPTS)
metrics: setup ## links' counters for Prometheus, at 127.0.0.1:9324 (LISTEN=)
	@$(EWAN) lab metrics $(NAMED) $(call option,LISTEN,listen) $(OPTS)
doctor: setup ## what this machine can do, and what follows
	@$(EWAN) doctor
check: ## the quick tests, which need no lab: pure Python and Rust, the models of both clocks
	@./setup.sh check
	@.venv/bin/python -m tests.run check
check-aarch64: ## the node binary for arm64, and the tests of Rust that need no lab, emulated by qemu-user; half a minute after the build
	@./setup.sh aarch64
	@.venv/bin/python -m tests.run aarch64
test: ## every test
	@./setup.sh tests
	@images/kernel/build.sh >/dev/null
	@images/machine/build.sh >/dev/null
	@generator/udt/build.sh >/dev/null
	@generator/quic/build.sh >/dev/null
	@generator/quic/aioquic.sh >/dev/null
	@generator/quic/go.sh >/dev/null
	@generator/mpi/build.sh >/dev/null
	@images/build-images.sh --archives >/dev/null
	@images/containerlab/build.sh >/dev/null
	@.venv/bin/python -m ewan.calibration.link_model
	@.venv/bin/python -m tests.run all
torture: setup ## trials with random seeds, tried/failed; NAMES="kills mutants" OPTS=--long
	@.venv/bin/python -m tests.torture $(call given,NAMES) $(OPTS)
lint: ## rustfmt, clippy, ruff, mypy, TypeScript and biome
	@$(MAKE) --no-print-directory -j2 lint-rust lint-python lint-page
lint-rust:
	@cargo fmt --check
	@cd emulator/kernel/ewan && cargo fmt --check
	@cd generator/quic && cargo fmt --check && cd s2n && cargo fmt --check
	@cargo clippy --profile checked --locked --quiet --all-targets -- -D warnings
	@cd emulator/kernel/ewan && cargo clippy --release --locked --quiet -- -D warnings
	@generator/quic/lint.sh
lint-python: setup
	@./setup.sh lint
	@.venv/bin/ruff check . && .venv/bin/ruff format --check .
	@.venv/bin/mypy
lint-page:
	@extras/studio/page/check.sh
bench: setup ## performance, side by side, into results/bench/
	@cargo build --release --locked --quiet -p ewan-datapath --bins
	@.venv/bin/python -m tests.bench $(PART) $(OPTS)
papers: setup mpi ## what papers found, run again, with verdicts; SIZE=quick|full NAMES="nxe-table-4 …"
	@$(EWAN) suite papers $(or $(call given,NAMES),all) $(SIZED) $(OPTS)
figures: setup ## figures of papers, measured again in the virtual clock, into results/figures/
	@$(EWAN) suite figures
docs: setup ## the documentation as a site that works offline, with a search: out/site/index.html
	@./setup.sh docs
	@NO_MKDOCS_2_WARNING=1 .venv/bin/mkdocs build --strict --quiet
	@echo "out/site/index.html"
clean: ## what was built here (labs that are up stay up; images stay in the engine); CACHE=1: and the cache that clones share
	@[ ! -x .venv/bin/python ] || .venv/bin/python -m tests.container_engine stop >/dev/null
	@rm -rf target .venv out
	@[ -z '$(call given,CACHE)' ] || { root=$$(pwd); . images/cache.sh; forget; }
