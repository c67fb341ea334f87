package arch_test

// policy: do not change it to fix a build.
//
// A wrong import is a wrong dependency; find out why it is needed and move
// what is needed to where both may reach it. The text says which package may
// import which; anything else is not allowed. Standard library and other
// modules are not its business. Names are relative to internal/, except for
// cmd and test, which no package may import.
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
service/journal: hostile
# What calls of models cost: formats, prices and bounds.
meter:

# The boundary and what crosses it.
driver: fault sandbox
wire: fault service
process: fault sandbox
zstd:
zstd/linked:
lock: fault

# Who controls a path, asked before what lies there is believed or executed.
ownership: fault

# The proxy before the human's ssh-agent: what a signature is for.
sshagent:

# When a process that waits sleeps.
rest:

# How the host opens, walks and removes what a sandbox can write.
hostile:

# What sandboxes have written, as layers that never change. The driver freezes;
# the engine reads below it.
frozen: fault hostile seal

# Records and settings on disk.
store: caller fault ownership redact sandbox process seal lock
image: caller fault ownership sandbox lock zstd
editor:
packagecache:
# What makes the host's system directories a layer to install packages above.
userland: fault hostile lock
# What calls of models have cost, and the budgets that bound it.
ledger: fault lock meter sandbox seal
audit: fault redact lock
patch: fault
agents: caller fault lock patch profile
# What OpenSSH clients are told of sandboxes.
door: fault ownership

# What is known of agents' clients that run inside: data and pure functions.
profile:
login: fault lock
config: caller egress fault image lock meter ownership packagecache patch sandbox seal secret service
payload: fault ownership
# The machines that a human has added, as records.
machine: driver fault sandbox seal
# The first configuration of a repository, from what its files say.
template: fault

# Git, layers of workspaces, the commit path, and how work lands. The inner
# packages are readers of git's own formats and know no sandbox; nothing here
# knows drivers, the wire or the engine.
git/wildmatch:
git/ignore: git/wildmatch
git/attribute: fault git/wildmatch
branch/branchtest: branch caller fsmonitor git git/gittest layer sandbox workspace/local workspace workspace/feed
git: caller fault git/ignore process sandbox seal
git/gittest: caller fault git
landing: caller fault git git/attribute layer
# What a live environment shares with a human's checkout, as data.
live: fault git hostile landing seal
layer: fault fsmonitor git hostile process sandbox workspace lock
# What may be asked about the files of a sandbox, and how this disk answers.
workspace: fault
workspace/local: fault frozen git hostile layer sandbox workspace
workspace/feed: fault git/ignore workspace
branch: fault git git/attribute git/ignore layer redact sandbox seal workspace

# Inside the sandbox. The guest is small and decides nothing; which files a
# tool lists, it reads as git does.
guest/egress: guest/proc wire
guest/overlay: fault guest/proc
guest/proc: fault
guest: editor fault git/ignore git/wildmatch guest/egress guest/overlay guest/proc rest service service/journal wire

# What may leave a sandbox: decisions, and who carries them out on the host.
egress: fault
egress/preset: caller fault
egress/intercept: egress fault
# The hook that meters calls of models, and keeps budgets.
egress/metering: egress egress/intercept ledger meter zstd
egress/inject: egress egress/intercept fault secret secret/replace
egress/renew: egress egress/intercept login

# Values that programs inside use and never see.
secret: egress fault secret/replace
secret/replace:
secret/vault: fault lock ownership redact secret
secret/source: fault secret secret/vault

# What may come in: ports that are forwarded from the host.
forward: egress fault service

# Drivers import the boundary and the vocabulary: never a sibling, git,
# records, the keeper or the engine. A driver's child side becomes the guest.
driver/namespace: driver driver/local driver/namespace/cgroup driver/namespace/stage driver/ruleset fault frozen fsmonitor process sandbox
driver/landlock: driver driver/landlock/confine driver/local driver/ruleset fault process sandbox
# Places in other machines: what the host asks, and who answers there.
driver/remote: driver fault machine outpost process sandbox seal workspace/feed
# A virtual machine of Lima's, and the program that makes it.
driver/lima: driver driver/lima/limactl driver/remote fault fsmonitor hostile lock machine sandbox
driver/lima/limactl: fault
# A domain of libvirt's for each sandbox, and who speaks libvirt's protocol.
driver/libvirt: driver driver/remote fault fsmonitor lock outpost outpost/boot sandbox seal
driver/libvirt/rpc: driver driver/libvirt fault
# What virtual machines start from.
machineimage: fault outpost/boot
# A container is such a machine; moby links the library of engines.
driver/container: driver driver/remote fault fsmonitor outpost process sandbox seal
driver/container/moby: driver driver/container fault lock outpost sandbox
outpost: driver fault sandbox
outpost/boot: outpost
outpost/station: driver fault frozen git hostile lock outpost process wire workspace workspace/feed workspace/local
# The policy of system calls is one text for both; it installs nothing itself.
driver/landlock/confine: driver driver/ruleset driver/seccomp fault guest process
driver/netns: guest/egress
# What drivers share whose places are processes of this machine.
driver/local: driver fault process
driver/ruleset:
driver/namespace/stage: driver driver/netns driver/ruleset driver/seccomp frozen fsmonitor guest guest/egress process
driver/namespace/cgroup: hostile sandbox

# What git inside asks which files changed: it runs at every git status.
fsmonitor:
# What apt-get is inside, where it asks the keeper.
installer: fault wire
driver/seccomp: fault
driver/fake: driver fault sandbox service wire
driver/drivertest: driver fault sandbox wire

# The host process of one sandbox, and every use case once. Both get their
# drivers handed to them. The keeper needs git to join the packs of commits.
keeper/launch: keeper process sandbox
keeper/inprocess: driver keeper sandbox
keeper: driver egress egress/inject egress/intercept egress/metering egress/renew fault forward frozen git installer landing ledger login meter process rest sandbox seal secret secret/source secret/vault service sshagent store wire
# What all watchers of a process share.
watch: audit fault git keeper redact sandbox store wire
engine: agents audit branch caller config door driver editor egress egress/preset fault forward frozen git hostile image installer keeper landing layer ledger live login machine meter ownership packagecache process profile redact sandbox seal secret secret/source secret/vault service service/journal store template userland watch wire workspace workspace/feed workspace/local
# The use cases in groups: what a frontend says that it needs.
engine/use: engine sandbox

# Attacks on a sandbox as data. They run this program from outside, as a user
# types it; the probe is what runs inside, and knows nothing of ours.
redteam/probe:
# The table of attacks, and what users can try of it.
threat:
redteam: fault redteam/probe threat

# Frontends import the engine and the vocabulary, never a driver and never
# each other. The attacks are no use case of the engine: they drive all of it.
frontend/cli: caller engine engine/use fault redteam sandbox watch wire
frontend/mcp: caller engine engine/use fault sandbox
frontend/ssh: door engine engine/use fault sandbox wire

# The composition roots: the only ones that name concrete drivers. child is
# the keeper's program; it must stay free of engine and frontends. inside is the
# guest's, which knows nothing of the host (see guestRooms); outpost is what stands
# in a machine, beside its places.
app/inside: driver/landlock/confine driver/namespace/stage fsmonitor installer
app/outpost: app/inside driver/namespace outpost outpost/boot outpost/station process
app/child: app/inside app/outpost caller driver driver/landlock driver/lima driver/lima/limactl driver/namespace driver/remote fault keeper keeper/launch machine payload process rest
app: caller app/child app/inside door driver driver/container driver/container/moby driver/landlock driver/libvirt driver/libvirt/rpc driver/namespace engine fault frontend/cli frontend/mcp frontend/ssh keeper/launch machine machineimage payload process redteam/probe sandbox store zstd

# Programs.
cmd/litterbox: app app/child zstd zstd/linked
cmd/litterbox-keeper: app/child zstd zstd/linked
cmd/litterbox-guest: app/inside
cmd/litterbox-outpost: app/outpost
# Makes archives, packages, manual pages and completions.
cmd/litterbox-release: frontend/cli

# What keeps all this true.
arch:

# Tests of the whole. They drive the true program from outside; test/program
# builds it for them and asks the driver whether this machine can run it.
test/program: driver driver/namespace frozen sandbox
# What each test binary runs below: it must not depend on what it watches.
test/bounds:
test/attack: test/program
test/attack/probe: redteam/probe
test/tracer:
test/crash: test/program test/tracer
test/lifecycle: test/program
test/soak: test/program
test/projects: test/program
test/tutorial: test/program
test/versions: test/program
test/faults: test/program
test/posture: test/program
test/posture/probe:
test/image: test/program
test/engine:
test/containers: test/engine test/program
test/uses: test/program
test/engines: test/engine test/program test/uses
test/engines/connect:
test/vm: test/program
test/machines: test/program
test/machines/without:
test/packagecache: test/program
test/repos: test/program
test/gitsuite: test/program
test/large: test/program
test/network: test/program
test/service: test/program
test/door: test/program
test/opensshsuite: test/program
test/editors: test/program
test/hosts: test/program test/uses
test/network/world: test/program
test/network/clients: test/network/world test/program
test/network/attacks: test/network/world test/program
test/tasks: test/program
test/agents: test/program test/tasks
test/mcp: test/program test/tasks
test/release:
test/script:
test/bench: test/engine test/network/world
test/bench/floor:
test/bench/streams:
`

// Test files are looser. Besides what their package may, they import the
// package itself and any other of ours, except what this names: concrete
// drivers, frontends and the composition roots. Those need a line of their own.
const testPolicy = `
not: app app/child app/inside app/outpost driver/landlock driver/namespace driver/namespace/stage driver/remote frontend/cli cmd/litterbox cmd/litterbox-guest cmd/litterbox-keeper cmd/litterbox-outpost

# The driver starts its stages by executing the program it is in: the test.
driver/namespace: app/child driver/namespace/stage
driver/landlock: app/child
driver/remote: app/child

# The contract on a host that ssh reaches, which is test/hosts' own.
test/hosts: driver/remote
app: app/child
test/script: app app/child
test/bench: app app/child
`
