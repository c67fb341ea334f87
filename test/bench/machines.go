package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"
)

// Names of rows with a target.
const (
	whatFarTree   = "first create on a host by SSH, with the files"
	whatFarCreate = "create on a host by SSH"
	whatFarFirst  = "create, first command and its commit on a host by SSH"
	whatFarExec   = "exec without commit on a host by SSH"
	whatFarTen    = "change ten files and commit on a host by SSH"
	whatFarTrips  = "round trips of a commit of ten files on a host by SSH"
)

// The comparisons of a host.
const (
	besideTrue = "`ssh host true`"
	besideTree = "rsync of the same files"
	besideBack = "ssh, and rsync of the same files back"
	// A stream through a port that ssh forwards.
	besideTunnel = "a tunnel of ssh"
)

// farRounds is how often one thing is done over one link.
const farRounds = 3

// links are the round trips measured over.
var links = [...]time.Duration{time.Millisecond, 20 * time.Millisecond, 100 * time.Millisecond}

// machines measures sandboxes that are not on this machine.
func (b *bench) machines() error { return errors.Join(b.hosts(), b.engines()) }

// hosts measures sandboxes on a host that ssh reaches over links with delays, beside
// ssh and rsync.
func (b *bench) hosts() (err error) {
	if runtime.GOOS != "linux" {
		b.report.missing("a host by SSH: it would be this machine, and sandboxes are made on Linux")
		return nil
	}
	for _, name := range []string{"rsync", "ssh", "ssh-keygen", "sshd"} {
		if _, err := exec.LookPath(name); err != nil {
			b.report.missing("a host by SSH: %s is not installed", name)
			return nil
		}
	}
	host, err := b.farHost()
	if err != nil {
		return err
	}
	defer func() { err = join(err, host.end()) }()
	if err := host.add(); err != nil {
		return err
	}
	host.rounds = min(b.rounds, farRounds)
	sizes := []int{b.sizes[0]}
	if last := b.sizes[len(b.sizes)-1]; last != sizes[0] {
		sizes = append(sizes, last)
	}
	for _, count := range sizes {
		if err := host.repository(count, count == sizes[0]); err != nil {
			return err
		}
	}
	host.over(links[0])
	return host.streams("on a host by SSH", host.tunnel, "far-streams", "--machine", "far")
}

// repository measures one repository: all of it, or what its size may change.
func (h *farHost) repository(count int, whole bool) error {
	name, size := fmt.Sprintf("far%d", count), fmt.Sprintf("%d files", count)
	repo, brought := filepath.Join(h.dir, name), filepath.Join(h.home, name)
	if err := os.Mkdir(repo, 0o755); err != nil {
		return err
	}
	if err := h.fill(repo, count); err != nil {
		return err
	}
	where := size + ", " + h.over(links[0])
	created, err := clocked(func() error { return h.command(repo, h.litterbox, "create", name, "--machine", "far") })
	if err != nil {
		return err
	}
	copied, err := clocked(func() error {
		return h.command(repo, "rsync", "-a", "--exclude", ".git", "-e", h.ssh, repo+"/", "far:"+brought)
	})
	if err != nil {
		return err
	}
	h.timed(whatFarTree, where, once(created), besideTree, once(copied))
	var execs, tens [len(links)]timing
	for i, link := range links {
		where := size + ", " + h.over(link)
		if whole {
			if execs[i], err = h.commands(repo, name, where, i); err != nil {
				return err
			}
		} else if execs[i], err = h.exec(repo, name); err != nil {
			return err
		}
		if tens[i], err = h.tenFiles(repo, name, where); err != nil {
			return err
		}
	}
	span := links[len(links)-1] - links[0]
	trips := func(all [len(links)]timing) float64 {
		return (all[len(links)-1].median - all[0].median).Seconds() / span.Seconds()
	}
	of := fmt.Sprintf("%s, by the times at %d and %d ms", size, links[0].Milliseconds(), links[len(links)-1].Milliseconds())
	all := trips(tens)
	h.report.add(row{What: whatFarTrips, Where: of, Here: measure{Value: all - trips(execs)}, Beside: "with its command", There: measure{Value: all}})
	return nil
}

// commands measures a sandbox from nothing to its first commit, and a command in one
// that runs.
func (h *farHost) commands(repo, name, where string, link int) (timing, error) {
	litterbox := func(args ...string) error { return h.command(repo, append([]string{h.litterbox}, args...)...) }
	made := func(what string, i int) string { return fmt.Sprintf("%s%d-%d", what, link, i) }
	timings, err := h.measure(
		func(i int) error { return litterbox("create", made("c", i), "--machine", "far") },
		func(i int) error { return litterbox("run", made("r", i), "--machine", "far", "--", "true") },
		func(int) error { return litterbox("exec", name, "--no-commit", "--", "true") },
		func(int) error { return h.command(repo, h.ssh, "far", "true") },
	)
	if err != nil {
		return timing{}, err
	}
	for n, what := range []string{whatFarCreate, whatFarFirst, whatFarExec} {
		h.timed(what, where, timings[n], besideTrue, timings[3])
	}
	h.over(0)
	names := []string{"delete", "--force", "--purge"}
	for i := range h.rounds {
		names = append(names, made("c", i), made("r", i))
	}
	err = litterbox(names...)
	h.over(links[link])
	return timings[2], err
}

// exec measures a command in a sandbox that runs.
func (h *farHost) exec(repo, name string) (timing, error) {
	timings, err := h.measure(func(int) error {
		return h.command(repo, h.litterbox, "exec", name, "--no-commit", "--", "true")
	})
	if err != nil {
		return timing{}, err
	}
	return timings[0], nil
}

// tenFiles changes ten files there and brings the change here, in turns: in a
// sandbox, whose commit is here, and beside it with ssh and rsync, which makes none.
func (h *farHost) tenFiles(repo, name, where string) (timing, error) {
	brought, back := filepath.Join(h.home, name), filepath.Join(h.dir, name+"-back")
	fetch := func() error {
		return h.command(repo, "rsync", "-a", "-e", h.ssh, "far:"+brought+"/", back)
	}
	if err := fetch(); err != nil { // all of it for once
		return timing{}, err
	}
	timings, err := h.measure(
		func(int) error { return h.command(repo, h.litterbox, "exec", name, "--", "sh", "-c", changeTen) },
		func(int) error {
			if err := h.command(repo, h.ssh, "far", "cd "+brought+" && "+changeTen); err != nil {
				return err
			}
			return fetch()
		},
	)
	if err != nil {
		return timing{}, err
	}
	h.timed(whatFarTen, where, timings[0], besideBack, timings[1])
	return timings[0], nil
}
