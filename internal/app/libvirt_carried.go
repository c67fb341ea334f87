//go:build embedguest

package app

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/litterbox-sandbox/litterbox/internal/caller"
	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/driver/libvirt"
	"github.com/litterbox-sandbox/litterbox/internal/payload"
	"github.com/litterbox-sandbox/litterbox/internal/process"
	"github.com/litterbox-sandbox/litterbox/internal/store"
)

func hypervisor() libvirt.Hypervisor { return carried{} }

func answerHypervisor() int { return 1 } // only the full program is asked

// carried asks libvirt through the full program, for one request at a time.
type carried struct{}

// Do implements libvirt.Hypervisor.
func (carried) Do(ctx context.Context, q libvirt.Request) (libvirt.Answer, error) {
	reply, err := ask(ctx, q)
	if err != nil {
		return libvirt.Answer{}, driver.Joined(driver.ErrUnreachable, fmt.Errorf("cannot ask libvirt: %w", err))
	}
	return reply.Result()
}

func ask(ctx context.Context, q libvirt.Request) (reply libvirt.Reply, err error) {
	self := caller.ThisProcess()
	root, err := store.DefaultRoot(&self)
	if err != nil {
		return reply, err
	}
	program, err := payload.OpenFull(root)
	if err != nil {
		return reply, err
	}
	defer program.Close()
	order, err := json.Marshal(q)
	if err != nil {
		return reply, err
	}
	out, err := process.Answer(ctx, program, hypervisorProgram, caller.Lasting(self.Env), order)
	if err != nil {
		return reply, err
	}
	return reply, json.Unmarshal(out, &reply)
}
