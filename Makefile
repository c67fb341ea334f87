# Everything a contributor types. `make demo` and `make test` are all that a
# fresh machine with Go and git needs.

GO      ?= go
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null)
PAYLOAD  = internal/payload
SHA256   = $(shell command -v sha256sum || echo shasum -a 256)
LDFLAGS  = -s -w -X main.version=$(VERSION)
# Where the program is built.
PROGRAM ?= bin/litterbox

.PHONY: build demo test test-agents test-beside test-tools test-walkers check bench benchmarks first-merge payload full clean crash faults fuzz fuzz-walls full-disks soak test-git test-openssh test-editors test-projects test-large test-tutorials test-containers test-engines test-machines test-vm test-arm64 test-release test-packages test-listings test-places test-contract test-cuts test-streams redteam release

build: payload full ## the program, with keeper, guest and what is heavy and rare carried inside
	CGO_ENABLED=0 $(GO) build -trimpath -tags embedguest -ldflags '$(LDFLAGS)' -o $(PROGRAM) ./cmd/litterbox

# One small Linux program for each kind of guest and of outpost, and the keeper of
# this system, compressed.
payload:
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w' -o bin/litterbox-keeper ./cmd/litterbox-keeper
	gzip -9nc bin/litterbox-keeper > $(PAYLOAD)/litterbox-keeper.gz
	$(SHA256) bin/litterbox-keeper | cut -c 1-64 > $(PAYLOAD)/litterbox-keeper.id
	@for arch in amd64 arm64; do for program in guest outpost; do \
		CGO_ENABLED=0 GOOS=linux GOARCH=$$arch $(GO) build -trimpath -ldflags '-s -w' -o bin/litterbox-$$program-linux-$$arch ./cmd/litterbox-$$program && \
		gzip -9nc bin/litterbox-$$program-linux-$$arch > $(PAYLOAD)/litterbox-$$program-linux-$$arch.gz && \
		$(SHA256) bin/litterbox-$$program-linux-$$arch | cut -c 1-64 > $(PAYLOAD)/litterbox-$$program-linux-$$arch.id || exit 1; \
	done; done

# The same program with what is heavy and rare linked in, for this system.
full:
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/litterbox-full ./cmd/litterbox
	gzip -9nc bin/litterbox-full > $(PAYLOAD)/litterbox-full.gz
	$(SHA256) bin/litterbox-full | cut -c 1-64 > $(PAYLOAD)/litterbox-full.id

demo: build ## two sandboxes side by side on a throwaway repository
	./bin/litterbox demo

redteam: build ## every attack that users can try, on a throwaway repository, with its control
	./bin/litterbox redteam

test: build ## every test, as root also as an ordinary user
	./test/run

test-agents: ## the newest clients of agents, more than a gigabyte from npm, against stand-ins for their models, with keys and with accounts, headless and on a terminal, several tasks at once, killed and gone on with, and the settings of all seven; writes docs/reference/tools-clients.md
	LITTERBOX_TEST_AGENTS=$(CURDIR)/bin/agents LITTERBOX_TEST_AGENTS_NEWEST=1 $(GO) test -v -count=1 -timeout 60m -run 'RealClients|RealScreens|Install' ./test/agents
	LITTERBOX_TEST_AGENTS=$(CURDIR)/bin/agents $(GO) test -v -count=1 -timeout 60m -run OfRealClients ./test/network/clients

BESIDE = 2026.8.31

# The last commit whose tools answered in structured copies.
BEFORE = ac5132e

test-beside: ## three tasks by the MCP tools now and before they were made short, and by the filesystem server from npm: calls, bytes, seconds; writes docs/reference/tools-beside.md
	npm install --prefix $(CURDIR)/bin/beside --ignore-scripts --no-audit --no-fund --silent @modelcontextprotocol/server-filesystem@$(BESIDE)
	test -x bin/before/bin/litterbox || { mkdir -p bin/before && git archive $(BEFORE) | tar -x -C bin/before && $(MAKE) -C bin/before build VERSION=$(BEFORE); }
	LITTERBOX_TEST_BESIDE=$(CURDIR)/bin/beside LITTERBOX_TEST_BEFORE=$(CURDIR)/bin/before/bin/litterbox $(GO) test -v -count=1 -run TasksBeside ./test/mcp

# What a merge asks about, tried with the tools themselves.
TOOLS = $(CURDIR)/bin/tools

test-tools: ## whether real tools run the files that a merge asks about; installs them from npm, Go and apt-get download
	mkdir -p $(TOOLS)/bin
	test -e $(TOOLS)/package.json || echo '{"private":true}' > $(TOOLS)/package.json
	npm install --prefix $(TOOLS) --no-audit --no-fund --silent jest@30 vitest@4 mocha@12 eslint@10 prettier@3 stylelint@17 \
		webpack@5 webpack-cli@7 @babel/core@7 @babel/cli@7 rollup@4 gulp@5 gulp-cli@3 husky@9 lefthook
	GOBIN=$(TOOLS)/bin $(GO) install github.com/go-task/task/v3/cmd/task@v3.39.2
	GOBIN=$(TOOLS)/bin $(GO) install github.com/magefile/mage@v1.17.2
	test -x $(TOOLS)/bin/direnv || { cd $(TOOLS) && apt-get download direnv && dpkg -x direnv_*.deb deb && cp deb/usr/bin/direnv bin/; }
	LITTERBOX_TEST_TOOLS=$(TOOLS) $(GO) test -v -count=1 -timeout 20m -run RealTools ./internal/landing

test-git: ## git's own test-suite inside a sandbox and outside; fetches its source by apt-get into bin/git-suite
	./test/gitsuite/fetch bin/git-suite
	LITTERBOX_TEST_GIT=$(CURDIR)/bin/git-suite LITTERBOX_GIT_SUITE="$${LITTERBOX_GIT_SUITE:-t*}" \
		$(GO) test -v -count=1 -timeout 6h -parallel 2 ./test/gitsuite

test-openssh: ## OpenSSH's own regression scripts, as far as they apply, with sandboxes as the server; fetches them by apt-get into bin/openssh-suite
	./test/opensshsuite/fetch bin/openssh-suite
	LITTERBOX_TEST_OPENSSH=$(CURDIR)/bin/openssh-suite $(GO) test -v -count=1 -timeout 90m -parallel 4 ./test/opensshsuite

CODE_SERVER = 4.99.4

test-editors: ## code-server from npm inside a sandbox, used by Chromium; wants node 20 with its headers, g++ and make
	mkdir -p bin/editors && cd bin/editors && { test -e package.json || echo '{"private":true}' > package.json; } && \
		npm install --ignore-scripts --no-audit --no-fund --silent code-server@$(CODE_SERVER) puppeteer-core@24 && \
		npm rebuild --yes --silent --nodedir=/usr --build-from-source argon2
	cd bin/editors/node_modules/code-server/lib/vscode && npm install --omit=dev --ignore-scripts --no-audit --no-fund --silent && \
		npm rebuild --yes --silent --nodedir=/usr node-pty @vscode/spdlog native-watchdog
	LITTERBOX_TEST_EDITORS=$(CURDIR)/bin/editors $(GO) test -v -count=1 -timeout 60m ./test/editors

test-projects: ## ten public projects from npm, the Go proxy and Debian: what init writes builds, and their tests pass, also above layers and from a golden
	LITTERBOX_TEST_PROJECTS=all $(GO) test -v -count=1 -timeout 60m -parallel 2 ./test/projects

test-tutorials: ## the tutorials of docs/tutorial with packages from npm and a PostgreSQL, typed as they stand there, and a new user's session in a terminal
	LITTERBOX_TEST_TUTORIALS=1 $(GO) test -v -count=1 -timeout 30m -run 'Tutorials|Newcomer' ./test/tutorial

first-merge: ## how long the README takes a new user to the first merge, with empty caches, how long nothing is shown, and the words of the README
	LITTERBOX_TEST_FIRST_MERGE=1 $(GO) test -v -count=1 -timeout 60m -run FirstMerge ./test/tutorial

test-large: ## a hundred thousand files, a gigabyte of history, a file of two, deep paths: ten gigabytes of disk
	LITTERBOX_TEST_LARGE=1 $(GO) test -v -count=1 -timeout 60m ./test/large

RUNSC = v0.0.0-20260905035102-160fafc42237
LIMA = 2.2.0

test-containers: ## the program inside containers of Docker, Podman and gVisor, by root, with engines of the test's own
	test -x bin/runsc || GOBIN=$(CURDIR)/bin CGO_ENABLED=0 $(GO) install gvisor.dev/gvisor/runsc@$(RUNSC)
	LITTERBOX_TEST_CONTAINERS=$(CURDIR)/bin/containers.tar LITTERBOX_TEST_RUNSC=$(CURDIR)/bin/runsc $(GO) test -v -count=1 -timeout 30m ./test/containers

test-vm: bin/limactl ## the program on a Debian with systemd and control groups of version 2, in QEMU, and sandboxes in domains of libvirt and in machines of Lima's, by root
	LITTERBOX_TEST_VM=$(CURDIR)/bin/vm.tar LITTERBOX_TEST_LIMACTL=$(CURDIR)/bin/limactl $(GO) test -v -count=1 -timeout 60m ./test/vm
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w' -o bin/litterbox-outpost ./cmd/litterbox-outpost
	LITTERBOX_TEST_VM_OUTPOST=$(CURDIR)/bin/litterbox-outpost LITTERBOX_TEST_VM_IMAGE=$(CURDIR)/bin/vm-image $(GO) test -v -count=1 -timeout 30m ./internal/machineimage

test-arm64: ## the program for arm64 on an emulated machine with Debian's kernel, and every attack of redteam there, as root and as an ordinary user; by root, in half an hour
	GOOS=linux GOARCH=arm64 $(MAKE) build PROGRAM=bin/litterbox-arm64
	$(MAKE) payload full
	LITTERBOX_TEST_ARM64=$(CURDIR)/bin/litterbox-arm64 LITTERBOX_TEST_ARM64_ROOT=$(CURDIR)/bin/arm64.tar $(GO) test -v -count=1 -timeout 310m -run Arm64 ./test/vm

# Lima's program. Its module refuses "go install".
bin/limactl:
	mkdir -p bin/lima
	printf 'module lima\n\ngo 1.26.0\n\nrequire github.com/lima-vm/lima/v2 v$(LIMA)\n' >bin/lima/go.mod
	cd bin/lima && GOFLAGS=-mod=mod CGO_ENABLED=0 $(GO) build -ldflags '-s -w -X github.com/lima-vm/lima/v2/pkg/version.Version=$(LIMA)' -o $(CURDIR)/bin/limactl github.com/lima-vm/lima/v2/cmd/limactl

test-engines: ## sandboxes of the drivers docker and podman, attacks and random operations on them, by root, with engines of the test's own; make test has a sample
	test -x bin/runsc || GOBIN=$(CURDIR)/bin CGO_ENABLED=0 $(GO) install gvisor.dev/gvisor/runsc@$(RUNSC)
	LITTERBOX_TEST_ENGINES=1 LITTERBOX_TEST_RUNSC=$(CURDIR)/bin/runsc $(GO) test -v -count=1 -timeout 120m ./test/engines

test-machines: ## what drivers promise, attacks, postures, random operations, services and kills on hosts of the test's own that ssh reaches, by root
	LITTERBOX_TEST_MACHINES=1 $(GO) test -v -count=1 -timeout 120m -run 'TestContract|TestCut|TestSuites' ./test/hosts

release: ## dist: archives for Linux and macOS, Debian and RPM packages, checksums; the same bytes for the same commit
	$(GO) run ./cmd/litterbox-release -o dist

test-release: ## a release made twice, and its packages installed, run and removed in clean root file systems, by root
	LITTERBOX_TEST_RELEASE=1 $(GO) test -v -count=1 -timeout 60m ./test/release

test-packages: ## the real dnf, pacman and, with APK=/path/to/apk.static, apk of an image install packages in sandboxes; it needs mmdebstrap, rpmbuild and createrepo_c
	mkdir -p bin
	test -e bin/packages.tar || { mmdebstrap --variant=minbase --include=dnf,pacman-package-manager bookworm bin/packages.half.tar && mv bin/packages.half.tar bin/packages.tar; }
	LITTERBOX_TEST_PACKAGES=$(CURDIR)/bin/packages.tar LITTERBOX_TEST_APK=$(APK) $(GO) test -v -count=1 -timeout 30m -run 'Managers|Apk' ./test/image

check: ## formatting, vet, static analysis, architecture, both systems
	@test -z "$$(gofmt -l cmd internal test)" || { gofmt -l cmd internal test; echo "run gofmt -w on these files"; exit 1; }
	$(GO) vet ./...
	GOOS=darwin GOARCH=arm64 $(GO) vet ./cmd/... ./internal/...
	GOOS=darwin GOARCH=amd64 $(GO) vet ./internal/git
	GOOS=linux GOARCH=arm64 $(GO) vet ./...
	$(GO) tool -modfile=tools/go.mod staticcheck ./...

fuzz: ## every parser of foreign bytes, FUZZTIME (20s) each; findings stay in testdata/fuzz
	./test/fuzz

FUZZ_WALLS = 1h

fuzz-walls: ## what answers for the kernel inside real sandboxes, and a guest that says anything to a real keeper: FUZZ_WALLS (1h) each
	LITTERBOX_TEST_FUZZ_TIME=$(FUZZ_WALLS) $(GO) test -v -count=1 -timeout 0 -run HostileNotifications ./test/attack
	LITTERBOX_TEST_FUZZ_TIME=$(FUZZ_WALLS) $(GO) test -v -count=1 -timeout 0 -run HostileGuestsAtRandom ./internal/engine

bench: build ## speed, memory and network beside what others use, as ratios of one run
	$(GO) run ./test/bench -litterbox bin/litterbox $(BENCHFLAGS)

benchmarks: build ## the same, written to docs/benchmarks.md; wants a machine that does nothing else
	$(GO) run ./test/bench -litterbox bin/litterbox -o docs/benchmarks.md $(BENCHFLAGS)

crash: ## a kill at every step of every operation, not only at a sample of them
	LITTERBOX_TEST_CRASH=all $(GO) test -count=1 -timeout 180m ./test/crash

test-streams: ## the network's tests and attacks, with connections over streams of the wire instead of descriptors
	LITTERBOX_DESCRIPTORS=off $(GO) test -count=1 -timeout 60m ./test/network/... ./test/service ./internal/forward ./internal/egress/...

faults: ## a failure of every system call by which an operation changes something, in turn
	LITTERBOX_TEST_FAULTS=all $(GO) test -count=1 -timeout 180m -run /failure ./test/crash

full-disks: ## every command while disks and inodes run out
	LITTERBOX_TEST_LONG=1 $(GO) test -v -count=1 -timeout 20m -run TestScripts/full ./test/script

test-places: ## every attack in every kind of place of this machine, not only in one
	LITTERBOX_TEST_PLACES=all $(GO) test -v -count=1 -timeout 60m -run TestAttacksInPlaces ./test/attack

test-listings: ## every commit of the commit path's tests also from a listing, not only a sample
	LITTERBOX_TEST_LONG=1 $(GO) test -count=1 -timeout 30m ./internal/branch

test-contract: ## every defect of the fake driver against every check of the contract, not only a sample
	LITTERBOX_TEST_LONG=1 $(GO) test -count=1 -timeout 30m ./internal/driver/fake

test-cuts: ## a link to a machine that breaks at every frame of each operation, not only at a sample
	LITTERBOX_TEST_LONG=1 $(GO) test -count=1 -timeout 30m -run 'ACutAt|Transfer' ./internal/driver/remote

test-walkers: ## prettier, jest and others from npm on a checkout with a sandbox's unmerged files
	mkdir -p bin/walkers && cd bin/walkers && npm install --no-save --no-audit --no-fund prettier@3 jest@30 vitest@3 mocha@11 eslint@9 @biomejs/biome@2
	LITTERBOX_TEST_WALKERS=$(CURDIR)/bin/walkers $(GO) test -v -count=1 -run TestScripts/walkers ./test/script

soak: ## random operations and kills on fifty sandboxes for ten minutes, then a search for what is left
	LITTERBOX_SOAK=$${LITTERBOX_SOAK:-10m} $(GO) test -v -count=1 -timeout 60m ./test/soak

clean:
	rm -rf bin $(PAYLOAD)/*.gz $(PAYLOAD)/*.id
