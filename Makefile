# Everything a contributor types. `make demo` and `make test` are all that a
# fresh machine with Go and git needs.

GO      ?= go
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null)
PAYLOAD  = internal/payload
SHA256   = $(shell command -v sha256sum || echo shasum -a 256)
LDFLAGS  = -s -w -X main.version=$(VERSION)
# Where the program is built.
PROGRAM ?= bin/litterbox

.PHONY: build demo test test-agents test-beside test-tools test-walkers check bench benchmarks payload full clean crash faults fuzz full-disks soak test-git test-large test-containers test-vm test-release test-listings redteam release

build: payload full ## the program, with keeper, guest and what is heavy and rare carried inside
	CGO_ENABLED=0 $(GO) build -trimpath -tags embedguest -ldflags '$(LDFLAGS)' -o $(PROGRAM) ./cmd/litterbox

# One small Linux program for each kind of guest, and the keeper of this system,
# compressed.
payload:
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w' -o bin/litterbox-keeper ./cmd/litterbox-keeper
	gzip -9nc bin/litterbox-keeper > $(PAYLOAD)/litterbox-keeper.gz
	$(SHA256) bin/litterbox-keeper | cut -c 1-64 > $(PAYLOAD)/litterbox-keeper.id
	@for arch in amd64 arm64; do \
		CGO_ENABLED=0 GOOS=linux GOARCH=$$arch $(GO) build -trimpath -ldflags '-s -w' -o bin/litterbox-guest-linux-$$arch ./cmd/litterbox-guest && \
		gzip -9nc bin/litterbox-guest-linux-$$arch > $(PAYLOAD)/litterbox-guest-linux-$$arch.gz && \
		$(SHA256) bin/litterbox-guest-linux-$$arch | cut -c 1-64 > $(PAYLOAD)/litterbox-guest-linux-$$arch.id || exit 1; \
	done

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

test-agents: ## the newest clients of agents, more than a gigabyte from npm, against a stand-in for their models, and the settings of all seven
	LITTERBOX_TEST_AGENTS=$(CURDIR)/bin/agents LITTERBOX_TEST_AGENTS_NEWEST=1 $(GO) test -v -count=1 -timeout 30m -run 'RealClients|Install' ./test/agents

BESIDE = 2026.8.31

test-beside: ## three tasks by the MCP tools and by the filesystem server from npm: calls, bytes, seconds; writes docs/reference/tools-beside.md
	npm install --prefix $(CURDIR)/bin/beside --ignore-scripts --no-audit --no-fund --silent @modelcontextprotocol/server-filesystem@$(BESIDE)
	LITTERBOX_TEST_BESIDE=$(CURDIR)/bin/beside $(GO) test -v -count=1 -run TasksBeside ./test/mcp

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

test-large: ## a hundred thousand files, a gigabyte of history, a file of two, deep paths: ten gigabytes of disk
	LITTERBOX_TEST_LARGE=1 $(GO) test -v -count=1 -timeout 60m ./test/large

RUNSC = v0.0.0-20260905035102-160fafc42237

test-containers: ## the program inside containers of Docker, Podman and gVisor, by root, with engines of the test's own
	test -x bin/runsc || GOBIN=$(CURDIR)/bin CGO_ENABLED=0 $(GO) install gvisor.dev/gvisor/runsc@$(RUNSC)
	LITTERBOX_TEST_CONTAINERS=$(CURDIR)/bin/containers.tar LITTERBOX_TEST_RUNSC=$(CURDIR)/bin/runsc $(GO) test -v -count=1 -timeout 30m ./test/containers

test-vm: ## the program on a Debian with systemd and control groups of version 2, in QEMU, by root
	LITTERBOX_TEST_VM=$(CURDIR)/bin/vm.tar $(GO) test -v -count=1 -timeout 40m ./test/vm

release: ## dist: archives for Linux and macOS, Debian and RPM packages, checksums; the same bytes for the same commit
	$(GO) run ./cmd/litterbox-release -o dist

test-release: ## a release made twice, and its packages installed, run and removed in clean root file systems, by root
	LITTERBOX_TEST_RELEASE=1 $(GO) test -v -count=1 -timeout 60m ./test/release

check: ## formatting, vet, static analysis, architecture, both systems
	@test -z "$$(gofmt -l cmd internal test)" || { gofmt -l cmd internal test; echo "run gofmt -w on these files"; exit 1; }
	$(GO) vet ./...
	GOOS=darwin GOARCH=arm64 $(GO) vet ./cmd/... ./internal/...
	GOOS=linux GOARCH=arm64 $(GO) vet ./...
	$(GO) tool -modfile=tools/go.mod staticcheck ./...

fuzz: ## every parser of foreign bytes, FUZZTIME (20s) each; findings stay in testdata/fuzz
	./test/fuzz

bench: build ## speed, memory and network beside what others use, as ratios of one run
	$(GO) run ./test/bench -litterbox bin/litterbox $(BENCHFLAGS)

benchmarks: build ## the same, written to docs/benchmarks.md; wants a machine that does nothing else
	$(GO) run ./test/bench -litterbox bin/litterbox -o docs/benchmarks.md $(BENCHFLAGS)

crash: ## a kill at every step of every operation, not only at a sample of them
	LITTERBOX_TEST_CRASH=all $(GO) test -count=1 -timeout 180m ./test/crash

faults: ## a failure of every system call by which an operation changes something, in turn
	LITTERBOX_TEST_FAULTS=all $(GO) test -count=1 -timeout 180m -run /failure ./test/crash

full-disks: ## every command while disks and inodes run out
	LITTERBOX_TEST_LONG=1 $(GO) test -v -count=1 -timeout 20m -run TestScripts/full ./test/script

test-listings: ## every commit of the commit path's tests also from a listing, not only a sample
	LITTERBOX_TEST_LONG=1 $(GO) test -count=1 -timeout 30m ./internal/branch

test-walkers: ## prettier, jest and others from npm on a checkout with a sandbox's unmerged files
	mkdir -p bin/walkers && cd bin/walkers && npm install --no-save --no-audit --no-fund prettier@3 jest@30 vitest@3 mocha@11 eslint@9 @biomejs/biome@2
	LITTERBOX_TEST_WALKERS=$(CURDIR)/bin/walkers $(GO) test -v -count=1 -run TestScripts/walkers ./test/script

soak: ## random operations and kills on fifty sandboxes for ten minutes, then a search for what is left
	LITTERBOX_SOAK=$${LITTERBOX_SOAK:-10m} $(GO) test -v -count=1 -timeout 60m ./test/soak

clean:
	rm -rf bin $(PAYLOAD)/*.gz $(PAYLOAD)/*.id
