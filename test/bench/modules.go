package main

import (
	"cmp"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// modules is a node_modules: a number of packages, with files of one size in each.
type modules struct{ packages, files, bytes int }

// kept returns the ignored files of a sandbox that is kept, forked and started from.
func (b *bench) kept() modules {
	if b.small {
		return modules{packages: 20, files: 100, bytes: 10 << 10}
	}
	return modules{packages: 500, files: 100, bytes: 10 << 10}
}

func (m modules) where() string {
	return fmt.Sprintf("%d ignored files of %d MB", m.packages*m.files, m.packages*m.files*m.bytes/1_000_000)
}

// script writes them without a package manager.
func (m modules) script() string {
	return fmt.Sprintf(`mkdir node_modules && cd node_modules && for d in $(seq %d); do mkdir p$d; for f in $(seq %d); do printf 'module.exports = %%%dd\n' $((d * f)) >p$d/$f.js; done; done`,
		m.packages, m.files, m.bytes-len("module.exports = \n"))
}

// npmProject writes a project whose packages npm ci installs from archives in the
// repository: nothing is fetched.
func npmProject(repo string, m modules) error {
	if err := os.MkdirAll(filepath.Join(repo, "packages"), 0o755); err != nil {
		return err
	}
	dependencies, locked := map[string]string{}, map[string]any{}
	for i := range m.packages {
		name := fmt.Sprintf("package%d", i)
		data, err := npmArchive(name, m)
		if err != nil {
			return err
		}
		path := "packages/" + name + ".tgz"
		if err := os.WriteFile(filepath.Join(repo, path), data, 0o644); err != nil {
			return err
		}
		sum := sha512.Sum512(data)
		dependencies[name] = "file:" + path
		locked["node_modules/"+name] = map[string]string{"version": "1.0.0", "resolved": "file:" + path,
			"integrity": "sha512-" + base64.StdEncoding.EncodeToString(sum[:])}
	}
	project := map[string]any{"name": "bench", "version": "1.0.0", "dependencies": dependencies}
	locked[""] = project
	lock := map[string]any{"name": "bench", "version": "1.0.0", "lockfileVersion": 3, "requires": true, "packages": locked}
	var all []error
	for name, value := range map[string]any{"package.json": project, "package-lock.json": lock} {
		data, err := json.Marshal(value)
		all = append(all, err, os.WriteFile(filepath.Join(repo, name), data, 0o644))
	}
	return errors.Join(all...)
}

// npmCI installs what npmProject wrote.
const npmCI = "npm ci --offline --no-audit --no-fund --ignore-scripts --no-update-notifier"

// hasNpm reports whether npm is installed, and says so if it is not.
func (b *bench) hasNpm(what string) bool {
	_, err := exec.LookPath("npm")
	if err != nil {
		b.report.missing("%s: npm is not installed", what)
	}
	return err == nil
}

// dockerCopies times docker commit of a container with these files and docker run
// of the result. It has no times if no engine answers.
func (b *bench) dockerCopies(repo string) (took []time.Duration, err error) {
	image := ""
	for _, one := range b.others {
		image = cmp.Or(image, one.image)
	}
	if image == "" {
		b.report.missing("docker commit and docker run: no engine answers")
		return nil, nil
	}
	docker := func(args ...string) error { return b.command(repo, append([]string{"docker"}, args...)...) }
	container := fmt.Sprintf("litterbox-bench-%d", os.Getpid())
	if err := docker("create", "--network", "none", "--name", container, image, "/true"); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, docker("rm", "--force", container)) }()
	if err := docker("cp", "--quiet", "node_modules", container+":/node_modules"); err != nil {
		return nil, err
	}
	for i := range min(b.rounds, keptRounds) {
		copied := fmt.Sprintf("%s:%d", container, i)
		one, err := clocked(func() error {
			if err := docker("commit", container, copied); err != nil {
				return err
			}
			return docker("run", "--rm", "--network", "none", copied, "/true")
		})
		if err = errors.Join(err, docker("rmi", "--force", copied)); err != nil {
			return nil, err
		}
		took = append(took, one)
	}
	return took, nil
}
