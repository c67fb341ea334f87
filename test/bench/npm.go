package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// The contents of node_modules in a small JavaScript project.
const (
	npmPackages = 60
	npmFiles    = 40 // in each
)

// npm installs packages made by this run.
func (b *bench) npm() error {
	if !b.hasNpm("npm ci") {
		return nil
	}
	repo := filepath.Join(b.dir, "npm")
	if err := npmProject(repo, modules{packages: npmPackages, files: npmFiles, bytes: 64}); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(repo, ".gitignore"), []byte("/node_modules/\n"), 0o644); err != nil {
		return err
	}
	if err := errors.Join(b.fill(repo, 1), b.pair(repo, "npm")); err != nil {
		return err
	}
	return errors.Join(b.inAndOut(repo, "npm", min(b.rounds, 5),
		work{whatNpm, "rm -rf node_modules; : %d", npmCI},
	), b.command(repo, b.litterbox, "delete", "--force", "npm"))
}

// npmArchive returns a package as npm pack makes it.
func npmArchive(name string, m modules) ([]byte, error) {
	var data bytes.Buffer
	zipped := gzip.NewWriter(&data)
	archive := tar.NewWriter(zipped)
	files := []string{fmt.Sprintf(`{"name":%q,"version":"1.0.0"}`, name)}
	for i := range m.files {
		files = append(files, fmt.Sprintf("module.exports = %*q\n", m.bytes-len("module.exports = \n"), fmt.Sprintf("%s %d", name, i)))
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
