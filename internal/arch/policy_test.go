package arch_test

// policy: do not change it to fix a build.
//
// A wrong import is a wrong dependency; find out why it is needed and move
// what is needed to where both may reach it. The text says who may import
// whom; what is not said is not allowed. Standard library and other modules
// are not its business. Names are relative to internal/, except for cmd and
// test, which nobody may import.
//
// To add a package: one line, in the layer it belongs to. To add a driver:
// beside driver/namespace, and in app and app/child, nowhere else.
const policy = `
# Vocabulary: pure, importable from everywhere, knowing nothing of ours.
fault:
seal:
redact:
caller: redact
sandbox: fault
service: fault
service/journal:
# What calls of models cost: formats, prices and bounds.
meter:

# The boundary and what crosses it.
driver: fault sandbox
wire: fault service
process: fault sandbox
lock: fault

# Who controls a path, asked before what lies there is believed or executed.
ownership: fault

# The proxy before the human's ssh-agent: what a signature is for.
sshagent:

# How the host opens, walks and removes what a sandbox can write.
hostile:

# What sandboxes have written, as layers that never change. The driver freezes;
# the engine reads below it.
frozen: fault hostile seal

# Records and settings on disk.
store: caller fault ownership redact sandbox process seal lock
image: caller fault ownership sandbox lock
packagecache:
# What calls of models have cost, and the budgets that bound it.
ledger: fault meter sandbox seal
audit: fault redact lock
agents/patch: fault
agents: caller agents/patch fault lock

# What is known of agents' clients that run inside: data and pure functions.
profile:
config: caller egress fault image meter ownership packagecache sandbox seal secret service lock
payload: fault ownership

# Git, layers of workspaces, the commit path, and how work lands. The inner
# packages are readers of git's own formats and know no sandbox; nothing here
# knows drivers, the wire or the engine.
git/wildmatch:
git/ignore: git/wildmatch
git/attribute: fault git/wildmatch
branch/branchtest: branch caller fsmonitor git git/gittest layer sandbox workspace/local workspace workspace/feed
git: caller fault git/ignore process sandbox seal
git/gittest: caller fault git
landing: caller fault git layer
layer: fault fsmonitor git hostile process sandbox workspace lock
# What may be asked about the files of a sandbox, and how this disk answers.
workspace: fault
workspace/local: fault frozen git hostile layer sandbox workspace
workspace/feed: fault workspace
branch: fault git git/attribute git/ignore layer redact sandbox seal workspace

# Inside the sandbox. The guest is small and decides nothing; which files a
# tool lists, it reads as git does.
guest/egress: guest/proc wire
guest/overlay: fault guest/proc
guest/proc: fault
guest: fault git/ignore git/wildmatch guest/egress guest/overlay guest/proc service service/journal wire

# What may leave a sandbox: decisions, and who carries them out on the host.
egress: fault
egress/preset: caller fault
egress/intercept: egress fault
# The hook that meters calls of models, and keeps budgets.
egress/metering: egress egress/intercept ledger meter
egress/inject: egress egress/intercept fault secret secret/replace

# Values that programs inside use and never see.
secret: egress fault secret/replace
secret/replace:
secret/vault: fault ownership secret
secret/source: fault secret secret/vault

# What may come in: ports that are forwarded from the host.
forward: egress fault service

# Drivers import the boundary and the vocabulary: never a sibling, git,
# records, the keeper or the engine. A driver's child side becomes the guest.
driver/namespace: driver driver/namespace/cgroup driver/namespace/stage fault frozen fsmonitor process sandbox
driver/landlock: driver driver/landlock/confine fault process sandbox
# The policy of system calls is one text for both; it installs nothing itself.
driver/landlock/confine: driver driver/seccomp fault guest process
driver/netns: guest/egress
driver/namespace/stage: driver driver/netns driver/seccomp frozen fsmonitor guest guest/egress process
driver/namespace/cgroup: hostile sandbox

# What git inside asks which files changed: it runs at every git status.
fsmonitor:
driver/seccomp: fault
driver/fake: driver fault sandbox wire
driver/drivertest: driver fault sandbox wire

# The host process of one sandbox, and every use case once. Both get their
# drivers handed to them. The keeper needs git to join the packs of commits.
keeper/launch: keeper process sandbox
keeper/inprocess: driver keeper sandbox
keeper: driver egress egress/inject egress/intercept egress/metering fault forward frozen git landing ledger meter process sandbox seal secret secret/source secret/vault service sshagent store wire
engine: agents audit branch caller config driver egress egress/preset fault forward frozen git hostile image keeper landing layer ledger meter ownership packagecache process profile redact sandbox seal secret secret/source secret/vault service service/journal store wire workspace workspace/feed workspace/local

# Attacks on a sandbox as data. They run this program from outside, as a user
# types it; the probe is what runs inside, and knows nothing of ours.
redteam/probe:
redteam: fault redteam/probe

# Frontends import the engine and the vocabulary, never a driver and never
# each other. The attacks are no use case of the engine: they drive all of it.
frontend/cli: caller engine fault redteam sandbox wire
frontend/mcp: caller engine fault sandbox

# The composition roots: the only ones that name concrete drivers. child is
# the keeper's program; it must stay free of engine and frontends. inside is the
# guest's, which knows nothing of the host (see guestRooms).
app/inside: driver/landlock/confine driver/namespace/stage fsmonitor
app/child: app/inside caller driver driver/landlock driver/namespace keeper keeper/launch
app: caller app/child app/inside driver driver/landlock driver/namespace engine fault frontend/cli frontend/mcp keeper/launch payload process redteam/probe sandbox store

# Programs.
cmd/litterbox: app app/child
cmd/litterbox-keeper: app/child
cmd/litterbox-guest: app/inside
# Makes archives, packages, manual pages and completions.
cmd/litterbox-release: frontend/cli

# What keeps all this true.
arch:

# Tests of the whole. They drive the true program from outside; test/program
# builds it for them and asks the driver whether this machine can run it.
test/program: driver driver/namespace sandbox
# What each test binary runs below: it must not depend on what it watches.
test/bounds:
test/attack: test/program
test/attack/probe: redteam/probe
test/tracer:
test/crash: test/program test/tracer
test/lifecycle: test/program
test/soak: test/program
test/versions: test/program
test/faults: test/program
test/posture: test/program
test/posture/probe:
test/image: test/program
test/containers: test/program
test/vm: test/program
test/machines: test/program
test/machines/without:
test/packagecache: test/program
test/repos: test/program
test/gitsuite: test/program
test/large: test/program
test/network: test/program
test/service: test/program
test/network/world: test/program
test/network/clients: test/network/world test/program
test/network/attacks: test/network/world test/program
test/agents: test/program
test/mcp: test/program
test/release:
test/script:
test/bench: test/network/world
`

// Test files are looser. Besides what their package may, they import the
// package itself and any other of ours, except what this names: concrete
// drivers, frontends and the composition roots. Those need a line of their own.
const testPolicy = `
not: app app/child app/inside driver/landlock driver/namespace driver/namespace/stage frontend/cli cmd/litterbox cmd/litterbox-guest cmd/litterbox-keeper

# The driver starts its stages by executing the program it is in: the test.
driver/namespace: app/child driver/namespace/stage
driver/landlock: app/child
app: app/child
test/script: app app/child
test/bench: app app/child
`
