package namespace

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/driver/namespace/stage"
	"github.com/litterbox-sandbox/litterbox/internal/process"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// trialRecord remembers below the state directory that an overlay works there.
// A failure is not remembered: the human may fix it.
const trialRecord = "overlay-works.json"

// trial is what that success applied to.
type trial struct {
	Boot   string `json:"boot"`
	Device uint64 `json:"device"`
	UID    int    `json:"uid"`
	Shift  bool   `json:"shift"`
}

// Carriage implements driver.Driver: a copy if an overlay was tried in vain.
func (d Driver) Carriage(ctx context.Context, dir string) (sandbox.Carriage, string) {
	if d.Copy {
		return sandbox.CarriageCopy, "it was asked for"
	}
	now, err := trialNow(dir)
	if err == nil && now.worked(dir) {
		return sandbox.CarriageOverlay, ""
	}
	if why := tryCarriage(ctx, dir); why != "" {
		return sandbox.CarriageCopy, why
	}
	if err == nil {
		// Only a note for the next time, which otherwise tries again.
		if data, err := json.Marshal(now); err == nil {
			_ = os.WriteFile(filepath.Join(dir, trialRecord), append(data, '\n'), 0o600)
		}
	}
	return sandbox.CarriageOverlay, ""
}

func trialNow(dir string) (trial, error) {
	self, err := process.Identify(os.Getpid())
	if err != nil {
		return trial{}, err
	}
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		return trial{}, err
	}
	return trial{Boot: self.Boot, Device: st.Dev, UID: os.Geteuid(), Shift: realRoot()}, nil
}

func (t trial) worked(dir string) bool {
	data, err := os.ReadFile(filepath.Join(dir, trialRecord))
	var before trial
	return err == nil && json.Unmarshal(data, &before) == nil && before == t
}

// tryCarriage mounts and uses an overlay below dir as a sandbox would, and
// returns the obstacle, or "" when there is none.
func tryCarriage(ctx context.Context, dir string) string {
	where, err := os.MkdirTemp(dir, ".overlay-trial-")
	if err != nil {
		return err.Error()
	}
	defer removeTrial(where)
	inner, shifted := -1, -1
	var files []*os.File
	if realRoot() {
		inner, shifted = ordinaryID, shiftBase
		ids, err := stage.IDNamespace(inner, inner, shifted)
		if err != nil {
			return fmt.Sprintf("ids cannot be shifted: %v", err)
		}
		defer ids.Close()
		files = append(files, ids)
	}
	if err := stage.PrepareTrial(where, inner, shifted); err != nil {
		return err.Error()
	}
	why, err := runTrial(ctx, where, files)
	if err != nil {
		return errors.Join(err, errors.New(why)).Error()
	}
	return why
}

// runTrial starts the child and returns its message. Its status pipe has the
// number that stages expect, so other files come before it.
func runTrial(ctx context.Context, where string, files []*os.File) (string, error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return "", err
	}
	defer null.Close()
	status, statusWriter, err := os.Pipe()
	if err != nil {
		return "", err
	}
	defer status.Close()
	for len(files) < 2 {
		files = append(files, null)
	}
	attr := &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS}
	if !realRoot() {
		attr.Cloneflags |= unix.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
	}
	child, err := os.StartProcess("/proc/self/exe", []string{"litterbox-guest", stage.VerbOverlay}, &os.ProcAttr{
		Dir: where, Env: []string{}, Sys: attr, Files: append(append([]*os.File{null, null, null}, files...), statusWriter),
	})
	statusWriter.Close() // the child has its own
	if err != nil {
		return "", err
	}
	stop := context.AfterFunc(ctx, func() { _ = child.Kill() })
	defer stop()
	said, readErr := io.ReadAll(status)
	state, err := child.Wait()
	if err == nil && !state.Success() && len(said) == 0 {
		err = fmt.Errorf("the trial ended with %s", state)
	}
	why := strings.TrimPrefix(string(said), string(stage.StatusError))
	return strings.ReplaceAll(why, where, filepath.Dir(where)), errors.Join(err, readErr)
}

// removeTrial removes everything, including the directory that the kernel made
// in the work directory without any permissions.
func removeTrial(where string) {
	_ = os.Chmod(filepath.Join(where, "work", "work"), 0o700)
	_ = os.RemoveAll(where) // a leftover only takes a few inodes
}
