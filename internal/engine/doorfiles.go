package engine

import (
	"context"
	"path/filepath"

	"github.com/litterbox-sandbox/litterbox/internal/door"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// DoorRequest asks for sandboxes to be, or not to be, hosts of OpenSSH clients.
type DoorRequest struct {
	Dir     string
	Program string   // absolute path of this program
	Args    []string // with which it speaks to a client; the host follows
}

// DoorResult says what the clients of OpenSSH read.
type DoorResult struct {
	Block   string `json:"block"`  // text for ssh_config(5)
	File    string `json:"file"`   // that has it, once it is installed
	Config  string `json:"config"` // the user's own, which includes that file
	Changed bool   `json:"changed"`
}

func (e *Engine) doorFiles() door.Files { return door.Files(filepath.Join(e.Store.Root, "ssh")) }

func (e *Engine) doorOf(ctx context.Context, r DoorRequest) (DoorResult, door.Program, error) {
	who := callerOf(ctx)
	if who.Home == "" {
		return DoorResult{}, door.Program{}, fault.New(fault.Unavailable, "cannot find the configuration of ssh: HOME is not set")
	}
	program := door.Program{Path: r.Program, Args: r.Args}
	if state := who.Get("XDG_STATE_HOME"); filepath.IsAbs(state) {
		program.Env = []string{"XDG_STATE_HOME=" + state} // editors start ssh from elsewhere
	}
	block, err := e.doorFiles().Text(program, HostDomain)
	return DoorResult{Block: block, File: e.doorFiles().Block(), Config: filepath.Join(who.Home, ".ssh", "config")}, program, err
}

// DoorBlock says what an installation would write.
func (e *Engine) DoorBlock(ctx context.Context, r DoorRequest) (DoorResult, error) {
	result, _, err := e.doorOf(ctx, r)
	return result, err
}

// InstallDoor writes the block into a file of litterbox's own, and has the
// user's configuration include it.
func (e *Engine) InstallDoor(ctx context.Context, r DoorRequest) (result DoorResult, err error) {
	result, program, err := e.doorOf(ctx, r)
	if err != nil {
		return result, err
	}
	_, call, err := e.record(ctx, "ssh-config install", r.Dir, "", map[string]any{"config": result.Config})
	if err != nil {
		return result, err
	}
	defer func() { err = call.end("", nil, err) }()
	if err := e.doorFiles().Prepare(program, HostDomain); err != nil {
		return result, err
	}
	result.Changed, err = door.Config(result.Config).Install(e.doorFiles())
	return result, err
}

// UninstallDoor takes out of the user's configuration what InstallDoor has put
// in, and nothing else.
func (e *Engine) UninstallDoor(ctx context.Context, r DoorRequest) (result DoorResult, err error) {
	if result, _, err = e.doorOf(ctx, r); err != nil {
		return result, err
	}
	_, call, err := e.record(ctx, "ssh-config uninstall", r.Dir, "", map[string]any{"config": result.Config})
	if err != nil {
		return result, err
	}
	defer func() { err = call.end("", nil, err) }()
	result.Changed, err = door.Config(result.Config).Uninstall(e.doorFiles())
	return result, err
}

// DoorFiles is the directory in which the host key of sandboxes lies.
func (e *Engine) DoorFiles() string { return string(e.doorFiles()) }
