package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra/doc"

	"github.com/litterbox-sandbox/litterbox/internal/frontend/cli"
)

// shells have a completion script each, under the name that the shell expects.
var shells = []struct{ shell, file string }{
	{"bash", "litterbox"},
	{"zsh", "_litterbox"},
	{"fish", "litterbox.fish"},
}

// texts writes the files that are the same for every target: a manual page for
// each command, from the same texts as its help, and completions.
func (r *release) texts() error {
	manual := filepath.Join(r.source, "bin", "man")
	if err := os.Mkdir(manual, 0o755); err != nil {
		return err
	}
	tree := cli.Tree()
	tree.DisableAutoGenTag = true
	header := &doc.GenManHeader{Section: "1", Source: "litterbox " + r.version, Manual: "litterbox", Date: &r.date}
	if err := doc.GenManTree(tree, header, manual); err != nil {
		return fmt.Errorf("cannot write the manual pages: %w", err)
	}
	pages, err := os.ReadDir(manual)
	if err != nil {
		return err
	}
	for _, page := range pages {
		if err := compress(filepath.Join(manual, page.Name())); err != nil {
			return err
		}
	}
	native, err := r.native()
	if err != nil {
		return err
	}
	completions := filepath.Join(r.source, "bin", "completions")
	if err := os.Mkdir(completions, 0o755); err != nil {
		return err
	}
	for _, s := range shells {
		script, err := exec.CommandContext(r.ctx, r.program(native), "completion", s.shell).Output()
		if err != nil {
			return fmt.Errorf("cannot make the completion of %s: %w", s.shell, err)
		}
		if err := os.WriteFile(filepath.Join(completions, s.file), script, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// compress replaces a file by its gzip, with neither name nor time in it.
func compress(path string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var packed bytes.Buffer
	w, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err := w.Write(content); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	if err := os.WriteFile(path+".gz", packed.Bytes(), 0o644); err != nil {
		return err
	}
	return os.Remove(path)
}

// archive writes the archive of one target.
func (r *release) archive(t target) error {
	name := fmt.Sprintf("litterbox_%s_%s", r.version, t)
	var files bytes.Buffer
	w := tar.NewWriter(&files)
	add := func(from, to string, mode int64) error {
		content, err := os.ReadFile(from)
		if err != nil {
			return err
		}
		if err := w.WriteHeader(&tar.Header{Name: name + "/" + to, Mode: mode, Size: int64(len(content)), ModTime: r.date, Format: tar.FormatUSTAR}); err != nil {
			return err
		}
		_, err = w.Write(content)
		return err
	}
	if err := add(r.program(t), "litterbox", 0o755); err != nil {
		return err
	}
	for _, file := range []string{"LICENSE", "README.md"} {
		if err := add(filepath.Join(r.source, file), file, 0o644); err != nil {
			return err
		}
	}
	for _, dir := range []string{"completions", "man"} {
		entries, err := os.ReadDir(filepath.Join(r.source, "bin", dir))
		if err != nil {
			return err
		}
		for _, entry := range entries {
			if err := add(filepath.Join(r.source, "bin", dir, entry.Name()), dir+"/"+entry.Name(), 0o644); err != nil {
				return err
			}
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	path := filepath.Join(r.dist, name+".tar")
	if err := os.WriteFile(path, files.Bytes(), 0o644); err != nil {
		return err
	}
	return compress(path)
}

// pack writes the package of one target, as packages.yaml describes it.
func (r *release) pack(t target, packager string) error {
	zsh := "/usr/share/zsh/site-functions/_litterbox"
	if packager == "deb" {
		zsh = "/usr/share/zsh/vendor-completions/_litterbox"
	}
	env := []string{
		"GOFLAGS=", "VERSION=" + r.version, "ARCH=" + t.arch, "PROGRAM=" + r.program(t), "ZSH=" + zsh,
		"SOURCE_DATE_EPOCH=" + fmt.Sprint(r.date.Unix()),
	}
	return r.do(env, r.source, "go", "tool", "-modfile=tools/go.mod", "nfpm", "package",
		"--config", "cmd/litterbox-release/packages.yaml", "--packager", packager, "--target", r.dist)
}

// sums writes the checksums of everything, as sha256sum --check reads them.
func (r *release) sums() error {
	entries, err := os.ReadDir(r.dist)
	if err != nil {
		return err
	}
	var lines strings.Builder
	for _, entry := range entries {
		content, err := os.ReadFile(filepath.Join(r.dist, entry.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&lines, "%x  %s\n", sha256.Sum256(content), entry.Name())
	}
	return os.WriteFile(filepath.Join(r.dist, "SHA256SUMS"), []byte(lines.String()), 0o644)
}
