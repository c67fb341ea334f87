package main

import (
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

//go:embed floor/main.go
var floorProgram string

const besideFloor = "its processes alone, without work"

// floors measures commands beside the processes that they consist of.
func (b *bench) floors() (err error) {
	if err := b.build("floor", floorProgram); err != nil {
		return err
	}
	repo := filepath.Join(b.dir, "floors")
	if err := os.Mkdir(repo, 0o755); err != nil {
		return err
	}
	if err := b.fill(repo, 100); err != nil {
		return err
	}
	if err := b.command(repo, b.litterbox, "create", "floors"); err != nil {
		return err
	}
	program, socket := filepath.Join(b.dir, "floor"), filepath.Join(b.dir, "floor.sock")
	server := exec.Command(program, "serve", socket)
	if err := server.Start(); err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, server.Process.Kill())
		_ = server.Wait() // killed
	}()
	if err := awaitFile(socket); err != nil {
		return err
	}
	names := []string{"delete", "--force", "floors"}
	for _, one := range []struct {
		what            string
		litterbox, bare func(i int) []string
	}{
		{whatExec, func(int) []string { return []string{"exec", "floors", "--no-commit", "--", "true"} }, func(int) []string { return []string{"exec", socket} }},
		{whatCommit, func(int) []string { return []string{"exec", "floors", "--", "true"} }, func(int) []string { return []string{"commit", socket} }},
		{whatCreate, func(i int) []string {
			name := fmt.Sprintf("floors%d", i)
			names = append(names, name)
			return []string{"run", name, "--", "true"}
		}, func(int) []string { return []string{"create"} }},
	} {
		timings, err := b.measure(
			func(i int) error { return b.command(repo, append([]string{b.litterbox}, one.litterbox(i)...)...) },
			func(i int) error { return b.command(repo, append([]string{program}, one.bare(i)...)...) },
		)
		if err != nil {
			return err
		}
		b.timed(one.what, "100 files", timings[0], besideFloor, timings[1])
	}
	return b.command(repo, append([]string{b.litterbox}, names...)...)
}

// awaitFile waits until a server has made its socket.
func awaitFile(path string) error {
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		_, err := os.Lstat(path)
		if err == nil || time.Now().After(end) {
			return err
		}
	}
}
