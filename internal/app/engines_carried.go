//go:build embedguest

package app

import (
	"os"

	"github.com/litterbox-sandbox/litterbox/internal/caller"
	"github.com/litterbox-sandbox/litterbox/internal/driver/container"
	"github.com/litterbox-sandbox/litterbox/internal/payload"
	"github.com/litterbox-sandbox/litterbox/internal/store"
)

func engineOfContainers() container.Engine {
	return container.Bridge{Name: engineProgram, Start: func() (*os.File, []string, error) {
		self := caller.ThisProcess()
		root, err := store.DefaultRoot(&self)
		if err != nil {
			return nil, nil, err
		}
		outposts, err := payload.Outposts(root)
		if err != nil {
			return nil, nil, err
		}
		program, err := payload.OpenFull(root)
		if err != nil {
			return nil, nil, err
		}
		return program, append(self.Env, outposts...), nil
	}}
}

func answerEngine() int { return 1 } // only the full program is asked
