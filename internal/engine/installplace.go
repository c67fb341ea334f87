package engine

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/egress"
	"github.com/litterbox-sandbox/litterbox/internal/egress/preset"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/frozen"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
	"github.com/litterbox-sandbox/litterbox/internal/userland"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// installation is one run of a package manager.
type installation struct {
	packages []string
	files    []string // packages that are files of this machine
	output   io.Writer
	inside   bool // a program in the sandbox asks
	manager  manager
}

// Paths in a place that installs.
const (
	installWork  = "/run/litterbox/work"
	installFiles = "/run/litterbox/files"
)

// install runs the package manager in a place of its own, a sandbox that stays
// half-made: after a kill the next installation for the same sandbox clears it away, and
// so does the end of that sandbox. Of the sandbox that it
// serves it holds only the packages already installed.
func (e *Engine) install(ctx context.Context, p *place, what installation) (err error) {
	if err := p.canInstall(); err != nil {
		return err
	}
	q, err := e.installPlace(ctx, p)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.discard(context.WithoutCancel(ctx), q)) }()
	l := e.launch(ctx, q)
	spec, err := e.installSpec(ctx, p, q, &what)
	if err != nil {
		l.abandon()
		return err
	}
	defer e.busy("installing packages for " + p.record.Name)()
	if _, err := l.command(ctx, e.order(q, spec, nil)); err != nil {
		return err
	}
	if err := e.runInstall(ctx, p, q, what); err != nil {
		return err
	}
	if err := e.stop(ctx, q); err != nil {
		return err
	}
	err = e.boxOf(p).TakeSystem(e.boxOf(q))
	if errors.Is(err, frozen.ErrMoved) {
		return fault.Wrap(fault.Conflict, err, "cannot give the packages to sandbox %q", p.record.Name).
			WithHint("litterbox install %s %s", p.record.Name, strings.Join(what.packages, " "))
	}
	return err
}

// installName is the name of the place that installs for a sandbox.
func (p *place) installName() string {
	name := "install-" + p.record.Name
	if _, err := sandbox.Slug(name); err != nil {
		return "install-" + p.record.ID
	}
	return name
}

// endInstallation clears away what a killed installation has left of its place.
func (e *Engine) endInstallation(ctx context.Context, p *place) {
	id, err := e.Store.Claimed(p.record.GitDir, p.installName())
	if err != nil || id == "" {
		return
	}
	if record, err := e.Store.Sandbox(id); err != nil || !record.Temporary {
		return // a sandbox that only has such a name
	}
	if _, err := e.clearDead(ctx, p.record.GitDir, p.installName()); err != nil {
		p.note("what a killed installation left could not be removed: " + err.Error())
	}
}

// installPlace claims a sandbox for one installation.
func (e *Engine) installPlace(ctx context.Context, p *place) (*place, error) {
	record := &sandbox.Sandbox{
		Name: p.installName(), Repository: p.record.Repository, GitDir: p.record.GitDir, Base: p.record.Base, BaseTree: p.record.BaseTree,
		Driver: p.record.Driver, Isolation: p.record.Isolation, State: sandbox.Creating, CreatedAt: time.Now().UTC().Truncate(time.Millisecond),
		Image: p.record.Image, Author: p.record.Author, Carriage: p.record.Carriage, Temporary: true,
	}
	if err := e.claim(ctx, record); err != nil {
		return nil, err
	}
	q := e.place(record, p.repo, p.driver)
	q.config = p.config
	return q, nil
}

// installSpec describes the place, chooses its package manager, and writes what its
// keeper reads.
func (e *Engine) installSpec(ctx context.Context, p, q *place, what *installation) (spec driver.Spec, err error) {
	spec = driver.Spec{
		SandboxID: q.record.ID, Name: "install", StateDir: q.dir, Home: "/root", System: &driver.System{Install: true},
		User: driver.User{Name: "root", Shell: "/bin/sh"}, Workspace: driver.Workspace{Path: installWork, Upper: filepath.Join(q.dir, frozen.Upper)},
		Env: map[string]string{
			"HOME": "/root", "USER": "root", "LOGNAME": "root", "SHELL": "/bin/sh", "LANG": "C.UTF-8",
			"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		},
	}
	if err := e.boxOf(q).Borrow(e.boxOf(p)); err != nil {
		return spec, err
	}
	environment := preset.Host(callerOf(ctx))
	if p.record.Image != nil {
		if err := e.addBase(ctx, q, p.driver.Ownership(q.record.ID), &spec); err != nil {
			return spec, err
		}
		spec.User = driver.User{Name: "root", Shell: "/bin/sh"}
		if what.manager, err = imageManager(spec.Base.Layers, q.path("sources")); err != nil {
			return spec, err
		}
		environment.Root = q.path("sources")
		if err = e.adopt(ctx, p, q, spec.Base); err != nil {
			return spec, err
		}
	} else if spec.System.Foundation, err = e.foundation(ctx, p); err != nil {
		return spec, err
	} else {
		what.manager = managers()[0] // apt; the foundation is that of a machine with it
	}
	if err := what.manager.takes(what.files); err != nil {
		return spec, err
	}
	policy, err := e.installPolicy(p, *what)
	if err != nil {
		return spec, err
	}
	if len(what.packages) > 0 {
		environment.Lookup, environment.Beside = lookup, egress.WatchSurroundings()().Beside
		policy, err = policy.Expand(func(name string) ([]string, error) { return preset.Expand(name, environment) })
		if err != nil {
			return spec, err
		}
	}
	for n, file := range what.files {
		spec.Mounts = append(spec.Mounts, driver.Mount{Source: file, Target: installFiles + "/" + strconv.Itoa(n) + what.manager.suffix})
	}
	return spec, errors.Join(q.savePolicy(policy), q.limit())
}

// userlands keeps foundations for the sandbox's driver.
func (e *Engine) userlands(p *place) userland.Store {
	own := p.driver.Ownership(p.record.ID)
	return userland.Store{
		Dir: e.userlandsDir(), Root: "/", Owner: userland.Owner{UID: own.UID, GID: own.GID, Chown: own.ChownLayers},
	}
}

// foundation is the one that the sandbox's packages stand on already, or that of
// the host's packages as they are now.
func (e *Engine) foundation(ctx context.Context, p *place) (string, error) {
	has, err := e.system(p)
	if err != nil {
		return "", err
	}
	if has != nil {
		return has.Foundation, nil
	}
	return e.userlands(p).Foundation(ctx)
}

// runInstall runs the package manager and words its failure.
func (e *Engine) runInstall(ctx context.Context, p, q *place, what installation) error {
	stream, err := q.dial(ctx)
	if err != nil {
		return err
	}
	defer stream.Close()
	var end tail
	var to io.Writer = &end
	if what.output != nil {
		to = io.MultiWriter(&end, what.output)
	}
	command := wire.Exec{Argv: [][]byte{[]byte("/bin/sh"), []byte("-c"), []byte(what.manager.script), []byte("install")}}
	for _, name := range what.packages {
		command.Argv = append(command.Argv, []byte(name))
	}
	for n := range what.files {
		command.Argv = append(command.Argv, []byte(installFiles+"/"+strconv.Itoa(n)+what.manager.suffix))
	}
	began := time.Now()
	exit, err := wire.Run(ctx, stream, command, wire.Streams{Stdin: strings.NewReader(""), Stdout: to, Stderr: to})
	if ctx.Err() != nil {
		return fault.New(fault.Canceled, "canceled: no package was installed in sandbox %q", p.record.Name)
	}
	if err != nil || exit.Code == 0 {
		return err
	}
	said := ""
	if what.output == nil {
		said = "; it said:\n" + lastLines(end.String(), 10)
	}
	refused, rules := e.refusedInSetUp(ctx, q, began)
	failed := fault.New(fault.Invalid, "cannot install packages in sandbox %q: %s exited %d%s%s", p.record.Name, filepath.Base(what.manager.program), exit.Code, said, refused)
	if len(what.packages) == 0 {
		return failed.WithHint("%s %s", what.manager.info, what.files[0])
	}
	if what.inside && len(rules) > 0 {
		return failed.WithHint("litterbox allow %s %s", p.record.Name, strings.Join(rules, " "))
	}
	return failed.WithHint("%s %s", what.manager.look, strings.Join(what.packages, " "))
}

// aptScript has apt install "$@". Files of the host that a newer version of
// their package replaces become files of the sandbox first: dpkg links the file
// that it replaces, and the kernel refuses a link to a file of another owner.
const aptScript = `set -eu
umask 022
export DEBIAN_FRONTEND=noninteractive DEBCONF_NONINTERACTIVE_SEEN=true APT_LISTCHANGES_FRONTEND=none APT_CONFIG=/run/litterbox/apt.conf
cat >"$APT_CONFIG" <<'END'
APT::Sandbox::User "root";
APT::Install-Recommends "false";
APT::Keep-Downloaded-Packages "false";
Acquire::Languages "none";
Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
Acquire::IndexTargets::deb::DEP-11-icons::DefaultEnabled "false";
Acquire::IndexTargets::deb::DEP-11-icons-small::DefaultEnabled "false";
Acquire::IndexTargets::deb::DEP-11-icons-hidpi::DefaultEnabled "false";
Acquire::Retries "2";
DPkg::Options { "--force-confold"; "--force-unsafe-io"; };
Dpkg::Use-Pty "0";
END
if [ ! -e /usr/sbin/policy-rc.d ]; then
	printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d
	chmod 755 /usr/sbin/policy-rc.d
fi
if [ ! -e /etc/postgresql-common/createcluster.conf ]; then
	mkdir -p /etc/postgresql-common
	echo 'create_main_cluster = false' >/etc/postgresql-common/createcluster.conf
fi
for one; do
	case $one in /*) ;; *) apt-get -q update; break ;; esac
done
apt-get -q -s install "$@" >/run/litterbox/plan
while read -r verb name old _; do
	case $verb$old in
	"Inst["*) dpkg -L "$name" | while read -r file; do
			if [ -f "$file" ] && [ ! -L "$file" ] && [ ! -O "$file" ]; then
				cp -p "$file" "$file.litterbox-new" && mv -f "$file.litterbox-new" "$file"
			fi
		done ;;
	esac
done </run/litterbox/plan
apt-get -q -y install "$@"
apt-get clean
rm -rf /var/lib/apt/lists/*
`
