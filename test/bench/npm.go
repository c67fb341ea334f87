package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// What a small project of JavaScript has below node_modules.
const (
	npmPackages = 60
	npmFiles    = 40 // in each
)

// npm installs packages of this run's own, from archives in the repository:
// nothing is fetched.
func (b *bench) npm() error {
	if _, err := exec.LookPath("npm"); err != nil {
		b.report.missing("npm ci: npm is not installed")
		return nil
	}
	repo := filepath.Join(b.dir, "npm")
	if err := os.MkdirAll(filepath.Join(repo, "packages"), 0o755); err != nil {
		return err
	}
	dependencies, locked := map[string]string{}, map[string]any{}
	for i := range npmPackages {
		name := fmt.Sprintf("package%d", i)
		data, err := npmArchive(name)
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
	for name, value := range map[string]any{"package.json": project, "package-lock.json": lock} {
		data, err := json.Marshal(value)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(repo, name), data, 0o644); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(repo, ".gitignore"), []byte("/node_modules/\n"), 0o644); err != nil {
		return err
	}
	if err := errors.Join(b.fill(repo, 1), b.pair(repo, "npm")); err != nil {
		return err
	}
	return errors.Join(b.inAndOut(repo, "npm", min(b.rounds, 5),
		work{whatNpm, "rm -rf node_modules; : %d", "npm ci --offline --no-audit --no-fund --ignore-scripts --no-update-notifier"},
	), b.command(repo, b.litterbox, "delete", "--force", "npm"))
}

// npmArchive is a package as npm pack makes it.
func npmArchive(name string) ([]byte, error) {
	var data bytes.Buffer
	zipped := gzip.NewWriter(&data)
	archive := tar.NewWriter(zipped)
	files := []string{fmt.Sprintf(`{"name":%q,"version":"1.0.0"}`, name)}
	for i := range npmFiles {
		files = append(files, fmt.Sprintf("module.exports = %q\n", fmt.Sprintf("%s %d", name, i)))
	}
	for i, content := range files {
		path := fmt.Sprintf("package/lib/file%d.js", i)
		if i == 0 {
			path = "package/package.json"
		}
		header := tar.Header{Name: path, Mode: 0o644, Size: int64(len(content))}
		if err := archive.WriteHeader(&header); err != nil {
			return nil, err
		}
		if _, err := archive.Write([]byte(content)); err != nil {
			return nil, err
		}
	}
	err := errors.Join(archive.Close(), zipped.Close())
	return data.Bytes(), err
}
